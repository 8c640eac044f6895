package tokens

import (
	"context"

	"stagedoor/state"
	"stagedoor/state/identity"
)

// maxDevelopers is the number of working developer tokens that a user may have, and keptDevelopers the number
// of all.
const maxDevelopers, keptDevelopers = 50, 100

// developerOf returns what callers see of a developer token.
func developerOf(d identity.DeveloperToken) DeveloperToken {
	return DeveloperToken{ID: d.ID, User: d.User, Name: d.Name, Created: d.Created, Revoked: d.Revoked}
}

// CreateDeveloperToken makes a developer token and returns it, which cannot be read later. It returns
// ErrNotFound if the user does not exist or is disabled, *TooMany and ErrKeysForbidden.
func (c *Client) CreateDeveloperToken(ctx context.Context, user int64,
	name string) (token string, t DeveloperToken, err error) {
	if err := checkName(name); err != nil {
		return "", DeveloperToken{}, err
	}
	if token, err = kindDeveloper.mint(c.random); err != nil {
		return "", DeveloperToken{}, err
	}
	t, err = decide(ctx, c, nil, func(tx *state.Tx) (DeveloperToken, error) {
		u, ok := identity.FindUser(tx.View(), user)
		switch {
		case !ok || !u.Active():
			return DeveloperToken{}, ErrNotFound
		case !identity.MayCreateKeys(tx.View(), &u):
			return DeveloperToken{}, ErrKeysForbidden
		}
		if err := roomForDeveloper(tx, user); err != nil {
			return DeveloperToken{}, err
		}
		id, err := state.NewID("dev_", tx.Now(), c.random)
		if err != nil {
			return DeveloperToken{}, err
		}
		d := identity.DeveloperToken{ID: id, Hash: state.HashSecret(token), User: user, Name: name, Created: tx.Now()}
		return developerOf(d), identity.PutDeveloperToken(tx, d)
	})
	if err != nil {
		return "", DeveloperToken{}, err
	}
	return token, t, nil
}

// roomForDeveloper makes room for a further token of a user. It returns *TooMany if the user has maxDevelopers working
// tokens, and it removes the oldest revoked token if the user has keptDevelopers in all.
func roomForDeveloper(tx *state.Tx, user int64) error {
	all := identity.ListDeveloperTokens(tx.View(), user)
	live, oldest := 0, ""
	for _, d := range all {
		switch {
		case d.Revoked.IsZero():
			live++
		case oldest == "":
			oldest = d.ID
		}
	}
	if live >= maxDevelopers {
		return &TooMany{"developer tokens", maxDevelopers, "revoke one first"}
	}
	if len(all) >= keptDevelopers {
		identity.RemoveDeveloperToken(tx, oldest)
	}
	return nil
}

// RevokeDeveloperToken ends a user's developer token. A second call changes nothing. A token of another user is
// ErrNotFound like one that does not exist, so that ids cannot be probed.
func (c *Client) RevokeDeveloperToken(ctx context.Context, user int64, id string) error {
	return do(ctx, c, nil, func(tx *state.Tx) error {
		d, ok := identity.FindDeveloperToken(tx.View(), id)
		if !ok || d.User != user {
			return ErrNotFound
		}
		if !d.Revoked.IsZero() {
			return nil
		}
		d.Revoked = tx.Now()
		return identity.PutDeveloperToken(tx, d)
	})
}

// DeveloperTokens returns a user's developer tokens including revoked ones, oldest first.
func (c *Client) DeveloperTokens(user int64) []DeveloperToken {
	return each(identity.ListDeveloperTokens(c.state.View(), user), developerOf)
}

// Developer returns the user of a developer token, or ErrNoDeveloper, or ErrKeysForbidden if the user may not use it.
func (c *Client) Developer(token string) (User, error) {
	hash, ok := kindDeveloper.hashOf(token)
	if !ok {
		return User{}, ErrNoDeveloper
	}
	v := c.state.View()
	d, ok := identity.FindDeveloperTokenByHash(v, hash)
	if !ok || !d.Revoked.IsZero() {
		return User{}, ErrNoDeveloper
	}
	u, ok := identity.FindUser(v, d.User)
	if !ok || !u.Active() {
		return User{}, ErrNoDeveloper
	}
	if !identity.MayCreateKeys(v, &u) {
		return User{}, ErrKeysForbidden
	}
	return userOf(u), nil
}
