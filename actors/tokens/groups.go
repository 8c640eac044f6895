package tokens

import (
	"context"
	"slices"
	"strings"

	shapes "stagedoor/providers/shapes/registry"
	"stagedoor/state"
	"stagedoor/state/identity"
)

// maxGroups is the number of groups that there may be.
const maxGroups = 1000

// CeilingChange is an update of a ceiling. A nil field stays unchanged. A field may point at nil, which means
// everything and all as in identity.Ceiling.
type CeilingChange struct {
	Scopes     *[]string
	Models     *[]string
	Budget     BudgetChange
	CreateKeys *bool
}

// Unrestricted returns the change that removes a ceiling.
func Unrestricted() CeilingChange {
	may := true
	none := BudgetChange{Amount: new(int64)}
	return CeilingChange{Scopes: new([]string), Models: new([]string), Budget: none, CreateKeys: &may}
}

// check refuses values that no ceiling may have. It needs no record, so it runs before the command.
func (c *CeilingChange) check() error {
	if c.Scopes != nil {
		if err := checkScopes(*c.Scopes); err != nil {
			return err
		}
	}
	if c.Models != nil {
		if err := checkModels(*c.Models); err != nil {
			return err
		}
	}
	return c.Budget.check()
}

// apply changes the fields that the request has and leaves the others.
func (c *CeilingChange) apply(to *identity.Ceiling) error {
	set(&to.Scopes, c.Scopes)
	set(&to.Models, c.Models)
	if c.CreateKeys != nil {
		to.NoKeys = !*c.CreateKeys
	}
	budget, err := c.Budget.apply(to.Limit())
	to.Budget, to.Window = budget.Amount, budget.Window
	return err
}

// checkScopes returns an error unless all scopes are known.
func checkScopes(scopes []string) error {
	if slices.ContainsFunc(scopes, func(s string) bool { return !contains(shapes.Scopes(), s) }) {
		return &FieldError{"scopes", "must be some of " + strings.Join(shapes.Scopes(), ", ")}
	}
	return nil
}

// checkModels bounds the list and the names. Names of unknown models are allowed, since the
// configuration may get them later.
func checkModels(models []string) error {
	bad := func(m string) bool { return m == "" || len(m) > maxModel || !isPlain(m, "") }
	if len(models) > maxModels || slices.ContainsFunc(models, bad) {
		return &FieldError{"models", "must be at most 50 names or patterns of at most 200 bytes"}
	}
	return nil
}

// GroupChange is an update of a group. A nil field stays unchanged.
type GroupChange struct {
	Name    *string // 1 to 64 letters, digits and ._@+- ; unique without regard to case
	Ceiling CeilingChange
}

// check returns an error unless the change can be made to any group.
func (g *GroupChange) check() error {
	if g.Name != nil {
		if err := checkGroupName(*g.Name); err != nil {
			return err
		}
	}
	return g.Ceiling.check()
}

// apply makes the change. Fields that are nil stay as they are.
func (g *GroupChange) apply(to *identity.Group) error {
	set(&to.Name, g.Name)
	return g.Ceiling.apply(&to.Ceiling)
}

// checkGroupName applies the rules for usernames, because commands and pages name groups in the same places.
func checkGroupName(name string) error {
	if checkUsername(name) != nil {
		return &FieldError{"name", "must have 1 to 64 letters, digits and . _ @ + - only"}
	}
	return nil
}

// CreateGroup makes a group without members. It returns ErrExists if the name is taken, and *TooMany.
func (c *Client) CreateGroup(ctx context.Context, name string, ceiling CeilingChange) (identity.Group, error) {
	change := GroupChange{Name: &name, Ceiling: ceiling}
	if err := change.check(); err != nil {
		return identity.Group{}, err
	}
	return decide(ctx, c, nil, func(tx *state.Tx) (identity.Group, error) {
		if len(identity.ListGroups(tx.View())) >= maxGroups {
			return identity.Group{}, &TooMany{"groups", maxGroups, "delete one first"}
		}
		var g identity.Group
		if err := change.apply(&g); err != nil {
			return identity.Group{}, err
		}
		return identity.AddGroup(tx, g)
	})
}

// UpdateGroup changes a group, with effect on all requests of its members at once. It returns ErrNotFound, and
// ErrExists if the name is taken.
func (c *Client) UpdateGroup(ctx context.Context, id int64, change GroupChange) (identity.Group, error) {
	if err := change.check(); err != nil {
		return identity.Group{}, err
	}
	return decide(ctx, c, nil, func(tx *state.Tx) (identity.Group, error) {
		g, ok := identity.FindGroup(tx.View(), id)
		if !ok {
			return identity.Group{}, ErrNotFound
		}
		if err := change.apply(&g); err != nil {
			return identity.Group{}, err
		}
		return g, identity.PutGroup(tx, g)
	})
}

// DeleteGroup removes a group without members, ends the invitations to it, and returns its last record. It returns
// ErrNotFound or ErrHasMembers.
func (c *Client) DeleteGroup(ctx context.Context, id int64) (identity.Group, error) {
	return decide(ctx, c, nil, func(tx *state.Tx) (identity.Group, error) {
		g, ok := identity.FindGroup(tx.View(), id)
		switch {
		case !ok:
			return identity.Group{}, ErrNotFound
		case len(identity.ListMembers(tx.View(), id)) > 0:
			return identity.Group{}, ErrHasMembers
		}
		// An invited user must not come without the ceiling that was meant.
		removeLinks(tx, func(l *identity.Link) bool { return l.Group == id })
		return g, identity.RemoveGroup(tx, id)
	})
}

// AddMember adds a user to a group; a user who is in it already stays. It returns ErrNotFound if the group does not
// exist, and *FieldError if the user does not exist or is in another group.
func (c *Client) AddMember(ctx context.Context, group int64, username string) (identity.Group, error) {
	return decide(ctx, c, nil, func(tx *state.Tx) (identity.Group, error) {
		g, ok := identity.FindGroup(tx.View(), group)
		if !ok {
			return identity.Group{}, ErrNotFound
		}
		u, ok := identity.FindUserByName(tx.View(), username)
		switch {
		case !ok:
			return identity.Group{}, &FieldError{"user", "must be the name of a user"}
		case u.Group != 0 && u.Group != group:
			other, _ := identity.FindGroup(tx.View(), u.Group)
			rule := "is in the group " + other.Name + " already: remove the user there first"
			return identity.Group{}, &FieldError{"user", rule}
		}
		u.Group = group
		return g, identity.PutUser(tx, u)
	})
}

// MoveUser puts a user into a group, out of the one before, or out of all groups if group is 0. It returns ErrNotFound
// if the user or the group does not exist.
func (c *Client) MoveUser(ctx context.Context, user, group int64) (User, error) {
	return decide(ctx, c, nil, func(tx *state.Tx) (User, error) {
		u, ok := identity.FindUser(tx.View(), user)
		_, found := identity.FindGroup(tx.View(), group)
		if !ok || !u.Erased.IsZero() || group != 0 && !found {
			return User{}, ErrNotFound
		}
		u.Group = group
		return userOf(u), identity.PutUser(tx, u)
	})
}

// RemoveMember removes a user from a group. It returns ErrNotFound if the group does not exist or the user is not
// in it.
func (c *Client) RemoveMember(ctx context.Context, group int64, username string) (identity.Group, error) {
	return decide(ctx, c, nil, func(tx *state.Tx) (identity.Group, error) {
		g, ok := identity.FindGroup(tx.View(), group)
		u, known := identity.FindUserByName(tx.View(), username)
		if !ok || !known || u.Group != group {
			return identity.Group{}, ErrNotFound
		}
		u.Group = 0
		return g, identity.PutUser(tx, u)
	})
}
