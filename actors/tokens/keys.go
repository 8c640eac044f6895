package tokens

import (
	"cmp"
	"context"
	"net/netip"
	"slices"
	"strings"
	"time"

	shapes "stagedoor/providers/shapes/registry"
	"stagedoor/state"
	"stagedoor/state/budget"
	"stagedoor/state/identity"
)

const (
	// maxKeys is the number of working keys that a user may have, and keptKeys the number of all. A revoked
	// key stays in the list while there is room.
	maxKeys, keptKeys = 100, 500
	// maxModels is the number of patterns of a key. A request may try them all.
	maxModels, maxModel = 50, 200
)

// NewKey describes a key for CreateKey.
type NewKey struct {
	User   int64
	Name   string   // 1 to 100 characters
	Scopes []string // nil means all
	Models []string // globs of model names; nil means all
	Limits identity.Limits
	Budget int64         // micro-dollars; 0 means no budget
	Window budget.Window // of the budget
	// AllowIPs are the networks from which the key may be used; nil means all.
	AllowIPs []netip.Prefix
	Expires  time.Time // zero means never
	// Operator is set if an operator makes the key, so that the user's ceiling does not apply.
	Operator bool
	// Lead is the lead of the user's group who makes the key, or 0. CreateKey returns no secret then: the user draws
	// one with RotateKey, since the secret reads what the user has stored.
	Lead int64
}

// check refuses values that no key may have. An empty list of scopes would be a key that can do
// nothing, and is taken for a mistake; without a list, the key has all scopes.
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
	if n.Budget < 0 || n.Budget > budget.MaxCredits {
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

// CreateKey makes a key of a user, whose account pays for it, and returns the secret, which cannot be read later.
// It returns ErrNotFound if the user does not exist, is disabled or is not led by n.Lead, *TooMany and
// ErrKeysForbidden.
func (c *Client) CreateKey(ctx context.Context, n NewKey) (secret string, k identity.Key, err error) {
	if err := n.check(); err != nil {
		return "", identity.Key{}, err
	}
	now := c.state.View().Now()
	if !n.Expires.IsZero() && !n.Expires.After(now) {
		return "", identity.Key{}, &FieldError{"expires", "must be in the future"}
	}
	if secret, k, err = identity.NewKey(now, c.random); err != nil {
		return "", identity.Key{}, err
	}
	k.Name, k.Scopes, k.Models, k.Limits, k.Budget, k.Expires = n.Name, n.Scopes, n.Models, n.Limits, n.Budget,
		n.Expires
	k.Window, k.AllowIPs, k.Unclaimed = n.Window, n.AllowIPs, n.Lead != 0
	k, err = decide(ctx, c, nil, func(tx *state.Tx) (identity.Key, error) {
		u, ok := identity.FindUser(tx.View(), n.User)
		if !ok || !u.Active() {
			return identity.Key{}, ErrNotFound
		}
		if err := n.allowed(tx.View(), &u); err != nil {
			return identity.Key{}, err
		}
		if n.Lead != 0 {
			_, g, err := ledMember(tx.View(), n.Lead, u.ID)
			if err == nil {
				err = withinBudget(&g, n.Budget)
			}
			if err != nil {
				return identity.Key{}, err
			}
		}
		if err := c.roomForKey(tx, u.Username); err != nil {
			return identity.Key{}, err
		}
		k.User = u.Username
		return k, identity.AddKey(tx, k)
	})
	if err != nil {
		return "", identity.Key{}, err
	}
	if k.Unclaimed {
		secret = ""
	}
	return secret, k, nil
}

// allowed returns an error if the ceilings of the user or the user's group forbid the key.
func (n *NewKey) allowed(v state.View, u *identity.User) error {
	if n.Operator {
		return nil
	}
	if !identity.MayCreateKeys(v, u) {
		return ErrKeysForbidden
	}
	if left := identity.ScopesOf(v, u, shapes.Scopes()); !covers(left, n.Scopes) {
		return &FieldError{"scopes", "must be some of what you may do: " + strings.Join(left, ", ")}
	}
	return nil
}

// roomForKey makes room for a further key of a user. It returns *TooMany if the user has maxKeys working keys, and it
// removes the oldest revoked key if the user has keptKeys in all.
func (c *Client) roomForKey(tx *state.Tx, username string) error {
	all := identity.KeysOf(tx, username)
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
		return identity.RemoveKey(tx, oldest)
	}
	return nil
}

// UserKeys returns the keys of a user including revoked ones, oldest first.
func (c *Client) UserKeys(user int64) []identity.Key {
	v := c.state.View()
	u, ok := identity.FindUser(v, user)
	if !ok {
		return nil
	}
	return identity.AccessOf(c.state).KeysOf(u.Username)
}

// EnableKey enables or disables a key for its user. It returns ErrNotFound if the user has no such key or it was
// revoked, and ErrOperatorOnly or ErrLeadOnly if the operator or a lead disabled it.
func (c *Client) EnableKey(ctx context.Context, user int64, id string, enabled bool) error {
	return c.changeKey(ctx, user, id, func(k *identity.Key, _ time.Time) error {
		if !k.Revoked.IsZero() {
			return ErrNotFound
		}
		return setEnabled(k, enabled, identity.PartyOwner)
	})
}

// setEnabled enables or disables a key for a party. It returns ErrOperatorOnly or ErrLeadOnly if the key is not the
// party's to enable.
func setEnabled(k *identity.Key, enabled bool, by identity.Party) error {
	switch {
	case !enabled || k.Enabled || k.MayEnable(by):
		k.SetEnabled(enabled, by)
		return nil
	case k.DisabledBy == identity.PartyLead:
		return ErrLeadOnly
	}
	return ErrOperatorOnly
}

// RevokeKey ends a user's key for good. A second call changes nothing. A key of another user is ErrNotFound like one
// that does not exist.
func (c *Client) RevokeKey(ctx context.Context, user int64, id string) error {
	return c.changeKey(ctx, user, id, func(k *identity.Key, now time.Time) error {
		if k.Revoked.IsZero() {
			k.Revoked = now
		}
		return nil
	})
}

// UpdateOwnKey changes a key for its user, with effect on all requests at once. It never enables or disables the key.
// It returns ErrNotFound if the user has no such key or it was revoked, ErrKeysForbidden if the user's ceilings forbid
// to create keys, because such a user has keys that an operator has bounded, and *FieldError for scopes beyond them. A
// scope that the key has stays allowed for it: requests are held against today's ceilings anyway.
func (c *Client) UpdateOwnKey(ctx context.Context, user int64, id string, change KeyChange) error {
	change.Enabled = nil
	if err := change.check(c.state.View().Now()); err != nil {
		return err
	}
	return do(ctx, c, nil, func(tx *state.Tx) error {
		u, ok := identity.FindUser(tx.View(), user)
		k, err := identity.KeyForChange(tx, id)
		if !ok || err != nil || k.User != u.Username || !k.Revoked.IsZero() {
			return ErrNotFound
		}
		var want NewKey
		if change.Scopes != nil {
			want.Scopes = without(*change.Scopes, k.Scopes)
		}
		if err := want.allowed(tx.View(), &u); err != nil {
			return err
		}
		if err := change.apply(&k); err != nil {
			return err
		}
		return identity.PutKey(tx, k)
	})
}

// without returns the elements of all that are not in some.
func without(all, some []string) []string {
	return slices.DeleteFunc(slices.Clone(all), func(s string) bool { return slices.Contains(some, s) })
}

// MaxKeyOverlap bounds the time for which the old secret of a key or an app is accepted beside the new one.
// DefaultOverlap is for callers that name no time.
const (
	MaxKeyOverlap  = 30 * 24 * time.Hour
	DefaultOverlap = 24 * time.Hour
)

// RotateKey gives a user's key a new secret, which cannot be read later. The old one is accepted for overlap more, and
// a still older one ends at once. Limits, spending and history of the key stay. It returns ErrNotFound if the user has
// no such key or it was revoked.
func (c *Client) RotateKey(ctx context.Context, user int64, id string,
	overlap time.Duration) (secret string, k identity.Key, err error) {
	owned := func(tx *state.Tx, k *identity.Key) bool {
		u, ok := identity.FindUser(tx.View(), user)
		return ok && k.User == u.Username
	}
	return c.rotateKey(ctx, id, overlap, owned)
}

// RotateAnyKey gives any key a new secret, as RotateKey does, for an operator.
func (c *Client) RotateAnyKey(ctx context.Context, id string,
	overlap time.Duration) (secret string, k identity.Key, err error) {
	return c.rotateKey(ctx, id, overlap, func(*state.Tx, *identity.Key) bool { return true })
}

// rotateKey gives a key a new secret. may decides who may rotate it. A key that may not be rotated is not found, so
// that the reply does not say whether it exists.
func (c *Client) rotateKey(ctx context.Context, id string, overlap time.Duration,
	may func(*state.Tx, *identity.Key) bool) (secret string, k identity.Key, err error) {
	if overlap < 0 || overlap > MaxKeyOverlap {
		return "", k, &FieldError{"overlap", "must be between 0 and 30 days"}
	}
	secret, prefix, hash, err := identity.NewSecret(c.random)
	if err != nil {
		return "", k, err
	}
	k, err = decide(ctx, c, nil, func(tx *state.Tx) (identity.Key, error) {
		k, err := identity.KeyForChange(tx, id)
		if err != nil || !k.Revoked.IsZero() || !may(tx, &k) {
			return identity.Key{}, ErrNotFound
		}
		k.Rotate(prefix, hash, tx.Now(), overlap)
		return k, identity.PutKey(tx, k)
	})
	if err != nil {
		return "", identity.Key{}, err
	}
	return secret, k, nil
}

// changeKey changes a key that belongs to a user. A key of another user is not found.
func (c *Client) changeKey(ctx context.Context, user int64, id string,
	change func(*identity.Key, time.Time) error) error {
	return do(ctx, c, nil, func(tx *state.Tx) error {
		u, ok := identity.FindUser(tx.View(), user)
		if !ok {
			return ErrNotFound
		}
		k, err := identity.KeyForChange(tx, id)
		if err != nil || k.User != u.Username {
			return ErrNotFound
		}
		if err := change(&k, tx.Now()); err != nil {
			return err
		}
		return identity.PutKey(tx, k)
	})
}
