package state_test

import (
	"context"
	"errors"
	"testing"

	"stagedoor/state"
	"stagedoor/state/identity"
	"stagedoor/state/journal"
	"stagedoor/state/money"
	"stagedoor/state/schema"
	"stagedoor/state/statetest"
)

// A group that is decided again leaves no trace of the first decision: sequence numbers, records, revisions and the
// effects of OnCommit are as if it had been decided once.
func TestACommandMayRunTwiceAndCountsOnce(t *testing.T) {
	memory := journal.NewMemory()
	store := statetest.DecideTwice(memory)
	s, err := schema.Open(store, newClock().Now)
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	refused := errors.New("refused")
	for n := 1; n <= 3; n++ {
		runs, effects, undone := 0, 0, 0
		_, err := state.Do(ctx, s, func(tx *state.Tx) (int, error) {
			runs++
			tx.OnCommit(func() { effects++ })
			_, _, err := money.Post(tx, "anna", []money.Posting{{Kind: money.Credit, Amount: 1}})
			return 0, err
		})
		if err != nil || runs != 2 || effects != 1 {
			t.Fatalf("command %d ran %d times with %d effects, %v", n, runs, effects, err)
		}
		if a := money.FindAccount(s.View(), "anna"); a.Credits != int64(n) || a.Last != uint64(n) {
			t.Errorf("after command %d: credits %d, last entry %d", n, a.Credits, a.Last)
		}
		if _, err := state.Do(ctx, s, func(tx *state.Tx) (int, error) {
			tx.OnCommit(func() { undone++ })
			return 0, refused
		}); !errors.Is(err, refused) || undone != 0 {
			t.Errorf("a refused command had %d effects, %v", undone, err)
		}
	}
	if store.Discarded() != 3 || memory.Stats().Commits != 3 {
		t.Errorf("%d results discarded, %d commits", store.Discarded(), memory.Stats().Commits)
	}
	sound(t, memory, "decided twice")
}

// contested is a store on which another process is always faster.
type contested struct {
	journal.Store
	lost bool
}

func (c *contested) Commit(ctx context.Context, batches []journal.Batch) (journal.LSN, error) {
	if c.lost {
		return 0, journal.ErrDecideAgain
	}
	return c.Store.Commit(ctx, batches)
}

func TestCommandsFailWithoutATraceWhenTheStoreNeverTakesThem(t *testing.T) {
	store := &contested{Store: journal.NewMemory(), lost: true}
	s, err := schema.Open(store, newClock().Now)
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	k, effects := newKey(t, 1), 0
	add := func() error {
		_, err := state.Do(ctx, s, func(tx *state.Tx) (int, error) {
			tx.OnCommit(func() { effects++ })
			return 0, identity.AddKey(tx, k)
		})
		return err
	}
	if err := add(); !errors.Is(err, state.ErrUnavailable) || effects != 0 || s.Err() != nil {
		t.Fatalf("got %v with %d effects, state %v", err, effects, s.Err())
	}
	if _, err := identity.FindKey(s.View(), k.ID); !errors.Is(err, state.ErrNotFound) {
		t.Errorf("a key that was not committed: %v", err)
	}
	store.lost = false
	if err := add(); err != nil || effects != 1 {
		t.Errorf("afterwards: %v with %d effects", err, effects)
	}
}
