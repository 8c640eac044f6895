package identity

import (
	"crypto/sha256"
	"encoding/binary"
	"fmt"
	"time"

	"stagedoor/state"
	"stagedoor/state/journal"
)

// ExternalIdentity lets a user sign in through an OpenID provider. Issuer and Subject together name a person for good;
// an e-mail address does not, because providers give it to another person later.
type ExternalIdentity struct {
	ID      string    `json:"id"` // from NewID("xid_")
	Issuer  string    `json:"issuer"`
	Subject string    `json:"subject"`
	User    int64     `json:"user"`
	Created time.Time `json:"created"`
	Seen    time.Time `json:"seen"` // the last sign-in
	// Used marks the answers of the provider that were used, until they would expire.
	Used []Used `json:"used,omitempty"`
}

// Bounds of the parts that a provider chooses. OpenID Connect allows 255 characters for a subject.
const (
	maxIssuer  = 1000
	maxSubject = 255
)

// externals holds the identities of users at OpenID providers. byPerson finds the one that a sign-in presents, by
// issuer and subject, and byUser lists those of a user.
var externals = state.Table[ExternalIdentity]{
	Name: journal.External,
	ID:   func(x *ExternalIdentity) string { return x.ID },
	Audit: &state.Audit[ExternalIdentity]{Kind: "external_identity",
		Describe: func(v state.View, x *ExternalIdentity) (state.Target, state.Fields) {
			u, _ := FindUser(v, x.User)
			// The subject is hidden as e-mail addresses are, because it outlives the erasure of the user otherwise.
			return state.Target{Name: u.Username}, state.Fields{"user": u.Username, "issuer": x.Issuer,
				"subject": state.Hidden(x.Subject)}
		}},
	Indexes: map[string]state.Index[ExternalIdentity]{
		byPerson: {Unique: true, Key: func(x *ExternalIdentity) []byte { return personKey(x.Issuer, x.Subject) }},
		byUser:   {Key: func(x *ExternalIdentity) []byte { return state.NumberKey(x.User) }},
	},
}

const byPerson = "person"

// personKey returns the index key of a person at a provider. The length of the issuer keeps two pairs of texts from
// having one key.
func personKey(issuer, subject string) []byte {
	text := binary.BigEndian.AppendUint32(nil, uint32(len(issuer)))
	sum := sha256.Sum256(append(append(text, issuer...), subject...))
	return sum[:]
}

// FindExternalIdentity returns the identity of a person at a provider.
func FindExternalIdentity(v state.View, issuer, subject string) (ExternalIdentity, bool) {
	return externals.First(v, byPerson, personKey(issuer, subject)).Record()
}

// ListExternalIdentities returns a user's identities, oldest first.
func ListExternalIdentities(v state.View, user int64) []ExternalIdentity {
	return externals.List(v, byUser, state.NumberKey(user))
}

// PutExternalIdentity stores x. It returns state.ErrExists if another record has the same issuer and subject, and
// state.ErrInvalid if a field is not valid.
func PutExternalIdentity(tx *state.Tx, x ExternalIdentity) error {
	if err := state.CheckID(x.ID); err != nil {
		return err
	}
	if x.User <= 0 || x.Issuer == "" || len(x.Issuer) > maxIssuer || x.Subject == "" || len(x.Subject) > maxSubject {
		return fmt.Errorf("%w: external identity of user %d", state.ErrInvalid, x.User)
	}
	if other, ok := FindExternalIdentity(tx.View(), x.Issuer, x.Subject); ok && other.ID != x.ID {
		return fmt.Errorf("external identity of user %d: %w", x.User, state.ErrExists)
	}
	return externals.Put(tx, x)
}

// RemoveExternalIdentity removes an identity if it exists.
func RemoveExternalIdentity(tx *state.Tx, id string) { removeByID(tx, &externals, id) }
