package identity

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"stagedoor/state"
	"stagedoor/state/journal"
)

// Consent records what a user has allowed one app. It outlives the grants that were made from it,
// so that the app can be authorized again without the consent page.
type Consent struct {
	User    int64     `json:"user"`
	App     int64     `json:"app"`
	Given   []Given   `json:"given"`
	Expires time.Time `json:"expires"` // when the last of Given expires
	// Used lists the authorization requests that were answered with a code.
	Used []Used `json:"used,omitempty"`
}

// Used marks something that works once, such as a link. The mark is kept until the link would
// expire.
type Used struct {
	ID      string    `json:"id,omitempty"` // "" marks everything that expires no later than Expires
	Expires time.Time `json:"expires"`
}

// Given is one consent: a redirect address and the scopes that the user has allowed for it.
type Given struct {
	RedirectURI string    `json:"redirect_uri"`
	Scopes      []string  `json:"scopes"`
	Expires     time.Time `json:"expires"`
}

// covers reports whether g is valid at now and allows the redirect address with all of the scopes.
func (g *Given) covers(redirectURI string, scopes []string, now time.Time) bool {
	return now.Before(g.Expires) && g.RedirectURI == redirectURI &&
		!slices.ContainsFunc(scopes, func(s string) bool { return !slices.Contains(g.Scopes, s) })
}

// Covers reports whether one of the given consents allows the redirect address with all of the
// scopes.
func (c *Consent) Covers(redirectURI string, scopes []string, now time.Time) bool {
	return slices.ContainsFunc(c.Given, func(g Given) bool { return g.covers(redirectURI, scopes, now) })
}

// With returns the consent with g added. It drops expired consents and those that g covers.
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

// consents holds which scopes a user has allowed an app, by redirect URI. There is one record for each user and app.
// byGrantedApp lists those of an app.
var consents = state.Table[Consent]{
	Name:    journal.Consent,
	ID:      func(c *Consent) string { return consentID(c.User, c.App) },
	Expires: func(c *Consent) time.Time { return c.Expires },
	Audit: &state.Audit[Consent]{Kind: "consent",
		Describe: func(v state.View, c *Consent) (state.Target, state.Fields) {
			u, _ := FindUser(v, c.User)
			a, _ := FindApp(v, c.App)
			given := make([]string, len(c.Given))
			for i, g := range c.Given {
				given[i] = g.RedirectURI + ": " + strings.Join(g.Scopes, " ")
			}
			return state.Target{Name: a.Name}, state.Fields{"user": u.Username, "app": a.Name, "given": given}
		}},
	Indexes: map[string]state.Index[Consent]{
		byGrantedApp: {Key: func(c *Consent) []byte { return state.NumberKey(c.App) }},
	},
}

func consentID(user, app int64) string { return state.NumberID(user) + "." + state.NumberID(app) }

// FindConsent returns what a user has allowed an app.
func FindConsent(v state.View, user, app int64) (Consent, bool) {
	return consents.Get(v, consentID(user, app)).Record()
}

// PutConsent stores c. A consent without a user, an app or an expiry is state.ErrInvalid.
func PutConsent(tx *state.Tx, c Consent) error {
	if c.User <= 0 || c.App <= 0 || c.Expires.IsZero() {
		return fmt.Errorf("%w: consent of user %d for app %d", state.ErrInvalid, c.User, c.App)
	}
	return consents.Put(tx, c)
}

// ListConsents returns what a user has allowed apps. Expired consents may be included.
func ListConsents(v state.View, user int64) []Consent {
	return consents.List(v, state.ByID, consentsOf(user))
}

// RemoveConsents removes everything that a user has allowed apps.
func RemoveConsents(tx *state.Tx, user int64) {
	for _, r := range consents.Under(tx.View(), state.ByID, consentsOf(user)) {
		consents.Remove(tx, r)
	}
}

// consentsOf returns the beginning that the ids of all consents of a user share.
func consentsOf(user int64) []byte { return []byte(state.NumberID(user) + ".") }

// RemoveConsent removes what a user has allowed an app, if anything.
func RemoveConsent(tx *state.Tx, user, app int64) {
	removeByID(tx, &consents, consentID(user, app))
}
