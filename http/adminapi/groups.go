package adminapi

import (
	"errors"
	"net/http"
	"strconv"

	"stagedoor/actors/tokens"
	"stagedoor/providers/dialogue"
	"stagedoor/state"
	"stagedoor/state/budget"
	"stagedoor/state/identity"
	"stagedoor/state/money"
)

// groupRoutes change groups of users, their ceilings, members and leads.
var groupRoutes = []route{
	{method: "GET", path: "/groups", name: "listGroups", group: "groups", summary: "List groups by id",
		out: List[Group]{}, status: http.StatusOK,
		query: []param{{name: "name", doc: "only the group of this name, whatever its case"}, limitParam, afterParam},
		serve: (*requestContext).listGroups},
	{method: "POST", path: "/groups", name: "createGroup", group: "groups", summary: "Create a group",
		in: NewGroup{}, out: Group{}, status: http.StatusCreated, serve: withBody((*requestContext).createGroup)},
	{method: "GET", path: "/groups/{id}", name: "getGroup", group: "groups", summary: "Get a group",
		out: Group{}, status: http.StatusOK, serve: withID((*requestContext).getGroup)},
	{method: "PATCH", path: "/groups/{id}", name: "updateGroup", group: "groups",
		summary: "Change a group, at once for all requests of its members",
		in:      GroupChange{}, out: Group{}, status: http.StatusOK,
		serve: withIDAndBody((*requestContext).updateGroup)},
	{method: "DELETE", path: "/groups/{id}", name: "deleteGroup", group: "groups",
		summary: "Delete a group that has no members", out: Group{}, status: http.StatusOK,
		serve: withID((*requestContext).deleteGroup)},
	{method: "GET", path: "/groups/{id}/members", name: "listMembers", group: "groups",
		summary: "List the users in a group by id", out: List[Member]{},
		query: []param{limitParam, afterParam}, status: http.StatusOK, serve: withID((*requestContext).listMembers)},
	{method: "POST", path: "/groups/{id}/members", name: "addMember", group: "groups",
		summary: "Add a user, who must not be in another group. Adding a member again changes nothing",
		in:      NewMember{}, out: Group{}, status: http.StatusOK, serve: withIDAndBody((*requestContext).addMember)},
	{method: "DELETE", path: "/groups/{id}/members/{user}", name: "removeMember", group: "groups",
		summary: "Remove a user, by username", out: Group{}, status: http.StatusOK,
		serve: withID((*requestContext).removeMember)},
	{method: "PUT", path: "/groups/{id}/leads/{user}", name: "addLead", group: "groups",
		summary: "Let a member lead the group, by username. A member who leads it stays a lead", out: Group{},
		status: http.StatusOK, serve: setLead(true)},
	{method: "DELETE", path: "/groups/{id}/leads/{user}", name: "removeLead", group: "groups",
		summary: "Let a member no longer lead the group, by username. The invitations that the lead has made end",
		out:     Group{}, status: http.StatusOK, serve: setLead(false)},
}

const (
	noGroup   = "there is no such group"
	notMember = "there is no such group, or the user is not in it"
)

// groupView returns a group as the API shows it, with the number of its members.
func (c *requestContext) groupView(g *identity.Group) Group {
	v := c.State.View()
	return Group{ID: g.ID, Name: g.Name, Ceiling: ceilingOf(&g.Ceiling), Spent: spentBy(v, g.Scope()),
		Members: len(identity.ListMembers(v, g.ID)), Created: g.Created}
}

// ceilingOf returns a ceiling as the API shows it.
func ceilingOf(c *identity.Ceiling) Ceiling {
	return Ceiling{Scopes: listOrNull(c.Scopes), Models: listOrNull(c.Models), Budget: budgetOf(c.Limit()),
		CreateKeys: !c.NoKeys}
}

// spentBy returns what a key, user or group has spent in total, today and this month.
func spentBy(v state.View, scope budget.Scope) Spent {
	now, s := v.Now(), money.SpentBy(v, scope)
	return Spent{Requests: s.Requests, Total: s.Total,
		Day: s.In(budget.WindowDay, now), Month: s.In(budget.WindowMonth, now)}
}

// ceilingChange converts a change of a ceiling. Null removes every restriction.
// The three cases are those of a field in JSON: absent changes nothing, null removes all
// restrictions, and an object changes what it names.
func ceilingChange(o Optional[CeilingChange]) (tokens.CeilingChange, error) {
	switch c := o.Value; {
	case !o.Given:
		return tokens.CeilingChange{}, nil
	case c == nil:
		return tokens.Unrestricted(), nil
	default:
		budget, err := budgetChange(c.Budget)
		return tokens.CeilingChange{Scopes: c.Scopes.pointer(), Models: c.Models.pointer(), Budget: budget,
			CreateKeys: c.CreateKeys}, err
	}
}

// listGroups handles GET /groups. A filter for a name that no group has gives an empty list.
func (c *requestContext) listGroups() (any, error) {
	v := c.State.View()
	all := identity.ListGroups(v)
	if name := c.query.Get("name"); name != "" {
		all = nil
		if g, ok := identity.FindGroupByName(v, name); ok {
			all = append(all, g)
		}
	}
	some, err := pageOf(c, all, func(g *identity.Group) string { return strconv.FormatInt(g.ID, 10) })
	return List[Group]{Data: convertAll(some.Data, c.groupView), Next: some.Next}, err
}

// groupReply returns the reply for a result of the registry.
// Changes return the group as it is afterwards, so that a client need not read it again and cannot
// read an older version.
func (c *requestContext) groupReply(g identity.Group, err error) (any, error) {
	if errors.Is(err, tokens.ErrExists) {
		return nil, conflict("name", "already_exists", "name: is taken")
	}
	if err != nil {
		return nil, describeNotFound(err, "id", noGroup)
	}
	return c.groupView(&g), nil
}

// createGroup handles POST /groups.
func (c *requestContext) createGroup(in NewGroup) (any, error) {
	if in.Name == "" {
		return nil, dialogue.Missing("name")
	}
	change, err := ceilingChange(in.Ceiling)
	if err != nil {
		return nil, err
	}
	return c.groupReply(c.Registry.CreateGroup(c.r.Context(), in.Name, change))
}

// getGroup handles GET /groups/{id}.
func (c *requestContext) getGroup(id int64) (any, error) {
	g, ok := identity.FindGroup(c.State.View(), id)
	if !ok {
		return nil, notFound("id", noGroup)
	}
	return c.groupView(&g), nil
}

// updateGroup handles PATCH /groups/{id}. The new ceiling applies at once to all members.
func (c *requestContext) updateGroup(id int64, in GroupChange) (any, error) {
	change, err := ceilingChange(in.Ceiling)
	if err != nil {
		return nil, err
	}
	return c.groupReply(c.Registry.UpdateGroup(c.r.Context(), id, tokens.GroupChange{Name: in.Name, Ceiling: change}))
}

// deleteGroup handles DELETE /groups/{id} and returns the group as it was.
func (c *requestContext) deleteGroup(id int64) (any, error) {
	return c.groupReply(c.Registry.DeleteGroup(c.r.Context(), id))
}

// listMembers handles GET /groups/{id}/members.
func (c *requestContext) listMembers(id int64) (any, error) {
	v := c.State.View()
	if _, ok := identity.FindGroup(v, id); !ok {
		return nil, notFound("id", noGroup)
	}
	some, err := pageOf(c, identity.ListMembers(v, id),
		func(u *identity.User) string { return strconv.FormatInt(u.ID, 10) })
	members := convertAll(some.Data, func(u *identity.User) Member {
		return Member{ID: u.ID, Username: u.Username, Lead: u.Leads != 0}
	})
	return List[Member]{Data: members, Next: some.Next}, err
}

// addMember handles POST /groups/{id}/members.
func (c *requestContext) addMember(id int64, in NewMember) (any, error) {
	if in.User == "" {
		return nil, dialogue.Missing("user")
	}
	return c.groupReply(c.Registry.AddMember(c.r.Context(), id, in.User))
}

// removeMember handles DELETE /groups/{id}/members/{user}.
// The user is named by username, as everywhere in the API where a person types it.
func (c *requestContext) removeMember(id int64) (any, error) {
	g, err := c.Registry.RemoveMember(c.r.Context(), id, c.r.PathValue("user"))
	if err != nil {
		return nil, describeNotFound(err, "user", notMember)
	}
	return c.groupView(&g), nil
}

// setLead handles PUT and DELETE /groups/{id}/leads/{user}.
func setLead(leads bool) func(*requestContext) (any, error) {
	return withID(func(c *requestContext, id int64) (any, error) {
		g, err := c.Registry.SetLead(c.r.Context(), id, c.r.PathValue("user"), leads)
		if err != nil {
			return nil, describeNotFound(err, "user", notMember)
		}
		return c.groupView(&g), nil
	})
}
