package identity

import (
	"time"

	"stagedoor/state"
	"stagedoor/state/journal"
)

// DeveloperToken lets programs register apps for a user. A revoked token stays in the list.
type DeveloperToken struct {
	ID      string     `json:"id"` // from NewID("dev_")
	Hash    state.Hash `json:"hash"`
	User    int64      `json:"user"`
	Name    string     `json:"name"`
	Created time.Time  `json:"created"`
	Revoked time.Time  `json:"revoked,omitzero"` // zero if the token is valid
}

// developers holds the developer tokens of users. They do not expire by themselves.
var developers = state.Table[DeveloperToken]{
	Name: journal.Developer,
	ID:   func(d *DeveloperToken) string { return d.ID },
	Audit: &state.Audit[DeveloperToken]{Kind: "developer_token",
		Describe: func(v state.View, d *DeveloperToken) (state.Target, state.Fields) {
			u, _ := FindUser(v, d.User)
			name := chosenName(&u, d.Name)
			shown, _ := name.(string) // a token is removed when its user is erased, and its target then has the id only
			return state.Target{Name: shown}, state.Fields{"user": u.Username, "name": name, "revoked": d.Revoked}
		}},
	Indexes: map[string]state.Index[DeveloperToken]{
		state.ByHash: state.HashIndex(developerHash),
		byUser:       {Key: func(d *DeveloperToken) []byte { return state.NumberKey(d.User) }},
	},
}

func developerHash(d *DeveloperToken) *state.Hash { return &d.Hash }

// FindDeveloperTokenByHash returns the developer token with this hash, also if it was revoked.
func FindDeveloperTokenByHash(v state.View, h state.Hash) (DeveloperToken, bool) {
	return developers.FindHash(v, h, developerHash).Record()
}

// FindDeveloperToken returns the developer token with this id.
func FindDeveloperToken(v state.View, id string) (DeveloperToken, bool) {
	return developers.Get(v, id).Record()
}

// ListDeveloperTokens returns a user's developer tokens, oldest first.
func ListDeveloperTokens(v state.View, user int64) []DeveloperToken {
	return developers.List(v, byUser, state.NumberKey(user))
}

// PutDeveloperToken stores d, or returns state.ErrExists if another token has its hash.
func PutDeveloperToken(tx *state.Tx, d DeveloperToken) error {
	return putHashed(tx, &developers, d, d.ID, developerHash)
}

// RemoveDeveloperToken removes a developer token if it exists.
func RemoveDeveloperToken(tx *state.Tx, id string) {
	removeByID(tx, &developers, id)
}
