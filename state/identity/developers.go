package identity

import (
	"time"

	"stagedoor/state"
	"stagedoor/state/journal"
)

// DeveloperToken lets programs register apps for a user (decisions,
// DEVELOPER_TOKEN). It stays in the list when it was revoked.
type DeveloperToken struct {
	ID      string     `json:"id"` // from NewID("dev_")
	Hash    state.Hash `json:"hash"`
	User    int64      `json:"user"`
	Name    string     `json:"name"`
	Created time.Time  `json:"created"`
	Revoked time.Time  `json:"revoked,omitzero"` // zero: it is not
}

var developers = state.Table[DeveloperToken]{
	Name: journal.Developer,
	ID:   func(d *DeveloperToken) string { return d.ID },
	Indexes: map[string]state.Index[DeveloperToken]{
		state.ByHash: state.HashIndex(developerHash),
		byUser:       {Key: func(d *DeveloperToken) []byte { return state.NumberKey(d.User) }},
	},
}

func developerHash(d *DeveloperToken) *state.Hash { return &d.Hash }

// FindDeveloperTokenByHash finds a developer token, revoked or not.
func FindDeveloperTokenByHash(v state.View, h state.Hash) (DeveloperToken, bool) {
	return developers.FindHash(v, h, developerHash).Record()
}

// FindDeveloperToken returns a developer token.
func FindDeveloperToken(v state.View, id string) (DeveloperToken, bool) {
	return developers.Get(v, id).Record()
}

// ListDeveloperTokens lists a user's developer tokens, oldest first.
func ListDeveloperTokens(v state.View, user int64) []DeveloperToken {
	return developers.List(v, byUser, state.NumberKey(user))
}

// PutDeveloperToken keeps d.
func PutDeveloperToken(tx *state.Tx, d DeveloperToken) error {
	if err := state.CheckID(d.ID); err != nil {
		return err
	}
	if err := developers.CheckHash(tx.View(), &d, developerHash); err != nil {
		return err
	}
	return developers.Put(tx, d)
}

// RemoveDeveloperToken forgets a developer token; an unknown one is none.
func RemoveDeveloperToken(tx *state.Tx, id string) {
	if r := developers.Get(tx.View(), id); r != nil {
		developers.Remove(tx, r)
	}
}
