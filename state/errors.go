package state

import (
	"errors"
	"fmt"

	"stagedoor/state/journal"
)

// Errors callers decide on.
var (
	// ErrUnavailable says that the change was not made, or that it is unknown whether it was, because the durable store
	// failed, is full or was closed. Clients get a 503 storage_unavailable.
	ErrUnavailable = errors.New("state is unavailable")
	// ErrBusy says that too many commands wait. Only Submit returns it, because Do waits.
	ErrBusy     = errors.New("too many commands wait")
	ErrNotFound = errors.New("not found")
	ErrExists   = errors.New("already there")
	ErrInvalid  = errors.New("invalid record")
	ErrTooLarge = errors.New("too large to keep")
	// ErrFinished says that a response, a job or a hold has ended and does not change any more.
	ErrFinished = errors.New("already finished")
)

// PanicError reports that a command of Do panicked.
type PanicError struct {
	Value any
	Stack []byte // for the log
}

// Error implements error.
func (e *PanicError) Error() string { return fmt.Sprintf("command panicked: %v", e.Value) }

// unavailable turns an error of the store into one of this package. A damaged
// record is not a reason to try again, and a finished context is the caller's.
func unavailable(err error) error {
	for _, own := range []error{journal.ErrPoisoned, journal.ErrReadOnly, journal.ErrClosed, journal.ErrConflict} {
		if errors.Is(err, own) {
			return fmt.Errorf("%w: %w", ErrUnavailable, err)
		}
	}
	return err
}
