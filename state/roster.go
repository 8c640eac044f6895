package state

import (
	"maps"
	"strings"
	"sync/atomic"

	"github.com/hashicorp/go-memdb"
)

// roster holds what restricts users for the lookup of every request: the users who are disabled, have a
// ceiling or are in a group, and all groups. A lookup takes no lock and allocates nothing. The maps are
// replaced and never changed; the users are in several, so that one change copies a small part of them.
type roster struct {
	users  [rosterParts]atomic.Pointer[map[string]*User] // by name in lower case
	groups atomic.Pointer[map[int64]*Group]
}

const rosterParts = 256

// Blocked tells whether an account is that of a disabled user, whose keys are refused.
func (s *State) Blocked(account string) bool {
	u := s.roster.find(account)
	return u != nil && !u.Active()
}

// UserPermits returns nil if the ceilings of an account's user and of the user's group permit scope and
// model, else an error that wraps ErrScopeForbidden or ErrModelForbidden. An empty scope or model is not
// checked. It takes no transaction, because it is called for every request.
func (s *State) UserPermits(account, scope, model string) error {
	u := s.roster.find(account)
	if u == nil {
		return nil
	}
	if err := u.Ceiling.permits(scope, model); err != nil {
		return &CeilingError{owner: "user", cause: err}
	}
	if g := s.roster.groupOf(u); g != nil {
		if err := g.Ceiling.permits(scope, model); err != nil {
			return &CeilingError{owner: "group", cause: err}
		}
	}
	return nil
}

// find returns the user of an account, or nil if nothing restricts the user or there is no such user. Usernames are
// ASCII (User.check), so folding bytes is enough.
func (r *roster) find(account string) *User {
	var folded [MaxUsername]byte
	if account == "" || len(account) > len(folded) {
		return nil
	}
	part := uint32(0)
	for i, c := range []byte(account) {
		if c >= 'A' && c <= 'Z' {
			c += 'a' - 'A'
		}
		folded[i] = c
		part = part*31 + uint32(c)
	}
	users := r.users[part%rosterParts].Load()
	if users == nil {
		return nil
	}
	return (*users)[string(folded[:len(account)])]
}

func rosterPart(lower string) uint32 {
	part := uint32(0)
	for _, c := range []byte(lower) {
		part = part*31 + uint32(c)
	}
	return part % rosterParts
}

// groupOf returns the group of a user; nil: there is none.
func (r *roster) groupOf(u *User) *Group {
	groups := r.groups.Load()
	if u.Group == 0 || groups == nil {
		return nil
	}
	return (*groups)[u.Group]
}

func (r *roster) fill(txn *memdb.Txn) {
	var parts [rosterParts]map[string]*User
	users.from(txn, byID, nil, func(u *row[User]) bool {
		if !u.rec.restricted() {
			return true
		}
		lower := strings.ToLower(u.rec.Username)
		part := &parts[rosterPart(lower)]
		if *part == nil {
			*part = map[string]*User{}
		}
		(*part)[lower] = &u.rec
		return true
	})
	for i := range parts {
		r.users[i].Store(&parts[i])
	}
	all := map[int64]*Group{}
	groups.from(txn, byID, nil, func(g *row[Group]) bool {
		all[g.rec.ID] = &g.rec
		return true
	})
	r.groups.Store(&all)
}

// changeUser follows one change of the users. Only the writer calls it.
func (r *roster) changeUser(c change) {
	if before, ok := c.before.(*row[User]); ok && before.rec.restricted() {
		r.replaceUser(strings.ToLower(before.rec.Username), nil)
	}
	if after, ok := c.after.(*row[User]); ok && after.rec.restricted() {
		r.replaceUser(strings.ToLower(after.rec.Username), &after.rec)
	}
}

func (r *roster) replaceUser(lower string, u *User) {
	part := &r.users[rosterPart(lower)]
	all := map[string]*User{}
	if old := part.Load(); old != nil && *old != nil {
		all = maps.Clone(*old)
	}
	if u == nil {
		delete(all, lower)
	} else {
		all[lower] = u
	}
	part.Store(&all)
}

// changeGroup follows one change of the groups. Only the writer calls it.
func (r *roster) changeGroup(c change) {
	all := map[int64]*Group{}
	if old := r.groups.Load(); old != nil {
		all = maps.Clone(*old)
	}
	if before, ok := c.before.(*row[Group]); ok {
		delete(all, before.rec.ID)
	}
	if after, ok := c.after.(*row[Group]); ok {
		all[after.rec.ID] = &after.rec
	}
	r.groups.Store(&all)
}
