package state_test

import (
	"errors"
	"testing"

	"stagedoor/state"
	"stagedoor/state/journal"
)

func TestDisabledUsersAreBlockedAtOnceAndAfterARestart(t *testing.T) {
	clock, store := newClock(), journal.NewMemory()
	s := open(t, store, clock.Now)
	put := func(s *state.State, u state.User) state.User {
		t.Helper()
		u, err := state.Do(ctx, s, func(tx *state.Tx) (state.User, error) {
			if u.ID == 0 {
				return tx.AddUser(u)
			}
			return u, tx.PutUser(u)
		})
		if err != nil {
			t.Fatal(err)
		}
		return u
	}
	anna := put(s, state.User{Username: "Anna", Status: state.UserActive})
	put(s, state.User{Username: "Bob", Status: state.UserDisabled})
	for name, want := range map[string]bool{"Anna": false, "Bob": true, "bob": true, "": false, "carol": false} {
		if s.Blocked(name) != want {
			t.Errorf("%q: %t", name, !want)
		}
	}
	anna.Status = state.UserDisabled
	put(s, anna)
	if !s.Blocked("Anna") {
		t.Error("a user who was just disabled is not blocked")
	}
	s.Close()
	s = open(t, store, clock.Now)
	if !s.Blocked("Anna") || !s.Blocked("Bob") {
		t.Error("after a restart disabled users are not blocked")
	}
	anna.Status = state.UserActive
	put(s, anna)
	if s.Blocked("Anna") || !s.Blocked("Bob") {
		t.Error("enabling one changed the wrong one")
	}
}

// A request finds the user of its key by folding ASCII. A username with other characters would never be found, so
// its user could not be disabled.
func TestUsernamesThatRequestsCannotFindAreRefused(t *testing.T) {
	s := open(t, journal.NewMemory(), newClock().Now)
	for _, name := range []string{"\u00c4nna", "a b", "a\x00", "a\x7f", "\xff"} {
		_, err := state.Do(ctx, s, func(tx *state.Tx) (state.User, error) {
			return tx.AddUser(state.User{Username: name, Status: state.UserDisabled})
		})
		if !errors.Is(err, state.ErrInvalid) {
			t.Errorf("%q: got %v, want ErrInvalid", name, err)
		}
	}
}
