package identity

import (
	"fmt"
	"time"

	"stagedoor/state"
	"stagedoor/state/journal"
)

// Passkey is a public key with which a user's device proves that the user is there and was verified. The private key
// never leaves the device or the account of its vendor.
type Passkey struct {
	ID   string `json:"id"` // from NewID("pky_")
	User int64  `json:"user"`
	Name string `json:"name"` // the user's own
	// Credential is the id that the device chose, Hash that of its bytes, and Key its COSE key.
	Credential []byte     `json:"credential"`
	Hash       state.Hash `json:"hash"`
	Key        []byte     `json:"key"`
	// Count is the device's counter at its last use. A lower one shows a copy of the device. Many devices have none.
	Count uint32 `json:"count,omitempty"`
	// Synced says that the device may share the key with others of the user. It never changes.
	Synced  bool      `json:"synced,omitempty"`
	Created time.Time `json:"created"`
	Seen    time.Time `json:"seen,omitzero"` // last sign-in; zero: never
	// Used marks the challenges that were answered, until they would expire.
	Used []Used `json:"used,omitempty"`
}

// Bounds of the parts that a device chooses. WebAuthn allows 1023 bytes for the id; the longest keys are of RSA.
const (
	maxCredential = 1023
	maxPasskey    = 2048
)

// passkeys holds the public keys of devices with which users sign in. ByHash finds one by the hash of its credential
// id.
var passkeys = state.Table[Passkey]{
	Name: journal.Passkey,
	ID:   func(p *Passkey) string { return p.ID },
	Audit: &state.Audit[Passkey]{Kind: "passkey",
		Describe: func(v state.View, p *Passkey) (state.Target, state.Fields) {
			u, _ := FindUser(v, p.User)
			// The name is hidden everywhere: that of the user and the id say which passkey it is.
			return state.Target{Name: u.Username}, state.Fields{"user": u.Username, "name": state.Hidden(p.Name),
				"key": state.Hidden(p.Key)}
		}},
	Indexes: map[string]state.Index[Passkey]{
		state.ByHash: state.HashIndex(passkeyHash),
		byUser:       {Key: func(p *Passkey) []byte { return state.NumberKey(p.User) }},
	},
}

func passkeyHash(p *Passkey) *state.Hash { return &p.Hash }

// FindPasskey returns the passkey with the id that its device chose.
func FindPasskey(v state.View, credential []byte) (Passkey, bool) {
	return passkeys.FindHash(v, state.HashSecret(string(credential)), passkeyHash).Record()
}

// ListPasskeys returns a user's passkeys, oldest first.
func ListPasskeys(v state.View, user int64) []Passkey {
	return passkeys.List(v, byUser, state.NumberKey(user))
}

// PutPasskey stores p and sets its Hash from the credential. It returns state.ErrExists if another passkey has the
// credential, and state.ErrInvalid if the user, the credential or the key is missing or too long.
func PutPasskey(tx *state.Tx, p Passkey) error {
	if p.User <= 0 || len(p.Credential) == 0 || len(p.Credential) > maxCredential || len(p.Key) == 0 ||
		len(p.Key) > maxPasskey {
		return fmt.Errorf("%w: passkey of user %d", state.ErrInvalid, p.User)
	}
	p.Hash = state.HashSecret(string(p.Credential))
	return putHashed(tx, &passkeys, p, p.ID, passkeyHash)
}

// RemovePasskey removes a passkey if it exists.
func RemovePasskey(tx *state.Tx, id string) { removeByID(tx, &passkeys, id) }
