package tokens

import (
	"cmp"
	"context"
	"net/netip"
	"strings"
	"time"

	shapes "stagedoor/providers/shapes/registry"
	"stagedoor/state"
)

const (
	// maxKeys is how many keys a user can have that work, and keptKeys how many in
	// all: a revoked one stays in the list for as long as there is room.
	maxKeys, keptKeys = 100, 500
	// maxModels bounds the patterns of a key; each request may try them all.
	maxModels, maxModel = 50, 200
)

// NewKey is what CreateKey wants.
type NewKey struct {
	User   int64
	Name   string   // 1 to 100 characters
	Scopes []string // nil: all of them
	Models []string // globs of model names; nil: all of them
	Limits state.Limits
	Budget int64        // micro-dollars; 0: none
	Window state.Window // of the budget
	// AllowIPs are the networks it may come from; nil: any.
	AllowIPs []netip.Prefix
	Expires  time.Time // zero: never
	// Operator: an operator makes the key, so it does not matter what the user may create.
	Operator bool
}

func (n *NewKey) check() error {
	if err := checkName(n.Name); err != nil {
		return err
	}
	if err := cmp.Or(checkScopes(n.Scopes), checkModels(n.Models)); err != nil {
		return err
	}
	if n.Scopes != nil && len(n.Scopes) == 0 {
		return &FieldError{"scopes", "must not be empty"}
	}
	if n.Limits.RPM < 0 || n.Limits.TPM < 0 || n.Limits.Concurrency < 0 {
		return &FieldError{"limits", "must not be negative"}
	}
	if n.Budget < 0 || n.Budget > state.MaxCredits {
		return &FieldError{"budget", "must be between 0 and 1000000000 dollars"}
	}
	if !n.Window.Known() {
		return &FieldError{"window", "must be total, day or month"}
	}
	if len(n.AllowIPs) > maxNetworks {
		return &FieldError{"allow_ips", "must be at most 100 addresses and networks"}
	}
	return nil
}

// CreateKey makes a key of a user, whose account it is charged to. The secret is
// shown once. ErrNotFound: no such user, or disabled; *TooMany;
// ErrKeysForbidden.
func (c *Client) CreateKey(ctx context.Context, n NewKey) (secret string, k state.Key, err error) {
	if err := n.check(); err != nil {
		return "", state.Key{}, err
	}
	now := c.state.View().Now()
	if !n.Expires.IsZero() && !n.Expires.After(now) {
		return "", state.Key{}, &FieldError{"expires", "must be in the future"}
	}
	if secret, k, err = state.NewKey(now, c.random); err != nil {
		return "", state.Key{}, err
	}
	k.Name, k.Scopes, k.Models, k.Limits, k.Budget, k.Expires = n.Name, n.Scopes, n.Models, n.Limits, n.Budget, n.Expires
	k.Window, k.AllowIPs = n.Window, n.AllowIPs
	k, err = decide(ctx, c, nil, func(tx *state.Tx) (state.Key, error) {
		u, ok := tx.View().User(n.User)
		if !ok || !u.Active() {
			return state.Key{}, ErrNotFound
		}
		if err := n.allowed(tx.View(), &u); err != nil {
			return state.Key{}, err
		}
		if err := c.roomForKey(tx, u.Username); err != nil {
			return state.Key{}, err
		}
		k.User = u.Username
		return k, tx.AddKey(k)
	})
	if err != nil {
		return "", state.Key{}, err
	}
	return secret, k, nil
}

// allowed refuses what the ceilings of the user and of the user's group do not let the user create.
func (n *NewKey) allowed(v state.View, u *state.User) error {
	if n.Operator {
		return nil
	}
	if !v.MayCreateKeys(u) {
		return ErrKeysForbidden
	}
	if left := v.ScopesOf(u, shapes.Scopes()); !covers(left, n.Scopes) {
		return &FieldError{"scopes", "must be some of what you may do: " + strings.Join(left, ", ")}
	}
	return nil
}

// roomForKey forgets the oldest key that was revoked if there are too many.
func (c *Client) roomForKey(tx *state.Tx, username string) error {
	all := tx.View().Keys(username)
	live, oldest := 0, ""
	for _, k := range all {
		switch {
		case k.Revoked.IsZero():
			live++
		case oldest == "":
			oldest = k.ID
		}
	}
	if live >= maxKeys {
		return &TooMany{"keys", maxKeys, "revoke one first"}
	}
	if len(all) >= keptKeys {
		return tx.RemoveKey(oldest)
	}
	return nil
}

// UserKeys lists the keys of a user, revoked ones included, oldest first.
func (c *Client) UserKeys(user int64) []state.Key {
	v := c.state.View()
	u, ok := v.User(user)
	if !ok {
		return nil
	}
	return v.Keys(u.Username)
}

// EnableKey says in the name of its user whether a key may be used. ErrNotFound: the
// user has no such key, or it was revoked. ErrOperatorOnly: the operator disabled it.
func (c *Client) EnableKey(ctx context.Context, user int64, id string, enabled bool) error {
	return c.changeKey(ctx, user, id, func(k *state.Key, _ time.Time) error {
		if !k.Revoked.IsZero() {
			return ErrNotFound
		}
		if enabled && !k.Enabled && !k.OwnerMayEnable() {
			return ErrOperatorOnly
		}
		k.SetEnabled(enabled, state.PartyOwner)
		return nil
	})
}

// RevokeKey ends a user's key for good. Doing it again changes nothing.
func (c *Client) RevokeKey(ctx context.Context, user int64, id string) error {
	return c.changeKey(ctx, user, id, func(k *state.Key, now time.Time) error {
		if k.Revoked.IsZero() {
			k.Revoked = now
		}
		return nil
	})
}

func (c *Client) changeKey(ctx context.Context, user int64, id string, change func(*state.Key, time.Time) error) error {
	return do(ctx, c, nil, func(tx *state.Tx) error {
		u, ok := tx.View().User(user)
		if !ok {
			return ErrNotFound
		}
		k, err := tx.Key(id)
		if err != nil || k.User != u.Username {
			return ErrNotFound
		}
		if err := change(&k, tx.Now()); err != nil {
			return err
		}
		return tx.PutKey(k)
	})
}
