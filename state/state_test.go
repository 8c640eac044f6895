package state_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"reflect"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"go.uber.org/goleak"

	"stagedoor/state"
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
)

func newKey(t testing.TB, n int) state.Key {
	t.Helper()
	_, k, err := state.NewKey(start.Add(time.Duration(n)*time.Second), seeded(uint64(n)))
	if err != nil {
		t.Fatal(err)
	}
	k.Name = fmt.Sprint("key ", n)
	return k
}

func TestAcknowledgedIsVisible(t *testing.T) {
	s := newState(t)
	for i := range 50 {
		k := newKey(t, i)
		if err := s.AddKey(ctx, k); err != nil {
			t.Fatal(err)
		}
		if got, ok := s.Key(k.Hash); !ok || got.Name != k.Name {
			t.Fatalf("by hash after the acknowledgement: got %v, %v", got, ok)
		}
		if got, err := s.KeyByID(k.ID); err != nil || got.Name != k.Name {
			t.Fatalf("by id after the acknowledgement: got %v, %v", got, err)
		}
	}
	if n := len(s.Keys(state.KeyFilter{})); n != 50 {
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
		changed, done := s.WatchKeys(), make(chan error, 1)
		go func() { done <- s.AddKey(ctx, k) }()
		synctest.Wait() // the writer hangs in its commit
		if _, ok := s.Key(k.Hash); ok {
			t.Error("found by hash before the commit")
		}
		if _, err := s.KeyByID(k.ID); !errors.Is(err, state.ErrNotFound) {
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
		if _, ok := s.Key(k.Hash); !ok {
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
		if err := s.AddKey(ctx, newKey(t, 999)); err != nil {
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
			func(tx *state.Tx) error { return tx.AddKey(a) },
			func(tx *state.Tx) error { // sees a, changes it, adds b, refuses
				k, err := tx.Key(a.ID)
				if err != nil {
					return err
				}
				k.Name = "changed by a refused command"
				return errors.Join(tx.PutKey(k), tx.AddKey(b), tx.RemoveKey(a.ID), refused)
			},
			func(tx *state.Tx) error { // sees a as it was, and no b
				k, err := tx.Key(a.ID)
				if err != nil || k.Name != a.Name {
					return fmt.Errorf("a after the refused command: %v, %v", k.Name, err)
				}
				if _, err := tx.Key(b.ID); !errors.Is(err, state.ErrNotFound) {
					return fmt.Errorf("b after the refused command: %v", err)
				}
				return tx.AddKey(c)
			},
			func(tx *state.Tx) error {
				if err := tx.RemoveKey(c.ID); err != nil {
					return err
				}
				panic("in a command")
			},
			func(tx *state.Tx) error { _, err := tx.Key(c.ID); return err },
		})
		var panicked *state.PanicError
		if errs[0] != nil || !errors.Is(errs[1], refused) || errs[2] != nil || !errors.As(errs[3], &panicked) || errs[4] != nil {
			t.Fatalf("got %v", errs)
		}
		if panicked.Value != "in a command" || len(panicked.Stack) == 0 {
			t.Errorf("panic: got %v", panicked)
		}
		if n := commits.Load(); n != 1 {
			t.Errorf("commits of the group: got %d, want 1", n)
		}
		if _, err := s.KeyByID(b.ID); !errors.Is(err, state.ErrNotFound) {
			t.Errorf("b: got %v, want ErrNotFound", err)
		}
		if k, ok := s.Key(a.Hash); !ok || k.Name != a.Name {
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
		{errors.New("nobody knows"), true},
	} {
		t.Run(c.err.Error(), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				store, hold, _ := held(c.err)
				s := open(t, store, time.Now)
				a := newKey(t, 1)
				errs := gather(t, s, hold, []func(*state.Tx) error{
					func(tx *state.Tx) error { return tx.AddKey(a) },
					func(tx *state.Tx) error { return tx.RemoveKey(newKey(t, 999).ID) },
					// A refusal that rests on what was never committed is none.
					func(tx *state.Tx) error { return tx.AddKey(a) },
				})
				for i, err := range errs {
					if !errors.Is(err, state.ErrUnavailable) || !errors.Is(err, c.err) {
						t.Errorf("command %d: got %v, want ErrUnavailable", i, err)
					}
				}
				if _, ok := s.Key(a.Hash); ok {
					t.Error("what failed to commit is visible")
				}
				if _, err := s.KeyByID(newKey(t, 999).ID); err != nil {
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
				if err := s.AddKey(ctx, a); errors.Is(err, state.ErrUnavailable) != c.permanent {
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
		go func() { first <- s.AddKey(slow, newKey(t, 1)) }()
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
				err := s.AddKey(ctx, newKey(t, 1000*w+i))
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
	if err := s.AddKey(ctx, newKey(t, 99)); !errors.Is(err, state.ErrUnavailable) {
		t.Errorf("after Close: got %v, want ErrUnavailable", err)
	}
	again := open(t, store, newClock().Now)
	if n := len(again.Keys(state.KeyFilter{})); int64(n) != added.Load() {
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
	if _, err := schema.Open(store, time.Now); !errors.As(err, &corrupt) || corrupt.Table != journal.Key || string(corrupt.Key) != "key_1" {
		t.Errorf("got %v, want a CorruptError that names key_1", err)
	}
}

// sameAfterReload opens a second State on the same store and compares.
func sameAfterReload(t testing.TB, s *state.State, store journal.Store) {
	t.Helper()
	again, err := schema.Open(store, func() time.Time { return start })
	if err != nil {
		t.Fatal(err)
	}
	defer again.Close()
	got, want := again.Keys(state.KeyFilter{}), s.Keys(state.KeyFilter{})
	if !slices.EqualFunc(got, want, func(a, b state.Key) bool { return reflect.DeepEqual(normal(a), normal(b)) }) {
		t.Errorf("keys after reloading: got %+v, want %+v", got, want)
	}
	for _, k := range want {
		if found, ok := again.Key(k.Hash); !ok || found.ID != k.ID {
			t.Errorf("key %s is not found by its hash after reloading", k.ID)
		}
	}
	gotR, wantR := again.Responses(state.ResponseFilter{}), s.Responses(state.ResponseFilter{})
	if len(gotR) != len(wantR) || again.WorkStats().Responses != s.WorkStats().Responses {
		t.Errorf("responses after reloading: got %d, want %d", len(gotR), len(wantR))
	}
	for i := range min(len(gotR), len(wantR)) {
		g, w := gotR[i], wantR[i]
		if !g.Created.Equal(w.Created) || !g.Expires.Equal(w.Expires) {
			t.Errorf("times of %s: got %v, %v", g.ID, g.Created, g.Expires)
		}
		g.Created, g.Expires = w.Created, w.Expires
		if g != w {
			t.Errorf("after reloading: got %+v, want %+v", g, w)
		}
	}
}

// normal takes out of times what JSON does not keep.
func normal(k state.Key) state.Key {
	k.Created, k.Expires, k.Revoked = k.Created.UTC().Round(0), k.Expires.UTC().Round(0), k.Revoked.UTC().Round(0)
	return k
}
