package state

import (
	"context"
	"fmt"
	"time"

	"github.com/hashicorp/go-memdb"

	"stagedoor/state/journal"
)

// Module is a set of tables that one package owns, with what that package derives from them in memory. Open takes the
// modules that a process needs. A module is used by one State: each call of a package's Module function returns a new
// one.
type Module struct {
	// Tables are loaded into memory when the state is opened.
	Tables []Registration
	// Checks look at records of tables that are not loaded, one record at a time. Verify reports their errors.
	Checks map[journal.Table]func(journal.Record) error
	// Memory holds the state that the package keeps beside its tables. MemoryOf returns it.
	Memory any
	// BeforeDecision, if set, is called before the commands of a group run, and again each time when they are decided
	// again. AfterGroup, if set, is called when the group has been committed or has failed. The writer calls both.
	BeforeDecision, AfterGroup func()
	// Verify, if set, compares the tables with each other and with what is kept on disk only.
	Verify func(ctx context.Context, v *Verifier) error
}

// Registration makes a table part of a module. Transactions, the writer and the loader know tables by their
// registrations only.
type Registration struct {
	table interface {
		durableTable() journal.Table
		schema() *memdb.TableSchema
		audited() bool
		row(txn *memdb.Txn, id string) (any, error)
		insert(txn *memdb.Txn, row any) error
		remove(txn *memdb.Txn, row any) error
		decoder
	}
	loaded    func(*State)
	written   func(*Tx, change)
	committed func(*State, change)
	sweep     func(*State, int) func(*Tx, int) int
	loadFrom  func(time.Time) []byte
}

// Table returns the durable table of a registration.
func (r Registration) Table() journal.Table { return r.table.durableTable() }

// Audited reports whether changes of the table's records are in the audit log.
func (r Registration) Audited() bool { return r.table.audited() }

// Hooks keep figures beside a table up to date and say how its rows leave. A hook that is nil does nothing. Where a
// hook is given a row before and after a change, before is nil for a new row and after is nil for a removed one.
type Hooks[R any] struct {
	// Loaded runs once, when the tables of all modules have been read.
	Loaded func(*State)
	// Written runs for each change of a row while commands run, and with before and after exchanged when a change is
	// taken back. Commands that run later see what it did.
	Written func(tx *Tx, before, after *R)
	// Committed runs for each change that has become durable and visible. The writer calls it.
	Committed func(s *State, before, after *R)
	// Sweep takes the place of removing the rows that have expired. It is called outside of a command, so that it may
	// read many rows, and returns what the command does then: remove at most limit rows and return how many.
	Sweep func(s *State, limit int) func(tx *Tx, limit int) int
	// LoadFrom returns the first key that is loaded into memory at a time. Without it the whole table is loaded.
	LoadFrom func(now time.Time) []byte
}

// Register makes a table part of a module. It panics if the table is Grouped and has Expires or Indexes.
func Register[R any](t *Table[R], h Hooks[R]) Registration {
	if t.Grouped && (t.Expires != nil || t.Indexes != nil) {
		panic(fmt.Sprintf("the table %q is grouped and has an index beside that by id", t.Name))
	}
	r := Registration{table: t, loaded: h.Loaded, sweep: h.Sweep, loadFrom: h.LoadFrom}
	if h.Written != nil {
		r.written = func(tx *Tx, c change) { h.Written(tx, recordIn[R](c.before), recordIn[R](c.after)) }
	}
	if h.Committed != nil {
		r.committed = func(s *State, c change) { h.Committed(s, recordIn[R](c.before), recordIn[R](c.after)) }
	}
	if r.sweep == nil && t.Expires != nil {
		r.sweep = func(*State, int) func(*Tx, int) int { return t.sweep }
	}
	return r
}

// recordIn returns the record of a row of memdb, or nil if raw is none of that table.
func recordIn[R any](raw any) *R {
	if r, ok := raw.(*Row[R]); ok {
		return &r.Rec
	}
	return nil
}

// MemoryOf returns the Memory of the module that has one of type T. It panics if the state was opened without that
// module, which is a mistake in the program. It is cheap enough to be called for every request.
func MemoryOf[T any](owner interface{ memories() []any }) T {
	for _, m := range owner.memories() {
		if m, ok := m.(T); ok {
			return m
		}
	}
	var none T
	panic(fmt.Sprintf("the state was opened without the module of %T", none))
}

func (s *State) memories() []any { return s.memory }

func (tx *Tx) memories() []any { return tx.memory }
