package tokens

import (
	"cmp"
	"context"
	"slices"
	"time"

	"stagedoor/state"
	"stagedoor/state/identity"
)

const (
	// maxApps is the number of enabled apps that a user may have, and keptApps the number of all. An app that was
	// deleted counts until its last grant expires.
	maxApps, keptApps = 100, 500
	maxRedirects      = 10
	// maxLogos bounds the bytes of the logos of a user's apps together, which are kept in memory.
	maxLogos  = 512 << 10
	shownEnd  = 4         // characters of a secret that are kept
	usedAgain = time.Hour // after this time a further use of a secret is recorded
)

// appOf returns what callers see of an app. Hashes of secrets are not part of it.
func appOf(a identity.App) App {
	return App{ID: a.ID, ClientID: a.ClientID, Owner: a.Owner, Name: a.Name, Description: a.Description,
		RedirectURI: a.RedirectURI, RedirectURIs: a.RedirectURIs(), Logo: a.Logo, Created: a.Created,
		Disabled: a.Disabled, PreviousSecretUntil: a.PreviousUntil, SecretEnd: a.SecretEnd, PreviousEnd: a.PreviousEnd,
		SecretUsed: a.SecretUsed, PreviousUsed: a.PreviousUsed}
}

// RegisterApp makes an app and returns its secret, which cannot be read later. It returns *FieldError if a field breaks
// a rule, ErrNotFound if the owner does not exist or is disabled, and *TooMany. An owner, in contrast to an operator
// (n.Operator), also gets ErrKeysForbidden if the owner's ceilings forbid to create keys, and *FieldError for an
// address of an app that the operator has disabled.
func (c *Client) RegisterApp(ctx context.Context, n NewApp) (secret string, a App, err error) {
	uris := append([]string{n.RedirectURI}, n.MoreURIs...)
	err = cmp.Or(checkName(n.Name), checkDescription(n.Description), checkRedirects("redirect_uri", uris))
	if err != nil {
		return "", App{}, err
	}
	clientID, err := kindClient.mint(c.random)
	if err != nil {
		return "", App{}, err
	}
	if secret, err = kindSecret.mint(c.random); err != nil {
		return "", App{}, err
	}
	a, err = decide(ctx, c, nil, func(tx *state.Tx) (App, error) {
		u, ok := identity.FindUser(tx.View(), n.Owner)
		switch {
		case !ok || !u.Active():
			return App{}, ErrNotFound
		case !n.Operator && !identity.MayCreateKeys(tx.View(), &u):
			return App{}, ErrKeysForbidden
		}
		if enabledApps(identity.ListApps(tx.View(), n.Owner)) >= maxApps {
			return App{}, &TooMany{"enabled apps", maxApps, "disable one first"}
		}
		if identity.CountApps(tx.View(), n.Owner) >= keptApps {
			return App{}, &TooMany{"apps", keptApps, "those that were deleted count until their last grant expires"}
		}
		if !n.Operator {
			if err := addressFree(tx.View(), n.Owner, uris); err != nil {
				return App{}, err
			}
		}
		a, err := identity.AddApp(tx, identity.App{ClientID: clientID, Secret: state.HashSecret(secret),
			SecretEnd: endOf(secret), Owner: n.Owner, Name: n.Name, Description: n.Description,
			RedirectURI: n.RedirectURI, MoreURIs: n.MoreURIs})
		return appOf(a), err
	})
	if err != nil {
		return "", App{}, err
	}
	return secret, a, nil
}

// addressFree returns a *FieldError if an app of the owner that the operator has disabled has one of the addresses. The
// owner could otherwise make that app again.
func addressFree(v state.View, owner int64, uris []string) error {
	for _, a := range identity.ListApps(v, owner) {
		shared := slices.ContainsFunc(a.RedirectURIs(), func(u string) bool { return contains(uris, u) })
		if !a.Disabled.IsZero() && shared {
			return &FieldError{"redirect_uri", "must not be that of an app which the operator has disabled"}
		}
	}
	return nil
}

// enabledApps counts the apps that can be used.
func enabledApps(apps []identity.App) int {
	n := 0
	for _, a := range apps {
		if a.Disabled.IsZero() {
			n++
		}
	}
	return n
}

// endOf returns the last characters of a secret. They are of its checksum, which is no secret.
func endOf(secret string) string { return secret[len(secret)-shownEnd:] }

// UpdateApp makes all changes to an app, or none of them. Tokens, grants and consents stay. A code that was sent to an
// address which is no longer registered brings no tokens. It returns ErrNotFound, and *FieldError if a field breaks a
// rule or the owner's logos are too large together.
func (c *Client) UpdateApp(ctx context.Context, app int64, change AppChange) (App, error) {
	return c.updateApp(ctx, app, change, func(*state.Tx, *identity.App) error { return nil })
}

// UpdateOwnApp changes an app, as UpdateApp does, for its owner. It never enables or disables the app. It returns
// ErrKeysForbidden if the owner's ceilings forbid to create keys, except for a change that only removes the logo.
func (c *Client) UpdateOwnApp(ctx context.Context, app int64, change AppChange) (App, error) {
	change.Enabled = nil
	if change.Logo != nil && len(*change.Logo) == 0 && change.Name == nil && change.Description == nil &&
		change.RedirectURIs == nil {
		return c.UpdateApp(ctx, app, change)
	}
	return c.updateApp(ctx, app, change, func(tx *state.Tx, a *identity.App) error {
		if err := ownerMayChange(tx, a); err != nil || change.RedirectURIs == nil || !a.Disabled.IsZero() {
			return err
		}
		return addressFree(tx.View(), a.Owner, *change.RedirectURIs)
	})
}

// ownerMayChange returns ErrKeysForbidden if the ceilings of the app's owner forbid to create keys.
func ownerMayChange(tx *state.Tx, a *identity.App) error {
	if u, ok := identity.FindUser(tx.View(), a.Owner); !ok || !identity.MayCreateKeys(tx.View(), &u) {
		return ErrKeysForbidden
	}
	return nil
}

// updateApp changes an app. It checks and draws outside the transaction, because decoding a logo takes long and no
// command may hold up the writer. allowed decides in the transaction who may change the app, so that an owner who has
// just lost it changes nothing.
func (c *Client) updateApp(ctx context.Context, app int64, change AppChange,
	allowed func(*state.Tx, *identity.App) error) (App, error) {
	var logo []byte
	if change.Logo != nil && len(*change.Logo) > 0 {
		var err error
		if logo, err = c.logos.draw(*change.Logo); err != nil {
			return App{}, err
		}
	}
	var err error
	if change.Name != nil {
		err = checkName(*change.Name)
	}
	if err == nil && change.Description != nil {
		err = checkDescription(*change.Description)
	}
	if err == nil && change.RedirectURIs != nil {
		err = checkRedirects("redirect_uris", *change.RedirectURIs)
	}
	if err != nil {
		return App{}, err
	}
	return c.changeApp(ctx, app, func(tx *state.Tx, a *identity.App) error {
		if err := allowed(tx, a); err != nil {
			return err
		}
		set(&a.Name, change.Name)
		set(&a.Description, change.Description)
		if change.RedirectURIs != nil {
			uris := slices.Clone(*change.RedirectURIs)
			a.RedirectURI, a.MoreURIs = uris[0], uris[1:]
		}
		if e := change.Enabled; e != nil && *e {
			a.Disabled = time.Time{}
		} else if e != nil && a.Disabled.IsZero() {
			a.Disabled = tx.Now()
		}
		if change.Logo == nil {
			return nil
		}
		a.Logo = logo
		// The sum is counted in the transaction. Two logos that are saved at once could otherwise exceed it together.
		size := len(logo)
		for _, other := range identity.ListApps(tx.View(), a.Owner) {
			if other.ID != a.ID {
				size += len(other.Logo)
			}
		}
		if size > maxLogos {
			return &FieldError{"logo", "must leave the logos of all apps of its owner below 512 KB together"}
		}
		return nil
	})
}

// RotateSecret gives an app a new secret, which cannot be read later. The old one is accepted for overlap more, and a
// still older one ends at once. Tokens stay. The overlap is at most MaxKeyOverlap. It returns ErrNotFound.
func (c *Client) RotateSecret(ctx context.Context, app int64, overlap time.Duration) (secret string, a App, err error) {
	return c.rotateSecret(ctx, app, overlap, func(*state.Tx, *identity.App) error { return nil })
}

// RotateOwnSecret gives an app a new secret, as RotateSecret does, for its owner. It returns ErrKeysForbidden if the
// owner's ceilings forbid to create keys.
func (c *Client) RotateOwnSecret(ctx context.Context, app int64, overlap time.Duration) (string, App, error) {
	return c.rotateSecret(ctx, app, overlap, ownerMayChange)
}

// rotateSecret gives an app a new secret and keeps the old one for overlap, with when it was last used, so that an
// owner sees whether a server still sends it.
func (c *Client) rotateSecret(ctx context.Context, app int64, overlap time.Duration,
	allowed func(*state.Tx, *identity.App) error) (secret string, a App, err error) {
	if overlap < 0 || overlap > MaxKeyOverlap {
		return "", App{}, &FieldError{"overlap", "must be between 0 and 30 days"}
	}
	if secret, err = kindSecret.mint(c.random); err != nil {
		return "", App{}, err
	}
	a, err = c.changeApp(ctx, app, func(tx *state.Tx, a *identity.App) error {
		if err := allowed(tx, a); err != nil {
			return err
		}
		a.Previous, a.PreviousUntil = a.Secret, tx.Now().Add(overlap)
		a.PreviousEnd, a.PreviousUsed = a.SecretEnd, a.SecretUsed
		a.Secret, a.SecretEnd, a.SecretUsed = state.HashSecret(secret), endOf(secret), time.Time{}
		if overlap == 0 {
			dropPreviousSecret(a)
		}
		return nil
	})
	if err != nil {
		return "", App{}, err
	}
	return secret, a, nil
}

// dropPreviousSecret ends the overlap after a rotation, so that the old secret is refused from now
// on.
func dropPreviousSecret(a *identity.App) {
	a.Previous, a.PreviousUntil, a.PreviousEnd, a.PreviousUsed = state.Hash{}, time.Time{}, "", time.Time{}
}

// EndPreviousSecret refuses the secret before the last rotation from now on. A second call changes nothing.
func (c *Client) EndPreviousSecret(ctx context.Context, app int64) (App, error) {
	return c.changeApp(ctx, app, func(_ *state.Tx, a *identity.App) error {
		dropPreviousSecret(a)
		return nil
	})
}

// noteUse records that a secret of the app brought tokens, at most once an hour, in the commit of the tokens.
func noteUse(tx *state.Tx, app identity.App, secret state.Hash) error {
	used := &app.SecretUsed
	if !app.Secret.Equal(secret) {
		used = &app.PreviousUsed
	}
	if tx.Now().Sub(*used) < usedAgain {
		return nil
	}
	*used = tx.Now()
	return identity.PutApp(tx, app)
}

// DisableApp makes an app and all its tokens invalid until a change of the app enables it again.
func (c *Client) DisableApp(ctx context.Context, app int64) error {
	_, err := c.UpdateApp(ctx, app, AppChange{Enabled: new(bool)})
	return err
}

// DeleteApp ends an app for good, in one commit with all its secrets, codes, grants, tokens and consents. It returns
// ErrNotFound if the app does not exist or was deleted before.
func (c *Client) DeleteApp(ctx context.Context, app int64) error {
	return c.deleteApp(ctx, app, func(*identity.App) error { return nil })
}

// DeleteOwnApp deletes an app, as DeleteApp does, for its owner. It returns ErrAppDisabled if the operator has disabled
// the app. The owner could otherwise delete what the operator keeps as disabled, and make it again.
func (c *Client) DeleteOwnApp(ctx context.Context, app int64) error {
	return c.deleteApp(ctx, app, func(a *identity.App) error {
		if !a.Disabled.IsZero() {
			return ErrAppDisabled
		}
		return nil
	})
}

// deleteApp deletes an app if may, which is called in the same transaction, returns nil. Otherwise it returns may's
// error, or ErrNotFound.
func (c *Client) deleteApp(ctx context.Context, app int64, may func(*identity.App) error) error {
	return do(ctx, c, nil, func(tx *state.Tx) error {
		a, ok := identity.FindApp(tx.View(), app)
		if !ok || !a.Gone.IsZero() {
			return ErrNotFound
		}
		if err := may(&a); err != nil {
			return err
		}
		return identity.DeleteApp(tx, a)
	})
}

// AppUse counts the users who have allowed an app, also for each scope, and the grants that are in force, and returns
// when the first and the last of them were made. It reads all grants of the app.
func (c *Client) AppUse(app int64) AppUse {
	v := c.state.View()
	use := AppUse{Scopes: map[string]int{}}
	seen := map[int64][]string{} // scopes by user
	for g := range identity.GrantsOfApp(v, app) {
		if !g.Live(v.Now()) || g.Code.Used.IsZero() {
			continue
		}
		use.Grants++
		if use.First.IsZero() || g.Created.Before(use.First) {
			use.First = g.Created
		}
		if g.Created.After(use.Latest) {
			use.Latest = g.Created
		}
		for _, s := range g.Scopes {
			if !contains(seen[g.User], s) {
				seen[g.User] = append(seen[g.User], s)
				use.Scopes[s]++
			}
		}
	}
	use.Users = len(seen)
	return use
}

// changeApp runs change in a command on an app that exists, and stores the result. A deleted app
// counts as missing.
func (c *Client) changeApp(ctx context.Context, id int64, change func(*state.Tx, *identity.App) error) (App, error) {
	return decide(ctx, c, nil, func(tx *state.Tx) (App, error) {
		a, ok := identity.FindApp(tx.View(), id)
		if !ok || !a.Gone.IsZero() {
			return App{}, ErrNotFound
		}
		if err := change(tx, &a); err != nil {
			return App{}, err
		}
		return appOf(a), identity.PutApp(tx, a)
	})
}

// App returns an app by its number, even if it is disabled. An app that was deleted is ErrNotFound, even while its
// record stays for the tokens that name it.
func (c *Client) App(id int64) (App, error) { return foundApp(identity.FindApp(c.state.View(), id)) }

// AppByClientID returns an app by its public id, even if it is disabled. The error is the same as for App.
func (c *Client) AppByClientID(clientID string) (App, error) {
	return foundApp(identity.FindAppByClientID(c.state.View(), clientID))
}

// foundApp returns an app as the package shows it, or ErrNotFound if it does not exist or was erased.
func foundApp(a identity.App, ok bool) (App, error) {
	if !ok || !a.Gone.IsZero() {
		return App{}, ErrNotFound
	}
	return appOf(a), nil
}

// Apps returns the apps of a user, oldest first. The owner 0 means the apps of all users.
func (c *Client) Apps(owner int64) []App {
	return each(identity.ListApps(c.state.View(), owner), appOf)
}
