package state_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"go.uber.org/goleak"

	"stagedoor/state"
	"stagedoor/state/identity"
	"stagedoor/state/journal"
	"stagedoor/state/schema"
	"stagedoor/state/statetest"
	"stagedoor/state/statetest/fixture"
)

func TestMain(m *testing.M) {
	if statetest.Child(writeUntilKilled) {
		return
	}
	goleak.VerifyTestMain(m)
}

var (
	ctx      = context.Background()
	start    = fixture.Start
	newClock = fixture.NewClock
	seeded   = fixture.Seeded
	open     = fixture.Open
	newState = fixture.NewState
	try      = fixture.Try
	must     = fixture.Must
	sound    = fixture.Sound
	newKey   = fixture.NewKey
	hash     = fixture.Hash
	twin     = fixture.SamePrefixHash

	sameAfterReload = fixture.SameAfterReload
	newResponse     = fixture.NewResponse
)

const (
	me    = fixture.Me
	other = fixture.Other
)

func TestAcknowledgedIsVisible(t *testing.T) {
	s := newState(t)
	for i := range 50 {
		k := newKey(t, i)
		if err := identity.CreateKey(ctx, s, k); err != nil {
			t.Fatal(err)
		}
		if got, ok := identity.AccessOf(s).Key(k.Hash); !ok || got.Name != k.Name {
			t.Fatalf("by hash after the acknowledgement: got %v, %v", got, ok)
		}
		if got, err := identity.FindKey(s.View(), k.ID); err != nil || got.Name != k.Name {
			t.Fatalf("by id after the acknowledgement: got %v, %v", got, err)
		}
	}
	if n := len(identity.ListKeys(s.View(), identity.KeyFilter{})); n != 50 {
		t.Errorf("listed: got %d, want 50", n)
	}
}

func TestNothingIsVisibleBeforeItIsDurable(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		hold := make(chan struct{})
		store := statetest.NewFaulty()
		store.Before(func([]journal.Batch) error { <-hold; return nil })
		s := open(t, store, time.Now)
		k := newKey(t, 1)
		changed, done := identity.AccessOf(s).WatchAccess(), make(chan error, 1)
		go func() { done <- identity.CreateKey(ctx, s, k) }()
		synctest.Wait() // the writer hangs in its commit
		if _, ok := identity.AccessOf(s).Key(k.Hash); ok {
			t.Error("found by hash before the commit")
		}
		if _, err := identity.FindKey(s.View(), k.ID); !errors.Is(err, state.ErrNotFound) {
			t.Errorf("found by id before the commit: %v", err)
		}
		select {
		case <-changed:
			t.Error("watchers woke before the commit")
		case err := <-done:
			t.Errorf("acknowledged before the commit: %v", err)
		default:
		}
		close(hold)
		if err := <-done; err != nil {
			t.Fatal(err)
		}
		<-changed
		if _, ok := identity.AccessOf(s).Key(k.Hash); !ok {
			t.Error("not found after the commit")
		}
	})
}

// gather makes the commands of one test one group: the writer is held in a first
// commit until all of them wait.
func gather(t *testing.T, s *state.State, hold chan struct{}, commands []func(*state.Tx) error) []error {
	t.Helper()
	var wg sync.WaitGroup
	wg.Go(func() {
		if err := identity.CreateKey(ctx, s, newKey(t, 999)); err != nil {
			t.Errorf("the first command: %v", err)
		}
	})
	synctest.Wait()
	errs := make([]error, len(commands))
	for i, cmd := range commands {
		wg.Go(func() {
			_, errs[i] = state.Do(ctx, s, func(tx *state.Tx) (struct{}, error) { return struct{}{}, cmd(tx) })
		})
		synctest.Wait() // they queue in this order
	}
	close(hold)
	wg.Wait()
	return errs
}

// held is a store that waits for the channel in its first commit, counts the
// others and lets each fail with err.
func held(err error) (*statetest.Faulty, chan struct{}, *atomic.Int32) {
	hold, commits := make(chan struct{}), new(atomic.Int32)
	first := true
	store := statetest.NewFaulty()
	store.Before(func([]journal.Batch) error {
		if first {
			first = false
			<-hold
			return nil
		}
		commits.Add(1)
		return err
	})
	return store, hold, commits
}

func TestGroupIsOneCommitAndRefusalsLeaveNoTrace(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		store, hold, commits := held(nil)
		s := open(t, store, time.Now)
		refused := errors.New("refused")
		a, b, c := newKey(t, 1), newKey(t, 2), newKey(t, 3)
		errs := gather(t, s, hold, []func(*state.Tx) error{
			func(tx *state.Tx) error { return identity.AddKey(tx, a) },
			func(tx *state.Tx) error { // sees a, changes it, adds b, refuses
				k, err := identity.KeyForChange(tx, a.ID)
				if err != nil {
					return err
				}
				k.Name = "changed by a refused command"
				return errors.Join(identity.PutKey(tx, k), identity.AddKey(tx, b), identity.RemoveKey(tx, a.ID),
					refused)
			},
			func(tx *state.Tx) error { // sees a as it was, and no b
				k, err := identity.KeyForChange(tx, a.ID)
				if err != nil || k.Name != a.Name {
					return fmt.Errorf("a after the refused command: %v, %v", k.Name, err)
				}
				if _, err := identity.KeyForChange(tx, b.ID); !errors.Is(err, state.ErrNotFound) {
					return fmt.Errorf("b after the refused command: %v", err)
				}
				return identity.AddKey(tx, c)
			},
			func(tx *state.Tx) error {
				if err := identity.RemoveKey(tx, c.ID); err != nil {
					return err
				}
				panic("in a command")
			},
			func(tx *state.Tx) error { _, err := identity.KeyForChange(tx, c.ID); return err },
		})
		var panicked *state.PanicError
		if errs[0] != nil || !errors.Is(errs[1], refused) || errs[2] != nil || !errors.As(errs[3], &panicked) ||
			errs[4] != nil {
			t.Fatalf("got %v", errs)
		}
		if panicked.Value != "in a command" || len(panicked.Stack) == 0 {
			t.Errorf("panic: got %v", panicked)
		}
		if n := commits.Load(); n != 1 {
			t.Errorf("commits of the group: got %d, want 1", n)
		}
		if _, err := identity.FindKey(s.View(), b.ID); !errors.Is(err, state.ErrNotFound) {
			t.Errorf("b: got %v, want ErrNotFound", err)
		}
		if k, ok := identity.AccessOf(s).Key(a.Hash); !ok || k.Name != a.Name {
			t.Errorf("a: got %v, %v", k, ok)
		}
		sameAfterReload(t, s, store)
	})
}

func TestFailedGroupLeavesNoTrace(t *testing.T) {
	for _, c := range []struct {
		err       error
		permanent bool
	}{
		{journal.ErrReadOnly, false},
		{journal.ErrPoisoned, true},
		{journal.ErrConflict, true},
		{errors.New("unknown outcome"), true},
	} {
		t.Run(c.err.Error(), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				store, hold, _ := held(c.err)
				s := open(t, store, time.Now)
				a := newKey(t, 1)
				errs := gather(t, s, hold, []func(*state.Tx) error{
					func(tx *state.Tx) error { return identity.AddKey(tx, a) },
					func(tx *state.Tx) error { return identity.RemoveKey(tx, newKey(t, 999).ID) },
					// A refusal that rests on what was never committed is none.
					func(tx *state.Tx) error { return identity.AddKey(tx, a) },
				})
				for i, err := range errs {
					if !errors.Is(err, state.ErrUnavailable) || !errors.Is(err, c.err) {
						t.Errorf("command %d: got %v, want ErrUnavailable", i, err)
					}
				}
				if _, ok := identity.AccessOf(s).Key(a.Hash); ok {
					t.Error("what failed to commit is visible")
				}
				if _, err := identity.FindKey(s.View(), newKey(t, 999).ID); err != nil {
					t.Errorf("what was removed in the failed group is gone: %v", err)
				}
				select {
				case <-s.Failed():
					if !c.permanent {
						t.Error("Failed is closed")
					}
				default:
					if c.permanent {
						t.Error("Failed is not closed")
					}
				}
				store.Before(nil)
				if err := identity.CreateKey(ctx, s, a); errors.Is(err, state.ErrUnavailable) != c.permanent {
					t.Errorf("afterwards: got %v, permanent %v", err, c.permanent)
				}
			})
		})
	}
}

func TestContextErrorMeansNotRun(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		store, hold, _ := held(nil)
		s := open(t, store, time.Now)
		first := make(chan error, 1)
		slow, cancelSlow := context.WithCancel(ctx)
		go func() { first <- identity.CreateKey(slow, s, newKey(t, 1)) }()
		synctest.Wait()
		queued, cancelQueued := context.WithCancel(ctx)
		second, ran := make(chan error, 1), false
		go func() {
			_, err := state.Do(queued, s, func(*state.Tx) (int, error) { ran = true; return 0, nil })
			second <- err
		}()
		synctest.Wait()
		cancelSlow()
		cancelQueued()
		if err := <-second; !errors.Is(err, context.Canceled) {
			t.Errorf("a waiting command: got %v, want context.Canceled", err)
		}
		synctest.Wait()
		select {
		case err := <-first:
			t.Errorf("a running command came back before its outcome: %v", err)
		default:
		}
		close(hold)
		if err := <-first; err != nil {
			t.Errorf("a running command: got %v, want its outcome", err)
		}
		s.Close()
		if ran {
			t.Error("the cancelled command ran")
		}
	})
}

func TestCloseAnswersEverybody(t *testing.T) {
	store := journal.NewMemory()
	s := open(t, store, newClock().Now)
	var wg sync.WaitGroup
	var added atomic.Int64
	for w := range 8 {
		wg.Go(func() {
			for i := range 100 {
				err := identity.CreateKey(ctx, s, newKey(t, 1000*w+i))
				switch {
				case err == nil:
					added.Add(1)
				case !errors.Is(err, state.ErrUnavailable):
					t.Errorf("got %v", err)
				}
			}
		})
	}
	s.Close()
	wg.Wait()
	if err := identity.CreateKey(ctx, s, newKey(t, 99)); !errors.Is(err, state.ErrUnavailable) {
		t.Errorf("after Close: got %v, want ErrUnavailable", err)
	}
	again := open(t, store, newClock().Now)
	if n := len(identity.ListKeys(again.View(), identity.KeyFilter{})); int64(n) != added.Load() {
		t.Errorf("kept %d of %d acknowledged", n, added.Load())
	}
}

func TestSecretIsMadeOnce(t *testing.T) {
	store := journal.NewMemory()
	s := open(t, store, newClock().Now)
	var wg sync.WaitGroup
	got := make([][]byte, 16)
	for i := range got {
		wg.Go(func() {
			var err error
			if got[i], err = s.Secret(ctx, "sealer", 32); err != nil {
				t.Error(err)
			}
		})
	}
	wg.Wait()
	other, err := s.Secret(ctx, "urls", 32)
	if err != nil || bytes.Equal(other, got[0]) {
		t.Errorf("another name: got the same secret, %v", err)
	}
	s.Close()
	again, err := open(t, store, newClock().Now).Secret(ctx, "sealer", 32)
	if err != nil {
		t.Fatal(err)
	}
	for _, g := range append(got, again) {
		if len(g) != 32 || !bytes.Equal(g, got[0]) {
			t.Fatalf("got %x and %x", g, got[0])
		}
	}
	for _, c := range []struct {
		name string
		size int
	}{{"sealer", 64}, {"short", 8}, {"", 32}, {"a/b", 32}} {
		if _, err := open(t, store, newClock().Now).Secret(ctx, c.name, c.size); !errors.Is(err, state.ErrInvalid) {
			t.Errorf("%q of %d bytes: got %v, want ErrInvalid", c.name, c.size, err)
		}
	}
}

func TestDamagedRecordIsNamed(t *testing.T) {
	store := journal.NewMemory()
	op := journal.Op{Kind: journal.Put, Table: journal.Key, Key: []byte("key_1"), Value: []byte(`{"id":"key_2"}`)}
	if _, err := store.Commit(ctx, []journal.Batch{{Ops: []journal.Op{op}}}); err != nil {
		t.Fatal(err)
	}
	var corrupt *journal.CorruptError
	if _, err := schema.Open(store, time.Now); !errors.As(err, &corrupt) || corrupt.Table != journal.Key ||
		string(corrupt.Key) != "key_1" {
		t.Errorf("got %v, want a CorruptError that names key_1", err)
	}
}
