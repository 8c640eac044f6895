package tokens

import (
	"context"
	"time"

	"stagedoor/state"
	"stagedoor/state/identity"
)

// LinkLife bounds the use of a link from the moment that it is made.
const LinkLife = 15 * time.Minute

// Link lets its holder choose a password and sign in, once: the password that it sets ends every link of the user that
// was made before. The caller seals it, with LinkLife, so that it cannot be forged.
type Link struct {
	// User is 0 in a link that makes an administrator, which works while there is no active one.
	User  int64 `json:"u,omitempty"`
	Epoch int64 `json:"e,omitempty"` // of the user, which each change of the password advances
}

// AdministratorLink returns a link that makes the first administrator. It returns ErrExists if there is an active
// administrator, who can create others.
func (c *Client) AdministratorLink() (Link, error) {
	if identity.HasAdministrator(c.state.View()) {
		return Link{}, ErrExists
	}
	return Link{}, nil
}

// UserLink returns a link for a user. It returns ErrNotFound or ErrUserDisabled.
func (c *Client) UserLink(user int64) (Link, error) {
	u, ok := identity.FindUser(c.state.View(), user)
	switch {
	case !ok:
		return Link{}, ErrNotFound
	case !u.Active():
		return Link{}, ErrUserDisabled
	}
	return Link{User: u.ID, Epoch: u.Epoch}, nil
}

// CheckLink returns the user of a link, which is zero for an administrator who does not exist yet. It returns ErrUsed
// if the link does not work any more.
func (c *Client) CheckLink(l Link) (User, error) {
	u, err := checkLink(c.state.View(), l)
	return userOf(u), err
}

func checkLink(v state.View, l Link) (identity.User, error) {
	if l.User == 0 {
		if identity.HasAdministrator(v) {
			return identity.User{}, ErrUsed
		}
		return identity.User{}, nil
	}
	u, ok := identity.FindUser(v, l.User)
	if !ok || !u.Active() || u.Epoch != l.Epoch {
		return identity.User{}, ErrUsed
	}
	return u, nil
}

// UseLink sets the password of the user of a link and ends the user's sessions. For a link of an administrator it
// creates one with the username, which other links ignore. It returns ErrUsed, ErrExists if the username is taken, and
// ErrInvalid.
func (c *Client) UseLink(ctx context.Context, l Link, username, password string) (User, error) {
	if l.User == 0 {
		if err := checkUsername(username); err != nil {
			return User{}, err
		}
	}
	if err := checkPassword(password); err != nil {
		return User{}, err
	}
	if _, err := c.CheckLink(l); err != nil {
		return User{}, err // saves the hashing; the command checks it again
	}
	hash, err := c.hash(ctx, hashedForOperator, password)
	if err != nil {
		return User{}, err
	}
	return decide(ctx, c, nil, func(tx *state.Tx) (User, error) {
		u, err := checkLink(tx.View(), l)
		if err != nil {
			return User{}, err
		}
		u.Password = hash
		if l.User == 0 {
			u.Username, u.Status, u.Admin = username, identity.UserActive, true
			u, err = identity.AddUser(tx, u)
			return userOf(u), err
		}
		u.Epoch++
		return userOf(u), identity.PutUser(tx, u)
	})
}
