package journal

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"slices"
	"time"
)

// Shared is a Store that several processes write, called nodes here. Their commits form one log. A node keeps a copy of
// the hot tables in memory, decides on it and appends what it decided on the condition that the log ends where the copy
// does, so every decision is made with all earlier ones in view. Store.Commit, for callers without such a copy, appends
// at the end of the log, whatever it is.
//
// All methods but those of Log may be called by many goroutines.
type Shared interface {
	Store
	Log

	// View calls fn with one snapshot of all tables and the position of the log at which it was taken. The Reader is
	// valid until fn returns.
	View(ctx context.Context, fn func(Reader, Position) error) error

	// Changed returns a channel that receives after another node has appended. It is a hint: it may receive more often,
	// or once for many entries. It is nil if there can be no other node.
	Changed() <-chan struct{}

	// Members returns the nodes, or nil if there can be no other one.
	Members() Members
}

// Log is the log of a Shared as the writer of a node uses it. Its methods are for one caller at a time, which keeps the
// Position.
type Log interface {
	// Append commits batches that were decided at the time now by a node whose copy is at a position, and returns the
	// next one. If the log does not end there, nothing has changed and the error is a *BehindError. Without operations
	// it only ends the turn. It does not look at conditions, which hold where the position does, but a batch has one
	// for each record of a hot table that it writes, because a record's next revision follows from it. Other errors are
	// those of Commit, and ErrFenced, ErrForked and ErrUnreachable.
	Append(ctx context.Context, at Position, now time.Time, batches []Batch) (Position, error)

	// Turn waits until no other node can append, but not for long, and returns the entries after a position. The next
	// Append ends the turn. If turn is false, the wait was too long and other nodes may go on appending.
	Turn(ctx context.Context, at Position) (entries []Entry, turn bool, err error)

	// Tail calls fn with the entries after a position, in order, up to the end of the log.
	Tail(ctx context.Context, at Position, fn func(Entry) error) error

	// Head returns the end of the log, or ErrForked if the caller has seen a later entry, or another one, as the end.
	Head(ctx context.Context) (Position, error)
}

// Members are the nodes of a Shared. List says which are live by the clock of the store.
type Members interface {
	// Beat says that this node is live. The error is ErrFenced if it was expelled.
	Beat(ctx context.Context) error
	// List returns all nodes that have not left, in the order of their names.
	List(ctx context.Context) ([]Member, error)
	// Expel ends the epoch of a node, which cannot append any more, and reports whether it was in this epoch still.
	Expel(ctx context.Context, node string, epoch uint64) (bool, error)
	// Self returns the name and the epoch of this node, and whether other nodes may be able to append, too.
	Self() (node string, epoch uint64, several bool)
	// Epochs returns the epochs that have not ended, by the names of their nodes. No append of any other epoch counts
	// from now on.
	Epochs(ctx context.Context) (map[string]uint64, error)
}

// Member is a node as the store knows it.
type Member struct {
	Node  string
	Epoch uint64
	Live  bool          // it has beaten within its lease and was not expelled
	Age   time.Duration // since its last beat
	LSN   LSN           // up to which it had applied the log then
	// Version is the version of its program, or "" if that is unknown.
	Version string
	// Standby says that it follows the log and waits until no other node is live.
	Standby bool
	// Address is that on which it answers the other nodes, or empty.
	Address string
}

// Divider divides limits by the nodes, so that what all of them permit together is never above a limit. Members whose
// nodes serve at the same time implement it.
type Divider interface {
	// Divide asks for one of parts equal parts of each limit, and reports whether this node has it from now on. A part
	// that is not larger than the node's last one is always granted, but the node must keep to it before it asks. A
	// larger part is granted only if the parts of all others leave as much. A node that has left has no part any more.
	// A node that was expelled keeps its part until after has passed since its last beat, because it may serve that
	// long without knowing.
	Divide(ctx context.Context, parts int, after time.Duration) (bool, error)
}

// Lender lends the units of limits that are too small to be divided, each to one node at a time. Members whose nodes
// serve at the same time implement it.
type Lender interface {
	// Lend gives back units that a node has, gets others for it, and returns what it has then. It may be called again
	// after any error, with the same or another loan.
	Lend(ctx context.Context, l Loan) (Lent, error)
}

// Loan describes a limit of which a node borrows units, and what it needs and gives back.
type Loan struct {
	Limit string // its name, which is the same on all nodes
	Size  int    // its units
	Need  int    // units for which the node has requests now
	Back  []int  // the numbers of units that the node has stopped using and gives back
	// Credit is the unused time that each unit which is given back has saved up, as in a token bucket. It grows until
	// another node has the unit.
	Credit time.Duration
	// After is the time after its last beat in which a node may serve without knowing that it was expelled. Its units
	// are lent to others afterwards.
	After time.Duration
}

// Lent lists the units that a node has of a limit, and says how many others wait for.
type Lent struct {
	Units  []Unit
	Wanted int // units that other nodes wait for
	// Part is an equal part of the units for each node that has some or waits for some, rounded down.
	Part int
	// Short counts those of the wanted units without which other nodes have less than Part, or than 1 if Part is 0.
	Short int
}

// Unit is one unit of a limit. Credit is the time that it had saved up when the node got it.
type Unit struct {
	Number int
	Credit time.Duration
}

// Position is a place in the log. The tag is random for each entry, so that a log which has lost entries and got others
// in their place is recognized.
type Position struct {
	LSN LSN
	Tag uint64
}

// Entry has what one append did to the hot tables.
type Entry struct {
	Position
	Node    string
	At      time.Time // when its commands were decided
	Changes []Change
}

// Change is a record as an entry left it. If Deleted is set, Record has only the key.
type Change struct {
	Table Table
	Record
	Deleted bool
}

// Errors of a Shared.
var (
	// ErrFenced says that this node was expelled, or that another process has taken its name. It cannot append any more
	// and has to start again.
	ErrFenced = errors.New("this node was expelled from the cluster")
	// ErrForked says that the log is not the one that the node has followed, or that it no longer has the entries that
	// the node needs. The node has to load all records again.
	ErrForked = errors.New("the log does not continue where this node is")
	// ErrUnreachable says that the store could not be reached in time. Nothing has changed.
	ErrUnreachable = errors.New("the store cannot be reached")
)

// BehindError says that the log goes on after the position of an Append. It is an ErrDecideAgain.
type BehindError struct {
	Entries []Entry // the next ones
	More    bool    // there may be more of them
}

func (e *BehindError) Error() string {
	return fmt.Sprintf("%v: the log goes on with %d entries", ErrDecideAgain, len(e.Entries))
}

func (e *BehindError) Unwrap() error { return ErrDecideAgain }

// cold are the tables that nodes do not keep in memory. Their records are not in entries.
var cold = [...]Table{Ledger, Body, Event, Receipt, ByHash, Folded, ReplyBody, Audit}

// Hot reports whether nodes keep the table in memory, so that the entries of a shared log have its changes.
func (t Table) Hot() bool { return !slices.Contains(cold[:], t) }

// AppendChange appends a change to the text of an entry, in the form of the redo log. It carries a checksum.
func AppendChange(b []byte, c Change) []byte {
	b = appendChangeKey(b, c.Table, c.Key)
	if c.Deleted {
		return binary.AppendUvarint(b, 0)
	}
	b = binary.AppendUvarint(b, uint64(1+sealHeader+len(c.Value)))
	return appendSealed(b, c.Table, c.Key, c.Rev, c.Value)
}

// ReadChanges returns the changes of an entry's text, which they share memory with. The error is a *CorruptError.
func ReadChanges(text []byte) ([]Change, error) {
	var all []Change
	for len(text) > 0 {
		t, c, n := readChange(text)
		if n == 0 {
			return nil, &CorruptError{Table: "log", Reason: "has an entry with an unknown change"}
		}
		next := Change{Table: tables[t], Record: Record{Key: c.key}, Deleted: c.sealed == nil}
		if !next.Deleted {
			var err error
			if next.Rev, next.Value, err = unseal(next.Table, c.key, c.sealed); err != nil {
				return nil, err
			}
		}
		all, text = append(all, next), text[n:]
	}
	return all, nil
}

// Alone returns a store with one writer as a Shared whose log is never ahead of that writer. It is how the embedded
// store and the one in memory are used.
func Alone(s Store) Shared { return oneWriter{s} }

// oneWriter is the Shared of a store that only this process writes. Most methods that coordinate several nodes do
// nothing here.
type oneWriter struct{ Store }

// View needs no snapshot, because there is no other writer.
func (a oneWriter) View(_ context.Context, fn func(Reader, Position) error) error {
	return fn(a.Store, Position{})
}

// Append is the store's Commit. Its conditions are checked, because the file could be of another copy of the state.
func (a oneWriter) Append(ctx context.Context, at Position, _ time.Time, batches []Batch) (Position, error) {
	if len(batches) == 0 {
		return at, nil
	}
	lsn, err := a.Commit(ctx, batches)
	return Position{LSN: lsn}, err
}

// Turn reports that it is this node's turn, because no other node can append.
func (a oneWriter) Turn(context.Context, Position) ([]Entry, bool, error) { return nil, true, nil }

// Tail calls nothing, because the only node has made all entries itself.
func (a oneWriter) Tail(context.Context, Position, func(Entry) error) error { return nil }

// Head returns the zero Position. The log is never ahead of its only writer, so no caller waits for a later position.
func (a oneWriter) Head(context.Context) (Position, error) { return Position{}, nil }

func (a oneWriter) Changed() <-chan struct{} { return nil }

func (a oneWriter) Members() Members { return nil }
