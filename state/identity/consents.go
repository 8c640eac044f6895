package identity

import (
	"fmt"
	"slices"
	"time"

	"stagedoor/state"
	"stagedoor/state/journal"
)

// Consent is what a user said yes to for one app. It outlives the grants that
// followed, so that the app may ask again without the page (decisions,
// auto_authorize).
type Consent struct {
	User    int64     `json:"user"`
	App     int64     `json:"app"`
	Given   []Given   `json:"given"`
	Expires time.Time `json:"expires"` // of the last of them
	// Used are the authorization requests that a code was made for.
	Used []Used `json:"used,omitempty"`
}

// Used marks something that works once. The mark is kept until the thing has expired.
type Used struct {
	ID      string    `json:"id,omitempty"` // "": everything that expires no later
	Expires time.Time `json:"expires"`
}

// Given is one yes.
type Given struct {
	RedirectURI string    `json:"redirect_uri"`
	Scopes      []string  `json:"scopes"`
	Expires     time.Time `json:"expires"`
}

func (g *Given) covers(redirectURI string, scopes []string, now time.Time) bool {
	return now.Before(g.Expires) && g.RedirectURI == redirectURI &&
		!slices.ContainsFunc(scopes, func(s string) bool { return !slices.Contains(g.Scopes, s) })
}

// Covers reports whether one yes covers the redirect and all of the scopes at now.
func (c *Consent) Covers(redirectURI string, scopes []string, now time.Time) bool {
	return slices.ContainsFunc(c.Given, func(g Given) bool { return g.covers(redirectURI, scopes, now) })
}

// With is the consent with one more yes. What that covers, and what has expired,
// goes.
func (c Consent) With(g Given, now time.Time) Consent {
	c.Given = append([]Given{g}, slices.DeleteFunc(slices.Clone(c.Given), func(old Given) bool {
		return !now.Before(old.Expires) || g.covers(old.RedirectURI, old.Scopes, now)
	})...)
	c.Expires = time.Time{}
	for _, g := range c.Given {
		if g.Expires.After(c.Expires) {
			c.Expires = g.Expires
		}
	}
	return c
}

var consents = state.Table[Consent]{
	Name:    journal.Consent,
	ID:      func(c *Consent) string { return consentID(c.User, c.App) },
	Expires: func(c *Consent) time.Time { return c.Expires },
}

func consentID(user, app int64) string { return state.NumberID(user) + "." + state.NumberID(app) }

// FindConsent returns what a user said yes to for an app.
func FindConsent(v state.View, user, app int64) (Consent, bool) {
	return consents.Get(v, consentID(user, app)).Record()
}

// PutConsent keeps c.
func PutConsent(tx *state.Tx, c Consent) error {
	if c.User <= 0 || c.App <= 0 || c.Expires.IsZero() {
		return fmt.Errorf("%w: consent of user %d for app %d", state.ErrInvalid, c.User, c.App)
	}
	return consents.Put(tx, c)
}

// RemoveConsent forgets what a user said yes to for an app, if anything.
func RemoveConsent(tx *state.Tx, user, app int64) {
	if r := consents.Get(tx.View(), consentID(user, app)); r != nil {
		consents.Remove(tx, r)
	}
}
