package state_test

import (
	"errors"
	"fmt"
	"slices"
	"testing"

	"stagedoor/state"
	"stagedoor/state/journal"
)

func addUser(t testing.TB, s *state.State, name string) (u state.User) {
	t.Helper()
	must(t, s, func(tx *state.Tx) (err error) {
		u, err = tx.AddUser(state.User{Username: name, Status: state.UserActive})
		return err
	})
	return u
}

func hash(n int) state.Hash { return state.HashSecret(fmt.Sprint("secret ", n)) }

// twin has the half of a hash by which it is found, and not the other.
func twin(h state.Hash) state.Hash {
	h[len(h)-1] ^= 1
	return h
}

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
		u    state.User
		want error
	}{
		"taken":     {state.User{Username: "aDA", Status: state.UserActive}, state.ErrExists},
		"no name":   {state.User{Status: state.UserActive}, state.ErrInvalid},
		"no status": {state.User{Username: "x"}, state.ErrInvalid},
	} {
		if err := try(s, func(tx *state.Tx) error { _, err := tx.AddUser(c.u); return err }); !errors.Is(err, c.want) {
			t.Errorf("%s: got %v, want %v", name, err, c.want)
		}
	}
	if u := addUser(t, s, "Tony"); u.ID != 5 {
		t.Errorf("refused ones took a number: got id %d", u.ID)
	}
	must(t, s, func(tx *state.Tx) error {
		u, _ := tx.View().User(1)
		u.Username = "Countess"
		return tx.PutUser(u)
	})
	if _, ok := s.View().UserByName("ada"); ok {
		t.Error("the old name still finds the user")
	}
	if u, ok := s.View().UserByName("COUNTESS"); !ok || u.ID != 1 {
		t.Errorf("by the new name: got %+v, %v", u, ok)
	}
	for _, c := range []struct {
		after int64
		limit int
		want  []int64
	}{{0, 0, []int64{1, 2, 3, 4, 5}}, {1, 2, []int64{2, 3}}, {5, 0, nil}, {-1, 1, []int64{1}}} {
		var got []int64
		for _, u := range s.View().Users(c.after, c.limit) {
			got = append(got, u.ID)
		}
		if !slices.Equal(got, c.want) {
			t.Errorf("after %d, limit %d: got %v, want %v", c.after, c.limit, got, c.want)
		}
	}
}
