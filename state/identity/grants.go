package identity

import (
	"fmt"
	"iter"
	"time"

	"stagedoor/state"
	"stagedoor/state/journal"
)

// Grant holds what a user has allowed an app in one authorization. It holds the code and the family of
// refresh tokens that followed it in one record, so that an exchange and a rotation each write only
// one record. Access tokens refer to it and become invalid with it.
type Grant struct {
	ID          string   `json:"id"` // from NewID("grt_")
	User        int64    `json:"user"`
	App         int64    `json:"app"`
	Scopes      []string `json:"scopes"`
	RedirectURI string   `json:"redirect_uri"`
	// Family is the hash of the part that the code and all refresh tokens of the grant share. The
	// grant is found by it, so a token that was replaced is still recognised.
	Family  state.Hash `json:"family"`
	Code    Code       `json:"code"`
	Refresh Refresh    `json:"refresh,omitzero"`

	// Consented says that the user consented for this grant. Otherwise an earlier consent was used.
	Consented bool      `json:"consented,omitempty"`
	AuthTime  time.Time `json:"auth_time"` // when the user signed in
	Created   time.Time `json:"created"`
	// Expires is the time at which nothing of the grant works any more: first the code, then the last refresh
	// token.
	Expires time.Time `json:"expires"`
	Revoked time.Time `json:"revoked,omitzero"` // zero if the grant was not revoked
	Reason  string    `json:"reason,omitempty"` // reason of the revocation

	// TopUps lists the app's top-up links that were used.
	TopUps []Used `json:"top_ups,omitempty"`
	// Access lists the ids of the latest access tokens, the oldest first.
	Access []string `json:"access,omitempty"`
}

// Code is the authorization code of a grant.
type Code struct {
	Hash      state.Hash `json:"hash"`
	Challenge string     `json:"challenge,omitempty"` // PKCE, S256; "": none
	Expires   time.Time  `json:"expires"`
	Used      time.Time  `json:"used,omitzero"` // zero if the code was not used
}

// Refresh is the family of refresh tokens of a grant. Only the newest one is valid.
type Refresh struct {
	Generation int64      `json:"generation"`
	Hash       state.Hash `json:"hash"`
	Issued     time.Time  `json:"issued"`
	// Previous is the token before the newest. Until PreviousUntil it is exchanged once more for
	// its successor, for clients that lost the first response. Successor is that token, encrypted
	// with the previous one.
	Previous      state.Hash `json:"previous,omitzero"`
	PreviousUntil time.Time  `json:"previous_until,omitzero"`
	Successor     []byte     `json:"successor,omitempty"`
}

// Live reports whether the grant is valid at now.
func (g *Grant) Live(now time.Time) bool { return g.Revoked.IsZero() && now.Before(g.Expires) }

// Revoke ends the grant unless it was revoked before.
func (g *Grant) Revoke(now time.Time, reason string) {
	if g.Revoked.IsZero() {
		g.Revoked, g.Reason = now, reason
	}
}

// check returns an error for a grant that no code can be exchanged for.
func (g *Grant) check() error {
	if g.User <= 0 || g.App <= 0 || g.Code.Hash == (state.Hash{}) || g.Expires.IsZero() {
		return fmt.Errorf("%w: grant %s", state.ErrInvalid, g.ID)
	}
	return nil
}

const (
	byParties    = "parties"
	byGrantedApp = "app"
)

// grants holds what users have allowed apps: one record for each authorization, with the hash of its code and of its
// refresh token. ByHash finds a grant by the hash of its token family, byParties the live ones of a user, and
// byGrantedApp all of an app.
var grants = state.Table[Grant]{
	Name:    journal.Grant,
	ID:      func(g *Grant) string { return g.ID },
	Expires: func(g *Grant) time.Time { return g.Expires },
	// A new access or refresh token of a grant allows nothing that the grant did not allow, so it is not recorded.
	Audit: &state.Audit[Grant]{Kind: "grant", Describe: func(v state.View, g *Grant) (state.Target, state.Fields) {
		u, _ := FindUser(v, g.User)
		a, _ := FindApp(v, g.App)
		return state.Target{Name: a.Name}, state.Fields{"user": u.Username, "app": a.Name, "scopes": g.Scopes,
			"redirect_uri": g.RedirectURI, "revoked": g.Revoked, "reason": g.Reason}
	}},
	Indexes: map[string]state.Index[Grant]{
		state.ByHash: state.HashIndex(grantFamily),
		// The order is user, app, time. Revoked grants are left out.
		byParties: {Key: func(g *Grant) []byte {
			if !g.Revoked.IsZero() {
				return nil
			}
			return state.NumberKey(g.User, g.App)
		}},
		byGrantedApp: {Key: func(g *Grant) []byte { return state.NumberKey(g.App) }},
	},
}

func grantFamily(g *Grant) *state.Hash { return &g.Family }

// FindGrant returns the grant with this id, also if it is revoked or expired.
func FindGrant(v state.View, id string) (Grant, bool) { return grants.Get(v, id).Record() }

// FindGrantByFamily returns the grant with this family, also if it is revoked or expired.
func FindGrantByFamily(v state.View, family state.Hash) (Grant, bool) {
	return grants.FindHash(v, family, grantFamily).Record()
}

// ListGrants returns a user's grants that were not revoked, by app and then oldest first. An app of
// 0 selects all apps. Expired grants may be included.
func ListGrants(v state.View, user, app int64) []Grant {
	prefix := state.NumberKey(user)
	if app != 0 {
		prefix = state.NumberKey(user, app)
	}
	return grants.List(v, byParties, prefix)
}

// GrantsOfApp returns the grants that all users gave an app, by id, without copying them, so callers change none.
// Revoked and expired grants may be included.
func GrantsOfApp(v state.View, app int64) iter.Seq[*Grant] {
	return func(yield func(*Grant) bool) {
		grants.From(v, byGrantedApp, state.NumberKey(app), func(r *state.Row[Grant]) bool {
			return r.Rec.App == app && yield(&r.Rec)
		})
	}
}

// PutGrant stores g. A record that breaks a rule is state.ErrInvalid, and a family that another grant has is
// state.ErrExists.
func PutGrant(tx *state.Tx, g Grant) error {
	if err := g.check(); err != nil {
		return err
	}
	return putHashed(tx, &grants, g, g.ID, grantFamily)
}
