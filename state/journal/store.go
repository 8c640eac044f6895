package journal

import (
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"time"
)

// Store keeps records durably. All methods may be called by many goroutines, but
// none from inside a callback.
type Store interface {
	Reader

	// Commit applies the batches in order, all of them or none, and returns when
	// they are durable. A batch sees what those before it did. Where a condition
	// does not hold the error is a *ConflictError. After ErrConflict, ErrInvalid,
	// ErrReadOnly, ErrClosed, ErrDecideAgain or an error of ctx nothing has changed;
	// after any other error the outcome is unknown and the store is poisoned.
	// ctx is looked at once, before anything is written. Nothing of batches is kept.
	Commit(ctx context.Context, batches []Batch) (LSN, error)

	// Backup writes a consistent copy in the store's own format while others
	// read and write.
	Backup(ctx context.Context, w io.Writer) error

	Stats() Stats

	// Close waits for what is running. Everything after it is ErrClosed.
	Close() error
}

// Reader is the part of a Store that reads records.
type Reader interface {
	// Load calls fn with every record of the given tables, table by table and in
	// key order, as they stood at the returned LSN. An error of fn ends it.
	Load(ctx context.Context, tables []Table, fn func(Table, Record) error) (LSN, error)

	// Get returns one record, or ErrNotFound. The value is the caller's.
	Get(ctx context.Context, table Table, key []byte) (Record, error)

	// Range calls fn with the records from <= key < to in key order, at most
	// limit of them if limit > 0. A nil from or to leaves that side open.
	Range(ctx context.Context, table Table, from, to []byte, limit int, fn func(Record) error) error
}

// LSN numbers commits: the first is 1. It never goes back.
type LSN uint64

// Record is one record. Those handed to a callback are valid, and must be left
// unchanged, until it returns.
type Record struct {
	Key   []byte
	Value []byte
	Rev   uint64
}

// Batch lists the writes of one command. They are made if every condition holds.
type Batch struct {
	Pre []Cond
	Ops []Op
}

// Cond demands that a record has the revision Rev, or that there is no such record if Rev is 0.
type Cond struct {
	Table Table
	Key   []byte
	Rev   uint64
}

// OpKind says what an Op does.
type OpKind uint8

// Kinds of Op.
const (
	Put          OpKind = iota // write Value under Key
	Delete                     // remove Key; nothing happens if it is not there
	DeletePrefix               // remove every record whose key begins with Key
)

// Op is one change.
type Op struct {
	Kind  OpKind
	Table Table
	Key   []byte
	Value []byte
	// New promises that Key was never written, so that its revision is 1 and need not
	// be looked up.
	New bool
}

// Stats are figures for an operator.
type Stats struct {
	LSN      LSN
	Commits  uint64 // since the store was opened
	Size     int64  // bytes of the file and its redo log; of keys and values in memory
	Free     int64  // bytes of the file that are free for use
	DiskFree int64  // bytes free on the disk; -1: not known
	Full     error  // why commits are refused until there is room, or nil
	Poisoned error  // why the store stopped, or nil
	// CutBack is set if the last commit was not whole when the store was opened, so that
	// the one before it is in force. The last commit is that of the redo log or, where
	// nothing follows there, of the file. A power cut does that to a commit that was not
	// acknowledged, and damage to the disk can do it to one that was.
	CutBack bool
	// Shared has the figures of a store that several processes write, or is nil.
	Shared *SharedStats
}

// SharedStats are figures of one node of a Shared.
type SharedStats struct {
	Turns  uint64        // that the node has waited for, after another one was faster
	Behind uint64        // entries of the log that the node had not applied when it last looked
	Lease  time.Duration // after which it is expelled if it does not beat
	Silent time.Duration // since the store last answered
	Format int           // of the entries; see Table.Format
}

// Errors callers decide on.
var (
	ErrNotFound = errors.New("no such record")
	ErrConflict = errors.New("a record is not as the command expected it")
	ErrInvalid  = errors.New("invalid record")
	ErrReadOnly = errors.New("the store only reads")
	ErrPoisoned = errors.New("the store failed to write and stopped")
	ErrClosed   = errors.New("the store is closed")
	ErrLocked   = errors.New("another process has the store open")
	ErrCorrupt  = errors.New("the store is damaged")
	ErrSchema   = errors.New("the store was written by another version")
	// ErrDecideAgain asks the caller of Commit to decide its commands again and to commit what they come to then. A
	// store that several processes write returns it when another process was faster.
	ErrDecideAgain = errors.New("the commands must be decided again")
)

// ConflictError is an ErrConflict that names the batch and the record.
type ConflictError struct {
	Batch int // index in the argument of Commit
	Cond  Cond
	Have  uint64 // the revision there is; 0: none
}

// Error implements error.
func (e *ConflictError) Error() string {
	return fmt.Sprintf("%v: %s/%q has revision %d, not %d", ErrConflict, e.Cond.Table, e.Cond.Key, e.Have, e.Cond.Rev)
}

// Unwrap lets callers find ErrConflict.
func (e *ConflictError) Unwrap() error { return ErrConflict }

// CorruptError is an ErrCorrupt that names the place. Key is nil where the
// damage is not in one record.
type CorruptError struct {
	Table  Table
	Key    []byte
	Reason string
}

// Error implements error. It says where the damage is and nothing of what is stored there.
func (e *CorruptError) Error() string {
	if e.Key == nil {
		return fmt.Sprintf("%v: %s %s: restore a backup", ErrCorrupt, e.Table, e.Reason)
	}
	return fmt.Sprintf("%v: %s/%q %s: restore a backup", ErrCorrupt, e.Table, e.Key, e.Reason)
}

// Unwrap lets callers find ErrCorrupt.
func (e *CorruptError) Unwrap() error { return ErrCorrupt }

// Limits of a record. bbolt takes keys of up to 32,768 bytes; ours are ids.
const (
	MaxKey   = 1 << 10
	MaxValue = 256 << 20
)

// Check finds mistakes of the caller of Commit, such as unknown tables and keys that
// are too long, and returns ErrInvalid. A store calls it before it writes anything, so
// that every error of the write itself is the disk's and poisons.
func Check(batches []Batch) error {
	for _, b := range batches {
		for _, c := range b.Pre {
			if err := CheckKey(c.Table, c.Key); err != nil {
				return err
			}
		}
		for _, op := range b.Ops {
			if err := CheckKey(op.Table, op.Key); err != nil {
				return err
			}
			if op.Kind > DeletePrefix {
				return fmt.Errorf("%w: operation %d", ErrInvalid, op.Kind)
			}
			if len(op.Value) > MaxValue {
				return fmt.Errorf("%w: %s/%q has %d bytes", ErrInvalid, op.Table, op.Key, len(op.Value))
			}
		}
	}
	return nil
}

// CheckKey returns ErrInvalid for a table or a key that no record can have.
func CheckKey(t Table, key []byte) error {
	if !t.Known() {
		return fmt.Errorf("%w: no table %q", ErrInvalid, string(t))
	}
	if len(key) == 0 || len(key) > MaxKey {
		return fmt.Errorf("%w: a key in %s has %d bytes", ErrInvalid, t, len(key))
	}
	return nil
}

// writes reports whether batches change anything. Those without operations only check conditions.
func writes(batches []Batch) bool {
	return slices.ContainsFunc(batches, func(b Batch) bool { return len(b.Ops) > 0 })
}
