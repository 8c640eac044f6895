package portal

import (
	"errors"
	"net/http"
	"slices"
	"strconv"
	"strings"

	"stagedoor/actors/tokens"
	"stagedoor/http/web/pages"
	"stagedoor/providers/shapes/registry"
	"stagedoor/state"
	"stagedoor/state/budget"
	"stagedoor/state/identity"
	"stagedoor/state/money"
)

const pathGroups = "/admin/groups"

// pathGroup returns the path of a group's page.
func pathGroup(id int64) string { return pathGroups + "/" + strconv.FormatInt(id, 10) }

// groups shows all groups. The parameter q searches their names.
func (rc *requestContext) groups() { rc.show(http.StatusOK, rc.groupsView()) }

// groupsView lists groups, the newest first.
func (rc *requestContext) groupsView() *pages.Groups {
	search := rc.query("q")
	view := rc.options.State.View()
	var found []identity.Group
	for _, g := range slices.Backward(identity.ListGroups(view)) {
		if matches(search, g.Name) {
			found = append(found, g)
		}
	}
	shown, pager := part(rc, pathGroups, found)
	page := &pages.Groups{Viewer: rc.viewer(), Query: search, Pager: pager}
	for i := range shown {
		page.Groups = append(page.Groups, groupLine(view, &shown[i]))
	}
	return page
}

// groupLine returns a group as lists show it, with what its members have spent in all.
func groupLine(view state.View, g *identity.Group) pages.Group {
	return pages.Group{ID: g.ID, Name: g.Name, Members: int64(len(identity.ListMembers(view, g.ID))),
		Limits: limitsOf(view, "", &g.Ceiling, g.Scope()), Spent: money.SpentBy(view, g.Scope()).Total,
		Created: g.Created}
}

// limitsOf returns a ceiling as pages show it. owner says whose it is, in the words of the page. Where it has
// a budget, the amount that was spent in the budget's current window is set, too; scope names whose spending
// counts. A nil list of scopes or models does not restrict. An empty one forbids everything, which the page
// says in words of its own.
func limitsOf(view state.View, owner string, c *identity.Ceiling, scope budget.Scope) pages.Limits {
	l := pages.Limits{Owner: owner, Scopes: c.Scopes, Models: c.Models, NoScopes: c.Scopes != nil && len(c.Scopes) == 0,
		NoModels: c.Models != nil && len(c.Models) == 0, Budget: c.Budget, Window: string(c.Window), NoKeys: c.NoKeys}
	if c.Budget != 0 {
		spent := money.SpentBy(view, scope)
		l.Spent = spent.In(c.Window, view.Now())
	}
	return l
}

// restrictions returns the ceilings that restrict the user, for the user's own pages, and whether the user may create
// keys and tokens.
func (rc *requestContext) restrictions() (limits []pages.Limits, mayCreate bool) {
	view := rc.options.State.View()
	u, _ := identity.FindUser(view, rc.user.ID)
	// A user without a group has the zero group here, whose ceiling restricts nothing.
	g, _ := identity.FindGroup(view, u.Group)
	own := budget.Scope{Kind: budget.UserScope, ID: u.Username}
	for _, l := range []pages.Limits{limitsOf(view, "you", &u.Ceiling, own),
		limitsOf(view, "your group", &g.Ceiling, g.Scope())} {
		if l.Restricts() {
			limits = append(limits, l)
		}
	}
	return limits, identity.MayCreateKeys(view, &u)
}

// createGroup makes a group that restricts nothing yet, and shows it. A name that is taken is a 409.
func (rc *requestContext) createGroup() {
	f := fields{form: rc.form}
	g, err := rc.options.Registry.CreateGroup(rc.r.Context(), f.text("name"), tokens.CeilingChange{})
	if err != nil {
		status, text := rc.groupProblem(err)
		view := rc.groupsView()
		view.Problem, view.Name = text, rc.form.Get("name")
		rc.show(status, view)
		return
	}
	rc.options.Logger.Info("group created by an administrator", "group", g.ID, "by", rc.user.ID)
	rc.done(pathGroup(g.ID), "group_created")
}

// groupProblem returns the status and the sentence for an error, as problem does. A name that is taken has another
// sentence, because it is the name of a group here.
func (rc *requestContext) groupProblem(err error) (status int, text string) {
	if errors.Is(err, tokens.ErrExists) {
		return http.StatusConflict, "There is a group of this name."
	}
	return rc.problem(err)
}

// ofGroup returns a handler that serve handles with the group that the path names.
func ofGroup(serve func(*requestContext, identity.Group)) func(*requestContext) {
	return named(func(rc *requestContext, id int64) (identity.Group, bool) {
		return identity.FindGroup(rc.options.State.View(), id)
	}, serve)
}

// oneGroup shows a group with its members.
func (rc *requestContext) oneGroup(g identity.Group) { rc.show(http.StatusOK, rc.groupView(&g)) }

// groupView returns the page of a group: a part of its members and the form with its name and ceiling.
func (rc *requestContext) groupView(g *identity.Group) *pages.OneGroup {
	view := rc.options.State.View()
	page := &pages.OneGroup{Viewer: rc.viewer(), Group: groupLine(view, g)}
	page.Entry = ceilingEntry(&g.Ceiling, pathGroup(g.ID)+"/ceiling", page.Token, "all members")
	page.Entry.Rename, page.Entry.Name = true, g.Name
	shown, pager := part(rc, pathGroup(g.ID), identity.ListMembers(view, g.ID))
	page.Pager = pager
	for i := range shown {
		u := &shown[i]
		page.Members = append(page.Members, pages.User{ID: u.ID, Username: u.Username, Active: u.Active(),
			Lead: u.Leads != 0})
	}
	return page
}

// ceilingEntry returns the form of a ceiling, filled with the one that is in force. action is the path that the form is
// sent to, and together says in the page's words to whom the budget belongs. A ceiling without lists of scopes or
// models allows all of them, which is not the same as an empty list.
func ceilingEntry(c *identity.Ceiling, action, token, together string) pages.CeilingEntry {
	e := pages.CeilingEntry{Action: action, Token: token, Together: together,
		SomeScopes: c.Scopes != nil, SomeModels: c.Models != nil,
		Models: strings.Join(c.Models, ", "), Window: string(c.Window), CreateKeys: !c.NoKeys}
	if c.Budget != 0 {
		e.Budget = pages.Dollars(c.Budget)
	}
	for _, s := range registry.Scopes() {
		e.Scopes = append(e.Scopes, pages.Choice{Name: s, Ticked: slices.Contains(c.Scopes, s)})
	}
	return e
}

// retypeCeiling fills the form with what was typed, for a page that says what is wrong with it.
func (rc *requestContext) retypeCeiling(e *pages.CeilingEntry) {
	e.SomeScopes, e.SomeModels = rc.form.Get("scopes_rule") == "some", rc.form.Get("models_rule") == "some"
	e.Models, e.Budget, e.Window = rc.form.Get("models"), rc.form.Get("budget"), rc.form.Get("window")
	e.CreateKeys = rc.form.Has("create_keys")
	for i := range e.Scopes {
		e.Scopes[i].Ticked = slices.Contains(rc.form["scope"], e.Scopes[i].Name)
	}
	if e.Rename {
		e.Name = rc.form.Get("name")
	}
}

// ceiling reads the form of a ceiling. Every field of the ceiling is set in the change, because a form shows all of
// them. The error is about the first field that cannot be read; the registry checks the values.
func (rc *requestContext) ceiling() (tokens.CeilingChange, error) {
	f := fields{form: rc.form}
	var scopes, models []string // nil: everything and all
	if f.some("scopes_rule", "What keys may do") {
		scopes = append([]string{}, rc.form["scope"]...)
	}
	if f.some("models_rule", "Models") {
		models = append([]string{}, f.list("models")...)
	}
	amount, window, may := f.dollars("budget", "Budget"), budget.Window(f.text("window")), rc.form.Has("create_keys")
	budget := tokens.BudgetChange{Amount: &amount, Window: &window}
	return tokens.CeilingChange{Scopes: &scopes, Models: &models, Budget: budget, CreateKeys: &may}, f.err
}

// some reads a choice between all and some. A form without it is refused, because it would take a ceiling away.
func (f *fields) some(name, label string) bool {
	switch f.text(name) {
	case "all":
		return false
	case "some":
		return true
	}
	f.fail(label, "must be chosen")
	return false
}

// changeGroup changes the name and the ceiling of a group in one command, so that both are changed or neither.
func (rc *requestContext) changeGroup(g identity.Group) {
	change, err := rc.ceiling()
	if err == nil {
		name := strings.TrimSpace(rc.form.Get("name"))
		_, err = rc.options.Registry.UpdateGroup(rc.r.Context(), g.ID, tokens.GroupChange{Name: &name, Ceiling: change})
	}
	if err != nil {
		status, text := rc.groupProblem(err)
		view := rc.groupView(&g)
		view.Problem = text
		rc.retypeCeiling(&view.Entry)
		rc.show(status, view)
		return
	}
	rc.options.Logger.Info("group changed by an administrator", "group", g.ID, "by", rc.user.ID)
	rc.done(pathGroup(g.ID), "ceiling_changed")
}

// addMember adds the user of a name to a group.
func (rc *requestContext) addMember(g identity.Group) {
	name := strings.TrimSpace(rc.form.Get("user"))
	if _, err := rc.options.Registry.AddMember(rc.r.Context(), g.ID, name); err != nil {
		status, text := rc.groupProblem(err)
		view := rc.groupView(&g)
		view.Problem, view.Add = text, name
		rc.show(status, view)
		return
	}
	rc.options.Logger.Info("user added to a group by an administrator", "group", g.ID, "by", rc.user.ID)
	rc.done(pathGroup(g.ID), "member_added")
}

// removeMember removes a user from a group.
func (rc *requestContext) removeMember(g identity.Group) {
	id, _ := strconv.ParseInt(rc.r.PathValue("user"), 10, 64)
	u, err := rc.options.Registry.User(id)
	if err == nil {
		_, err = rc.options.Registry.RemoveMember(rc.r.Context(), g.ID, u.Username)
	}
	rc.changed(err, pathGroup(g.ID), "member_removed", "user removed from a group by an administrator",
		"group", g.ID, "user", id)
}

// setLead returns the handler that lets a member lead a group, or takes that away. A lead can invite and remove members
// and bound their keys, see lead.go.
func setLead(leads bool) func(*requestContext) {
	return ofGroup(func(rc *requestContext, g identity.Group) {
		id, _ := strconv.ParseInt(rc.r.PathValue("user"), 10, 64)
		u, err := rc.options.Registry.User(id)
		if err == nil {
			_, err = rc.options.Registry.SetLead(rc.r.Context(), g.ID, u.Username, leads)
		}
		word := "lead_removed"
		if leads {
			word = "lead_named"
		}
		rc.changed(err, pathGroup(g.ID), word, "lead changed by an administrator", "group", g.ID, "user", id,
			"kind", word)
	})
}

// deleteGroup deletes a group. The registry refuses it while the group has members.
func (rc *requestContext) deleteGroup(g identity.Group) {
	_, err := rc.options.Registry.DeleteGroup(rc.r.Context(), g.ID)
	rc.changed(err, pathGroups, "group_deleted", "group deleted by an administrator", "group", g.ID)
}

// changeCeiling changes the ceiling of a user.
func (rc *requestContext) changeCeiling(u tokens.User) {
	change, err := rc.ceiling()
	if err == nil {
		_, err = rc.options.Registry.UpdateUser(rc.r.Context(), u.ID, tokens.UserChange{Ceiling: change})
	}
	if err != nil {
		status, text := rc.problem(err)
		rc.showUser(u, status, func(view *pages.OneUser) {
			view.Problem = text
			rc.retypeCeiling(&view.Ceiling)
		})
		return
	}
	rc.options.Logger.Info("ceiling of a user changed by an administrator", "user", u.ID, "by", rc.user.ID)
	rc.done(pathUser(u.ID), "ceiling_changed")
}
