package identity_test

import (
	"errors"
	"testing"

	"stagedoor/state"
	"stagedoor/state/identity"
	"stagedoor/state/journal"
)

func TestDisabledUsersAreBlockedAtOnceAndAfterARestart(t *testing.T) {
	clock, store := newClock(), journal.NewMemory()
	s := open(t, store, clock.Now)
	put := func(s *state.State, u identity.User) identity.User {
		t.Helper()
		u, err := state.Do(ctx, s, func(tx *state.Tx) (identity.User, error) {
			if u.ID == 0 {
				return identity.AddUser(tx, u)
			}
			return u, identity.PutUser(tx, u)
		})
		if err != nil {
			t.Fatal(err)
		}
		return u
	}
	anna := put(s, identity.User{Username: "Anna", Status: identity.UserActive})
	put(s, identity.User{Username: "Bob", Status: identity.UserDisabled})
	for name, want := range map[string]bool{"Anna": false, "Bob": true, "bob": true, "": false, "carol": false} {
		if identity.AccessOf(s).Blocked(name) != want {
			t.Errorf("%q: %t", name, !want)
		}
	}
	anna.Status = identity.UserDisabled
	put(s, anna)
	if !identity.AccessOf(s).Blocked("Anna") {
		t.Error("a user who was just disabled is not blocked")
	}
	s.Close()
	s = open(t, store, clock.Now)
	if !identity.AccessOf(s).Blocked("Anna") || !identity.AccessOf(s).Blocked("Bob") {
		t.Error("after a restart disabled users are not blocked")
	}
	anna.Status = identity.UserActive
	put(s, anna)
	if identity.AccessOf(s).Blocked("Anna") || !identity.AccessOf(s).Blocked("Bob") {
		t.Error("enabling one changed the wrong one")
	}
}

// A request finds the user of its key by folding ASCII. A username with other characters would never be found, so
// its user could not be disabled.
func TestUsernamesThatRequestsCannotFindAreRefused(t *testing.T) {
	s := open(t, journal.NewMemory(), newClock().Now)
	for _, name := range []string{"\u00c4nna", "a b", "a\x00", "a\x7f", "\xff"} {
		_, err := state.Do(ctx, s, func(tx *state.Tx) (identity.User, error) {
			return identity.AddUser(tx, identity.User{Username: name, Status: identity.UserDisabled})
		})
		if !errors.Is(err, state.ErrInvalid) {
			t.Errorf("%q: got %v, want ErrInvalid", name, err)
		}
	}
}
