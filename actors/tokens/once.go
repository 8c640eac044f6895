package tokens

import (
	"context"
	"slices"
	"time"

	"stagedoor/state"
)

// maxUsed is how many marks a record keeps. A record belongs to one user and one app, so
// no other user is affected when it is full.
const maxUsed = 100

// Once identifies something that a browser holds and that may be used once.
type Once struct {
	ID      string    // random; "": it may be used any number of times
	Expires time.Time // when it stops working in any case
}

// use adds a mark to marks, or returns ErrUsed if it is there already. Where there are too
// many, the one that expires first gives way to a mark without an id, which stands for
// everything that expires no later: it works no more, used or not.
func (o Once) use(marks []state.Used, now time.Time) ([]state.Used, error) {
	live := slices.DeleteFunc(slices.Clone(marks), func(u state.Used) bool { return !now.Before(u.Expires) })
	used := func(u state.Used) bool { return u.ID == o.ID || u.ID == "" && !o.Expires.After(u.Expires) }
	if !now.Before(o.Expires) || slices.ContainsFunc(live, used) {
		return marks, ErrUsed
	}
	live = append(live, state.Used{ID: o.ID, Expires: o.Expires})
	if len(live) > maxUsed {
		slices.SortFunc(live, func(a, b state.Used) int { return a.Expires.Compare(b.Expires) })
		live = slices.Delete(live, 0, len(live)-maxUsed)
		live[0].ID = ""
	}
	return live, nil
}

// UseTopUpLink marks a top-up link of a grant as used and returns the user whose
// account it credits. ErrNotFound: the grant was revoked, or its user disabled; ErrUsed.
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
