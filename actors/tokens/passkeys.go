package tokens

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"stagedoor/state"
	"stagedoor/state/identity"
)

// maxPasskeys is the number of passkeys that a user may have.
const maxPasskeys = 20

// errCopiedPasskey is the ErrPasskey of a counter that has not gone up since the last use.
var errCopiedPasskey = fmt.Errorf("its counter shows a copy of the device: %w", ErrPasskey)

// Passkey is a user's passkey for lists.
type Passkey struct {
	ID, Name      string
	Created, Seen time.Time // Seen is zero for one that was never used
}

// Credential is a passkey as its device knows it. The caller has verified what the device sent.
type Credential struct {
	ID, Key []byte
	Count   uint32
	Synced  bool
}

// AddPasskey stores a passkey that a user's device has made. answer is the challenge that it signed. It returns
// *FieldError about the name, ErrExists, ErrNotFound, ErrUsed and *TooMany.
func (c *Client) AddPasskey(ctx context.Context, user int64, name string, made Credential, answer Once) error {
	if err := checkName(name); err != nil {
		return err
	}
	return do(ctx, c, nil, func(tx *state.Tx) error {
		if u, ok := identity.FindUser(tx.View(), user); !ok || !u.Active() {
			return ErrNotFound
		}
		if len(identity.ListPasskeys(tx.View(), user)) >= maxPasskeys {
			return &TooMany{"passkeys", maxPasskeys, "remove one first"}
		}
		id, err := state.NewID("pky_", tx.Now(), c.random)
		if err != nil {
			return err
		}
		used, err := answer.use(nil, tx.Now())
		if err != nil {
			return err
		}
		return identity.PutPasskey(tx, identity.Passkey{ID: id, User: user, Name: name, Credential: made.ID,
			Key: made.Key, Count: made.Count, Synced: made.Synced, Created: tx.Now(), Used: used})
	})
}

// FindPasskey returns the passkey of a credential with its user, or ErrPasskey if there is none.
func (c *Client) FindPasskey(credential []byte) (Credential, User, error) {
	v := c.state.View()
	p, ok := identity.FindPasskey(v, credential)
	u, found := identity.FindUser(v, p.User)
	if !ok || !found {
		return Credential{}, User{}, ErrPasskey
	}
	return credentialOf(p), userOf(u), nil
}

// credentialOf returns a stored passkey as the ceremony needs it.
func credentialOf(p identity.Passkey) Credential {
	return Credential{ID: p.Credential, Key: p.Key, Count: p.Count, Synced: p.Synced}
}

// Credentials returns the passkeys of a user as their devices know them.
func (c *Client) Credentials(user int64) []Credential {
	return each(identity.ListPasskeys(c.state.View(), user), credentialOf)
}

// Passkeys returns the passkeys of a user for lists, oldest first.
func (c *Client) Passkeys(user int64) []Passkey {
	return each(identity.ListPasskeys(c.state.View(), user), func(p identity.Passkey) Passkey {
		return Passkey{ID: p.ID, Name: p.Name, Created: p.Created, Seen: p.Seen}
	})
}

// LoginPasskey makes a session for a device that has signed the challenge answer after it has verified its user, which
// proves two factors. used.Count is the device's counter now. It returns ErrPasskey if the passkey was removed or the
// counter shows a copy of the device, ErrUserDisabled and ErrUsed. The audit log has the refusals of devices that hold the
// key of a user.
func (c *Client) LoginPasskey(ctx context.Context, used Credential, answer Once,
	from Sender) (cookie string, s Session, err error) {
	if cookie, err = kindSession.mint(c.random); err != nil {
		return "", Session{}, err
	}
	var owner identity.User
	s, err = decide(ctx, c, nil, func(tx *state.Tx) (Session, error) {
		p, ok := identity.FindPasskey(tx.View(), used.ID)
		u, found := identity.FindUser(tx.View(), p.User)
		if !ok || !found || !slices.Equal(p.Key, used.Key) {
			return Session{}, ErrPasskey
		}
		if owner = u; !u.Active() {
			return Session{}, ErrUserDisabled
		}
		actAsUser(tx, &u)
		var err error
		if p.Used, err = answer.use(p.Used, tx.Now()); err != nil {
			return Session{}, err // before the counter: a form that is sent twice is no copy of the device
		}
		if (p.Count > 0 || used.Count > 0) && used.Count <= p.Count {
			return Session{}, errCopiedPasskey
		}
		p.Count, p.Seen = used.Count, tx.Now()
		if err := identity.PutPasskey(tx, p); err != nil {
			return Session{}, err
		}
		return addSession(tx, u, state.HashSecret(cookie), c.config.Session, from, c.random, proof{strong: true})
	})
	if err != nil {
		if owner.ID != 0 && (errors.Is(err, ErrPasskey) || errors.Is(err, ErrUserDisabled)) {
			c.recordFailure(ctx, identity.RefusedPasskey, &owner, err)
		}
		return "", Session{}, err
	}
	return cookie, s, nil
}

// RenamePasskey gives a user's passkey another name. It returns *FieldError and ErrNotFound.
func (c *Client) RenamePasskey(ctx context.Context, user int64, id, name string) error {
	if err := checkName(name); err != nil {
		return err
	}
	return do(ctx, c, nil, func(tx *state.Tx) error {
		for _, p := range identity.ListPasskeys(tx.View(), user) {
			if p.ID == id {
				p.Name = name
				return identity.PutPasskey(tx, p)
			}
		}
		return ErrNotFound
	})
}

// RemoveSignIn removes an identity at a provider or a passkey of a user. All sessions of the user but session end,
// because one of them may be that of a thief who has the passkey. A user who removes it must keep another way to sign
// in; "" for session is an administrator's removal, which needs none. It returns ErrNotFound and ErrOnlySignIn.
func (c *Client) RemoveSignIn(ctx context.Context, user int64, id, session string) error {
	return do(ctx, c, nil, func(tx *state.Tx) error {
		v := tx.View()
		u, _ := identity.FindUser(v, user)
		ways := map[string]func(*state.Tx, string){}
		for _, x := range identity.ListExternalIdentities(v, user) {
			ways[x.ID] = identity.RemoveExternalIdentity
		}
		for _, p := range identity.ListPasskeys(v, user) {
			ways[p.ID] = identity.RemovePasskey
		}
		remove, ok := ways[id]
		switch {
		case !ok:
			return ErrNotFound
		case session != "" && len(ways) == 1 && u.Password == "":
			return ErrOnlySignIn
		}
		remove(tx, id)
		for _, s := range identity.ListSessions(v, user) {
			if s.ID != session {
				identity.RemoveSession(tx, s.ID)
			}
		}
		return nil
	})
}
