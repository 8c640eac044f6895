package state_test

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"stagedoor/state"
	"stagedoor/state/identity"
	"stagedoor/state/journal"
	"stagedoor/state/statetest"
)

func TestSubmitAnswersFromTheGroup(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		store, hold, commits := held(nil)
		s := open(t, store, time.Now)
		answers := make(chan error, 4)
		refused := errors.New("refused")
		submit := func(err error) {
			t.Helper()
			cmd := func(tx *state.Tx) error {
				_, addErr := identity.AddUser(
					tx,
					identity.User{
						Username: fmt.Sprint("u", len(identity.ListUsers(tx.View(), 0, 0))),
						Status:   identity.UserActive,
					},
				)
				return errors.Join(err, addErr)
			}
			if err := state.Submit(s, cmd, func(err error) { answers <- err }); err != nil {
				t.Fatal(err)
			}
		}
		submit(nil)
		synctest.Wait() // the writer hangs in its commit
		submit(nil)
		submit(refused)
		submit(nil)
		select {
		case err := <-answers:
			t.Errorf("answered before the commit: %v", err)
		default:
		}
		close(hold)
		for i, want := range []error{nil, nil, refused, nil} {
			if err := <-answers; !errors.Is(err, want) {
				t.Errorf("answer %d: got %v, want %v", i, err, want)
			}
		}
		if n := commits.Load(); n != 1 {
			t.Errorf("%d commits for those that waited", n)
		}
		s.Close()
		if err := state.Submit(s, nil, nil); !errors.Is(err, state.ErrUnavailable) {
			t.Errorf("closed: got %v", err)
		}
	})
}

func TestSubmitDoesNotWaitInAFullQueue(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		store, hold, _ := held(nil)
		s := open(t, store, time.Now)
		answered, accepted, busy := make(chan struct{}, 10_000), 0, 0
		write := func(tx *state.Tx) error {
			return identity.PutConsent(tx, identity.Consent{User: 1, App: 1, Expires: start})
		}
		for range 5000 {
			switch err := state.Submit(s, write, func(error) { answered <- struct{}{} }); {
			case err == nil:
				accepted++
			case errors.Is(err, state.ErrBusy):
				busy++
			default:
				t.Fatal(err)
			}
			if accepted == 1 {
				synctest.Wait()
			}
		}
		if busy == 0 {
			t.Error("nothing was refused")
		}
		close(hold)
		for range accepted {
			<-answered
		}
	})
}

// waitedContext is a context that calls waits when a goroutine waits for its end.
type waitedContext struct {
	context.Context
	waits func()
}

func (c waitedContext) Done() <-chan struct{} {
	c.waits()
	return c.Context.Done()
}

func TestSubmitInTheWritersPlaceDoesNotWaitForClose(t *testing.T) {
	store, begun, hold := statetest.NewFaulty(), make(chan struct{}), make(chan struct{})
	once := sync.OnceFunc(func() { close(begun); <-hold })
	store.Before(func([]journal.Batch) error { once(); return nil })
	s := open(t, store, time.Now)
	write := func(tx *state.Tx) error {
		return identity.PutConsent(tx, identity.Consent{User: 1, App: 1, Expires: start})
	}
	ignore := func(error) {}
	inner := make(chan error, 1)
	if err := state.Submit(s, write, func(error) { inner <- state.Submit(s, write, ignore) }); err != nil {
		t.Fatal(err)
	}
	<-begun
	for !errors.Is(state.Submit(s, write, ignore), state.ErrBusy) {
	}
	waits, placed := make(chan struct{}), make(chan error, 1)
	ctx := waitedContext{context.Background(), sync.OnceFunc(func() { close(waits) })}
	go func() {
		_, err := state.Do(ctx, s, func(tx *state.Tx) (int, error) { return 0, write(tx) })
		placed <- err
	}()
	<-waits // for a place in the queue
	closed := make(chan struct{})
	go func() { s.Close(); close(closed) }()
	for errors.Is(state.Submit(s, write, ignore), state.ErrBusy) {
		runtime.Gosched() // until Close waits, too
	}
	close(hold)
	if err := <-inner; !errors.Is(err, state.ErrUnavailable) {
		t.Errorf("from the writer's place: got %v", err)
	}
	if err := <-placed; err != nil {
		t.Errorf("who waited for a place: got %v", err)
	}
	<-closed
}
