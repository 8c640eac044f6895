package state

import (
	"time"

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

var developers = Table[DeveloperToken]{
	Name: journal.Developer,
	ID:   func(d *DeveloperToken) string { return d.ID },
	Indexes: map[string]Index[DeveloperToken]{
		ByHash: HashIndex(developerHash),
		byUser: {Key: func(d *DeveloperToken) []byte { return NumberKey(d.User) }},
	},
}

func developerHash(d *DeveloperToken) *Hash { return &d.Hash }

// DeveloperByHash finds a developer token, revoked or not.
func (v View) DeveloperByHash(h Hash) (DeveloperToken, bool) {
	return developers.FindHash(v, h, developerHash).Record()
}

// Developer returns a developer token.
func (v View) Developer(id string) (DeveloperToken, bool) { return developers.Get(v, id).Record() }

// Developers lists a user's developer tokens, oldest first.
func (v View) Developers(user int64) []DeveloperToken {
	return developers.List(v, byUser, NumberKey(user))
}

// PutDeveloper keeps d.
func (tx *Tx) PutDeveloper(d DeveloperToken) error {
	if err := CheckID(d.ID); err != nil {
		return err
	}
	if err := developers.CheckHash(tx.View(), &d, developerHash); err != nil {
		return err
	}
	return developers.Put(tx, d)
}

// RemoveDeveloper forgets a developer token; an unknown one is none.
func (tx *Tx) RemoveDeveloper(id string) {
	if r := developers.Get(tx.View(), id); r != nil {
		developers.Remove(tx, r)
	}
}
