package portal

import (
	"net/http"
	"path"
	"slices"
	"strconv"
	"strings"

	"stagedoor/actors/tokens"
	"stagedoor/http/web/pages"
)

// pathApp returns the path of the page on which its owner changes an app.
func pathApp(id int64) string { return pathApps + "/" + strconv.FormatInt(id, 10) }

// ownApps lists the apps that the user has registered, the newest first.
func (rc *requestContext) ownApps() []pages.OwnApp {
	var lines []pages.OwnApp
	for _, a := range slices.Backward(rc.options.Registry.Apps(rc.user.ID)) {
		lines = append(lines, rc.appLine(&a))
	}
	return lines
}

// appLine returns an app of the person with its use. The previous secret is shown while it is accepted.
func (rc *requestContext) appLine(a *tokens.App) pages.OwnApp {
	line := pages.OwnApp{App: pages.App{Name: a.Name, Description: a.Description, Host: hostOf(a.RedirectURI),
		Logo: pages.LogoPath(a)}, ID: a.ID, ClientID: a.ClientID, Addresses: a.RedirectURIs, Created: a.Created,
		Disabled: !a.Disabled.IsZero(), Secret: pages.AppSecret{End: a.SecretEnd, Used: a.SecretUsed}}
	if a.PreviousSecretUntil.After(rc.options.Now()) {
		line.Previous = &pages.AppSecret{End: a.PreviousEnd, Used: a.PreviousUsed, Until: a.PreviousSecretUntil}
	}
	use := rc.options.Registry.AppUse(a.ID)
	line.Users, line.Devices, line.First, line.Latest = int64(use.Users), int64(use.Grants), use.First, use.Latest
	for _, scope := range tokens.Scopes() {
		if n := use.Scopes[scope]; n > 0 {
			line.ByScope = append(line.ByScope, pages.ScopeUse{ScopeText: pages.ScopeTextOf(scope), Users: int64(n)})
		}
	}
	return line
}

// registerApp registers an app of the user and shows its secret, once.
func (rc *requestContext) registerApp() {
	n := tokens.NewApp{Owner: rc.user.ID, Name: strings.TrimSpace(rc.form.Get("name")),
		Description: typedText(rc.form.Get("description"))}
	if uris := strings.Fields(rc.form.Get("addresses")); len(uris) > 0 {
		n.RedirectURI, n.MoreURIs = uris[0], uris[1:]
	}
	var secret string
	var a tokens.App
	if rc.once(rc.appsAgain, func() (err error) {
		secret, a, err = rc.options.Registry.RegisterApp(rc.r.Context(), n)
		return err
	}) {
		rc.show(http.StatusOK, pages.SecretApp(rc.viewer(), a.Name, pathApp(a.ID), a.ClientID, secret))
	}
}

// typedText returns a text of several lines as programs write it: browsers send CR LF.
func typedText(text string) string { return strings.TrimSpace(strings.ReplaceAll(text, "\r\n", "\n")) }

// appsAgain shows the form as it was sent, with what is wrong.
func (rc *requestContext) appsAgain(status int, problem string) {
	view := rc.appsView()
	view.Entry.Name, view.Entry.Description, view.Entry.Addresses = rc.form.Get("name"), rc.form.Get("description"),
		rc.form.Get("addresses")
	view.Entry.Open, view.Problem = true, problem
	rc.show(status, view)
}

// ofApp returns a handler that calls serve with the app that the path names. It answers 404 unless the signed-in user
// has registered the app. The owner of an app never changes, so serve needs no further check.
func ofApp(serve func(*requestContext, tokens.App)) func(*requestContext) {
	return named(func(rc *requestContext, id int64) (tokens.App, bool) {
		a, err := rc.options.Registry.App(id)
		return a, err == nil && a.Owner == rc.user.ID
	}, serve)
}

// oneApp shows the page of an app of the person.
func (rc *requestContext) oneApp(a tokens.App) { rc.show(http.StatusOK, rc.appView(&a)) }

// appView returns the page of an app with its form filled in.
func (rc *requestContext) appView(a *tokens.App) *pages.OneApp {
	return &pages.OneApp{Viewer: rc.viewer(), OwnApp: rc.appLine(a), Entry: pages.AppEntry{Name: a.Name,
		Description: a.Description, Addresses: strings.Join(a.RedirectURIs, "\n")}}
}

// ownAppActions are the last words of the addresses that changeOwnApp serves.
var ownAppActions = []string{"settings", "remove-logo", "secret", "end-secret", "delete"}

// changeOwnApp serves the forms of the page of an app.
func (rc *requestContext) changeOwnApp(a tokens.App) {
	registry, ctx := rc.options.Registry, rc.r.Context()
	var err error
	switch path.Base(rc.r.URL.Path) {
	case "settings":
		name, text, uris := strings.TrimSpace(rc.form.Get("name")), typedText(rc.form.Get("description")),
			strings.Fields(rc.form.Get("addresses"))
		change := tokens.AppChange{Name: &name, Description: &text, RedirectURIs: &uris}
		_, err = registry.UpdateOwnApp(ctx, a.ID, change)
	case "remove-logo":
		_, err = registry.UpdateOwnApp(ctx, a.ID, tokens.AppChange{Logo: new([]byte)})
	case "secret":
		rc.rotateAppSecret(&a)
		return
	case "end-secret":
		_, err = registry.EndPreviousSecret(ctx, a.ID)
	case "delete":
		if rc.form.Get("name") != a.Name {
			rc.appAgain(&a, http.StatusUnprocessableEntity, "Type the name of the app to delete it.")
			return
		}
		rc.concluded(registry.DeleteOwnApp(ctx, a.ID), pathApps, "app_deleted")
		return
	}
	rc.appChanged(&a, err)
}

// changeLogo gives an app the picture of the form.
func (rc *requestContext) changeLogo(a tokens.App) {
	// A form without a file would remove the logo, for which there is a button of its own.
	var err error = &tokens.FieldError{Field: "logo", Rule: "must be a PNG or JPEG picture"}
	if logo := []byte(rc.form.Get("logo")); len(logo) > 0 {
		_, err = rc.options.Registry.UpdateOwnApp(rc.r.Context(), a.ID, tokens.AppChange{Logo: &logo})
	}
	rc.appChanged(&a, err)
}

// appChanged goes back to the page of an app after a change, or shows it again with what is wrong.
func (rc *requestContext) appChanged(a *tokens.App, err error) {
	if err != nil {
		status, text := rc.problem(err)
		rc.appAgain(a, status, text)
		return
	}
	rc.done(pathApp(a.ID), "app_changed")
}

// appAgain shows the page of an app with the settings as they were typed, and what is wrong.
func (rc *requestContext) appAgain(a *tokens.App, status int, problem string) {
	view := rc.appView(a)
	if path.Base(rc.r.URL.Path) == "settings" {
		view.Entry = pages.AppEntry{Name: rc.form.Get("name"), Description: rc.form.Get("description"),
			Addresses: rc.form.Get("addresses")}
	}
	view.Problem = problem
	rc.show(status, view)
}

// rotateAppSecret gives an app a new secret and shows it, once.
func (rc *requestContext) rotateAppSecret(a *tokens.App) {
	overlap, known := overlaps[rc.form.Get("overlap")]
	if !known {
		rc.show(http.StatusBadRequest, failureBroken)
		return
	}
	secret, changed, err := rc.options.Registry.RotateOwnSecret(rc.r.Context(), a.ID, overlap)
	if err != nil {
		rc.concluded(err, "", "")
		return
	}
	rc.show(http.StatusOK, pages.SecretRotatedApp(rc.viewer(), a.Name, pathApp(a.ID), a.ClientID, secret,
		changed.PreviousSecretUntil))
}
