package tokens

import (
	"context"
	"maps"
	"slices"
	"time"

	"stagedoor/actors/kit"
	"stagedoor/state"
	"stagedoor/state/identity"
)

// Lookup returns the user and the scopes of a live access token, or ErrInvalidToken. Every resource request
// calls it, so it reads a snapshot only.
func (c *Client) Lookup(access string) (Access, error) {
	hash, ok := kindAccess.hashOf(access)
	if !ok {
		return Access{}, ErrInvalidToken
	}
	v := c.state.View()
	t, g, u, ok := liveAccess(v, hash)
	if !ok {
		return Access{}, ErrInvalidToken
	}
	if app, ok := identity.FindApp(v, g.App); !ok || !app.Disabled.IsZero() {
		return Access{}, ErrInvalidToken
	}
	return Access{User: userOf(u), App: g.App, Grant: g.ID, Scopes: t.Scopes, Expires: t.Expires}, nil
}

// liveAccess returns an access token with its grant and its user, and whether all three are valid
// now.
func liveAccess(v state.View, hash state.Hash) (identity.AccessToken, identity.Grant, identity.User, bool) {
	t, g, ok := identity.FindAccessToken(v, hash)
	if !ok || !g.Live(v.Now()) {
		return t, g, identity.User{}, false
	}
	u, ok := identity.FindUser(v, g.User)
	return t, g, u, ok && u.Active()
}

// Introspect describes a client's own token (RFC 7662). The tokens of other clients are reported as not active.
// It returns ErrInvalidClient or *Limited.
func (c *Client) Introspect(ctx context.Context, client ClientCredentials, token string) (Introspection, error) {
	app, err := kit.Ask(ctx, c.system, c.pid, &authenticating{client: client.hashed()})
	if err != nil {
		return Introspection{}, ownError(ctx, err)
	}
	v := c.state.View()
	if hash, ok := kindAccess.hashOf(token); ok {
		return introspectAccess(v, app, hash), nil
	}
	if fam, ok := kindRefresh.parseFamily(token); ok {
		return introspectRefresh(v, app, fam.hash(), state.HashSecret(token)), nil
	}
	return Introspection{}, nil
}

// introspectAccess describes an access token to the app that it was issued to. For any other app
// the token is not active, so that apps cannot examine tokens of each other.
func introspectAccess(v state.View, app identity.App, hash state.Hash) Introspection {
	t, g, u, ok := liveAccess(v, hash)
	if !ok || g.App != app.ID {
		return Introspection{}
	}
	return Introspection{
		Active:   true,
		ClientID: app.ClientID,
		User:     userOf(u),
		Scopes:   t.Scopes,
		Issued:   t.Created,
		Expires:  t.Expires,
	}
}

// introspectRefresh describes a refresh token to its app. Only the newest token of a grant is
// active. The check changes nothing: an old token that is used for a refresh revokes its grant, but
// one that is only examined does not.
func introspectRefresh(v state.View, app identity.App, family, hash state.Hash) Introspection {
	g, ok := identity.FindGrantByFamily(v, family)
	if !ok || g.App != app.ID || !g.Live(v.Now()) || !g.Refresh.Hash.Equal(hash) {
		return Introspection{}
	}
	u, ok := identity.FindUser(v, g.User)
	if !ok || !u.Active() {
		return Introspection{}
	}
	return Introspection{
		Active:   true,
		Refresh:  true,
		ClientID: app.ClientID,
		User:     userOf(u),
		Scopes:   g.Scopes,
		Issued:   g.Refresh.Issued,
		Expires:  g.Expires,
	}
}

// Revoke ends a token of the client (RFC 7009). A refresh token, current or older, ends its whole grant. An access
// token ends alone. A token that is unknown or belongs to another client is no error.
func (c *Client) Revoke(ctx context.Context, client ClientCredentials, token string) error {
	who := client.hashed()
	access, isAccess := kindAccess.hashOf(token)
	fam, isRefresh := kindRefresh.parseFamily(token)
	return do(ctx, c, who, func(tx *state.Tx) error {
		app, err := authenticate(tx.View(), who)
		if err != nil {
			return err
		}
		switch {
		case isAccess:
			if t, g, ok := identity.FindAccessToken(tx.View(), access); ok && g.App == app.ID {
				identity.RemoveAccessToken(tx, t.ID)
			}
		case isRefresh:
			if g, ok := identity.FindGrantByFamily(tx.View(), fam.hash()); ok && g.App == app.ID && g.Revoked.IsZero() {
				return revoke(tx, g, "revoked_by_client")
			}
		}
		return nil
	})
}

// AllowedApps returns the apps that may see something of a user, by id. An app is listed from the moment of the
// consent, because the consent gets it further codes without a question, even if it redeems none.
func (c *Client) AllowedApps(user int64) []AllowedApp {
	v := c.state.View()
	apps := map[int64]*AllowedApp{}
	note := func(id int64, scopes []string, since time.Time) *AllowedApp {
		a := apps[id]
		if a == nil {
			a = &AllowedApp{Since: since}
			apps[id] = a
		}
		a.Scopes = append(a.Scopes, scopes...)
		if since.Before(a.Since) {
			a.Since = since
		}
		return a
	}
	for _, consent := range identity.ListConsents(v, user) {
		for _, given := range consent.Given {
			if v.Now().Before(given.Expires) {
				note(consent.App, given.Scopes, given.Expires.Add(-c.config.Consent))
			}
		}
	}
	for _, g := range identity.ListGrants(v, user, 0) {
		if !g.Live(v.Now()) {
			continue
		}
		a := note(g.App, g.Scopes, g.Created)
		if !g.Code.Used.IsZero() {
			a.Devices++
		}
		if g.Refresh.Issued.After(a.Used) {
			a.Used = g.Refresh.Issued
		}
	}
	var list []AllowedApp
	for _, id := range slices.Sorted(maps.Keys(apps)) {
		if app, ok := identity.FindApp(v, id); ok && app.Gone.IsZero() {
			a := apps[id]
			a.App, a.Scopes = appOf(app), ordered(a.Scopes)
			list = append(list, *a)
		}
	}
	return list
}

const revokedByUser = "revoked_by_user"

// RevokeUserApp ends all grants that a user gave an app, their tokens, and the consent for further ones. It succeeds
// without any grant, and also for a deleted app as long as its record is there. ErrNotFound means that there is no
// record.
func (c *Client) RevokeUserApp(ctx context.Context, user, app int64) error {
	return do(ctx, c, nil, func(tx *state.Tx) error {
		if _, ok := identity.FindApp(tx.View(), app); !ok {
			return ErrNotFound
		}
		identity.RemoveConsent(tx, user, app)
		for _, g := range identity.ListGrants(tx.View(), user, app) {
			if err := revoke(tx, g, revokedByUser); err != nil {
				return err
			}
		}
		return nil
	})
}
