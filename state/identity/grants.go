package identity

import (
	"fmt"
	"time"

	"stagedoor/state"
	"stagedoor/state/journal"
)

// Grant is what one user allowed one app in one authorization: the code, and the
// family of refresh tokens that followed it, in one record, so that an exchange
// and a rotation rewrite one record each. Access tokens point at it and die with
// it.
type Grant struct {
	ID          string   `json:"id"` // from NewID("grt_")
	User        int64    `json:"user"`
	App         int64    `json:"app"`
	Scopes      []string `json:"scopes"`
	RedirectURI string   `json:"redirect_uri"`
	// Family finds the grant: it is the hash of what its code and all of its
	// refresh tokens have in common, so that old ones are recognised for good.
	Family  state.Hash `json:"family"`
	Code    Code       `json:"code"`
	Refresh Refresh    `json:"refresh,omitzero"`

	// Consented: the user said yes to this one; else it went by an earlier yes.
	Consented bool      `json:"consented,omitempty"`
	AuthTime  time.Time `json:"auth_time"` // when the user signed in
	Created   time.Time `json:"created"`
	// Expires is when nothing of it works any more: the code first, then the
	// last refresh token.
	Expires time.Time `json:"expires"`
	Revoked time.Time `json:"revoked,omitzero"` // zero: it is not
	Reason  string    `json:"reason,omitempty"` // of the revocation

	// TopUps are the top-up links of the app that were opened.
	TopUps []Used `json:"top_ups,omitempty"`
}

// Code is the authorization code of a grant.
type Code struct {
	Hash      state.Hash `json:"hash"`
	Challenge string     `json:"challenge,omitempty"` // PKCE, S256; "": none
	Expires   time.Time  `json:"expires"`
	Used      time.Time  `json:"used,omitzero"` // zero: not yet
}

// Refresh is the family of refresh tokens of a grant: one is good at a time.
type Refresh struct {
	Generation int64      `json:"generation"`
	Hash       state.Hash `json:"hash"`
	Issued     time.Time  `json:"issued"`
	// Previous is the token before, which gets its successor once more until
	// PreviousUntil. Successor holds that, sealed with the previous token.
	Previous      state.Hash `json:"previous,omitzero"`
	PreviousUntil time.Time  `json:"previous_until,omitzero"`
	Successor     []byte     `json:"successor,omitempty"`
}

// Live reports whether the grant is valid at now.
func (g *Grant) Live(now time.Time) bool { return g.Revoked.IsZero() && now.Before(g.Expires) }

// Revoke ends the grant, if that was not done before.
func (g *Grant) Revoke(now time.Time, reason string) {
	if g.Revoked.IsZero() {
		g.Revoked, g.Reason = now, reason
	}
}

func (g *Grant) check() error {
	if err := state.CheckID(g.ID); err != nil {
		return err
	}
	if g.User <= 0 || g.App <= 0 || g.Code.Hash == (state.Hash{}) || g.Expires.IsZero() {
		return fmt.Errorf("%w: grant %s", state.ErrInvalid, g.ID)
	}
	return nil
}

const byParties = "parties"

var grants = state.Table[Grant]{
	Name:    journal.Grant,
	ID:      func(g *Grant) string { return g.ID },
	Expires: func(g *Grant) time.Time { return g.Expires },
	Indexes: map[string]state.Index[Grant]{
		state.ByHash: state.HashIndex(grantFamily),
		// User, then app, then time; without the revoked ones.
		byParties: {Key: func(g *Grant) []byte {
			if !g.Revoked.IsZero() {
				return nil
			}
			return state.NumberKey(g.User, g.App)
		}},
	},
}

func grantFamily(g *Grant) *state.Hash { return &g.Family }

// FindGrant returns a grant, live or not.
func FindGrant(v state.View, id string) (Grant, bool) { return grants.Get(v, id).Record() }

// FindGrantByFamily finds a grant, live or not.
func FindGrantByFamily(v state.View, family state.Hash) (Grant, bool) {
	return grants.FindHash(v, family, grantFamily).Record()
}

// ListGrants lists a user's grants that were not revoked, of one app or, if that is
// 0, of all, oldest first within each. Expired ones may be among them.
func ListGrants(v state.View, user, app int64) []Grant {
	prefix := state.NumberKey(user)
	if app != 0 {
		prefix = state.NumberKey(user, app)
	}
	return grants.List(v, byParties, prefix)
}

// PutGrant keeps g.
func PutGrant(tx *state.Tx, g Grant) error {
	if err := g.check(); err != nil {
		return err
	}
	if err := grants.CheckHash(tx.View(), &g, grantFamily); err != nil {
		return err
	}
	return grants.Put(tx, g)
}
