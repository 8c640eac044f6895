package adminapi

import (
	"encoding/base64"
	"net/http"
	"strconv"

	"stagedoor/actors/tokens"
	"stagedoor/providers/dialogue"
)

// appRoutes change OAuth apps. Disabling an app can be taken back, and erasing it cannot.
var appRoutes = []route{
	{method: "GET", path: "/apps", name: "listApps", group: "apps", summary: "List OAuth apps, oldest first",
		out:    List[App]{},
		query:  []param{{name: "owner", doc: "only those of the user with this name"}, limitParam, afterParam},
		status: http.StatusOK, serve: (*requestContext).listApps},
	{method: "POST", path: "/apps", name: "createApp", group: "apps",
		summary: "Register an app; its secret is shown once", in: NewApp{}, out: AppSecret{},
		status: http.StatusCreated, serve: withBody((*requestContext).createApp)},
	{method: "GET", path: "/apps/{id}", name: "getApp", group: "apps", summary: "Get an app", out: App{},
		status: http.StatusOK, serve: withID((*requestContext).getApp)},
	{method: "DELETE", path: "/apps/{id}", name: "disableApp", group: "apps",
		summary: "Disable an app and all its tokens. The app stays in the list", out: App{},
		status: http.StatusOK, serve: withID((*requestContext).disableApp)},
	{method: "PATCH", path: "/apps/{id}", name: "updateApp", group: "apps",
		summary: "Change an app, at once for all requests; tokens stay", in: AppChange{}, out: App{},
		status: http.StatusOK, serve: withIDAndBody((*requestContext).updateApp)},
	{method: "POST", path: "/apps/{id}/erase", name: "eraseApp", group: "apps",
		summary: "Delete an app for good, with all secrets, codes, tokens, grants and consents",
		in:      Empty{}, out: App{}, status: http.StatusOK, serve: withIDAndBody((*requestContext).eraseApp)},
	{method: "DELETE", path: "/apps/{id}/secret/previous", name: "endPreviousAppSecret", group: "apps",
		summary: "End the secret before the last rotation", out: App{},
		status: http.StatusOK, serve: withID((*requestContext).endPreviousSecret)},
	{method: "POST", path: "/apps/{id}/secret", name: "rotateAppSecret", group: "apps",
		summary: "Give an app a new secret; the previous one is accepted for a while beside it",
		in:      Rotation{}, out: AppSecret{}, status: http.StatusOK,
		serve: withIDAndBody((*requestContext).rotateSecret)},
}

const noApp = "there is no such app"

// appView returns an app as the API shows it, without its secret.
func (c *requestContext) appView(a *tokens.App) App {
	owner := ""
	if u, err := c.Registry.User(a.Owner); err == nil {
		owner = u.Username
	}
	return App{ID: a.ID, ClientID: a.ClientID, Owner: owner, Name: a.Name, Description: a.Description,
		RedirectURI: a.RedirectURI, RedirectURIs: a.RedirectURIs, Logo: a.Logo != nil,
		Created: a.Created, Disabled: timeOrNull(a.Disabled), Previous: timeOrNull(a.PreviousSecretUntil),
		SecretEnd: a.SecretEnd, SecretUsed: timeOrNull(a.SecretUsed), PreviousEnd: a.PreviousEnd,
		PreviousUsed: timeOrNull(a.PreviousUsed), Users: c.Registry.AppUse(a.ID).Users}
}

// listApps handles GET /apps.
func (c *requestContext) listApps() (any, error) {
	owner := int64(0)
	if name := c.query.Get("owner"); name != "" {
		u, err := c.Registry.UserByName(name)
		if err != nil {
			return nil, describeNotFound(err, "owner", noUser)
		}
		owner = u.ID
	}
	some, err := pageOf(c, c.Registry.Apps(owner), func(a *tokens.App) string { return strconv.FormatInt(a.ID, 10) })
	return List[App]{Data: convertAll(some.Data, c.appView), Next: some.Next}, err
}

// createApp handles POST /apps and returns the secret, which cannot be read later.
func (c *requestContext) createApp(in NewApp) (any, error) {
	for _, f := range []struct{ name, value string }{{"owner", in.Owner}, {"name", in.Name},
		{"redirect_uri", in.RedirectURI}} {
		if f.value == "" {
			return nil, dialogue.Missing(f.name)
		}
	}
	u, err := c.Registry.UserByName(in.Owner)
	if err != nil {
		return nil, describeNotFound(err, "owner", noUser)
	}
	secret, a, err := c.Registry.RegisterApp(c.r.Context(), tokens.NewApp{Owner: u.ID, Name: in.Name,
		Description: in.Description, RedirectURI: in.RedirectURI, MoreURIs: in.MoreURIs, Operator: true})
	if err != nil {
		return nil, describeNotFound(err, "owner", "the owner is disabled")
	}
	return AppSecret{App: c.appView(&a), Secret: secret}, nil
}

// getApp handles GET /apps/{id}.
func (c *requestContext) getApp(id int64) (any, error) {
	a, err := c.Registry.App(id)
	if err != nil {
		return nil, describeNotFound(err, "id", noApp)
	}
	return c.appView(&a), nil
}

// updateApp handles PATCH /apps/{id}. The change applies at once.
func (c *requestContext) updateApp(id int64, in AppChange) (any, error) {
	change := tokens.AppChange{Name: in.Name, Description: in.Description, RedirectURIs: in.RedirectURIs,
		Enabled: in.Enabled}
	// Null removes the logo, and so does the empty text that pointer makes of it. Empty text from the client is a
	// mistake.
	if text := in.Logo.pointer(); text != nil {
		file, err := base64.StdEncoding.DecodeString(*text)
		if err != nil || in.Logo.Value != nil && len(file) == 0 {
			return nil, dialogue.Invalid("logo", "must be a PNG or JPEG file in base64, or null")
		}
		change.Logo = &file
	}
	a, err := c.Registry.UpdateApp(c.r.Context(), id, change)
	if err != nil {
		return nil, describeNotFound(err, "id", noApp)
	}
	return c.appView(&a), nil
}

// eraseApp handles POST /apps/{id}/erase and returns the app as it was.
func (c *requestContext) eraseApp(id int64, _ Empty) (any, error) {
	// The app is read before it is deleted, because the reply shows it.
	was, err := c.getApp(id)
	if err == nil {
		err = describeNotFound(c.Registry.DeleteApp(c.r.Context(), id), "id", noApp)
	}
	return was, err
}

// endPreviousSecret handles DELETE /apps/{id}/secret/previous.
func (c *requestContext) endPreviousSecret(id int64) (any, error) {
	a, err := c.Registry.EndPreviousSecret(c.r.Context(), id)
	if err != nil {
		return nil, describeNotFound(err, "id", noApp)
	}
	return c.appView(&a), nil
}

// disableApp handles DELETE /apps/{id}. The app can be enabled again with a PATCH.
func (c *requestContext) disableApp(id int64) (any, error) {
	if err := c.Registry.DisableApp(c.r.Context(), id); err != nil {
		return nil, describeNotFound(err, "id", noApp)
	}
	return c.getApp(id)
}

// rotateSecret handles POST /apps/{id}/secret. The old secret stays valid for a while, so that the
// app's servers can be updated one after the other.
func (c *requestContext) rotateSecret(id int64, in Rotation) (any, error) {
	overlap, err := in.overlap()
	if err != nil {
		return nil, err
	}
	secret, a, err := c.Registry.RotateSecret(c.r.Context(), id, overlap)
	if err != nil {
		return nil, describeNotFound(err, "id", noApp)
	}
	return AppSecret{App: c.appView(&a), Secret: secret}, nil
}
