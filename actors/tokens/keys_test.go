package tokens_test

import (
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"stagedoor/actors/tokens"
	"stagedoor/state"
	"stagedoor/state/budget"
	"stagedoor/state/identity"
)

func TestKeysAreTheirUsersOwn(t *testing.T) {
	b := newBench(t, tokens.Config{})
	grace := b.signUp(t, "Grace")
	secret, k, err := b.CreateKey(
		ctx,
		tokens.NewKey{User: grace.ID, Name: "laptop", Scopes: []string{"chat"}, Models: []string{"gpt-*"},
			Limits: identity.Limits{RPM: 60}, Budget: 5_000_000, Expires: start.Add(time.Hour)},
	)
	if err != nil || k.User != "Grace" || !k.Enabled || k.Hash != state.HashSecret(secret) {
		t.Fatalf("got %+v, %v", k, err)
	}
	if all := b.UserKeys(grace.ID); len(all) != 1 || all[0].ID != k.ID || len(b.UserKeys(b.user.ID)) != 0 ||
		len(b.UserKeys(99)) != 0 {
		t.Errorf("listed %+v", all)
	}
	for name, err := range map[string]error{
		"another's, revoked":  b.RevokeKey(ctx, b.user.ID, k.ID),
		"another's, disabled": b.EnableKey(ctx, b.user.ID, k.ID, false),
		"unknown":             b.RevokeKey(ctx, grace.ID, "key_none"),
		"of no user":          b.RevokeKey(ctx, 99, k.ID),
	} {
		if !errors.Is(err, tokens.ErrNotFound) {
			t.Errorf("%s: %v", name, err)
		}
	}
	for _, enabled := range []bool{false, true, false} {
		if err := b.EnableKey(ctx, grace.ID, k.ID, enabled); err != nil || b.UserKeys(grace.ID)[0].Enabled != enabled {
			t.Errorf("enabled %t: %v", enabled, err)
		}
	}
	for range 2 {
		if err := b.RevokeKey(ctx, grace.ID, k.ID); err != nil {
			t.Error(err)
		}
	}
	if err := b.EnableKey(ctx, grace.ID, k.ID, true); !errors.Is(err, tokens.ErrNotFound) {
		t.Errorf("a revoked key comes back: %v", err)
	}
}

func TestKeyRules(t *testing.T) {
	b := newBench(t, tokens.Config{})
	for field, n := range map[string]tokens.NewKey{
		"name":    {Name: " "},
		"scopes":  {Name: "a", Scopes: []string{"everything"}},
		"models":  {Name: "a", Models: []string{strings.Repeat("m", 201)}},
		"limits":  {Name: "a", Limits: identity.Limits{TPM: -1}},
		"budget":  {Name: "a", Budget: -1},
		"window":  {Name: "a", Budget: 1, Window: "year"},
		"expires": {Name: "a", Expires: start},
	} {
		n.User = b.user.ID
		var broken *tokens.FieldError
		if _, _, err := b.CreateKey(ctx, n); !errors.As(err, &broken) || broken.Field != field {
			t.Errorf("%s: %v", field, err)
		}
	}
	var broken *tokens.FieldError
	if _, _, err := b.CreateKey(ctx, tokens.NewKey{User: b.user.ID, Name: "a", Scopes: []string{}}); !errors.As(err,
		&broken) {
		t.Errorf("a key that may do nothing: %v", err)
	}
	if _, _, err := b.CreateKey(ctx, tokens.NewKey{User: 99, Name: "a"}); !errors.Is(err, tokens.ErrNotFound) {
		t.Errorf("of an unknown user: %v", err)
	}
}

func TestAUsersKeysAreBounded(t *testing.T) {
	b := newBench(t, tokens.Config{})
	var live []string
	create := func() {
		t.Helper()
		_, k, err := b.CreateKey(ctx, tokens.NewKey{User: b.user.ID, Name: "a"})
		if err != nil {
			t.Fatalf("%d keys: %v", len(live), err)
		}
		live = append(live, k.ID)
	}
	for range 100 {
		create()
	}
	if _, _, err := b.CreateKey(ctx, tokens.NewKey{User: b.user.ID, Name: "a"}); !errors.Is(err, tokens.ErrTooMany) {
		t.Errorf("the 101st: %v", err)
	}
	err := state.Run(ctx, b.state, func(tx *state.Tx) error { // a key for each commit would take a second
		for n := range 380 {
			k := identity.Key{ID: fmt.Sprint("key_", n), Hash: state.HashSecret(fmt.Sprint(n)), Name: "a",
				User: b.user.Username, Revoked: tx.Now()}
			if err := identity.AddKey(tx, k); err != nil {
				return err
			}
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	for n := range 40 {
		if err := b.RevokeKey(ctx, b.user.ID, live[n]); err != nil {
			t.Fatal(err)
		}
		create()
	}
	if n := len(b.UserKeys(b.user.ID)); n != 500 {
		t.Errorf("%d keys are kept", n)
	}
}

func TestUpdateKeyChangesOnlyTheFieldsItNames(t *testing.T) {
	b := newBench(t, tokens.Config{})
	amount, month := int64(7_000_000), budget.WindowMonth
	rpm, tpm, slots := int64(60), int64(1000), int64(4)
	_, k, err := b.IssueKey(
		ctx,
		b.user.Username,
		tokens.KeyChange{Limits: tokens.LimitsChange{RPM: &rpm, TPM: &tpm, Concurrency: &slots},
			Budget: tokens.BudgetChange{Amount: &amount, Window: &month}},
	)
	if err != nil {
		t.Fatal(err)
	}
	five, zero, day := int64(5), int64(0), budget.WindowDay
	for _, step := range []struct {
		name   string
		change tokens.KeyChange
		limits identity.Limits
		budget budget.Budget
	}{
		{"rpm", tokens.KeyChange{Limits: tokens.LimitsChange{RPM: &five}},
			identity.Limits{RPM: 5, TPM: 1000, Concurrency: 4}, budget.Budget{Amount: 7_000_000, Window: month}},
		{"no tpm", tokens.KeyChange{Limits: tokens.LimitsChange{TPM: &zero}}, identity.Limits{RPM: 5, Concurrency: 4},
			budget.Budget{Amount: 7_000_000, Window: month}},
		{"amount", tokens.KeyChange{Budget: tokens.BudgetChange{Amount: &five}},
			identity.Limits{RPM: 5, Concurrency: 4}, budget.Budget{Amount: 5, Window: month}},
		{"window", tokens.KeyChange{Budget: tokens.BudgetChange{Window: &day}}, identity.Limits{RPM: 5, Concurrency: 4},
			budget.Budget{Amount: 5, Window: day}},
		{"no budget", tokens.KeyChange{Budget: tokens.BudgetChange{Amount: &zero}},
			identity.Limits{RPM: 5, Concurrency: 4}, budget.Budget{}},
		{"nothing", tokens.KeyChange{}, identity.Limits{RPM: 5, Concurrency: 4}, budget.Budget{}},
	} {
		got, err := b.UpdateKey(ctx, k.ID, step.change)
		if err != nil || got.Limits != step.limits || got.Limit() != step.budget || got.Name != k.Name || !got.Enabled {
			t.Errorf("%s: %+v, %v", step.name, got, err)
		}
	}
	var broken *tokens.FieldError
	if _, err := b.UpdateKey(ctx, k.ID, tokens.KeyChange{Budget: tokens.BudgetChange{Window: &day}}); !errors.As(err,
		&broken) ||
		broken.Field != "budget" {
		t.Errorf("a window without an amount: %v", err)
	}
}

func TestOnlyThePartyThatDisabledAKeyEnablesIt(t *testing.T) {
	b := newBench(t, tokens.Config{})
	_, k, err := b.CreateKey(ctx, tokens.NewKey{User: b.user.ID, Name: "laptop"})
	if err != nil {
		t.Fatal(err)
	}
	operator := func(enabled bool) error {
		_, err := b.UpdateKey(ctx, k.ID, tokens.KeyChange{Enabled: &enabled})
		return err
	}
	owner := func(enabled bool) error { return b.EnableKey(ctx, b.user.ID, k.ID, enabled) }
	for _, step := range []struct {
		name    string
		by      func(bool) error
		enabled bool
		want    error
		after   bool
	}{
		{"the owner disables", owner, false, nil, false},
		{"the owner enables", owner, true, nil, true},
		{"the operator disables", operator, false, nil, false},
		{"the owner cannot enable", owner, true, tokens.ErrOperatorOnly, false},
		{"the owner disables it, too", owner, false, nil, false},
		{"and cannot enable it after that", owner, true, tokens.ErrOperatorOnly, false},
		{"the operator enables", operator, true, nil, true},
		{"the owner disables again", owner, false, nil, false},
		{"the operator disables it, too", operator, false, nil, false},
		{"the owner cannot take that back", owner, true, tokens.ErrOperatorOnly, false},
		{"the operator enables at last", operator, true, nil, true},
		{"enabling an enabled key changes nothing", owner, true, nil, true},
	} {
		err := step.by(step.enabled)
		if !errors.Is(err, step.want) || (err == nil) != (step.want == nil) ||
			b.UserKeys(b.user.ID)[0].Enabled != step.after {
			t.Errorf("%s: %v, %+v", step.name, err, b.UserKeys(b.user.ID)[0])
		}
	}
}

func TestTheOldSecretOfAKeyWorksUntilTheOverlapEnds(t *testing.T) {
	b := newBench(t, tokens.Config{})
	grace := b.signUp(t, "grace")
	first, k, err := b.CreateKey(ctx, tokens.NewKey{User: grace.ID, Name: "ci", Budget: 5})
	if err != nil {
		t.Fatal(err)
	}
	works := func(when string, want bool, secrets ...string) {
		t.Helper()
		for i, secret := range secrets {
			found, ok := identity.AccessOf(b.state).Key(state.HashSecret(secret))
			if ok != want || ok && (found.ID != k.ID || found.Budget != 5) {
				t.Errorf("%s: secret %d works: %t, %+v", when, i+1, ok, found)
			}
		}
	}
	second, rotated, err := b.RotateKey(ctx, grace.ID, k.ID, time.Hour)
	if err != nil || rotated.Prefix != second[3:11] || !rotated.PreviousUntil(start).Equal(start.Add(time.Hour)) {
		t.Fatalf("got %+v, %v", rotated, err)
	}
	works("after the rotation", true, first, second)
	b.reopen(t, tokens.Config{})
	b.clock.Add(time.Hour - time.Second)
	works("after a restart, a second before the end", true, first, second)
	b.clock.Add(time.Second)
	works("after the overlap", false, first)
	works("after the overlap", true, second)
	third, _, err := b.RotateAnyKey(ctx, k.ID, time.Hour)
	if err != nil {
		t.Fatal(err)
	}
	fourth, _, err := b.RotateAnyKey(ctx, k.ID, time.Hour)
	if err != nil {
		t.Fatal(err)
	}
	works("after two rotations", false, first, second)
	works("after two rotations", true, third, fourth)
	last, _, err := b.RotateKey(ctx, grace.ID, k.ID, 0)
	if err != nil {
		t.Fatal(err)
	}
	works("without an overlap", false, third, fourth)
	works("without an overlap", true, last)
	if _, _, err := b.RotateKey(ctx, grace.ID, k.ID, tokens.MaxKeyOverlap+1); !errors.Is(err, tokens.ErrInvalid) {
		t.Errorf("an overlap that is too long: %v", err)
	}
	if _, _, err := b.RotateKey(ctx, b.user.ID, k.ID, 0); !errors.Is(err, tokens.ErrNotFound) {
		t.Errorf("another's key: %v", err)
	}
	previous, _, err := b.RotateKey(ctx, grace.ID, k.ID, time.Hour)
	if err != nil {
		t.Fatal(err)
	}
	if err := b.RevokeKey(ctx, grace.ID, k.ID); err != nil {
		t.Fatal(err)
	}
	for _, secret := range []string{last, previous} {
		if k, ok := identity.AccessOf(b.state).Key(state.HashSecret(secret)); ok && k.Revoked.IsZero() {
			t.Error("a secret of a revoked key works")
		}
	}
	if _, _, err := b.RotateAnyKey(ctx, k.ID, 0); !errors.Is(err, tokens.ErrNotFound) {
		t.Errorf("a revoked key: %v", err)
	}
}
