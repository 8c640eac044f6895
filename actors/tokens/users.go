package tokens

import (
	"context"
	"errors"
	"io"
	"strings"
	"time"

	"stagedoor/state"
	"stagedoor/state/identity"
	"stagedoor/state/share"
)

// userOf returns what callers see of a user. The hash of the password is not part of it.
func userOf(u identity.User) User {
	return User{
		ID:           u.ID,
		Username:     u.Username,
		Email:        u.Email,
		Status:       int(u.Status),
		Admin:        u.Admin,
		Leads:        u.Leads != 0,
		Created:      u.Created,
		Seen:         u.Seen,
		SecondFactor: u.SecondFactor != nil,
		HasPassword:  u.Password != "",
		Erased:       u.Erased,
	}
}

// CreateUser makes an active account. It returns ErrExists if the username is taken.
func (c *Client) CreateUser(ctx context.Context, n NewUser) (User, error) {
	for _, err := range []error{checkUsername(n.Username), checkEmail(n.Email), checkPassword(n.Password)} {
		if err != nil {
			return User{}, err
		}
	}
	if _, taken := identity.FindUserByName(c.state.View(), n.Username); taken {
		return User{}, ErrExists // saves the hashing; the command checks it again
	}
	hash, err := c.hash(ctx, hashedForOperator, n.Password)
	if err != nil {
		return User{}, err
	}
	return decide(ctx, c, nil, func(tx *state.Tx) (User, error) {
		u, err := identity.AddUser(tx, identity.User{
			Username: n.Username,
			Email:    n.Email,
			Password: hash,
			Status:   identity.UserActive,
			Admin:    n.Admin,
		})
		return userOf(u), err
	})
}

// NewPassword returns a random password of 120 bits.
func NewPassword(random io.Reader) (string, error) {
	const bytes = 15
	raw, err := draw(random, bytes)
	return encoding.EncodeToString(raw), err
}

// ChangePassword replaces the password of a user who knows the old one, and ends all of the user's sessions. Grants to
// apps stay. It returns ErrLogin, *Limited, and ErrUserDisabled as Login does. Wrong passwords count as failed logins.
func (c *Client) ChangePassword(ctx context.Context, l Login, password string) error {
	if err := checkPassword(password); err != nil {
		return err
	}
	if len(l.Username) > maxUsername || len(l.Password) > maxPassword {
		return ErrLogin // no user has such a name
	}
	checked, err := c.admitLogin(ctx, l)
	if err != nil {
		return err
	}
	hash, err := c.hash(ctx, hashOwner(l), password)
	if err != nil {
		return err
	}
	return do(ctx, c, nil, func(tx *state.Tx) error {
		u, ok := identity.FindUser(tx.View(), checked.ID)
		if !ok || u.Password != checked.Password || !u.Active() {
			return ErrLogin // the password changed after the check
		}
		u.Password = hash
		u.Epoch++
		return identity.PutUser(tx, u)
	})
}

// Confirm checks the password of a signed-in user before a change that a stolen session must not suffice for. It
// returns the errors of Login. Wrong passwords count as failed logins.
func (c *Client) Confirm(ctx context.Context, l Login) error {
	if len(l.Password) > maxPassword {
		return ErrLogin
	}
	_, err := c.admitLogin(ctx, l)
	return err
}

// SetAdmin sets whether a user may administer the gateway, with effect on existing sessions at once. ErrNotFound means
// that there is no such account.
func (c *Client) SetAdmin(ctx context.Context, user int64, admin bool) (User, error) {
	return c.changeUser(ctx, user, func(u *identity.User) error { u.Admin = admin; return nil })
}

// SetUserStatus enables or disables an account. While it is disabled, its sessions, developer tokens, grants and
// access tokens are refused. The sessions end for good.
func (c *Client) SetUserStatus(ctx context.Context, user int64, status int) (User, error) {
	if status != StatusActive && status != StatusDisabled {
		return User{}, &FieldError{"status", "must be 1 (active) or 2 (disabled)"}
	}
	return c.changeUser(ctx, user, func(u *identity.User) error {
		if status == StatusDisabled {
			u.Epoch++
		}
		u.Status = identity.UserStatus(status)
		return nil
	})
}

// changeUser runs change in a command on a user that exists, and stores the result. An erased user
// counts as missing.
func (c *Client) changeUser(ctx context.Context, id int64, change func(*identity.User) error) (User, error) {
	return decide(ctx, c, nil, func(tx *state.Tx) (User, error) {
		u, ok := identity.FindUser(tx.View(), id)
		if !ok || !u.Erased.IsZero() {
			return User{}, ErrNotFound
		}
		if err := change(&u); err != nil {
			return User{}, err
		}
		return userOf(u), identity.PutUser(tx, u)
	})
}

// User returns an account. An account that was erased is found, because receipts and audit entries refer to it.
// ErrNotFound means that there never was one.
func (c *Client) User(id int64) (User, error) {
	return foundUser(identity.FindUser(c.state.View(), id))
}

// UserByName returns the account of a name without regard to case. ErrNotFound means that no account has the name.
func (c *Client) UserByName(username string) (User, error) {
	return foundUser(identity.FindUserByName(c.state.View(), username))
}

// foundUser returns a user as the package shows it, or ErrNotFound.
func foundUser(u identity.User, ok bool) (User, error) {
	if !ok {
		return User{}, ErrNotFound
	}
	return userOf(u), nil
}

// Users returns at most limit accounts with ids above after, or all of them if limit is 0.
func (c *Client) Users(after int64, limit int) []User {
	return each(identity.ListUsers(c.state.View(), after, limit), userOf)
}

// hashedForOperator is the owner of the hashing of passwords that the operator sets.
const hashedForOperator = "operator"

// hashOwner returns the owner whose share of the password pool a login uses. A browser that has signed in to the
// account before counts for the account, so that a flood from its address does not delay it. Other browsers count
// for their address.
func hashOwner(l Login) string {
	if l.Device != "" {
		return "user " + strings.ToLower(l.Username)
	}
	return "address " + addressSubject(byLoginAddress, l.From).name
}

// hash hashes a password. It takes long on purpose, so it runs outside of commands, and owner has
// its turn among those that wait.
func (c *Client) hash(ctx context.Context, owner, text string) (string, error) {
	hash, err := c.hasher.Hash(ctx, owner, text)
	return hash, c.hasherError(ctx, err)
}

// PasswordPlaces returns the pool of passwords that are being hashed or wait for it.
func (c *Client) PasswordPlaces() *share.Pool { return c.hasher.Places() }

// busyRetry is the time after which the password pool should have room. All that wait are served within half of
// it.
const busyRetry = time.Second

// hasherError returns an error of this package for an error of the hasher.
func (c *Client) hasherError(ctx context.Context, err error) error {
	var refused *share.Refused
	switch {
	case err == nil:
		return nil
	case errors.As(err, &refused):
		return &Limited{RetryAfter: busyRetry, Busy: refused}
	}
	return ownError(ctx, err)
}

// each converts a list. The result is never nil.
func each[A, B any](list []A, view func(A) B) []B {
	views := make([]B, len(list))
	for i, a := range list {
		views[i] = view(a)
	}
	return views
}
