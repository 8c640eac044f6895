package state

import (
	"time"

	"github.com/hashicorp/go-memdb"

	"stagedoor/state/journal"
)

// DeveloperToken lets programs register apps for a user (decisions,
// DEVELOPER_TOKEN). It stays in the list when it was revoked.
type DeveloperToken struct {
	ID      string    `json:"id"` // from NewID("dev_")
	Hash    Hash      `json:"hash"`
	User    int64     `json:"user"`
	Name    string    `json:"name"`
	Created time.Time `json:"created"`
	Revoked time.Time `json:"revoked,omitzero"` // zero: it is not
}

var developers = table[DeveloperToken]{
	durable: journal.Developer,
	id:      func(d *DeveloperToken) string { return d.ID },
	more: map[string]*memdb.IndexSchema{
		byHash: hashIndex(developerHash),
		byUser: {Name: byUser, Indexer: index[DeveloperToken](func(d *DeveloperToken) []byte { return numbers(d.User) })},
	},
}

func developerHash(d *DeveloperToken) *Hash { return &d.Hash }

// DeveloperByHash finds a developer token, revoked or not.
func (v View) DeveloperByHash(h Hash) (DeveloperToken, bool) {
	return found(developers.byHash(v.txn, h, developerHash))
}

// Developer returns a developer token.
func (v View) Developer(id string) (DeveloperToken, bool) { return found(developers.get(v.txn, id)) }

// Developers lists a user's developer tokens, oldest first.
func (v View) Developers(user int64) []DeveloperToken {
	return records(developers.under(v.txn, byUser, numbers(user)))
}

// PutDeveloper keeps d.
func (tx *Tx) PutDeveloper(d DeveloperToken) error {
	if err := checkID(d.ID); err != nil {
		return err
	}
	if err := developers.takes(tx.mem, &d, developerHash); err != nil {
		return err
	}
	return developers.put(tx, d)
}

// RemoveDeveloper forgets a developer token; an unknown one is none.
func (tx *Tx) RemoveDeveloper(id string) {
	if r := developers.get(tx.mem, id); r != nil {
		developers.remove(tx, r)
	}
}
