package identity

import (
	"maps"
	"strings"
	"sync/atomic"

	"stagedoor/state"
)

// roster holds the restrictions of users for the lookup of every request: the users who are
// disabled, have a ceiling or are in a group, and all groups. A lookup takes no lock and allocates
// nothing. The maps are replaced and never modified. The users are spread over several maps, so
// that a change copies only a small part of them.
type roster struct {
	users  [rosterParts]atomic.Pointer[map[string]*User] // by name in lower case
	groups atomic.Pointer[map[int64]*Group]
}

const rosterParts = 256

// findRestricted returns the user of an account, or nil if the user does not exist or has no
// restriction. Usernames are ASCII (see User.check), so folding bytes is enough.
func (r *roster) findRestricted(account string) *User {
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

// rosterPart returns the number of the map that holds a name in lower case.
func rosterPart(lower string) uint32 {
	part := uint32(0)
	for _, c := range []byte(lower) {
		part = part*31 + uint32(c)
	}
	return part % rosterParts
}

// groupOf returns the group of a user, or nil.
func (r *roster) groupOf(u *User) *Group {
	groups := r.groups.Load()
	if u.Group == 0 || groups == nil {
		return nil
	}
	return (*groups)[u.Group]
}

// fill reads all users and groups when the state is opened.
func (r *roster) fill(v state.View) {
	var parts [rosterParts]map[string]*User
	for u := range users.All(v) {
		if !u.restricted() {
			continue
		}
		lower := strings.ToLower(u.Username)
		part := &parts[rosterPart(lower)]
		if *part == nil {
			*part = map[string]*User{}
		}
		(*part)[lower] = u
	}
	for i := range parts {
		r.users[i].Store(&parts[i])
	}
	all := map[int64]*Group{}
	for g := range groups.All(v) {
		all[g.ID] = g
	}
	r.groups.Store(&all)
}

// applyUser follows one change of the users. Only the writer goroutine calls it.
func (r *roster) applyUser(before, after *User) {
	if before != nil && before.restricted() {
		r.replaceUser(strings.ToLower(before.Username), nil)
	}
	if after != nil && after.restricted() {
		r.replaceUser(strings.ToLower(after.Username), after)
	}
}

// replaceUser replaces the map that holds a user by a copy with u, or without the user if u is nil.
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

// applyGroup follows one change of the groups. Only the writer goroutine calls it.
func (r *roster) applyGroup(before, after *Group) {
	all := map[int64]*Group{}
	if old := r.groups.Load(); old != nil {
		all = maps.Clone(*old)
	}
	if before != nil {
		delete(all, before.ID)
	}
	if after != nil {
		all[after.ID] = after
	}
	r.groups.Store(&all)
}
