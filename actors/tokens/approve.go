package tokens

import (
	"context"
	"time"

	"stagedoor/state"
	"stagedoor/state/identity"
)

const (
	// maxGrants is the number of live grants that a user may have for one app, which are mostly devices. A
	// further grant ends the oldest.
	maxGrants = 100
	// maxAutomatic is the number of grants per hour that an app gets of a user without consent. It keeps a
	// page that redirects in circles from filling the store.
	maxAutomatic = 10
)

// Approve makes a grant and returns its authorization code. It returns ErrInvalidClient if the app does not
// exist or is disabled, ErrInvalidRequest for another redirect URI or a bad challenge, ErrInvalidScope for an
// unknown scope or none, ErrConsentRequired, ErrNotFound if the user does not exist or is disabled, and ErrUsed
// if the request has got its code already.
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
		if u, ok := identity.FindUser(tx.View(), a.User); ok {
			actAsUser(tx, &u)
		}
		before := identity.ListGrants(tx.View(), a.User, app.ID)
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
		return identity.PutGrant(tx, identity.Grant{ID: id, User: a.User, App: app.ID, Scopes: ordered(a.Scopes),
			RedirectURI: a.RedirectURI, Family: fam.hash(),
			Code:      identity.Code{Hash: state.HashSecret(code), Challenge: a.Challenge, Expires: expires},
			Consented: a.Consented, AuthTime: a.AuthTime, Created: tx.Now(), Expires: expires})
	})
	if err != nil {
		return "", err
	}
	return code, nil
}

// check returns the app, or an error if the approval does not fit the app and the user as they are now.
func (a *Approval) check(v state.View) (identity.App, error) {
	app, ok := identity.FindAppByClientID(v, a.ClientID)
	if !ok || !app.Disabled.IsZero() {
		return app, ErrInvalidClient
	}
	if !contains(app.RedirectURIs(), a.RedirectURI) || (a.Challenge != "" && !ValidChallenge(a.Challenge)) {
		return app, ErrInvalidRequest
	}
	if len(a.Scopes) == 0 || !covers(Scopes(), a.Scopes) {
		return app, ErrInvalidScope
	}
	if u, ok := identity.FindUser(v, a.User); !ok || !u.Active() {
		return app, ErrNotFound
	}
	return app, nil
}

// permitted returns ErrConsentRequired unless the user consented now, or has consented before to at least this much. An
// app that got maxAutomatic grants without consent in the last hour needs a new consent.
func (a *Approval) permitted(v state.View, app identity.App, before []identity.Grant) error {
	if a.Consented {
		return nil
	}
	consent, _ := identity.FindConsent(v, a.User, app.ID)
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

// remember stores a new consent for later requests and marks the request as used.
func (a *Approval) remember(tx *state.Tx, app identity.App, lifetime time.Duration) error {
	if !a.Consented && a.Request.ID == "" {
		return nil
	}
	consent, ok := identity.FindConsent(tx.View(), a.User, app.ID)
	if !ok {
		consent = identity.Consent{User: a.User, App: app.ID}
	}
	if a.Request.ID != "" {
		var err error
		if consent.Used, err = a.Request.use(consent.Used, tx.Now()); err != nil {
			return err
		}
	}
	if a.Consented {
		given := identity.Given{RedirectURI: a.RedirectURI, Scopes: ordered(a.Scopes), Expires: tx.Now().Add(lifetime)}
		consent = consent.With(given, tx.Now())
	}
	return identity.PutConsent(tx, consent)
}

// dropOldest ends the oldest grants, so that a further one does not exceed maxGrants.
func dropOldest(tx *state.Tx, before []identity.Grant) error {
	for len(before) >= maxGrants {
		if err := revoke(tx, before[0], "superseded"); err != nil {
			return err
		}
		before = before[1:]
	}
	return nil
}

// revoke ends a grant and its access tokens.
func revoke(tx *state.Tx, g identity.Grant, reason string) error {
	g.Revoke(tx.Now(), reason)
	return identity.PutGrant(tx, g)
}
