package state

import (
	"time"

	"stagedoor/state/journal"
)

// AccessToken is a live access token. It is good as long as its grant is.
type AccessToken struct {
	ID      string    `json:"id"` // from NewID("acc_")
	Hash    Hash      `json:"hash"`
	Grant   string    `json:"grant"`
	Scopes  []string  `json:"scopes"` // those of the grant or fewer
	Created time.Time `json:"created"`
	Expires time.Time `json:"expires"`
}

var accessTokens = Table[AccessToken]{
	Name:    journal.Token,
	ID:      func(a *AccessToken) string { return a.ID },
	Expires: func(a *AccessToken) time.Time { return a.Expires },
	Indexes: map[string]Index[AccessToken]{ByHash: HashIndex(accessHash)},
}

func accessHash(a *AccessToken) *Hash { return &a.Hash }

// AccessByHash finds an access token that has not expired, with its grant, which
// may have been revoked.
func (v View) AccessByHash(h Hash) (AccessToken, Grant, bool) {
	r := accessTokens.FindHash(v, h, accessHash)
	if r == nil || !v.Now().Before(r.Rec.Expires) {
		return AccessToken{}, Grant{}, false
	}
	g, ok := v.Grant(r.Rec.Grant)
	return r.Rec, g, ok
}

// PutAccess keeps a.
func (tx *Tx) PutAccess(a AccessToken) error {
	if err := CheckID(a.ID); err != nil {
		return err
	}
	if err := accessTokens.CheckHash(tx.View(), &a, accessHash); err != nil {
		return err
	}
	return accessTokens.Put(tx, a)
}

// RemoveAccess ends an access token alone; an unknown one is none.
func (tx *Tx) RemoveAccess(id string) {
	if r := accessTokens.Get(tx.View(), id); r != nil {
		accessTokens.Remove(tx, r)
	}
}
