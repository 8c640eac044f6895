package state_test

import (
	"errors"
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"stagedoor/state"
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
				_, addErr := tx.AddUser(state.User{Username: fmt.Sprint("u", len(tx.View().Users(0, 0))), Status: state.UserActive})
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
		write := func(tx *state.Tx) error { return tx.PutConsent(state.Consent{User: 1, App: 1, Expires: start}) }
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
