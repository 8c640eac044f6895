package portal

import (
	"net/http"
	"net/url"
	"strconv"

	"stagedoor/actors/tokens"
	"stagedoor/http/web/pages"
)

const (
	pathApps   = "/account/apps"
	pathTokens = "/account/tokens"
)

// apps lists what the user allowed, by app.
func (v *visit) apps() {
	view := &pages.Apps{Desk: v.desk()}
	at := map[int64]int{}
	for _, g := range v.options.Registry.Grants(v.user.ID) {
		i, ok := at[g.App.ID]
		if !ok {
			i = len(view.Apps)
			at[g.App.ID] = i
			view.Apps = append(view.Apps, allowed(&g))
			continue
		}
		a := &view.Apps[i]
		a.Grants++
		a.Scopes = union(a.Scopes, g.Scopes)
		if g.Created.Before(a.Since) {
			a.Since = g.Created
		}
		if g.Used.After(a.Used) {
			a.Used = g.Used
		}
	}
	v.show(http.StatusOK, view)
}

func allowed(g *tokens.Grant) pages.Allowed {
	a := pages.Allowed{App: pages.App{Name: g.App.Name, Description: g.App.Description, Host: g.App.RedirectURI, Scopes: g.Scopes},
		ID: g.App.ID, Since: g.Created, Used: g.Used, Grants: 1}
	if u, err := url.Parse(g.App.RedirectURI); err == nil {
		a.Host = u.Host
	}
	return a
}

// union is the scopes of either, in the order in which they are told.
func union(a, b []string) []string {
	both := map[string]bool{}
	for _, s := range append(append([]string{}, a...), b...) {
		both[s] = true
	}
	var all []string
	for _, s := range tokens.Scopes() {
		if both[s] {
			all = append(all, s)
		}
	}
	return all
}

func (v *visit) revokeApp() {
	app, err := strconv.ParseInt(v.r.PathValue("id"), 10, 64)
	if err != nil {
		v.missing()
		return
	}
	v.concluded(v.options.Registry.RevokeUserApp(v.r.Context(), v.user.ID, app), pathApps, "app_revoked")
}

func (v *visit) developerTokens() { v.show(http.StatusOK, v.developerView()) }

func (v *visit) developerView() *pages.DeveloperTokens {
	_, mayCreate := v.restrictions()
	view := &pages.DeveloperTokens{Desk: v.desk(), Forbidden: !mayCreate, FormID: newFormID()}
	all := v.options.Registry.DeveloperTokens(v.user.ID)
	for i := len(all) - 1; i >= 0; i-- {
		t := &all[i]
		view.Tokens = append(view.Tokens, pages.DeveloperToken{ID: t.ID, Name: t.Name, Created: t.Created, Revoked: t.Revoked})
	}
	return view
}

// createDeveloperToken makes a token and shows it, once.
func (v *visit) createDeveloperToken() {
	id := v.form.Get("id")
	if !v.sent.first(v.user.ID, id) {
		v.developerAgain(http.StatusConflict, problemSent)
		return
	}
	token, made, err := v.options.Registry.CreateDeveloperToken(v.r.Context(), v.user.ID, v.form.Get("name"))
	if err != nil {
		v.sent.again(v.user.ID, id)
		v.developerAgain(v.problem(err))
		return
	}
	v.show(http.StatusOK, pages.SecretToken(v.desk(), made.Name, token))
}

func (v *visit) developerAgain(status int, problem string) {
	view := v.developerView()
	view.Name, view.Problem = v.form.Get("name"), problem
	v.show(status, view)
}

func (v *visit) revokeDeveloperToken() {
	v.concluded(v.options.Registry.RevokeDeveloperToken(v.r.Context(), v.user.ID, v.r.PathValue("id")), pathTokens, "token_revoked")
}
