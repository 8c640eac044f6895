package identity

import (
	"time"

	"stagedoor/state"
	"stagedoor/state/journal"
)

// AccessToken is an OAuth access token. It is valid until it expires or its grant is revoked.
type AccessToken struct {
	ID      string     `json:"id"` // from NewID("acc_")
	Hash    state.Hash `json:"hash"`
	Grant   string     `json:"grant"`
	Scopes  []string   `json:"scopes"` // all scopes of the grant, or some of them
	Created time.Time  `json:"created"`
	Expires time.Time  `json:"expires"`
}

// accessTokens holds the access tokens of apps until they expire. They are not audited, because a token allows nothing
// that its grant did not allow. Use finds them by hash.
var accessTokens = state.Table[AccessToken]{
	Name:    journal.Token,
	ID:      func(a *AccessToken) string { return a.ID },
	Expires: func(a *AccessToken) time.Time { return a.Expires },
	Indexes: map[string]state.Index[AccessToken]{state.ByHash: state.HashIndex(accessHash)},
}

func accessHash(a *AccessToken) *state.Hash { return &a.Hash }

// FindAccessToken returns an unexpired access token and its grant. The grant may have been revoked,
// so the caller must check Grant.Live.
func FindAccessToken(v state.View, h state.Hash) (AccessToken, Grant, bool) {
	r := accessTokens.FindHash(v, h, accessHash)
	if r == nil || !v.Now().Before(r.Rec.Expires) {
		return AccessToken{}, Grant{}, false
	}
	g, ok := FindGrant(v, r.Rec.Grant)
	return r.Rec, g, ok
}

// PutAccessToken stores a, or returns state.ErrExists if another token has its hash.
func PutAccessToken(tx *state.Tx, a AccessToken) error {
	return putHashed(tx, &accessTokens, a, a.ID, accessHash)
}

// RemoveAccessToken removes an access token if it exists. Its grant stays.
func RemoveAccessToken(tx *state.Tx, id string) {
	removeByID(tx, &accessTokens, id)
}
