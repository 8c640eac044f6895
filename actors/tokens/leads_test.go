package tokens_test

import (
	"errors"
	"fmt"
	"testing"

	"stagedoor/actors/tokens"
	"stagedoor/state/identity"
)

// TestAKeyIsEnabledByThePartyThatMayDoMost: by its owner, by a lead of the owner's group and by an operator. Each may
// do more than those before.
func TestAKeyIsEnabledByThePartyThatMayDoMost(t *testing.T) {
	b := newBench(t, tokens.Config{})
	lead := b.signUp(t, "lead")
	b.ledGroup(t, lead.Username, b.user.Username)
	_, k, err := b.CreateKey(ctx, tokens.NewKey{User: b.user.ID, Name: "laptop"})
	if err != nil {
		t.Fatal(err)
	}
	by := map[identity.Party]func(bool) error{
		identity.PartyOwner: func(enabled bool) error { return b.EnableKey(ctx, b.user.ID, k.ID, enabled) },
		identity.PartyLead:  func(enabled bool) error { return b.EnableMemberKey(ctx, lead.ID, k.ID, enabled) },
		identity.PartyOperator: func(enabled bool) error {
			_, err := b.UpdateKey(ctx, k.ID, tokens.KeyChange{Enabled: &enabled})
			return err
		},
	}
	parties := []identity.Party{identity.PartyOwner, identity.PartyLead, identity.PartyOperator}
	refusal := []error{nil, tokens.ErrLeadOnly, tokens.ErrOperatorOnly}
	for first := range parties {
		for second := range parties {
			for third, party := range parties {
				name := fmt.Sprintf("%v and %v disable, %v enables", parties[first], parties[second], party)
				if err := errors.Join(by[parties[first]](false), by[parties[second]](false)); err != nil {
					t.Errorf("%s: %v", name, err)
				}
				var want error
				if most := max(first, second); third < most {
					want = refusal[most]
				}
				if err := by[party](true); !errors.Is(err, want) || (err == nil) != (want == nil) {
					t.Errorf("%s: %v, want %v", name, err, want)
				}
				if err := by[identity.PartyOperator](true); err != nil {
					t.Fatal(err)
				}
			}
		}
	}
}

// TestALeadStopsLeadingWithTheMembership: on every way out of the group, and does not lead again after coming back.
func TestALeadStopsLeadingWithTheMembership(t *testing.T) {
	b := newBench(t, tokens.Config{})
	g, other := b.group(t, "staff"), b.group(t, "other")
	leads := func() bool { _, ok := identity.LedBy(b.state.View(), b.user.ID); return ok }
	for name, leave := range map[string]func() error{
		"removed": func() error { _, err := b.RemoveMember(ctx, g.ID, b.user.Username); return err },
		"moved":   func() error { _, err := b.MoveUser(ctx, b.user.ID, other.ID); return err },
		"disabled": func() error {
			_, err := b.SetUserStatus(ctx, b.user.ID, tokens.StatusDisabled)
			return err
		},
	} {
		_, err := b.MoveUser(ctx, b.user.ID, g.ID)
		if err == nil {
			_, err = b.SetLead(ctx, g.ID, b.user.Username, true)
		}
		if err != nil || !leads() {
			t.Fatal(err)
		}
		secret, _, err := b.Invite(ctx, tokens.Invitation{Username: "later", Group: g.ID, Lead: b.user.ID})
		if err != nil {
			t.Fatal(err)
		}
		if err := leave(); err != nil || leads() {
			t.Errorf("%s: leads still, %v", name, err)
		}
		if _, _, err := b.CheckLink(secret); !errors.Is(err, tokens.ErrUsed) {
			t.Errorf("%s: the invitation still works: %v", name, err)
		}
		if name == "disabled" {
			if _, err := b.SetUserStatus(ctx, b.user.ID, tokens.StatusActive); err != nil {
				t.Fatal(err)
			}
			continue
		}
		if _, err := b.MoveUser(ctx, b.user.ID, g.ID); err != nil || leads() {
			t.Errorf("%s: leads again after coming back, %v", name, err)
		}
	}
}

func TestTheLeadsOfAGroupHaveFewOpenInvitations(t *testing.T) {
	b := newBench(t, tokens.Config{})
	g := b.ledGroup(t, b.user.Username)
	invite := func(i tokens.Invitation) error { _, _, err := b.Invite(ctx, i); return err }
	// The name is taken, of which a lead learns nothing.
	i := tokens.Invitation{Username: b.user.Username, Group: g.ID, Lead: b.user.ID}
	for range 50 {
		if err := invite(i); err != nil {
			t.Fatal(err)
		}
	}
	if err := invite(i); !errors.Is(err, tokens.ErrTooMany) {
		t.Errorf("one more: %v", err)
	}
	if err := invite(tokens.Invitation{Username: "op", Group: g.ID}); err != nil {
		t.Errorf("an operator's: %v", err)
	}
	for _, wrong := range []tokens.Invitation{{Username: "x", Lead: b.user.ID}, {Username: "x", Group: g.ID + 1,
		Lead: b.user.ID}, {Username: "x", Group: g.ID, Lead: b.user.ID, Admin: true}} {
		if err := invite(wrong); !errors.Is(err, tokens.ErrNotFound) {
			t.Errorf("%+v: %v", wrong, err)
		}
	}
}
