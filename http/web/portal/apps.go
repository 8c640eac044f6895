package portal

import (
	"net/http"
	"net/url"
	"slices"
	"strconv"

	"stagedoor/actors/tokens"
	"stagedoor/http/web/pages"
)

const (
	pathApps   = "/account/apps"
	pathTokens = "/account/tokens"
)

// apps shows the apps that the user has allowed and those that the user has registered.
func (rc *requestContext) apps() { rc.show(http.StatusOK, rc.appsView()) }

// appsView lists the apps that the user has allowed, and those that the user has registered.
func (rc *requestContext) appsView() *pages.Apps {
	_, mayCreate := rc.restrictions()
	view := &pages.Apps{Viewer: rc.viewer(), Own: rc.ownApps(), Forbidden: !mayCreate}
	view.Entry = pages.AppEntry{Form: pages.Form{Action: pathApps, ID: newFormID(), Token: view.Token},
		Open: rc.query("new") != ""}
	at := map[int64]int{}
	for _, g := range rc.options.Registry.Grants(rc.user.ID) {
		i, ok := at[g.App.ID]
		if !ok {
			i = len(view.Apps)
			at[g.App.ID] = i
			view.Apps = append(view.Apps, allowed(&g))
			continue
		}
		// A user may allow one app on several devices. The page has one row for the app, which revokes all of its
		// grants, so the row shows the first grant's age, the latest use and all scopes together.
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
	return view
}

// hostOf returns the host of an address for display, or the address if it has none.
func hostOf(address string) string {
	u, err := url.Parse(address)
	if err != nil {
		return address
	}
	return u.Host
}

// allowed returns a grant as the page of apps shows it.
func allowed(g *tokens.Grant) pages.Allowed {
	return pages.Allowed{App: pages.App{Name: g.App.Name, Description: g.App.Description,
		Host: hostOf(g.App.RedirectURI), Scopes: g.Scopes, Logo: pages.LogoPath(&g.App)}, ID: g.App.ID,
		Since: g.Created, Used: g.Used, Grants: 1}
}

// union returns the scopes of either, in the order in which pages list them.
func union(a, b []string) []string {
	return slices.DeleteFunc(tokens.Scopes(), func(s string) bool {
		return !slices.Contains(a, s) && !slices.Contains(b, s)
	})
}

// revokeApp ends all access that the person has given to an app.
func (rc *requestContext) revokeApp() {
	app, err := strconv.ParseInt(rc.r.PathValue("id"), 10, 64)
	if err != nil {
		rc.missing()
		return
	}
	rc.concluded(rc.options.Registry.RevokeUserApp(rc.r.Context(), rc.user.ID, app), pathApps, "app_revoked")
}

// developerTokens shows the tokens with which programs of the user register apps.
func (rc *requestContext) developerTokens() { rc.show(http.StatusOK, rc.developerView()) }

// developerView returns the page of developer tokens, the newest first.
func (rc *requestContext) developerView() *pages.DeveloperTokens {
	_, mayCreate := rc.restrictions()
	view := &pages.DeveloperTokens{Viewer: rc.viewer(), Forbidden: !mayCreate, FormID: newFormID()}
	for _, t := range slices.Backward(rc.options.Registry.DeveloperTokens(rc.user.ID)) {
		view.Tokens = append(view.Tokens,
			pages.DeveloperToken{ID: t.ID, Name: t.Name, Created: t.Created, Revoked: t.Revoked})
	}
	return view
}

// createDeveloperToken makes a token and shows it, once.
func (rc *requestContext) createDeveloperToken() {
	var token string
	var made tokens.DeveloperToken
	if rc.once(rc.developerAgain, func() (err error) {
		token, made, err = rc.options.Registry.CreateDeveloperToken(rc.r.Context(), rc.user.ID, rc.form.Get("name"))
		return err
	}) {
		rc.show(http.StatusOK, pages.SecretToken(rc.viewer(), made.Name, token))
	}
}

// developerAgain shows the page once more with a problem and what was entered.
func (rc *requestContext) developerAgain(status int, problem string) {
	view := rc.developerView()
	view.Name, view.Problem = rc.form.Get("name"), problem
	rc.show(status, view)
}

// revokeDeveloperToken revokes a token of the person.
func (rc *requestContext) revokeDeveloperToken() {
	rc.concluded(rc.options.Registry.RevokeDeveloperToken(rc.r.Context(), rc.user.ID, rc.r.PathValue("id")),
		pathTokens, "token_revoked")
}
