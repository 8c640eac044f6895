package tokens

import (
	"context"
	"time"

	"stagedoor/state"
)

const (
	// maxGrants is how many live grants a user has for one app: devices, mostly.
	// The oldest goes first.
	maxGrants = 100
	// maxAutomatic is how many grants an app gets of a user in an hour without
	// asking, lest a page that redirects in circles fills the store.
	maxAutomatic = 10
)

// AutoApproved tells whether Approve needs no yes of the user for this: the same
// user approved the same app, redirect and at least these scopes before.
func (c *Client) AutoApproved(a Approval) bool {
	a.Consented = false
	v := c.state.View()
	app, err := a.check(v)
	return err == nil && a.permitted(v, app, v.Grants(a.User, app.ID)) == nil
}

// Approve makes a grant and its authorization code. ErrInvalidClient: no such
// app, or disabled; ErrInvalidRequest: another redirect URI, or a bad challenge;
// ErrInvalidScope: an unknown one, or none; ErrConsentRequired; ErrNotFound: no
// such user, or disabled; ErrUsed: the request has got its code.
func (c *Client) Approve(ctx context.Context, a Approval) (code string, err error) {
	random, err := draw(c.random, familial+entropy)
	if err != nil {
		return "", err
	}
	fam := family(random[:familial])
	code = kindCode.formatWith(fam, random[familial:])
	err = do(ctx, c, nil, func(tx *state.Tx) error {
		app, err := a.check(tx.View())
		if err != nil {
			return err
		}
		before := tx.View().Grants(a.User, app.ID)
		if err := a.permitted(tx.View(), app, before); err != nil {
			return err
		}
		if err := a.remember(tx, app, c.config.Consent); err != nil {
			return err
		}
		if err := dropOldest(tx, before); err != nil {
			return err
		}
		id, err := state.NewID("grt_", tx.Now(), c.random)
		if err != nil {
			return err
		}
		expires := tx.Now().Add(c.config.Code)
		return tx.PutGrant(state.Grant{ID: id, User: a.User, App: app.ID, Scopes: ordered(a.Scopes), RedirectURI: a.RedirectURI,
			Family: fam.hash(), Code: state.Code{Hash: state.HashSecret(code), Challenge: a.Challenge, Expires: expires},
			Consented: a.Consented, AuthTime: a.AuthTime, Created: tx.Now(), Expires: expires})
	})
	if err != nil {
		return "", err
	}
	return code, nil
}

// check holds the approval against the app and the user as they are.
func (a *Approval) check(v state.View) (state.App, error) {
	app, ok := v.AppByClientID(a.ClientID)
	if !ok || !app.Disabled.IsZero() {
		return app, ErrInvalidClient
	}
	if a.RedirectURI != app.RedirectURI || (a.Challenge != "" && !ValidChallenge(a.Challenge)) {
		return app, ErrInvalidRequest
	}
	if len(a.Scopes) == 0 || !covers(Scopes(), a.Scopes) {
		return app, ErrInvalidScope
	}
	if u, ok := v.User(a.User); !ok || !u.Active() {
		return app, ErrNotFound
	}
	return app, nil
}

// permitted is nil if the user said yes, now or before.
func (a *Approval) permitted(v state.View, app state.App, before []state.Grant) error {
	if a.Consented {
		return nil
	}
	consent, _ := v.Consent(a.User, app.ID)
	if !consent.Covers(a.RedirectURI, a.Scopes, v.Now()) {
		return ErrConsentRequired
	}
	automatic := 0
	for i := range before {
		if g := &before[i]; !g.Consented && v.Now().Sub(g.Created) < time.Hour {
			automatic++
		}
	}
	if automatic >= maxAutomatic {
		return ErrConsentRequired
	}
	return nil
}

// remember keeps a fresh yes for the next time, and marks the request as used.
func (a *Approval) remember(tx *state.Tx, app state.App, lifetime time.Duration) error {
	if !a.Consented && a.Request.ID == "" {
		return nil
	}
	consent, ok := tx.View().Consent(a.User, app.ID)
	if !ok {
		consent = state.Consent{User: a.User, App: app.ID}
	}
	if a.Request.ID != "" {
		var err error
		if consent.Used, err = a.Request.use(consent.Used, tx.Now()); err != nil {
			return err
		}
	}
	if a.Consented {
		given := state.Given{RedirectURI: a.RedirectURI, Scopes: ordered(a.Scopes), Expires: tx.Now().Add(lifetime)}
		consent = consent.With(given, tx.Now())
	}
	return tx.PutConsent(consent)
}

// dropOldest makes room for one more grant.
func dropOldest(tx *state.Tx, before []state.Grant) error {
	for len(before) >= maxGrants {
		if err := revoke(tx, before[0], "superseded"); err != nil {
			return err
		}
		before = before[1:]
	}
	return nil
}

// revoke ends a grant, and its access tokens with it.
func revoke(tx *state.Tx, g state.Grant, reason string) error {
	g.Revoke(tx.Now(), reason)
	return tx.PutGrant(g)
}
