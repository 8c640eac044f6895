package state

import (
	"context"
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	"github.com/hashicorp/go-memdb"

	"stagedoor/state/journal"
)

// State is the tables and their one writer. Its methods may be called by many goroutines.
type State struct {
	store journal.Store
	log   journal.Shared   // store, as one that other nodes may write
	at    journal.Position // of the log, up to which mem has it; it belongs to the writer
	node  Node             // of this process
	mem   *memdb.MemDB
	now   func() time.Time // of clock
	clock clock

	modules []Module
	memory  []any                   // of the modules
	tables  map[string]Registration // of all modules, by name

	queue   chan *request
	sending sync.RWMutex // held shared to send on queue, exclusively to close it
	closed  bool
	stopped chan struct{} // closed when the writer has ended

	failOnce sync.Once
	failure  atomic.Pointer[error]
	failed   chan struct{}
	stalled  atomic.Pointer[error] // why no command is taken while a shared store does not answer, or nil

	appending context.Context // of what the writer does with the log
	giveUp    context.CancelFunc

	groups, again, commands atomic.Uint64
	published               atomic.Uint64 // how often tables in memory have changed

	auditKeep    atomic.Int64 // a time.Duration; see KeepAudit
	auditRecords atomic.Int64
}

// Open reads the tables of the modules from store into memory and starts the writer. The store stays the caller's and
// is closed after Close. now is the wall clock, of which Now is made. The time and memory that Open takes grow with the
// number of records. After an error nothing was started.
func Open(store journal.Store, now func() time.Time, modules ...Module) (*State, error) {
	s := newState(store, now, modules)
	if err := s.load(); err != nil {
		return nil, fmt.Errorf("load state: %w", err)
	}
	go s.write()
	return s, nil
}

// newState returns a State whose tables are empty and whose writer does not run yet.
func newState(store journal.Store, now func() time.Time, modules []Module) *State {
	s := &State{
		store:   store,
		log:     asShared(store),
		clock:   clock{wall: now},
		modules: modules,
		tables:  map[string]Registration{},
		queue:   make(chan *request, maxQueue),
		stopped: make(chan struct{}),
		failed:  make(chan struct{}),
	}
	s.now = s.clock.now
	s.node = nodeOf(s.log)
	s.appending, s.giveUp = context.WithCancel(context.Background())
	for _, m := range modules {
		if m.Memory != nil {
			s.memory = append(s.memory, m.Memory)
		}
	}
	return s
}

// registrations returns the tables of this package and then those of the modules.
func (s *State) registrations() []Registration {
	all := []Registration{Register(&facts, Hooks[fact]{Loaded: (*State).restoreClock, Sweep: sweepAudit})}
	for _, m := range s.modules {
		all = append(all, m.Tables...)
	}
	return all
}

// load creates the tables of all modules in memory and fills them from one snapshot of the store.
// Then the modules derive what they keep besides.
func (s *State) load() error {
	schema := &memdb.DBSchema{Tables: map[string]*memdb.TableSchema{}}
	registrations := s.registrations()
	for _, r := range registrations {
		name := r.table.name()
		if _, twice := s.tables[name]; twice {
			return fmt.Errorf("two modules have the table %q", name)
		}
		schema.Tables[name] = r.table.schema()
		s.tables[name] = r
	}
	db, err := memdb.NewMemDB(schema)
	if err != nil {
		return err
	}
	txn := db.Txn(true)
	defer txn.Abort()
	if err := s.log.View(s.appending, func(r journal.Reader, at journal.Position) error {
		s.at = at
		return loadTables(r, txn, s.now(), registrations)
	}); err != nil {
		return err
	}
	txn.Commit()
	s.mem = db
	for _, r := range registrations {
		if r.loaded != nil {
			r.loaded(s)
		}
	}
	return nil
}

// Get returns a record of the durable store, or journal.ErrNotFound. It is for records that are not in memory.
func (s *State) Get(ctx context.Context, t journal.Table, key []byte) (journal.Record, error) {
	rec, err := s.store.Get(ctx, t, key)
	return rec, unavailable(err)
}

// Range calls fn with at most limit (0: all) durable records whose keys are at least from and below to, in order. See
// journal.Store. An error of fn ends it and is returned. fn must not use the State.
func (s *State) Range(ctx context.Context, t journal.Table, from, to []byte, limit int,
	fn func(journal.Record) error) error {
	return unavailable(s.store.Range(ctx, t, from, to, limit, fn))
}

// Published returns a number, never 0, that is another one after each change of a table. A caller that asks before it
// takes a View can keep what it has read there for as long as the number stays, which costs less than to read again.
func (s *State) Published() uint64 { return s.published.Load() + 1 }

// ReleasePages gives memory back with which the durable store has read its file, which it reads again when it has to.
// A store without a file does nothing.
func (s *State) ReleasePages() {
	if file, ok := s.store.(interface{ ReleasePages() }); ok {
		file.ReleasePages()
	}
}

// Err returns nil while changes are accepted, and ErrUnavailable with the cause afterwards.
func (s *State) Err() error {
	if err := s.failure.Load(); err != nil {
		return *err
	}
	return nil
}

// Failed returns a channel that is closed when the durable store has failed for good. The process should drain and
// start again from disk. Reads from memory go on until then.
func (s *State) Failed() <-chan struct{} { return s.failed }

// closeWait bounds the time that Close waits for a shared store, which may not be reachable.
const closeWait = 10 * time.Second

// Close refuses new commands, waits until those that wait are answered and stops the writer. It does not close the
// store. While a shared store cannot be reached, it answers with ErrUnavailable after ten seconds.
func (s *State) Close() error {
	s.sending.Lock()
	if !s.closed {
		s.closed = true
		close(s.queue)
	}
	s.sending.Unlock()
	if s.log.Members() != nil {
		defer time.AfterFunc(closeWait, s.giveUp).Stop()
	}
	<-s.stopped
	s.giveUp()
	return nil
}

// Stats are figures for an operator.
type Stats struct {
	Groups   uint64 // commits of the writer, empty ones included
	Again    uint64 // decisions that were made again, because another node was first
	Commands uint64
	Waiting  int // commands in the queue now
	Journal  journal.Stats
}

// Stats returns the figures as they are now.
func (s *State) Stats() Stats {
	return Stats{
		Groups:   s.groups.Load(),
		Again:    s.again.Load(),
		Commands: s.commands.Load(),
		Waiting:  len(s.queue),
		Journal:  s.store.Stats(),
	}
}

// Backup writes a copy of the store to path while the state is in use, and returns its bytes. See journal.BackupFile.
func (s *State) Backup(ctx context.Context, path string) (int64, error) {
	return journal.BackupFile(ctx, s.store, path)
}

// BackupChanges writes what has changed since the backup of the path before. See journal.BackupChanges.
func (s *State) BackupChanges(ctx context.Context, path, before string) (journal.ChangesBackup, error) {
	return journal.BackupChanges(ctx, s.store, path, before)
}
