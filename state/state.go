package state

import (
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	"github.com/hashicorp/go-memdb"

	"stagedoor/state/journal"
	"stagedoor/state/share"
)

// State is the tables and their one writer. Its methods may be called by many
// goroutines.
type State struct {
	store  journal.Store
	mem    *memdb.MemDB
	now    func() time.Time // of clock
	clock  clock
	hot    keyring                       // the keys by hash, for the lookup of every request
	keyEra atomic.Uint64                 // see KeyEra
	access atomic.Pointer[chan struct{}] // see WatchAccess
	roster roster                        // what restricts users, for the same

	webhooks atomic.Pointer[[]Webhook] // the endpoints and which events each of them gets
	outbox   outbox

	responses    atomic.Int64 // rows in the table of responses
	kept         keeping      // what owners keep of them
	maxResponses int
	ledger       uint64 // sequence of the last ledger entry; the writer's
	paper, folio paper  // what it writes on; see Tx
	names        map[string]uint64
	packEntries  int // how many ledger entries make a pack, at least
	folding      sync.Mutex

	hooks map[string]hooks // of the registered tables, by name

	queue   chan *request
	sending sync.RWMutex // held shared to send on queue, exclusively to close it
	closed  bool
	stopped chan struct{} // closed when the writer is gone

	failOnce sync.Once
	failure  atomic.Pointer[error]
	failed   chan struct{}

	groups, commands atomic.Uint64
}

// Option changes what Open does.
type Option func(*State)

// MaxResponses bounds how many stored responses are kept: beyond it Sweep
// removes the oldest finished ones, also if they have not expired. Each costs
// about 1 KB of memory for its header. The default is 200,000.
func MaxResponses(n int) Option { return func(s *State) { s.maxResponses = n } }

// Open reads the hot tables of store into memory and starts the writer. The
// store stays the caller's, to be closed after Close. now is the wall clock; see
// Now for what is made of it.
func Open(store journal.Store, now func() time.Time, options ...Option) (*State, error) {
	s := newState(store, now, options...)
	if err := s.load(); err != nil {
		return nil, fmt.Errorf("load state: %w", err)
	}
	go s.write()
	return s, nil
}

func newState(store journal.Store, now func() time.Time, options ...Option) *State {
	s := &State{
		store:        store,
		clock:        clock{wall: now},
		maxResponses: 200_000,
		queue:        make(chan *request, maxQueue),
		stopped:      make(chan struct{}),
		failed:       make(chan struct{}),
		names:        map[string]uint64{},
		hooks:        map[string]hooks{},
		packEntries:  packEntries,
	}
	s.now = s.clock.now
	s.kept.owners = make(map[Owner]Kept)
	s.outbox.waiting = share.New(share.Webhooks, 10_000, 1)
	access := make(chan struct{})
	s.access.Store(&access)
	for _, o := range options {
		o(s)
	}
	return s
}

func (s *State) load() error {
	schema := &memdb.DBSchema{Tables: map[string]*memdb.TableSchema{}}
	var names []journal.Table
	decoders := map[journal.Table]decoder{}
	for _, r := range registrations {
		name := r.table.durableTable()
		schema.Tables[string(name)] = r.table.schema()
		decoders[name] = r.table
		names = append(names, name)
		s.hooks[string(name)] = r.hooks
	}
	schema.Tables[usages.name()] = usages.schema()
	db, err := memdb.NewMemDB(schema)
	if err != nil {
		return err
	}
	txn := db.Txn(true)
	defer txn.Abort()
	if err := loadTables(s.store, txn, decoders, names); err != nil {
		return err
	}
	if err := s.loadUsage(txn); err != nil {
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

// snapshot is memdb as it is now: all that was acknowledged and nothing else.
func (s *State) snapshot() *memdb.Txn { return s.mem.Txn(false) }

// Err is nil while changes are accepted, then ErrUnavailable with the cause.
func (s *State) Err() error {
	if err := s.failure.Load(); err != nil {
		return *err
	}
	return nil
}

// Failed is closed when the durable store has failed for good. The process
// should drain and start again from disk; reads from memory go on until then.
func (s *State) Failed() <-chan struct{} { return s.failed }

// Close refuses new commands, waits until those that wait are answered and stops
// the writer. It does not close the store.
func (s *State) Close() error {
	s.sending.Lock()
	if !s.closed {
		s.closed = true
		close(s.queue)
	}
	s.sending.Unlock()
	<-s.stopped
	return nil
}

// Stats are figures for an operator.
type Stats struct {
	Groups    uint64 // commits of the writer, empty ones included
	Commands  uint64
	Waiting   int // commands in the queue now
	Responses int
	// ResponseBytes are what they take, and ResponsesRefused were beyond a quota.
	ResponseBytes, ResponsesRefused int64
	// DeletionsWithoutRoom and DeletionsGivenUp are how many responses since the start are kept by
	// their providers, because too many deletions of their owner waited, or because all tries failed.
	DeletionsWithoutRoom, DeletionsGivenUp int64
	Journal                                journal.Stats
}

// Stats returns the figures as they are now.
func (s *State) Stats() Stats {
	s.kept.mu.Lock()
	bytes := s.kept.bytes
	s.kept.mu.Unlock()
	return Stats{
		ResponseBytes: bytes, ResponsesRefused: s.kept.refused.Load(),
		DeletionsWithoutRoom: s.kept.undeleted.Load(), DeletionsGivenUp: s.kept.givenUp.Load(),
		Groups:    s.groups.Load(),
		Commands:  s.commands.Load(),
		Waiting:   len(s.queue),
		Responses: int(s.responses.Load()),
		Journal:   s.store.Stats(),
	}
}
