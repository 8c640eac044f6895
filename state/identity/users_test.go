package identity_test

import (
	"errors"
	"slices"
	"testing"

	"stagedoor/state"
	"stagedoor/state/identity"
	"stagedoor/state/journal"
)

func TestUsersAreNumberedAndNamedOnce(t *testing.T) {
	store := journal.NewMemory()
	s := open(t, store, newClock().Now)
	for i, name := range []string{"Ada", "Grace", "Edsger"} {
		if u := addUser(t, s, name); u.ID != int64(i+1) || !u.Created.Equal(start) {
			t.Errorf("got %+v", u)
		}
	}
	s = open(t, store, newClock().Now)
	if u := addUser(t, s, "Barbara"); u.ID != 4 {
		t.Errorf("after a restart: got id %d", u.ID)
	}
	for name, c := range map[string]struct {
		u    identity.User
		want error
	}{
		"taken":     {identity.User{Username: "aDA", Status: identity.UserActive}, state.ErrExists},
		"no name":   {identity.User{Status: identity.UserActive}, state.ErrInvalid},
		"no status": {identity.User{Username: "x"}, state.ErrInvalid},
	} {
		if err := try(s, func(tx *state.Tx) error { _, err := identity.AddUser(tx, c.u); return err }); !errors.Is(err,
			c.want) {
			t.Errorf("%s: got %v, want %v", name, err, c.want)
		}
	}
	if u := addUser(t, s, "Tony"); u.ID != 5 {
		t.Errorf("refused ones took a number: got id %d", u.ID)
	}
	must(t, s, func(tx *state.Tx) error {
		u, _ := identity.FindUser(tx.View(), 1)
		u.Username = "Countess"
		return identity.PutUser(tx, u)
	})
	if _, ok := identity.FindUserByName(s.View(), "ada"); ok {
		t.Error("the old name still finds the user")
	}
	if u, ok := identity.FindUserByName(s.View(), "COUNTESS"); !ok || u.ID != 1 {
		t.Errorf("by the new name: got %+v, %v", u, ok)
	}
	for _, c := range []struct {
		after int64
		limit int
		want  []int64
	}{{0, 0, []int64{1, 2, 3, 4, 5}}, {1, 2, []int64{2, 3}}, {5, 0, nil}, {-1, 1, []int64{1}}} {
		var got []int64
		for _, u := range identity.ListUsers(s.View(), c.after, c.limit) {
			got = append(got, u.ID)
		}
		if !slices.Equal(got, c.want) {
			t.Errorf("after %d, limit %d: got %v, want %v", c.after, c.limit, got, c.want)
		}
	}
}
