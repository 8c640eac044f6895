package state

import (
	"time"

	"github.com/hashicorp/go-memdb"

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

var accessTokens = table[AccessToken]{
	durable: journal.Token,
	id:      func(a *AccessToken) string { return a.ID },
	expires: func(a *AccessToken) time.Time { return a.Expires },
	more:    map[string]*memdb.IndexSchema{byHash: hashIndex(accessHash)},
}

func accessHash(a *AccessToken) *Hash { return &a.Hash }

// AccessByHash finds an access token that has not expired, with its grant, which
// may have been revoked.
func (v View) AccessByHash(h Hash) (AccessToken, Grant, bool) {
	r := accessTokens.byHash(v.txn, h, accessHash)
	if r == nil || !v.now.Before(r.rec.Expires) {
		return AccessToken{}, Grant{}, false
	}
	g, ok := v.Grant(r.rec.Grant)
	return r.rec, g, ok
}

// PutAccess keeps a.
func (tx *Tx) PutAccess(a AccessToken) error {
	if err := checkID(a.ID); err != nil {
		return err
	}
	if err := accessTokens.takes(tx.mem, &a, accessHash); err != nil {
		return err
	}
	return accessTokens.put(tx, a)
}

// RemoveAccess ends an access token alone; an unknown one is none.
func (tx *Tx) RemoveAccess(id string) {
	if r := accessTokens.get(tx.mem, id); r != nil {
		accessTokens.remove(tx, r)
	}
}
