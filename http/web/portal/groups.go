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
)

const pathGroups = "/admin/groups"

func pathGroup(id int64) string { return pathGroups + "/" + strconv.FormatInt(id, 10) }

func (v *visit) groups() { v.show(http.StatusOK, v.groupsView()) }

// groupsView lists groups, the newest first.
func (v *visit) groupsView() *pages.Groups {
	search := v.query("q")
	view := v.options.State.View()
	var found []state.Group
	for _, g := range slices.Backward(view.Groups()) {
		if matches(search, g.Name) {
			found = append(found, g)
		}
	}
	shown, pager := part(v, pathGroups, found)
	page := &pages.Groups{Desk: v.desk(), Query: search, Pager: pager}
	for i := range shown {
		page.Groups = append(page.Groups, groupLine(view, &shown[i]))
	}
	return page
}

func groupLine(view state.View, g *state.Group) pages.Group {
	return pages.Group{ID: g.ID, Name: g.Name, Members: int64(len(view.Members(g.ID))),
		Limits: limitsOf(view, "", &g.Ceiling, g.Scope()), Spent: view.SpentBy(g.Scope()).Total, Created: g.Created}
}

// limitsOf is a ceiling as pages show it, and how much of its budget is spent.
func limitsOf(view state.View, owner string, c *state.Ceiling, scope state.Scope) pages.Limits {
	l := pages.Limits{Owner: owner, Scopes: c.Scopes, Models: c.Models, NoScopes: c.Scopes != nil && len(c.Scopes) == 0,
		NoModels: c.Models != nil && len(c.Models) == 0, Budget: c.Budget, Window: string(c.Window), NoKeys: c.NoKeys}
	if c.Budget != 0 {
		spent := view.SpentBy(scope)
		l.Spent = spent.In(c.Window, view.Now())
	}
	return l
}

// restrictions are the ceilings of the visitor, for the visitor's own pages, and whether keys and tokens may be
// created.
func (v *visit) restrictions() (limits []pages.Limits, mayCreate bool) {
	view := v.options.State.View()
	u, _ := view.User(v.user.ID)
	g, _ := view.Group(u.Group)
	own := state.Scope{Kind: state.UserScope, ID: u.Username}
	for _, l := range []pages.Limits{limitsOf(view, "you", &u.Ceiling, own),
		limitsOf(view, "your group", &g.Ceiling, g.Scope())} {
		if l.Restricts() {
			limits = append(limits, l)
		}
	}
	return limits, view.MayCreateKeys(&u)
}

// createGroup makes a group that restricts nothing yet, and shows it.
func (v *visit) createGroup() {
	f := fields{form: v.form}
	g, err := v.options.Registry.CreateGroup(v.r.Context(), f.text("name"), tokens.CeilingChange{})
	if err != nil {
		status, text := v.groupProblem(err)
		view := v.groupsView()
		view.Problem, view.Name = text, v.form.Get("name")
		v.show(status, view)
		return
	}
	v.options.Logger.Info("group created by an administrator", "group", g.ID, "by", v.user.ID)
	v.done(pathGroup(g.ID), "group_created")
}

func (v *visit) groupProblem(err error) (status int, text string) {
	if errors.Is(err, tokens.ErrExists) {
		return http.StatusConflict, "There is a group of this name."
	}
	return v.problem(err)
}

// namedGroup is the group that the path names.
func (v *visit) namedGroup() (state.Group, bool) {
	id, err := strconv.ParseInt(v.r.PathValue("id"), 10, 64)
	if err == nil {
		if g, ok := v.options.State.View().Group(id); ok {
			return g, true
		}
	}
	v.missing()
	return state.Group{}, false
}

// oneGroup shows a group with its members.
func (v *visit) oneGroup() {
	if g, ok := v.namedGroup(); ok {
		v.show(http.StatusOK, v.groupView(&g))
	}
}

func (v *visit) groupView(g *state.Group) *pages.OneGroup {
	view := v.options.State.View()
	page := &pages.OneGroup{Desk: v.desk(), Group: groupLine(view, g)}
	page.Entry = ceilingEntry(&g.Ceiling, pathGroup(g.ID)+"/ceiling", page.Token, "all members")
	page.Entry.Rename, page.Entry.Name = true, g.Name
	shown, pager := part(v, pathGroup(g.ID), view.Members(g.ID))
	page.Pager = pager
	for i := range shown {
		u := &shown[i]
		page.Members = append(page.Members, pages.User{ID: u.ID, Username: u.Username, Active: u.Active()})
	}
	return page
}

// ceilingEntry is the form with the ceiling that is in force.
func ceilingEntry(c *state.Ceiling, action, token, together string) pages.CeilingEntry {
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

// retypeCeiling fills the form with what was typed.
func (v *visit) retypeCeiling(e *pages.CeilingEntry) {
	e.SomeScopes, e.SomeModels = v.form.Get("scopes_rule") == "some", v.form.Get("models_rule") == "some"
	e.Models, e.Budget, e.Window = v.form.Get("models"), v.form.Get("budget"), v.form.Get("window")
	e.CreateKeys = v.form.Has("create_keys")
	for i := range e.Scopes {
		e.Scopes[i].Ticked = slices.Contains(v.form["scope"], e.Scopes[i].Name)
	}
	if e.Rename {
		e.Name = v.form.Get("name")
	}
}

// ceiling reads the form.
func (v *visit) ceiling() (tokens.CeilingChange, error) {
	f := fields{form: v.form}
	var scopes, models []string // nil: everything and all
	if f.some("scopes_rule", "What keys may do") {
		scopes = append([]string{}, v.form["scope"]...)
	}
	if f.some("models_rule", "Models") {
		models = append([]string{}, f.list("models")...)
	}
	amount, window, may := f.dollars("budget", "Budget"), state.Window(f.text("window")), v.form.Has("create_keys")
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

// changeGroup changes the name and the ceiling of a group.
func (v *visit) changeGroup() {
	g, ok := v.namedGroup()
	if !ok {
		return
	}
	change, err := v.ceiling()
	if err == nil {
		name := strings.TrimSpace(v.form.Get("name"))
		_, err = v.options.Registry.UpdateGroup(v.r.Context(), g.ID, tokens.GroupChange{Name: &name, Ceiling: change})
	}
	if err != nil {
		status, text := v.groupProblem(err)
		view := v.groupView(&g)
		view.Problem = text
		v.retypeCeiling(&view.Entry)
		v.show(status, view)
		return
	}
	v.options.Logger.Info("group changed by an administrator", "group", g.ID, "by", v.user.ID)
	v.done(pathGroup(g.ID), "ceiling_changed")
}

// addMember adds a user to a group.
func (v *visit) addMember() {
	g, ok := v.namedGroup()
	if !ok {
		return
	}
	name := strings.TrimSpace(v.form.Get("user"))
	if _, err := v.options.Registry.AddMember(v.r.Context(), g.ID, name); err != nil {
		status, text := v.groupProblem(err)
		view := v.groupView(&g)
		view.Problem, view.Add = text, name
		v.show(status, view)
		return
	}
	v.options.Logger.Info("user added to a group by an administrator", "group", g.ID, "by", v.user.ID)
	v.done(pathGroup(g.ID), "member_added")
}

// removeMember removes a user from a group.
func (v *visit) removeMember() {
	g, ok := v.namedGroup()
	if !ok {
		return
	}
	id, _ := strconv.ParseInt(v.r.PathValue("user"), 10, 64)
	u, err := v.options.Registry.User(id)
	if err == nil {
		_, err = v.options.Registry.RemoveMember(v.r.Context(), g.ID, u.Username)
	}
	if err == nil {
		v.options.Logger.Info("user removed from a group by an administrator",
			"group", g.ID, "user", id, "by", v.user.ID)
	}
	v.concluded(err, pathGroup(g.ID), "member_removed")
}

// deleteGroup forgets a group without members.
func (v *visit) deleteGroup() {
	g, ok := v.namedGroup()
	if !ok {
		return
	}
	_, err := v.options.Registry.DeleteGroup(v.r.Context(), g.ID)
	if err == nil {
		v.options.Logger.Info("group deleted by an administrator", "group", g.ID, "by", v.user.ID)
	}
	v.concluded(err, pathGroups, "group_deleted")
}

// changeCeiling changes the ceiling of a user.
func (v *visit) changeCeiling() {
	u, ok := v.subject()
	if !ok {
		return
	}
	change, err := v.ceiling()
	if err == nil {
		_, err = v.options.Registry.UpdateUser(v.r.Context(), u.ID, tokens.UserChange{Ceiling: change})
	}
	if err != nil {
		status, text := v.problem(err)
		v.showUser(u, status, func(view *pages.OneUser) {
			view.Problem = text
			v.retypeCeiling(&view.Ceiling)
		})
		return
	}
	v.options.Logger.Info("ceiling of a user changed by an administrator", "user", u.ID, "by", v.user.ID)
	v.done(pathUser(u.ID), "ceiling_changed")
}
