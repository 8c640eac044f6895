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
	for _, a := range rc.options.Registry.AllowedApps(rc.user.ID) {
		view.Apps = append(view.Apps, allowed(&a))
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

// allowed returns an app as the page shows it.
func allowed(a *tokens.AllowedApp) pages.Allowed {
	return pages.Allowed{App: pages.App{Name: a.App.Name, Description: a.App.Description,
		Host: hostOf(a.App.RedirectURI), Scopes: a.Scopes, Logo: pages.LogoPath(&a.App)}, ID: a.App.ID,
		Since: a.Since, Used: a.Used, Devices: a.Devices}
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
