package identity

import (
	"time"

	"stagedoor/state"
	"stagedoor/state/journal"
)

// AccessToken is a live access token. It is good as long as its grant is.
type AccessToken struct {
	ID      string     `json:"id"` // from NewID("acc_")
	Hash    state.Hash `json:"hash"`
	Grant   string     `json:"grant"`
	Scopes  []string   `json:"scopes"` // those of the grant or fewer
	Created time.Time  `json:"created"`
	Expires time.Time  `json:"expires"`
}

var accessTokens = state.Table[AccessToken]{
	Name:    journal.Token,
	ID:      func(a *AccessToken) string { return a.ID },
	Expires: func(a *AccessToken) time.Time { return a.Expires },
	Indexes: map[string]state.Index[AccessToken]{state.ByHash: state.HashIndex(accessHash)},
}

func accessHash(a *AccessToken) *state.Hash { return &a.Hash }

// FindAccessToken finds an access token that has not expired, with its grant, which
// may have been revoked.
func FindAccessToken(v state.View, h state.Hash) (AccessToken, Grant, bool) {
	r := accessTokens.FindHash(v, h, accessHash)
	if r == nil || !v.Now().Before(r.Rec.Expires) {
		return AccessToken{}, Grant{}, false
	}
	g, ok := FindGrant(v, r.Rec.Grant)
	return r.Rec, g, ok
}

// PutAccessToken keeps a.
func PutAccessToken(tx *state.Tx, a AccessToken) error {
	if err := state.CheckID(a.ID); err != nil {
		return err
	}
	if err := accessTokens.CheckHash(tx.View(), &a, accessHash); err != nil {
		return err
	}
	return accessTokens.Put(tx, a)
}

// RemoveAccessToken ends an access token alone; an unknown one is none.
func RemoveAccessToken(tx *state.Tx, id string) {
	if r := accessTokens.Get(tx.View(), id); r != nil {
		accessTokens.Remove(tx, r)
	}
}
