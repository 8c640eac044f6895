package identity

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"log/slog"
	"net/netip"
	"slices"
	"strings"
	"time"

	"stagedoor/state"
	"stagedoor/state/budget"
	"stagedoor/state/journal"
)

// Key is an API key. The secret is shown once and not stored: Hash finds the key, and Prefix helps
// its owner to recognise it.
type Key struct {
	ID     string     `json:"id"`
	Prefix string     `json:"prefix"` // the first 8 characters after "sd-"
	Hash   state.Hash `json:"hash"`
	// Previous is the secret before the last rotation, or nil.
	Previous *PreviousSecret `json:"previous,omitempty"`
	Name     string          `json:"name"`
	User     string          `json:"user,omitempty"` // username that is charged; "" if none, see Charged

	// Scopes restrict its routes. Nil permits all of them, and an empty list none.
	Scopes []string `json:"scopes"`
	// Models holds globs of public model ids. Nil permits all models, and an empty list none.
	Models []string      `json:"models"`
	Limits Limits        `json:"limits"`
	Budget int64         `json:"budget,omitempty"` // micro-dollars; 0: none set
	Window budget.Window `json:"budget_window,omitempty"`
	// AllowIPs restricts the networks that it is accepted from. An empty list permits all of them.
	AllowIPs []netip.Prefix `json:"allow_ips,omitempty"`
	// OnDisconnect says what happens to a request whose client disconnects without having chosen a policy itself. The
	// zero value leaves the choice to the model.
	OnDisconnect DisconnectPolicy `json:"on_disconnect,omitempty"`
	Enabled      bool             `json:"enabled"`
	// Unclaimed is set for a key that a lead has made, until Rotate gives it a secret that its user has seen.
	Unclaimed bool `json:"unclaimed,omitempty"`
	// DisabledBy is the party that disabled the key, or NoParty while it is enabled. See MayEnable.
	DisabledBy Party `json:"disabled_by,omitempty"`
	// RecordedUntil is the time until which the key's requests and replies are kept for pages, or nil. It stays when
	// that time is over, so use Recorded.
	RecordedUntil *time.Time `json:"recorded_until,omitempty"`

	Created time.Time `json:"created,omitzero"`
	Expires time.Time `json:"expires,omitzero"` // zero: never
	Revoked time.Time `json:"revoked,omitzero"` // zero if the key was not revoked
}

// PreviousSecret is a secret of a key that was replaced. It is accepted until a time, so that the programs that use the
// key can be updated without an interruption.
type PreviousSecret struct {
	Hash  state.Hash `json:"hash"`
	Until time.Time  `json:"until"`
}

// PreviousUntil returns the time until which the previous secret is accepted. It is the zero time if the secret is not
// accepted now.
func (k *Key) PreviousUntil(now time.Time) time.Time {
	if k.Previous == nil || !now.Before(k.Previous.Until) {
		return time.Time{}
	}
	return k.Previous.Until
}

// Recorded returns the time until which the key's requests and replies are recorded. It is the zero time if they are
// not recorded at now, as for a revoked key.
func (k *Key) Recorded(now time.Time) time.Time {
	if k.RecordedUntil == nil || !now.Before(*k.RecordedUntil) || !k.Revoked.IsZero() {
		return time.Time{}
	}
	return *k.RecordedUntil
}

// Rotate replaces the secret. The old secret stays valid until overlap has passed, and a still older one ends at once.
func (k *Key) Rotate(prefix string, hash state.Hash, now time.Time, overlap time.Duration) {
	k.Previous = nil
	if overlap > 0 {
		k.Previous = &PreviousSecret{k.Hash, now.Add(overlap)}
	}
	k.Prefix, k.Hash, k.Unclaimed = prefix, hash, false
}

// SetEnabled enables or disables the key on behalf of a party. It does not check whether the party may enable the key,
// so call MayEnable first. A key that a party of more authority has disabled stays disabled by that party, because a
// second disabling must not let the weaker one enable it.
func (k *Key) SetEnabled(enabled bool, by Party) {
	switch {
	case enabled:
		by = NoParty
	case !k.Enabled && !k.MayEnable(by):
		by = cmp.Or(k.DisabledBy, PartyOperator)
	}
	k.Enabled, k.DisabledBy = enabled, by
}

// MayEnable reports whether a party may enable the key, which is disabled. A disabled key that does not say who
// disabled it can be enabled only by the operator.
func (k *Key) MayEnable(by Party) bool {
	return by >= cmp.Or(k.DisabledBy, PartyOperator)
}

// Limits bounds the requests and tokens of a minute and the requests in flight of one key. 0 sets no limit.
type Limits struct {
	RPM         int64 `json:"rpm,omitempty"`
	TPM         int64 `json:"tpm,omitempty"`
	Concurrency int64 `json:"concurrency,omitempty"`
}

// LogValue returns only id and prefix, so that the hash does not reach the logs.
func (k Key) LogValue() slog.Value {
	return slog.GroupValue(slog.String("id", k.ID), slog.String("prefix", k.Prefix))
}

// clone returns a copy that shares no slices with k. Nil and empty slices stay distinct.
func (k Key) clone() Key {
	k.Scopes, k.Models, k.AllowIPs = slices.Clone(k.Scopes), slices.Clone(k.Models), slices.Clone(k.AllowIPs)
	return k
}

// compact takes over the lists of another key where they are equal, since most keys have the same ones, and puts the
// key's own strings into one, so that they do not lie scattered between what decoding has left.
func (k *Key) compact(other *Key) {
	all := k.ID + k.Prefix + k.Name
	k.ID, all = all[:len(k.ID)], all[len(k.ID):]
	k.Prefix, k.Name = all[:len(k.Prefix)], all[len(k.Prefix):]
	if other == nil {
		return
	}
	if k.Scopes != nil && other.Scopes != nil && slices.Equal(k.Scopes, other.Scopes) {
		k.Scopes = other.Scopes
	}
	if k.Models != nil && other.Models != nil && slices.Equal(k.Models, other.Models) {
		k.Models = other.Models
	}
	if k.User == other.User {
		k.User = other.User
	}
}

// check returns an error unless the key can be stored. The form of its fields is checked here,
// because keys come from commands, from the administration API and from pages.
func (k *Key) check() error {
	if err := state.CheckID(k.ID); err != nil {
		return err
	}
	if k.Hash == (state.Hash{}) {
		return fmt.Errorf("%w: key %s has no hash", state.ErrInvalid, k.ID)
	}
	if k.Limits.RPM < 0 || k.Limits.TPM < 0 || k.Limits.Concurrency < 0 || k.Budget < 0 {
		return fmt.Errorf("%w: key %s has a negative limit", state.ErrInvalid, k.ID)
	}
	if k.Budget > budget.MaxCredits || !k.Window.Known() {
		return fmt.Errorf("%w: key %s has a budget of %d for %q", state.ErrInvalid, k.ID, k.Budget, k.Window)
	}
	for _, scope := range k.Scopes {
		if !validScope(scope) {
			return fmt.Errorf("%w: key %s has the invalid scope %q", state.ErrInvalid, k.ID, scope)
		}
	}
	for _, p := range k.AllowIPs {
		if !p.IsValid() {
			return fmt.Errorf("%w: key %s allows an invalid network", state.ErrInvalid, k.ID)
		}
	}
	return nil
}

// keys holds the gateway keys, with hashes in place of their secrets. No key is swept. The table
// is grouped and has no index beside the id, since there may be a hundred thousand keys; the keyring finds them by hash
// and by user.
var keys = state.Table[Key]{
	Name:    journal.Key,
	ID:      func(k *Key) string { return k.ID },
	Grouped: true,
	Compact: (*Key).compact,
	Audit: &state.Audit[Key]{Kind: "key", Describe: func(v state.View, k *Key) (state.Target, state.Fields) {
		var until, recorded time.Time
		if k.Previous != nil {
			until = k.Previous.Until
		}
		if k.RecordedUntil != nil {
			recorded = *k.RecordedUntil
		}
		allowed, _ := json.Marshal(k.AllowIPs) // networks are always texts
		if len(k.AllowIPs) == 0 {
			allowed = nil
		}
		u, _ := FindUserByName(v, k.User)
		// The networks are hidden: they can be of a person, and the command that erases them is recorded.
		return state.Target{Name: k.Name}, state.Fields{"previous_secret_until": until, "name": chosenName(&u, k.Name),
			"user": k.User, "scopes": k.Scopes, "models": k.Models, "rpm": k.Limits.RPM, "tpm": k.Limits.TPM,
			"concurrency": k.Limits.Concurrency, "budget": k.Budget, "budget_window": k.Window,
			"allow_ips": state.Hidden(allowed), "allowed_networks": len(k.AllowIPs),
			"on_disconnect": k.OnDisconnect.String(), "enabled": k.Enabled, "disabled_by": k.DisabledBy.String(),
			"unclaimed": k.Unclaimed, "recorded_until": recorded, "expires": k.Expires, "revoked": k.Revoked,
			"secret": state.Hidden(k.Hash[:])}
	}},
}

// KeysOf returns the keys of a user in order of creation, including revoked ones. It includes the changes that this
// command and the earlier ones of its commit group have made. The records are shared and must not be modified.
func KeysOf(tx *state.Tx, user string) []Key {
	found := state.MemoryOf[*Access](tx).KeysOf(user)
	for before, after := range keys.Uncommitted(tx) {
		if before != nil {
			found = slices.DeleteFunc(found, func(k Key) bool { return k.ID == before.ID })
		}
		if after != nil && user != "" && after.User == user {
			found = append(found, *after)
		}
	}
	slices.SortFunc(found, func(a, b Key) int { return strings.Compare(a.ID, b.ID) })
	return found
}

// KeyFilter selects keys. The zero value selects all.
type KeyFilter struct {
	User string // "" selects the keys of all users
	Live bool   // selects only keys that are neither revoked nor expired
}

// ListKeys returns the selected keys in order of creation.
func ListKeys(v state.View, f KeyFilter) []Key {
	var found []Key
	for k := range keys.All(v) {
		if f.matches(k, v.Now()) {
			found = append(found, *k)
		}
	}
	return found
}

// EachKey calls yield with the keys in order of creation until it returns false. The records are shared and must not be
// modified.
func EachKey(v state.View, yield func(*Key) bool) {
	for k := range keys.All(v) {
		if !yield(k) {
			return
		}
	}
}

// HasKeys reports whether there is any key. Revoked, expired and disabled keys count as well.
func HasKeys(v state.View) bool {
	for range keys.All(v) {
		return true
	}
	return false
}

// matches reports whether the filter lists the key.
func (f KeyFilter) matches(k *Key, now time.Time) bool {
	if f.User != "" && k.User != f.User {
		return false
	}
	return !f.Live || (k.Revoked.IsZero() && !k.expired(now))
}

// CreateKeyOfUser stores a new key like CreateKey. The user that the key names, if any, must exist
// and be active, because the spending of an account without a user is visible to no one.
func CreateKeyOfUser(ctx context.Context, s *state.State, k Key) error {
	return state.Run(ctx, s, func(tx *state.Tx) error {
		k := k // a command may be decided again
		if u, ok := FindUserByName(tx.View(), k.User); ok && u.Active() {
			k.User = u.Username
		} else if k.User != "" {
			return fmt.Errorf("%w: there is no user %q, or it is disabled", state.ErrInvalid, k.User)
		}
		return AddKey(tx, k)
	})
}

// CreateKey stores a new key. It returns ErrExists if its id or hash is in use.
func CreateKey(ctx context.Context, s *state.State, k Key) error {
	return state.Run(ctx, s, func(tx *state.Tx) error { return AddKey(tx, k) })
}

// ChangeKey calls change with a copy of the key and stores the result. Like every command, change may run more than
// once. The id cannot be changed. The error is state.ErrNotFound, that of change, or state.ErrInvalid for what change
// made of the key; the stored key then stays as it was.
func ChangeKey(ctx context.Context, s *state.State, id string, change func(*Key) error) (Key, error) {
	return state.Do(ctx, s, func(tx *state.Tx) (Key, error) {
		k, err := KeyForChange(tx, id)
		if err != nil {
			return Key{}, err
		}
		if err := change(&k); err != nil {
			return Key{}, err
		}
		k.ID = id
		return k, PutKey(tx, k)
	})
}

// RevokeKey revokes a key permanently. The key stays in the list. Revoking it again changes nothing. An unknown id is
// state.ErrNotFound.
func RevokeKey(ctx context.Context, s *state.State, id string) (Key, error) {
	return state.Do(ctx, s, func(tx *state.Tx) (Key, error) {
		k, err := KeyForChange(tx, id)
		if err != nil || !k.Revoked.IsZero() {
			return k, err
		}
		k.Revoked = tx.Now()
		return k, PutKey(tx, k)
	})
}

// DeleteKey removes a key. The requests and receipts that name it stay. An unknown id is state.ErrNotFound.
func DeleteKey(ctx context.Context, s *state.State, id string) error {
	return state.Run(ctx, s, func(tx *state.Tx) error { return RemoveKey(tx, id) })
}

// KeyForChange returns a copy of a key that the command may modify. An unknown id is state.ErrNotFound.
func KeyForChange(tx *state.Tx, id string) (Key, error) {
	k, err := FindKey(tx.View(), id)
	return k.clone(), err
}

// AddKey stores a new key and sets Created if it is zero. It returns state.ErrExists if the id or the hash is in use,
// and state.ErrInvalid if a field is not valid.
func AddKey(tx *state.Tx, k Key) error {
	if keys.Get(tx.View(), k.ID) != nil {
		return fmt.Errorf("key %s: %w", k.ID, state.ErrExists)
	}
	if k.Created.IsZero() {
		k.Created = tx.Now()
	}
	return PutKey(tx, k)
}

// PutKey stores k, which may be new or replace the key with its id. It returns state.ErrExists if another key has the
// hash, and state.ErrInvalid if a field is not valid.
func PutKey(tx *state.Tx, k Key) error {
	if err := k.check(); err != nil {
		return err
	}
	if hashTaken(tx, &k) {
		return fmt.Errorf("the hash of key %s: %w", k.ID, state.ErrExists)
	}
	return keys.Put(tx, k.clone())
}

// hashTaken reports whether another key has the hash of k. It includes the changes that this command and the earlier
// ones of its commit group have made.
func hashTaken(tx *state.Tx, k *Key) bool {
	other, taken := state.MemoryOf[*Access](tx).Key(k.Hash)
	taken = taken && other.ID != k.ID
	for before, after := range keys.Uncommitted(tx) {
		switch {
		case after != nil && after.Hash == k.Hash:
			taken = after.ID != k.ID
		case before != nil && before.Hash == k.Hash:
			taken = false
		}
	}
	return taken
}

// RemoveKey removes a key, or returns ErrNotFound.
func RemoveKey(tx *state.Tx, id string) error {
	r := keys.Get(tx.View(), id)
	if r == nil {
		return fmt.Errorf("key %s: %w", id, state.ErrNotFound)
	}
	keys.Remove(tx, r)
	return nil
}

// FindKey returns the key with this id, or ErrNotFound.
func FindKey(v state.View, id string) (Key, error) {
	r := keys.Get(v, id)
	if r == nil {
		return Key{}, fmt.Errorf("key %s: %w", id, state.ErrNotFound)
	}
	return r.Rec, nil
}
