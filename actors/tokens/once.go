package tokens

import (
	"context"
	"slices"
	"time"

	"stagedoor/state"
	"stagedoor/state/identity"
)

// maxUsed is the number of marks that a record keeps. A record belongs to one user and one app, so that a full one
// affects no other user.
const maxUsed = 100

// Once identifies a form or link in a browser that may be used once.
type Once struct {
	ID      string    // random; "" means that it may be used any number of times
	Expires time.Time // the time after which it cannot be used
}

// use adds a mark to marks, or returns ErrUsed if it is there already. If there are too many marks, a mark without
// an id replaces the one that expires first. It stands for everything that expires no later and makes all of that
// unusable.
func (o Once) use(marks []identity.Used, now time.Time) ([]identity.Used, error) {
	live := slices.DeleteFunc(slices.Clone(marks), func(u identity.Used) bool { return !now.Before(u.Expires) })
	used := func(u identity.Used) bool { return u.ID == o.ID || u.ID == "" && !o.Expires.After(u.Expires) }
	if !now.Before(o.Expires) || slices.ContainsFunc(live, used) {
		return marks, ErrUsed
	}
	live = append(live, identity.Used{ID: o.ID, Expires: o.Expires})
	if len(live) > maxUsed {
		slices.SortFunc(live, func(a, b identity.Used) int { return a.Expires.Compare(b.Expires) })
		live = slices.Delete(live, 0, len(live)-maxUsed)
		live[0].ID = ""
	}
	return live, nil
}

// UseTopUpLink marks a top-up link of a grant as used and returns the user whose account it credits. It returns
// ErrNotFound if the grant was revoked, or its user or its app was disabled or deleted, and ErrUsed.
func (c *Client) UseTopUpLink(ctx context.Context, grant string, link Once) (User, error) {
	return decide(ctx, c, nil, func(tx *state.Tx) (User, error) {
		g, ok := identity.FindGrant(tx.View(), grant)
		if !ok || !g.Live(tx.Now()) {
			return User{}, ErrNotFound
		}
		a, ok := identity.FindApp(tx.View(), g.App)
		if !ok || !a.Disabled.IsZero() { // a deleted app is disabled
			return User{}, ErrNotFound
		}
		u, ok := identity.FindUser(tx.View(), g.User)
		if !ok || !u.Active() {
			return User{}, ErrNotFound
		}
		var err error
		if g.TopUps, err = link.use(g.TopUps, tx.Now()); err != nil {
			return User{}, err
		}
		return userOf(u), identity.PutGrant(tx, g)
	})
}
