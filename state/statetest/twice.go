package statetest

import (
	"context"
	"sync/atomic"

	"stagedoor/state/journal"
)

// Twice is a store on which state decides every group of commands that writes something twice. The store refuses the
// first result with journal.ErrDecideAgain and keeps the second. A test that passes on it shows that its commands may
// run twice, and that what they do outside the transaction is done once.
type Twice struct {
	journal.Store
	decided   atomic.Bool // the group was decided once
	discarded atomic.Int64
}

// DecideTwice returns store as a Twice. Reads and the second result of each group go to store.
func DecideTwice(store journal.Store) *Twice { return &Twice{Store: store} }

// Discarded returns how many results were refused so far.
func (s *Twice) Discarded() int64 { return s.discarded.Load() }

// Commit implements journal.Store.
func (s *Twice) Commit(ctx context.Context, batches []journal.Batch) (journal.LSN, error) {
	if s.decided.CompareAndSwap(false, true) {
		s.discarded.Add(1)
		return 0, journal.ErrDecideAgain
	}
	s.decided.Store(false)
	return s.Store.Commit(ctx, batches)
}
