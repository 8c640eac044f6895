package tokens_test

import (
	"errors"
	"slices"
	"testing"

	"stagedoor/actors/tokens"
	"stagedoor/state/budget"
	"stagedoor/state/identity"
)

// TestAUserCreatesNoKeyBeyondTheCeilings: the user's own and the group's. An operator may create any, because the
// ceilings are checked at every request, too.
func TestAUserCreatesNoKeyBeyondTheCeilings(t *testing.T) {
	b := newBench(t, tokens.Config{})
	chat, images, no, yes := []string{"chat", "images"}, []string{"images"}, false, true
	g, err := b.CreateGroup(ctx, "staff", tokens.CeilingChange{Scopes: &images})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := b.UpdateUser(ctx, b.user.ID,
		tokens.UserChange{Ceiling: tokens.CeilingChange{Scopes: &chat}}); err != nil {
		t.Fatal(err)
	}
	if _, err := b.AddMember(ctx, g.ID, b.user.Username); err != nil {
		t.Fatal(err)
	}
	create := func(operator bool, scopes ...string) error {
		_, _, err := b.CreateKey(ctx, tokens.NewKey{User: b.user.ID, Name: "k", Scopes: scopes, Operator: operator})
		return err
	}
	token, _, err := b.CreateDeveloperToken(ctx, b.user.ID, "before")
	if err != nil {
		t.Fatal(err)
	}
	var broken *tokens.FieldError
	if err := create(false, "chat"); !errors.As(err, &broken) || broken.Field != "scopes" {
		t.Errorf("a key beyond the group's ceiling: %v", err)
	}
	for _, err := range []error{create(false, "images"), create(false), create(true, "chat")} {
		if err != nil {
			t.Error(err)
		}
	}
	for _, forbid := range []func(*bool) error{
		func(may *bool) error {
			_, err := b.UpdateGroup(ctx, g.ID, tokens.GroupChange{Ceiling: tokens.CeilingChange{CreateKeys: may}})
			return err
		},
		func(may *bool) error {
			_, err := b.UpdateUser(ctx, b.user.ID, tokens.UserChange{Ceiling: tokens.CeilingChange{CreateKeys: may}})
			return err
		},
	} {
		if err := forbid(&no); err != nil {
			t.Fatal(err)
		}
		if err := create(false, "images"); !errors.Is(err, tokens.ErrKeysForbidden) {
			t.Errorf("a key of a user who may not create any: %v", err)
		}
		if _, _, err := b.CreateDeveloperToken(ctx, b.user.ID, "t"); !errors.Is(err, tokens.ErrKeysForbidden) {
			t.Errorf("a developer token of such a user: %v", err)
		}
		if _, err := b.Developer(token); !errors.Is(err, tokens.ErrKeysForbidden) {
			t.Errorf("an earlier developer token: %v", err)
		}
		if err := create(true, "images"); err != nil {
			t.Errorf("a key that an operator creates: %v", err)
		}
		if err := forbid(&yes); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := b.Developer(token); err != nil {
		t.Errorf("a developer token after the ceiling is gone: %v", err)
	}
}

func TestAnUpdateOfACeilingChangesOnlyTheFieldsItNames(t *testing.T) {
	b := newBench(t, tokens.Config{})
	chat, models, no := []string{"chat"}, []string{"gpt-*"}, false
	amount, month := int64(70), budget.WindowMonth
	all := tokens.CeilingChange{
		Scopes:     &chat,
		Models:     &models,
		Budget:     tokens.BudgetChange{Amount: &amount, Window: &month},
		CreateKeys: &no,
	}
	g, err := b.CreateGroup(ctx, "staff", all)
	if err != nil {
		t.Fatal(err)
	}
	name, other := "crew", int64(7)
	for what, change := range map[string]tokens.GroupChange{"name": {Name: &name}, "nothing": {},
		"amount": {Ceiling: tokens.CeilingChange{Budget: tokens.BudgetChange{Amount: &other}}}} {
		want := g.Ceiling
		if what == "amount" {
			want.Budget = 7
		}
		got, err := b.UpdateGroup(ctx, g.ID, change)
		if c := got.Ceiling; err != nil || !slices.Equal(c.Scopes, want.Scopes) ||
			!slices.Equal(c.Models, want.Models) ||
			c.Limit() != want.Limit() ||
			!c.NoKeys {
			t.Errorf("%s: %+v, %v", what, got, err)
		}
		g = got
	}
	if got, err := b.UpdateGroup(ctx, g.ID, tokens.GroupChange{Ceiling: tokens.Unrestricted()}); err != nil ||
		got.Ceiling.Restricts() {
		t.Errorf("%+v, %v", got, err)
	}
}

func TestAUserIsInOneGroupAtMost(t *testing.T) {
	b := newBench(t, tokens.Config{})
	one, err := b.CreateGroup(ctx, "one", tokens.CeilingChange{})
	if err != nil {
		t.Fatal(err)
	}
	two, err := b.CreateGroup(ctx, "two", tokens.CeilingChange{})
	if err != nil {
		t.Fatal(err)
	}
	member := func(do func() (identity.Group, error)) error { _, err := do(); return err }
	add := func(g identity.Group) error {
		return member(func() (identity.Group, error) { return b.AddMember(ctx, g.ID, b.user.Username) })
	}
	remove := func(g identity.Group) error {
		return member(func() (identity.Group, error) { return b.RemoveMember(ctx, g.ID, b.user.Username) })
	}
	drop := func(g identity.Group) error {
		return member(func() (identity.Group, error) { return b.DeleteGroup(ctx, g.ID) })
	}
	for i, step := range []struct{ got, want error }{
		{add(one), nil}, {add(one), nil}, {add(two), tokens.ErrInvalid}, {remove(two), tokens.ErrNotFound},
		{drop(one), tokens.ErrHasMembers},
		{remove(one), nil}, {drop(one), nil}, {add(one), tokens.ErrNotFound}, {add(two), nil},
	} {
		if !errors.Is(step.got, step.want) || (step.got == nil) != (step.want == nil) {
			t.Errorf("step %d: %v, want %v", i, step.got, step.want)
		}
	}
}
