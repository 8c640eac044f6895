package identity

import (
	"fmt"
	"strconv"
	"strings"
	"time"

	"stagedoor/state"
	"stagedoor/state/budget"
	"stagedoor/state/journal"
)

// Group is a set of users with one ceiling and one budget. The ceiling applies to each member in
// addition to the member's own, so both must permit a request. The members share the budget. A user
// is in at most one group.
type Group struct {
	ID      int64     `json:"id"` // 1, 2, ...; never reused
	Name    string    `json:"name"`
	Ceiling Ceiling   `json:"ceiling"`
	Created time.Time `json:"created"`
	// Named is the time since which the group has its name, as PutGroup sets it. Earlier requests of the log with that
	// name are of another group. Zero: since before groups had this field.
	Named time.Time `json:"named,omitzero"`
}

// check returns an error unless the group can be stored.
func (g *Group) check() error {
	if g.ID < 1 || g.Name == "" || len(g.Name) > MaxUsername {
		return fmt.Errorf("%w: group %d", state.ErrInvalid, g.ID)
	}
	if err := g.Ceiling.check(); err != nil {
		return fmt.Errorf("group %d: %w", g.ID, err)
	}
	return nil
}

// Scope returns the scope under which the group's spending is counted.
func (g *Group) Scope() budget.Scope {
	return budget.Scope{Kind: budget.GroupScope, ID: fmt.Sprint(g.ID)}
}

// groups holds the groups of users. Names are unique without regard to case, which byName makes sure of.
var groups = state.Table[Group]{
	Name: journal.Group,
	ID:   func(g *Group) string { return state.NumberID(g.ID) },
	Audit: &state.Audit[Group]{Kind: "group", Describe: func(_ state.View, g *Group) (state.Target, state.Fields) {
		f := state.Fields{"name": g.Name}
		g.Ceiling.describe(f)
		return state.Target{ID: strconv.FormatInt(g.ID, 10), Name: g.Name}, f
	}},
	Indexes: map[string]state.Index[Group]{
		byName: {Unique: true, Key: func(g *Group) []byte { return lowerKey(g.Name) }},
	},
}

const byGroup = "group"

// membership is the index of users by group.
var membership = state.Index[User]{Key: func(u *User) []byte {
	if u.Group == 0 {
		return nil
	}
	return state.NumberKey(u.Group)
}}

// FindGroup returns the group with this id.
func FindGroup(v state.View, id int64) (Group, bool) {
	return groups.Get(v, state.NumberID(id)).Record()
}

// FindGroupByName returns the group with this name and ignores case.
func FindGroupByName(v state.View, name string) (Group, bool) {
	return groups.First(v, byName, lowerKey(name)).Record()
}

// ListGroups returns all groups by id.
func ListGroups(v state.View) []Group { return groups.List(v, state.ByID, nil) }

// ListMembers returns the users of a group by id.
func ListMembers(v state.View, group int64) []User {
	return users.List(v, byGroup, state.NumberKey(group))
}

// LedBy returns the group that an active user leads. A user who leads none has none.
func LedBy(v state.View, user int64) (Group, bool) {
	u, ok := FindUser(v, user)
	if !ok || !u.Active() || u.Leads == 0 {
		return Group{}, false
	}
	return FindGroup(v, u.Leads)
}

// MayCreateKeys reports whether the ceilings of a user and of the user's group let the user create keys and
// developer tokens.
func MayCreateKeys(v state.View, u *User) bool {
	g, _ := FindGroup(v, u.Group)
	return !u.Ceiling.NoKeys && !g.Ceiling.NoKeys
}

// ScopesOf returns those scopes of all that the ceilings of a user and of the user's group permit.
func ScopesOf(v state.View, u *User, all []string) []string {
	g, _ := FindGroup(v, u.Group)
	var left []string
	for _, scope := range all {
		if permitsScope(u.Ceiling.Scopes, scope) && permitsScope(g.Ceiling.Scopes, scope) {
			left = append(left, scope)
		}
	}
	return left
}

// lastGroupName is the fact that holds the highest group id ever used. An id is not reused after
// its group is deleted, because the group's spending is counted under it.
const lastGroupName = "group/last"

// AddGroup stores a new group and returns it with its id. It returns state.ErrExists if another group has the name in
// any case of letters, and state.ErrInvalid if a field is not valid.
func AddGroup(tx *state.Tx, g Group) (Group, error) {
	g.ID = int64(tx.View().NumberFact(lastGroupName)) + 1
	g.Created = tx.Now()
	if err := PutGroup(tx, g); err != nil {
		return Group{}, err
	}
	return g, tx.PutNumberFact(lastGroupName, uint64(g.ID))
}

// PutGroup stores g. It returns state.ErrExists if another group has the name in any case of letters, and
// state.ErrInvalid if a field is not valid.
func PutGroup(tx *state.Tx, g Group) error {
	if err := g.check(); err != nil {
		return err
	}
	if other := groups.First(tx.View(), byName, lowerKey(g.Name)); other != nil && other.Rec.ID != g.ID {
		return fmt.Errorf("group %q: %w", g.Name, state.ErrExists)
	}
	if before, known := FindGroup(tx.View(), g.ID); !known || !strings.EqualFold(before.Name, g.Name) {
		g.Named = tx.Now()
	}
	return groups.Put(tx, g)
}

// RemoveGroup removes a group. An unknown group is state.ErrNotFound, and a group with members is state.ErrInvalid.
// What its former members have spent stays recorded.
func RemoveGroup(tx *state.Tx, id int64) error {
	r := groups.Get(tx.View(), state.NumberID(id))
	if r == nil {
		return fmt.Errorf("group %d: %w", id, state.ErrNotFound)
	}
	if len(ListMembers(tx.View(), id)) > 0 {
		return fmt.Errorf("%w: group %d has members", state.ErrInvalid, id)
	}
	groups.Remove(tx, r)
	return nil
}
