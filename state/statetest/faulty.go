package statetest

import (
	"context"
	"sync/atomic"

	"stagedoor/state/journal"
)

// A Hook is called with the batches of a commit.
type Hook func([]journal.Batch) error

// Faulty is a store whose commits can be held, watched and made to fail. What it
// does may be changed at any time.
type Faulty struct {
	journal.Store
	before, after atomic.Pointer[Hook]
}

// NewFaulty returns a store in memory that does as it is asked.
func NewFaulty() *Faulty { return &Faulty{Store: journal.NewMemory()} }

// Before sets what is called before each commit, which does not happen if that
// returns an error; nil: nothing.
func (f *Faulty) Before(h Hook) { f.before.Store(&h) }

// After sets what is called after each commit that went well; nil: nothing. Its
// error is the commit's, though all of it is written.
func (f *Faulty) After(h Hook) { f.after.Store(&h) }

// Refuse makes each commit fail with err before anything is written; nil: it goes
// well again. It replaces what Before has set.
func (f *Faulty) Refuse(err error) {
	f.Before(func([]journal.Batch) error { return err })
}

// Commit implements journal.Store.
func (f *Faulty) Commit(ctx context.Context, b []journal.Batch) (journal.LSN, error) {
	if err := call(&f.before, b); err != nil {
		return 0, err
	}
	lsn, err := f.Store.Commit(ctx, b)
	if err != nil {
		return 0, err
	}
	if err := call(&f.after, b); err != nil {
		return 0, err
	}
	return lsn, nil
}

// call calls a hook if there is one.
func call(hook *atomic.Pointer[Hook], b []journal.Batch) error {
	if h := hook.Load(); h != nil && *h != nil {
		return (*h)(b)
	}
	return nil
}
