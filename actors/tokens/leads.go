package tokens

import (
	"context"
	"fmt"

	"stagedoor/state"
	"stagedoor/state/identity"
)

// Leads are members of a group whom an operator lets look after it. The commands of this file check in the transaction
// that decides them that the user leads the group now, so that a lead who was dismissed can do nothing more.

// SetLead lets a member lead the group, or takes that away and withdraws the invitations that the lead has made.
// Operators call it. It returns ErrNotFound if the group does not exist or the user is not in it.
func (c *Client) SetLead(ctx context.Context, group int64, username string, leads bool) (identity.Group, error) {
	return decide(ctx, c, nil, func(tx *state.Tx) (identity.Group, error) {
		g, ok := identity.FindGroup(tx.View(), group)
		u, known := identity.FindUserByName(tx.View(), username)
		if !ok || !known || u.Group != group {
			return identity.Group{}, ErrNotFound
		}
		if u.Leads = 0; leads {
			u.Leads = group
		} else {
			removeLinks(tx, func(l *identity.Link) bool { return l.Lead == u.ID })
		}
		return g, identity.PutUser(tx, u)
	})
}

// ledMember returns a member over whom a user has the rights of a lead, with the group. These are the members who
// neither lead the group nor administer the gateway, so that a lead has no such right over the lead's own keys, over
// another lead or over an operator. It returns ErrNotFound for all others.
func ledMember(v state.View, lead, member int64) (identity.User, identity.Group, error) {
	g, leads := identity.LedBy(v, lead)
	u, ok := identity.FindUser(v, member)
	if !leads || !ok || u.Group != g.ID || u.Leads != 0 || u.Admin {
		return identity.User{}, identity.Group{}, ErrNotFound
	}
	return u, g, nil
}

// MayLead reports whether a user has the rights of a lead over another one.
func (c *Client) MayLead(lead, member int64) bool {
	_, _, err := ledMember(c.state.View(), lead, member)
	return err == nil
}

// withinBudget returns a *FieldError for the budget of a key that is above that of the group. Budgets of all windows
// are compared by their amounts, because the group's budget binds every request anyway.
func withinBudget(g *identity.Group, amount int64) error {
	if limit := g.Ceiling.Budget; limit != 0 && amount > limit {
		return &FieldError{"budget", fmt.Sprintf("must be at most that of the group, %d.%02d dollars",
			limit/1_000_000, limit%1_000_000/10_000)}
	}
	return nil
}

// GroupInvitations returns the open invitations that leads have made into a group, oldest first.
func (c *Client) GroupInvitations(group int64) []identity.Link {
	var open []identity.Link
	for _, l := range c.Invitations() {
		if l.Lead != 0 && l.Group == group {
			open = append(open, l)
		}
	}
	return open
}

// WithdrawGroupInvitation ends an invitation that a lead of the group has made. It returns ErrNotFound for all others.
func (c *Client) WithdrawGroupInvitation(ctx context.Context, lead int64, id string) (identity.Link, error) {
	return c.withdraw(ctx, id, func(v state.View, l *identity.Link) bool {
		g, leads := identity.LedBy(v, lead)
		return leads && l.Lead != 0 && l.Group == g.ID
	})
}

// RemoveLedMember removes a user from the group of a lead. If the group has a ceiling, the keys of the user may do
// nothing until an operator changes the user's own ceiling. Otherwise a lead could lift the ceiling from a member. It
// returns ErrNotFound if the lead has no right over the user.
func (c *Client) RemoveLedMember(ctx context.Context, lead, member int64) error {
	return do(ctx, c, nil, func(tx *state.Tx) error {
		u, g, err := ledMember(tx.View(), lead, member)
		if err != nil {
			return err
		}
		if u.Group = 0; g.Ceiling.Restricts() {
			u.Ceiling.Scopes, u.Ceiling.NoKeys = []string{}, true
		}
		return identity.PutUser(tx, u)
	})
}

// EnableMemberKey enables or disables a key of a member for a lead. It returns ErrNotFound if the lead has no right
// over the key's user or the key was revoked, and ErrOperatorOnly if the operator disabled it.
func (c *Client) EnableMemberKey(ctx context.Context, lead int64, id string, enabled bool) error {
	return c.changeMemberKey(ctx, lead, id, func(_ state.View, _ *identity.User, _ *identity.Group,
		k *identity.Key) error {
		return setEnabled(k, enabled, identity.PartyLead)
	})
}

// SetMemberKeyBudget changes the budget of a member's key for a lead, to at most the amount of the group's budget. It
// returns ErrNotFound as EnableMemberKey does, ErrKeysForbidden if the ceilings forbid the member to create keys, since
// an operator has bounded the keys of such a user, and *FieldError.
func (c *Client) SetMemberKeyBudget(ctx context.Context, lead int64, id string, change BudgetChange) error {
	if err := change.check(); err != nil {
		return err
	}
	return c.changeMemberKey(ctx, lead, id, func(v state.View, u *identity.User, g *identity.Group,
		k *identity.Key) error {
		if err := new(NewKey).allowed(v, u); err != nil {
			return err
		}
		b, err := change.apply(k.Limit())
		if err == nil {
			err = withinBudget(g, b.Amount)
		}
		k.Budget, k.Window = b.Amount, b.Window
		return err
	})
}

// changeMemberKey runs change in a command on a key of a member of the group that lead leads, and stores the result. It
// returns ErrNotFound for any other key.
func (c *Client) changeMemberKey(ctx context.Context, lead int64, id string,
	change func(state.View, *identity.User, *identity.Group, *identity.Key) error) error {
	return do(ctx, c, nil, func(tx *state.Tx) error {
		k, err := identity.KeyForChange(tx, id)
		if err != nil || !k.Revoked.IsZero() {
			return ErrNotFound
		}
		owner, _ := identity.FindUserByName(tx.View(), k.User)
		u, g, err := ledMember(tx.View(), lead, owner.ID)
		if err != nil {
			return err
		}
		if err := change(tx.View(), &u, &g, &k); err != nil {
			return err
		}
		return identity.PutKey(tx, k)
	})
}
