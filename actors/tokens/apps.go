package tokens

import (
	"context"
	"time"

	"stagedoor/state"
	"stagedoor/state/identity"
)

// maxApps is the number of enabled apps that a user may have.
const maxApps = 100

func appOf(a identity.App) App {
	return App{ID: a.ID, ClientID: a.ClientID, Owner: a.Owner, Name: a.Name, Description: a.Description,
		RedirectURI: a.RedirectURI, Created: a.Created, Disabled: a.Disabled, PreviousSecretUntil: a.PreviousUntil}
}

// RegisterApp makes an app and returns its secret, which cannot be read later. It returns ErrNotFound if the
// owner does not exist or is disabled, and *TooMany.
func (c *Client) RegisterApp(ctx context.Context, n NewApp) (secret string, a App, err error) {
	for _, err := range []error{checkName(n.Name), checkDescription(n.Description), checkRedirect(n.RedirectURI)} {
		if err != nil {
			return "", App{}, err
		}
	}
	clientID, err := kindClient.mint(c.random)
	if err != nil {
		return "", App{}, err
	}
	if secret, err = kindSecret.mint(c.random); err != nil {
		return "", App{}, err
	}
	a, err = decide(ctx, c, nil, func(tx *state.Tx) (App, error) {
		if u, ok := identity.FindUser(tx.View(), n.Owner); !ok || !u.Active() {
			return App{}, ErrNotFound
		}
		if enabledApps(identity.ListApps(tx.View(), n.Owner)) >= maxApps {
			return App{}, &TooMany{"enabled apps", maxApps, "disable one first"}
		}
		a, err := identity.AddApp(tx, identity.App{ClientID: clientID, Secret: state.HashSecret(secret), Owner: n.Owner,
			Name: n.Name, Description: n.Description, RedirectURI: n.RedirectURI})
		return appOf(a), err
	})
	if err != nil {
		return "", App{}, err
	}
	return secret, a, nil
}

func enabledApps(apps []identity.App) int {
	n := 0
	for _, a := range apps {
		if a.Disabled.IsZero() {
			n++
		}
	}
	return n
}

// RotateSecret gives an app a new secret. The old one works for Config.SecretOverlap more; a still older one
// ends at once.
func (c *Client) RotateSecret(ctx context.Context, app int64) (secret string, a App, err error) {
	if secret, err = kindSecret.mint(c.random); err != nil {
		return "", App{}, err
	}
	a, err = c.changeApp(ctx, app, func(a *identity.App, now time.Time) {
		a.Previous, a.PreviousUntil = a.Secret, now.Add(c.config.SecretOverlap)
		a.Secret = state.HashSecret(secret)
	})
	if err != nil {
		return "", App{}, err
	}
	return secret, a, nil
}

// DisableApp makes an app and all its tokens invalid until EnableApp.
func (c *Client) DisableApp(ctx context.Context, app int64) error {
	_, err := c.changeApp(ctx, app, func(a *identity.App, now time.Time) {
		if a.Disabled.IsZero() {
			a.Disabled = now
		}
	})
	return err
}

// EnableApp reverses DisableApp.
func (c *Client) EnableApp(ctx context.Context, app int64) error {
	_, err := c.changeApp(ctx, app, func(a *identity.App, _ time.Time) { a.Disabled = time.Time{} })
	return err
}

func (c *Client) changeApp(ctx context.Context, id int64, change func(*identity.App, time.Time)) (App, error) {
	return decide(ctx, c, nil, func(tx *state.Tx) (App, error) {
		a, ok := identity.FindApp(tx.View(), id)
		if !ok {
			return App{}, ErrNotFound
		}
		change(&a, tx.Now())
		return appOf(a), identity.PutApp(tx, a)
	})
}

// App returns an app by its number, even if it is disabled.
func (c *Client) App(id int64) (App, error) { return foundApp(identity.FindApp(c.state.View(), id)) }

// AppByClientID returns an app by its public id, even if it is disabled.
func (c *Client) AppByClientID(clientID string) (App, error) {
	return foundApp(identity.FindAppByClientID(c.state.View(), clientID))
}

func foundApp(a identity.App, ok bool) (App, error) {
	if !ok {
		return App{}, ErrNotFound
	}
	return appOf(a), nil
}

// Apps returns the apps of a user, oldest first. The owner 0 means the apps of all users.
func (c *Client) Apps(owner int64) []App {
	return each(identity.ListApps(c.state.View(), owner), appOf)
}
