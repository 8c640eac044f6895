package tokens

import (
	"context"
	"slices"
	"time"

	"stagedoor/state"
)

// maxUsed is how many marks a record keeps. A mark lives for half an hour at most, and
// a record belongs to one user and one app, so no other user is affected by the limit.
const maxUsed = 100

// Once identifies something that a browser holds and that may be used once.
type Once struct {
	ID      string    // random; "": it may be used any number of times
	Expires time.Time // when it stops working in any case
}

// use adds a mark to marks: ErrUsed if it is there already, *Limited if marks are full.
func (o Once) use(marks []state.Used, now time.Time) ([]state.Used, error) {
	live := slices.DeleteFunc(slices.Clone(marks), func(u state.Used) bool { return !now.Before(u.Expires) })
	if slices.ContainsFunc(live, func(u state.Used) bool { return u.ID == o.ID }) || !now.Before(o.Expires) {
		return marks, ErrUsed
	}
	if len(live) >= maxUsed {
		return marks, &Limited{RetryAfter: live[0].Expires.Sub(now)}
	}
	return append(live, state.Used{ID: o.ID, Expires: o.Expires}), nil
}

// UseTopUpLink marks a top-up link of a grant as used and returns the user whose
// account it credits. ErrNotFound: the grant was revoked, or its user disabled; ErrUsed;
// *Limited.
func (c *Client) UseTopUpLink(ctx context.Context, grant string, link Once) (User, error) {
	return decide(ctx, c, nil, func(tx *state.Tx) (User, error) {
		g, ok := tx.View().Grant(grant)
		if !ok || !g.Live(tx.Now()) {
			return User{}, ErrNotFound
		}
		u, ok := tx.View().User(g.User)
		if !ok || !u.Active() {
			return User{}, ErrNotFound
		}
		var err error
		if g.TopUps, err = link.use(g.TopUps, tx.Now()); err != nil {
			return User{}, err
		}
		return userOf(u), tx.PutGrant(g)
	})
}
