package state

import (
	"context"
	"fmt"
	"log/slog"
	"maps"
	"net/netip"
	"slices"
	"sync/atomic"
	"time"

	"stagedoor/state/budget"
	"stagedoor/state/journal"
)

// Key is an API key as the gateway knows it (decisions, Authentication). The key
// itself was shown once and is nowhere: Hash finds it, Prefix lets its owner
// recognise it.
type Key struct {
	ID     string `json:"id"`
	Prefix string `json:"prefix"` // the first 8 characters after "sd-"
	Hash   Hash   `json:"hash"`
	Name   string `json:"name"`
	User   string `json:"user,omitempty"` // "": it belongs to nobody; see Charged

	// Scopes are what it may do: nil everything, empty nothing.
	Scopes []string `json:"scopes"`
	// Models are globs of public model ids: nil all of them, empty none.
	Models []string      `json:"models"`
	Limits Limits        `json:"limits"`
	Budget int64         `json:"budget,omitempty"` // micro-dollars; 0: none set
	Window budget.Window `json:"budget_window,omitempty"`
	// AllowIPs are where it may be used from; none: anywhere.
	AllowIPs []netip.Prefix `json:"allow_ips,omitempty"`
	Enabled  bool           `json:"enabled"`
	// DisabledBy is the party that disabled the key; "" while it is enabled. See OwnerMayEnable.
	DisabledBy Party `json:"disabled_by,omitempty"`

	Created time.Time `json:"created,omitzero"`
	Expires time.Time `json:"expires,omitzero"` // zero: never
	Revoked time.Time `json:"revoked,omitzero"` // zero: it is not
}

// Party is one of the two parties that can disable a key.
type Party string

// The parties.
const (
	PartyOwner    Party = "owner"
	PartyOperator Party = "operator"
)

// SetEnabled enables or disables the key in the name of a party. A key that the operator has disabled stays the
// operator's when its owner disables it, too.
func (k *Key) SetEnabled(enabled bool, by Party) {
	switch {
	case enabled:
		by = ""
	case !k.Enabled && !k.OwnerMayEnable():
		by = PartyOperator
	}
	k.Enabled, k.DisabledBy = enabled, by
}

// OwnerMayEnable reports whether the key's owner disabled it. A key that only says that it is disabled can be
// enabled by the operator alone.
func (k *Key) OwnerMayEnable() bool { return k.DisabledBy == PartyOwner }

// Limits are what a key may use at most; 0: no limit of its own.
type Limits struct {
	RPM         int64 `json:"rpm,omitempty"`
	TPM         int64 `json:"tpm,omitempty"`
	Concurrency int64 `json:"concurrency,omitempty"`
}

// LogValue keeps all but the harmless out of logs.
func (k Key) LogValue() slog.Value {
	return slog.GroupValue(slog.String("id", k.ID), slog.String("prefix", k.Prefix))
}

// clone shares nothing with k. Absent and empty stay two things.
func (k Key) clone() Key {
	k.Scopes, k.Models, k.AllowIPs = slices.Clone(k.Scopes), slices.Clone(k.Models), slices.Clone(k.AllowIPs)
	return k
}

func (k *Key) check() error {
	if err := CheckID(k.ID); err != nil {
		return err
	}
	if k.Hash == (Hash{}) {
		return fmt.Errorf("%w: key %s has no hash", ErrInvalid, k.ID)
	}
	if k.Limits.RPM < 0 || k.Limits.TPM < 0 || k.Limits.Concurrency < 0 || k.Budget < 0 {
		return fmt.Errorf("%w: key %s has a negative limit", ErrInvalid, k.ID)
	}
	if k.DisabledBy != "" && k.DisabledBy != PartyOwner && k.DisabledBy != PartyOperator {
		return fmt.Errorf("%w: key %s was disabled by %q", ErrInvalid, k.ID, k.DisabledBy)
	}
	if k.Budget > budget.MaxCredits || !k.Window.Known() {
		return fmt.Errorf("%w: key %s has a budget of %d for %q", ErrInvalid, k.ID, k.Budget, k.Window)
	}
	for _, scope := range k.Scopes {
		if !validScope(scope) {
			return fmt.Errorf("%w: key %s has the invalid scope %q", ErrInvalid, k.ID, scope)
		}
	}
	for _, p := range k.AllowIPs {
		if !p.IsValid() {
			return fmt.Errorf("%w: key %s allows an invalid network", ErrInvalid, k.ID)
		}
	}
	return nil
}

var keys = Table[Key]{
	Name: journal.Key,
	ID:   func(k *Key) string { return k.ID },
	Indexes: map[string]Index[Key]{
		ByHash: {Unique: true, Key: func(k *Key) []byte { return k.Hash[:] }},
		byUser: {Key: func(k *Key) []byte {
			if k.User == "" {
				return nil
			}
			return TextKey(k.User)
		}},
	},
}

// Keys lists the keys of a user, revoked ones included, in the order in which
// they were made. They are shared and must not be changed.
func (v View) Keys(user string) []Key {
	if user == "" {
		return nil
	}
	return keys.List(v, byUser, TextKey(user))
}

// KeyByID returns one key.
func (s *State) KeyByID(id string) (Key, error) { return keyByID(s.View(), id) }

// KeyFilter says which keys to list; the zero value: all.
type KeyFilter struct {
	User string // "": of all users
	Live bool   // only those that are neither revoked nor expired
}

// Keys lists keys in the order in which they were made.
func (s *State) Keys(f KeyFilter) []Key {
	v := s.View()
	var found []Key
	for k := range keys.All(v) {
		if f.keep(k, v.Now()) {
			found = append(found, *k)
		}
	}
	return found
}

func (f KeyFilter) keep(k *Key, now time.Time) bool {
	if f.User != "" && k.User != f.User {
		return false
	}
	return !f.Live || (k.Revoked.IsZero() && !k.expired(now))
}

// WatchKeys returns a channel that is closed by the next change to any key. Take
// it before reading what is to be watched.
func (s *State) WatchKeys() <-chan struct{} {
	return keys.WatchUnder(s.View(), ByID, nil)
}

// AddKeyOfUser is AddKey where the user that the key names, if any, must be there
// and active: nobody could see or fill another account.
func (s *State) AddKeyOfUser(ctx context.Context, k Key) error {
	return Run(ctx, s, func(tx *Tx) error {
		k := k // a command may be decided again
		if u, ok := tx.View().UserByName(k.User); ok && u.Active() {
			k.User = u.Username
		} else if k.User != "" {
			return fmt.Errorf("%w: there is no user %q, or it is disabled", ErrInvalid, k.User)
		}
		return tx.AddKey(k)
	})
}

// AddKey keeps a new key.
func (s *State) AddKey(ctx context.Context, k Key) error {
	return Run(ctx, s, func(tx *Tx) error { return tx.AddKey(k) })
}

// ChangeKey lets change alter a copy of the key and keeps that. It is a command:
// see Do. The id stays.
func (s *State) ChangeKey(ctx context.Context, id string, change func(*Key) error) (Key, error) {
	return Do(ctx, s, func(tx *Tx) (Key, error) {
		k, err := tx.Key(id)
		if err != nil {
			return Key{}, err
		}
		if err := change(&k); err != nil {
			return Key{}, err
		}
		k.ID = id
		return k, tx.PutKey(k)
	})
}

// RevokeKey ends a key for good; it stays in the list. Doing it again changes
// nothing.
func (s *State) RevokeKey(ctx context.Context, id string) (Key, error) {
	return Do(ctx, s, func(tx *Tx) (Key, error) {
		k, err := tx.Key(id)
		if err != nil || !k.Revoked.IsZero() {
			return k, err
		}
		k.Revoked = tx.Now()
		return k, tx.PutKey(k)
	})
}

// RemoveKey forgets a key.
func (s *State) RemoveKey(ctx context.Context, id string) error {
	return Run(ctx, s, func(tx *Tx) error { return tx.RemoveKey(id) })
}

// Key returns a copy of the key that the command may change.
func (tx *Tx) Key(id string) (Key, error) {
	k, err := keyByID(tx.View(), id)
	return k.clone(), err
}

// AddKey is PutKey for a key that must not be there.
func (tx *Tx) AddKey(k Key) error {
	if keys.Get(tx.View(), k.ID) != nil {
		return fmt.Errorf("key %s: %w", k.ID, ErrExists)
	}
	if k.Created.IsZero() {
		k.Created = tx.Now()
	}
	return tx.PutKey(k)
}

// PutKey keeps k. Two keys can't have one hash.
func (tx *Tx) PutKey(k Key) error {
	if err := k.check(); err != nil {
		return err
	}
	if other := keys.First(tx.View(), ByHash, k.Hash[:]); other != nil && other.Rec.ID != k.ID {
		return fmt.Errorf("the hash of key %s: %w", k.ID, ErrExists)
	}
	return keys.Put(tx, k.clone())
}

// RemoveKey forgets a key.
func (tx *Tx) RemoveKey(id string) error {
	r := keys.Get(tx.View(), id)
	if r == nil {
		return fmt.Errorf("key %s: %w", id, ErrNotFound)
	}
	keys.Remove(tx, r)
	return nil
}

func keyByID(v View, id string) (Key, error) {
	r := keys.Get(v, id)
	if r == nil {
		return Key{}, fmt.Errorf("key %s: %w", id, ErrNotFound)
	}
	return r.Rec, nil
}

// keyring is the keys by hash in 256 maps that are replaced and never changed, so that a lookup takes no lock and a
// change copies one part in 256.
type keyring [256]atomic.Pointer[map[Hash]*Key]

func (r *keyring) find(hash Hash) (Key, bool) {
	part := r[hash[0]].Load()
	if part == nil {
		return Key{}, false
	}
	k, ok := (*part)[hash]
	if !ok {
		return Key{}, false
	}
	return *k, true
}

// change follows one change of the table. Only the writer calls it.
func (r *keyring) change(before, after *Key) {
	if before != nil {
		r.replace(before.Hash, nil)
	}
	if after != nil {
		r.replace(after.Hash, after)
	}
}

func (r *keyring) replace(hash Hash, k *Key) {
	slot := &r[hash[0]]
	part := map[Hash]*Key{}
	if old := slot.Load(); old != nil {
		part = maps.Clone(*old)
	}
	if k == nil {
		delete(part, hash)
	} else {
		part[hash] = k
	}
	slot.Store(&part)
}
