package tokens

import (
	"context"
	"net/netip"
	"slices"
	"strings"
	"time"

	"stagedoor/state"
)

// UserChange is what UpdateUser changes; nil: it stays.
type UserChange struct {
	Email    *string
	Password *string // all sessions end
	Status   *int    // StatusDisabled: all sessions end
	Admin    *bool
}

// UpdateUser changes an account: all that is asked or nothing.
func (c *Client) UpdateUser(ctx context.Context, id int64, change UserChange) (User, error) {
	if change.Email != nil {
		if err := checkEmail(*change.Email); err != nil {
			return User{}, err
		}
	}
	if s := change.Status; s != nil && *s != StatusActive && *s != StatusDisabled {
		return User{}, &FieldError{"status", "must be 1 (active) or 2 (disabled)"}
	}
	hash := ""
	if change.Password != nil {
		err := checkPassword(*change.Password)
		if err == nil {
			hash, err = c.hash(ctx, *change.Password)
		}
		if err != nil {
			return User{}, err
		}
	}
	return c.changeUser(ctx, id, func(u *state.User) {
		if change.Email != nil {
			u.Email = *change.Email
		}
		if change.Status != nil {
			u.Status = state.UserStatus(*change.Status)
		}
		if change.Admin != nil {
			u.Admin = *change.Admin
		}
		if hash != "" {
			u.Password = hash
		}
		if hash != "" || change.Status != nil && *change.Status == StatusDisabled {
			u.Epoch++
		}
	})
}

// KeyChange is what IssueKey and UpdateKey set; nil: it stays, or is as NewKey
// makes it. What a pointer points at may be nil or zero, for all and for none as
// in state.Key.
type KeyChange struct {
	Name     *string
	Scopes   *[]string
	Models   *[]string
	Limits   *state.Limits
	Budget   *state.Budget
	AllowIPs *[]netip.Prefix
	Expires  *time.Time
	Enabled  *bool
}

// maxNetworks bounds the allowlist of a key: each request looks through it.
const maxNetworks = 100

func (k *KeyChange) check(now time.Time) error {
	switch {
	case k.Name != nil && checkName(*k.Name) != nil:
		return checkName(*k.Name)
	case k.Scopes != nil && slices.ContainsFunc(*k.Scopes, func(s string) bool { return !contains(state.Scopes(), s) }):
		return &FieldError{"scopes", "must be some of " + strings.Join(state.Scopes(), ", ")}
	case k.Models != nil && !validModels(*k.Models):
		return &FieldError{"models", "must be at most 50 names or patterns of at most 200 bytes"}
	case k.Limits != nil && min(k.Limits.RPM, k.Limits.TPM, k.Limits.Concurrency) < 0:
		return &FieldError{"limits", "must not be negative"}
	case k.Budget != nil && (k.Budget.Amount < 0 || k.Budget.Amount > state.MaxCredits):
		return &FieldError{"budget", "must be between 0 and 1000000000 dollars"}
	case k.Budget != nil && !k.Budget.Window.Known():
		return &FieldError{"budget", "must have the window total, day or month"}
	case k.AllowIPs != nil && len(*k.AllowIPs) > maxNetworks:
		return &FieldError{"allow_ips", "must be at most 100 addresses and networks"}
	case k.Expires != nil && !k.Expires.IsZero() && !k.Expires.After(now):
		return &FieldError{"expires", "must be in the future"}
	}
	return nil
}

func validModels(models []string) bool {
	return len(models) <= maxModels && !slices.ContainsFunc(models, func(m string) bool {
		return m == "" || len(m) > maxModel || !isPlain(m, "")
	})
}

func (k *KeyChange) apply(to *state.Key) {
	set(&to.Name, k.Name)
	set(&to.Scopes, k.Scopes)
	set(&to.Models, k.Models)
	set(&to.Limits, k.Limits)
	set(&to.AllowIPs, k.AllowIPs)
	set(&to.Expires, k.Expires)
	set(&to.Enabled, k.Enabled)
	if k.Budget != nil {
		to.Budget, to.Window = k.Budget.Amount, k.Budget.Window
	}
}

func set[T any](to, from *T) {
	if from != nil {
		*to = *from
	}
}

// IssueKey makes a key as an operator wants it: of a user, or ("") of nobody, who
// is not charged. The secret is shown once. ErrNotFound: no such user.
func (c *Client) IssueKey(ctx context.Context, username string, want KeyChange) (secret string, k state.Key, err error) {
	now := c.state.View().Now()
	if err := want.check(now); err != nil {
		return "", state.Key{}, err
	}
	if secret, k, err = state.NewKey(now, c.random); err != nil {
		return "", state.Key{}, err
	}
	want.apply(&k)
	k, err = decide(ctx, c, nil, func(tx *state.Tx) (state.Key, error) {
		if username != "" {
			u, ok := tx.View().UserByName(username)
			if !ok {
				return state.Key{}, ErrNotFound
			}
			k.User = u.Username
		}
		return k, tx.AddKey(k)
	})
	if err != nil {
		return "", state.Key{}, err
	}
	return secret, k, nil
}

// UpdateKey changes a key, at once for all requests. ErrNotFound: no such key.
// ErrInvalid: it was revoked, for good.
func (c *Client) UpdateKey(ctx context.Context, id string, change KeyChange) (state.Key, error) {
	if err := change.check(c.state.View().Now()); err != nil {
		return state.Key{}, err
	}
	return decide(ctx, c, nil, func(tx *state.Tx) (state.Key, error) {
		k, err := tx.Key(id)
		if err != nil {
			return state.Key{}, ErrNotFound
		}
		if !k.Revoked.IsZero() {
			return state.Key{}, &FieldError{"id", "is of a key that was revoked"}
		}
		change.apply(&k)
		return k, tx.PutKey(k)
	})
}
