package tokens

import (
	"cmp"
	"context"
	"net/netip"
	"time"

	"stagedoor/state"
	"stagedoor/state/budget"
	"stagedoor/state/identity"
)

// UserChange is an update of a user. A nil field stays unchanged.
type UserChange struct {
	Email    *string
	Password *string // ends all sessions
	Status   *int    // StatusDisabled ends all sessions
	Admin    *bool
	// ResetSecondFactor lets the user sign in with the password alone.
	ResetSecondFactor bool
	Ceiling           CeilingChange
}

// UpdateUser makes all changes to an account, or none of them. Every field is checked before the password is hashed,
// because a hash takes as much memory and time as a sign-in. The error is a *FieldError for the first value that breaks
// a rule, ErrNotFound for an account that is not there or was erased.
func (c *Client) UpdateUser(ctx context.Context, id int64, change UserChange) (User, error) {
	if change.Email != nil {
		if err := checkEmail(*change.Email); err != nil {
			return User{}, err
		}
	}
	if s := change.Status; s != nil && *s != StatusActive && *s != StatusDisabled {
		return User{}, &FieldError{"status", "must be 1 (active) or 2 (disabled)"}
	}
	if err := change.Ceiling.check(); err != nil {
		return User{}, err
	}
	hash := ""
	if change.Password != nil {
		err := checkPassword(*change.Password)
		if err == nil {
			hash, err = c.hash(ctx, hashedForOperator, *change.Password)
		}
		if err != nil {
			return User{}, err
		}
	}
	return c.changeUser(ctx, id, func(u *identity.User) error {
		if change.Email != nil {
			u.Email = *change.Email
		}
		if change.Status != nil {
			u.Status = identity.UserStatus(*change.Status)
		}
		if change.Admin != nil {
			u.Admin = *change.Admin
		}
		if hash != "" {
			u.Password = hash
		}
		if change.ResetSecondFactor {
			u.SecondFactor = nil
		}
		if hash != "" || change.Status != nil && *change.Status == StatusDisabled {
			u.Epoch++
		}
		return change.Ceiling.apply(&u.Ceiling)
	})
}

// KeyChange has the settings of IssueKey and UpdateKey. A nil field stays unchanged, or is the default of NewKey. A
// field may point at nil or zero, which means all and none as in identity.Key.
type KeyChange struct {
	Name     *string
	Scopes   *[]string
	Models   *[]string
	Limits   LimitsChange
	Budget   BudgetChange
	AllowIPs *[]netip.Prefix
	Expires  *time.Time
	Enabled  *bool
	// OnDisconnect is the word for that of identity.Key. "" lets the model decide again.
	OnDisconnect *string
	// RecordedUntil is that of identity.Key. The zero time ends the recording now. Only operators may set it.
	RecordedUntil *time.Time
}

// MaxRecording bounds the time for which a key is recorded, so that a recording that was forgotten ends.
const MaxRecording = 7 * 24 * time.Hour

// recordingSlack lets clients compute the end of the longest recording with a clock that is a little ahead.
const recordingSlack = time.Minute

// LimitsChange is an update of limits. A nil limit stays unchanged, and 0 removes it.
type LimitsChange struct{ RPM, TPM, Concurrency *int64 }

// check returns an error for a negative limit. 0 stands for no limit.
func (l *LimitsChange) check() error {
	for _, limit := range []struct {
		name  string
		value *int64
	}{{"rpm", l.RPM}, {"tpm", l.TPM}, {"concurrency", l.Concurrency}} {
		if limit.value != nil && *limit.value < 0 {
			return &FieldError{"limits." + limit.name, "must not be negative"}
		}
	}
	return nil
}

// apply changes the limits that the request has.
func (l *LimitsChange) apply(to *identity.Limits) {
	set(&to.RPM, l.RPM)
	set(&to.TPM, l.TPM)
	set(&to.Concurrency, l.Concurrency)
}

// BudgetChange is an update of a budget. A nil field stays unchanged, and an Amount of 0 removes the
// budget with its window.
type BudgetChange struct {
	Amount *int64 // micro-dollars
	Window *budget.Window
}

// check returns an error for an amount or a window that no budget can have.
func (b *BudgetChange) check() error {
	switch {
	case b.Amount != nil && (*b.Amount < 0 || *b.Amount > budget.MaxCredits):
		return &FieldError{"budget", "must be between 0 and 1000000000 dollars"}
	case b.Window != nil && !b.Window.Known():
		return &FieldError{"budget", "must have the window total, day or month"}
	}
	return nil
}

// apply returns the budget after the change. It returns a FieldError if the change names a window and there is no
// amount to which the window could apply.
func (b *BudgetChange) apply(to budget.Budget) (budget.Budget, error) {
	set(&to.Amount, b.Amount)
	set(&to.Window, b.Window)
	if to.Amount == 0 {
		if b.Window != nil && b.Amount == nil {
			return to, &FieldError{"budget", "must have an amount: there is none yet to which the window could apply"}
		}
		return budget.Budget{}, nil
	}
	return to, nil
}

// maxNetworks is the size of a key's allowlist, which each request searches.
const maxNetworks = 100

// check refuses values that no key may have.
func (k *KeyChange) check(now time.Time) error {
	switch {
	case k.Name != nil && checkName(*k.Name) != nil:
		return checkName(*k.Name)
	case k.AllowIPs != nil && len(*k.AllowIPs) > maxNetworks:
		return &FieldError{"allow_ips", "must be at most 100 addresses and networks"}
	case k.Expires != nil && !k.Expires.IsZero() && !k.Expires.After(now):
		return &FieldError{"expires", "must be in the future"}
	case k.RecordedUntil != nil && !k.RecordedUntil.IsZero() && (!k.RecordedUntil.After(now) ||
		k.RecordedUntil.After(now.Add(MaxRecording+recordingSlack))):
		return &FieldError{"recorded_until", "must be in the future, and at most 7 days from now"}
	}
	ceiling := CeilingChange{Scopes: k.Scopes, Models: k.Models, Budget: k.Budget}
	return cmp.Or(ceiling.check(), k.Limits.check())
}

// apply makes the change as the operator, who can also enable what the operator has disabled.
func (k *KeyChange) apply(to *identity.Key) error {
	set(&to.Name, k.Name)
	set(&to.Scopes, k.Scopes)
	set(&to.Models, k.Models)
	k.Limits.apply(&to.Limits)
	set(&to.AllowIPs, k.AllowIPs)
	set(&to.Expires, k.Expires)
	if k.OnDisconnect != nil {
		policy, err := identity.DisconnectPolicyOf(*k.OnDisconnect)
		if err != nil {
			return &FieldError{"on_disconnect", "must be cancel, finish or detach"}
		}
		to.OnDisconnect = policy
	}
	if k.RecordedUntil != nil {
		if to.RecordedUntil = nil; !k.RecordedUntil.IsZero() {
			to.RecordedUntil = new(k.RecordedUntil.UTC())
		}
	}
	if k.Enabled != nil {
		to.SetEnabled(*k.Enabled, identity.PartyOperator)
	}
	budget, err := k.Budget.apply(to.Limit())
	to.Budget, to.Window = budget.Amount, budget.Window
	return err
}

// set replaces a value if the request has a new one.
func set[T any](to, from *T) {
	if from != nil {
		*to = *from
	}
}

// IssueKey makes a key for an operator. Its user may be "", and then the key is not charged. The secret cannot be
// read later. It returns ErrNotFound if the user does not exist.
func (c *Client) IssueKey(ctx context.Context, username string,
	want KeyChange) (secret string, k identity.Key, err error) {
	now := c.state.View().Now()
	if err := want.check(now); err != nil {
		return "", identity.Key{}, err
	}
	if secret, k, err = identity.NewKey(now, c.random); err != nil {
		return "", identity.Key{}, err
	}
	if err := want.apply(&k); err != nil {
		return "", identity.Key{}, err
	}
	k, err = decide(ctx, c, nil, func(tx *state.Tx) (identity.Key, error) {
		if username != "" {
			u, ok := identity.FindUserByName(tx.View(), username)
			if !ok {
				return identity.Key{}, ErrNotFound
			}
			k.User = u.Username
		}
		return k, identity.AddKey(tx, k)
	})
	if err != nil {
		return "", identity.Key{}, err
	}
	return secret, k, nil
}

// UpdateKey changes a key for an operator, with effect on all requests at once. It returns ErrNotFound if the key
// does not exist, and ErrInvalid if it was revoked for good.
func (c *Client) UpdateKey(ctx context.Context, id string, change KeyChange) (identity.Key, error) {
	if err := change.check(c.state.View().Now()); err != nil {
		return identity.Key{}, err
	}
	return decide(ctx, c, nil, func(tx *state.Tx) (identity.Key, error) {
		k, err := identity.KeyForChange(tx, id)
		if err != nil {
			return identity.Key{}, ErrNotFound
		}
		if !k.Revoked.IsZero() {
			return identity.Key{}, &FieldError{"id", "is of a key that was revoked"}
		}
		if err := change.apply(&k); err != nil {
			return identity.Key{}, err
		}
		return k, identity.PutKey(tx, k)
	})
}
