package state

import (
	"fmt"
	"time"

	"stagedoor/state/budget"
	"stagedoor/state/journal"
)

// Group is some users with one ceiling and one budget. The ceiling restricts each member beside the member's
// own, so that both must permit something. The budget is for all members together. A user is in at most one group.
type Group struct {
	ID      int64     `json:"id"` // 1, 2, ...; never given twice
	Name    string    `json:"name"`
	Ceiling Ceiling   `json:"ceiling"`
	Created time.Time `json:"created"`
}

func (g *Group) check() error {
	if g.ID < 1 || g.Name == "" || len(g.Name) > MaxUsername {
		return fmt.Errorf("%w: group %d", ErrInvalid, g.ID)
	}
	if err := g.Ceiling.check(); err != nil {
		return fmt.Errorf("group %d: %w", g.ID, err)
	}
	return nil
}

// Scope is the scope of the group's budget.
func (g *Group) Scope() budget.Scope {
	return budget.Scope{Kind: budget.GroupScope, ID: fmt.Sprint(g.ID)}
}

var groups = Table[Group]{
	Name: journal.Group,
	ID:   func(g *Group) string { return NumberID(g.ID) },
	Indexes: map[string]Index[Group]{
		byName: {Unique: true, Key: func(g *Group) []byte { return folded(g.Name) }},
	},
}

const byGroup = "group"

// membership finds the members of a group.
var membership = Index[User]{Key: func(u *User) []byte {
	if u.Group == 0 {
		return nil
	}
	return NumberKey(u.Group)
}}

// Group returns a group.
func (v View) Group(id int64) (Group, bool) { return groups.Get(v, NumberID(id)).Record() }

// GroupByName finds a group whatever the case of its name.
func (v View) GroupByName(name string) (Group, bool) {
	return groups.First(v, byName, folded(name)).Record()
}

// Groups lists the groups by id.
func (v View) Groups() []Group { return groups.List(v, ByID, nil) }

// Members lists the users of a group by id.
func (v View) Members(group int64) []User {
	return users.List(v, byGroup, NumberKey(group))
}

// MayCreateKeys reports whether the ceilings of a user and of the user's group let the user create keys and
// developer tokens.
func (v View) MayCreateKeys(u *User) bool {
	g, _ := v.Group(u.Group)
	return !u.Ceiling.NoKeys && !g.Ceiling.NoKeys
}

// ScopesOf returns those of all scopes that the ceilings of a user and of the user's group leave the user's
// keys.
func (v View) ScopesOf(u *User, all []string) []string {
	g, _ := v.Group(u.Group)
	var left []string
	for _, scope := range all {
		if permitsScope(u.Ceiling.Scopes, scope) && permitsScope(g.Ceiling.Scopes, scope) {
			left = append(left, scope)
		}
	}
	return left
}

// lastGroupName is the fact that holds the id of the last group that was made. An id is not given again when
// its group is deleted, because the group's spending is counted under it.
const lastGroupName = "group/last"

// AddGroup keeps a new group under the next id, which it returns with it. Two groups can't have one name:
// ErrExists.
func (tx *Tx) AddGroup(g Group) (Group, error) {
	g.ID = int64(tx.View().NumberFact(lastGroupName)) + 1
	g.Created = tx.Now()
	if err := tx.PutGroup(g); err != nil {
		return Group{}, err
	}
	return g, tx.PutNumberFact(lastGroupName, uint64(g.ID))
}

// PutGroup keeps g. Two groups can't have one name: ErrExists.
func (tx *Tx) PutGroup(g Group) error {
	if err := g.check(); err != nil {
		return err
	}
	if other := groups.First(tx.View(), byName, folded(g.Name)); other != nil && other.Rec.ID != g.ID {
		return fmt.Errorf("group %q: %w", g.Name, ErrExists)
	}
	return groups.Put(tx, g)
}

// RemoveGroup forgets a group without members; an unknown one is ErrNotFound. What its members have spent stays
// on record.
func (tx *Tx) RemoveGroup(id int64) error {
	r := groups.Get(tx.View(), NumberID(id))
	if r == nil {
		return fmt.Errorf("group %d: %w", id, ErrNotFound)
	}
	if len(tx.View().Members(id)) > 0 {
		return fmt.Errorf("%w: group %d has members", ErrInvalid, id)
	}
	groups.Remove(tx, r)
	return nil
}
