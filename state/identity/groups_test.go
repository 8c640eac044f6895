package identity_test

import (
	"errors"
	"fmt"
	"slices"
	"testing"
	"time"

	"stagedoor/state"
	"stagedoor/state/budget"
	"stagedoor/state/identity"
	"stagedoor/state/journal"
	"stagedoor/state/money"
	"stagedoor/state/schema"
)

// change runs a command.
func change[T any](t *testing.T, s *state.State, cmd func(*state.Tx) (T, error)) T {
	t.Helper()
	v, err := state.Do(ctx, s, cmd)
	if err != nil {
		t.Fatal(err)
	}
	return v
}

func keepUser(t *testing.T, s *state.State, u identity.User) identity.User {
	t.Helper()
	u.Status = identity.UserActive
	return change(t, s, func(tx *state.Tx) (identity.User, error) { return identity.AddUser(tx, u) })
}

func addGroup(t *testing.T, s *state.State, name string, c identity.Ceiling) identity.Group {
	t.Helper()
	return change(t, s, func(tx *state.Tx) (identity.Group, error) {
		return identity.AddGroup(tx, identity.Group{Name: name, Ceiling: c})
	})
}

func TestCeilingsOfUserAndGroupBothBindAndOutliveARestart(t *testing.T) {
	clock, store := newClock(), journal.NewMemory()
	s := open(t, store, clock.Now)
	staff := addGroup(t, s, "Staff", identity.Ceiling{Scopes: []string{"chat", "images"}, Models: []string{"gpt-*"}})
	anna := keepUser(t, s,
		identity.User{Username: "Anna", Group: staff.ID, Ceiling: identity.Ceiling{Scopes: []string{"chat", "videos"}}})
	keepUser(t, s, identity.User{Username: "bob"})
	check := func(s *state.State) {
		t.Helper()
		for _, c := range []struct {
			account, scope, model string
			want                  error
		}{
			{"Anna", "chat", "gpt-4o", nil},
			{"ANNA", "images", "", identity.ErrScopeForbidden}, // the user's own ceiling
			{"anna", "videos", "", identity.ErrScopeForbidden}, // the group's
			{"Anna", "", "claude", identity.ErrModelForbidden},
			{"Anna", "", "", nil},
			{"bob", "videos", "claude", nil},
			{"unknown", "videos", "claude", nil},
			{"", "videos", "claude", nil},
		} {
			if err := identity.AccessOf(s).UserPermits(c.account, c.scope, c.model); !errors.Is(err, c.want) ||
				(err == nil) != (c.want == nil) {
				t.Errorf("%+v: got %v", c, err)
			}
		}
		if left := identity.ScopesOf(s.View(), &anna, []string{"chat", "images", "videos"}); !slices.Equal(left,
			[]string{"chat"}) {
			t.Errorf("keys of Anna may do %v", left)
		}
	}
	check(s)
	s.Close()
	s = open(t, store, clock.Now)
	check(s)
	s.Close()
	if v, err := schema.Verify(ctx, store); err != nil || !v.Sound() {
		t.Errorf("%v, %v", v.Problems, err)
	}
}

func TestACeilingChangesAtOnce(t *testing.T) {
	s := open(t, journal.NewMemory(), newClock().Now)
	g := addGroup(t, s, "staff", identity.Ceiling{})
	u := keepUser(t, s, identity.User{Username: "anna", Group: g.ID})
	era := identity.AccessOf(s).AccessVersion()
	changed := func(what string) {
		t.Helper()
		if identity.AccessOf(s).AccessVersion() == era {
			t.Errorf("%s: budgets that were read before still count", what)
		}
		era = identity.AccessOf(s).AccessVersion()
	}
	g.Ceiling.Models = []string{}
	change(t, s, func(tx *state.Tx) (any, error) { return nil, identity.PutGroup(tx, g) })
	changed("group")
	if identity.AccessOf(s).UserPermits("anna", "", "m") == nil {
		t.Error("the group's ceiling does not count")
	}
	u.Group = 0
	change(t, s, func(tx *state.Tx) (any, error) { return nil, identity.PutUser(tx, u) })
	changed("member")
	if err := identity.AccessOf(s).UserPermits("anna", "", "m"); err != nil {
		t.Errorf("a former member: %v", err)
	}
}

func TestGroupRules(t *testing.T) {
	s := open(t, journal.NewMemory(), newClock().Now)
	g := addGroup(t, s, "staff", identity.Ceiling{NoKeys: true})
	u := keepUser(t, s, identity.User{Username: "anna", Group: g.ID})
	if identity.MayCreateKeys(s.View(), &u) {
		t.Error("a member may create keys")
	}
	for name, c := range map[string]struct {
		cmd  func(*state.Tx) error
		want error
	}{
		"a taken name": {func(tx *state.Tx) error {
			_, err := identity.AddGroup(tx, identity.Group{Name: "STAFF"})
			return err
		}, state.ErrExists},
		"no name": {func(tx *state.Tx) error {
			_, err := identity.AddGroup(tx, identity.Group{})
			return err
		}, state.ErrInvalid},
		"invalid scope": {func(tx *state.Tx) error {
			g := g
			g.Ceiling.Scopes = []string{"X y"}
			return identity.PutGroup(tx, g)
		}, state.ErrInvalid},
		"negative budget": {func(tx *state.Tx) error {
			g := g
			g.Ceiling.Budget = -1
			return identity.PutGroup(tx, g)
		}, state.ErrInvalid},
		"with members": {func(tx *state.Tx) error { return identity.RemoveGroup(tx, g.ID) }, state.ErrInvalid},
		"unknown":      {func(tx *state.Tx) error { return identity.RemoveGroup(tx, 9) }, state.ErrNotFound},
		"unknown group": {func(tx *state.Tx) error {
			u := u
			u.Group = 9
			return identity.PutUser(tx, u)
		}, state.ErrNotFound},
		"user's scope": {func(tx *state.Tx) error {
			u := u
			u.Ceiling.Scopes = []string{""}
			return identity.PutUser(tx, u)
		}, state.ErrInvalid},
	} {
		if _, err := state.Do(ctx, s, func(tx *state.Tx) (any, error) { return nil, c.cmd(tx) }); !errors.Is(err,
			c.want) {
			t.Errorf("%s: %v", name, err)
		}
	}
	if members := identity.ListMembers(s.View(), g.ID); len(members) != 1 || members[0].ID != u.ID {
		t.Errorf("members %+v", members)
	}
	u.Group = 0
	change(t, s, func(tx *state.Tx) (any, error) { return nil, identity.PutUser(tx, u) })
	change(t, s, func(tx *state.Tx) (any, error) { return nil, identity.RemoveGroup(tx, g.ID) })
	if next := addGroup(t, s, "staff", identity.Ceiling{}); next.ID != 2 {
		t.Errorf("the id %d was given again, and what was spent under it", next.ID)
	}
}

func TestUserPermitsAllocatesNothing(t *testing.T) {
	s := open(t, journal.NewMemory(), newClock().Now)
	g := addGroup(t, s, "staff", identity.Ceiling{Models: []string{"gpt-*"}})
	for i := range 300 {
		keepUser(
			t,
			s,
			identity.User{
				Username: fmt.Sprint("Anna", i),
				Group:    g.ID,
				Ceiling:  identity.Ceiling{Scopes: []string{"chat"}},
			},
		)
	}
	allocs := testing.AllocsPerRun(100, func() {
		if identity.AccessOf(s).Blocked("Anna7") || identity.AccessOf(s).UserPermits("ANNA7", "chat", "gpt-4o") != nil {
			t.Error("refused")
		}
	})
	if allocs != 0 {
		t.Errorf("%v allocations a request", allocs)
	}
}

// TestAUserHasSpentWhatTheKeysHaveSpent: of the day and the month that the newest of them is in.
func TestAUserHasSpentWhatTheKeysHaveSpent(t *testing.T) {
	clock := newClock()
	s := open(t, journal.NewMemory(), clock.Now)
	spend := func(request, key string, amount int64) {
		t.Helper()
		_, posted, err := money.CommitPostings(
			ctx,
			s,
			"anna",
			[]money.Posting{{Kind: money.Credit, Amount: amount}, {Kind: money.Settle, Amount: amount, Held: amount,
				Receipt: &money.Receipt{Request: request, Key: key}}},
		)
		if err != nil || posted[1].Err != nil {
			t.Fatal(err, posted)
		}
	}
	spend("r1", "key_1", 5)
	clock.Add(24 * time.Hour)
	spend("r2", "key_2", 7)
	spend("r3", "key_1", 1)
	sum, now := money.SpentBy(s.View(), budget.Scope{Kind: budget.UserScope, ID: "anna"}), clock.Now()
	if sum.Total != 13 || sum.In(budget.WindowDay, now) != 8 || sum.Requests != 3 {
		t.Errorf("%+v", sum)
	}
}
