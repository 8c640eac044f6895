package identity_test

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"stagedoor/state"
	"stagedoor/state/identity"
	"stagedoor/state/journal"
)

func TestGrantsAreListedByUserAndAppWithoutRevoked(t *testing.T) {
	store := journal.NewMemory()
	s := open(t, store, newClock().Now)
	for n, parties := range [][2]int64{{1, 1}, {1, 2}, {2, 1}, {1, 1}, {1, 256}, {256, 1}} {
		must(t, s, func(tx *state.Tx) error {
			return identity.PutGrant(
				tx,
				identity.Grant{ID: fmt.Sprint("grt_", n), User: parties[0], App: parties[1], Family: hash(n),
					Code: identity.Code{Hash: hash(n)}, Scopes: []string{"profile"}, Expires: start.Add(time.Hour)},
			)
		})
	}
	must(t, s, func(tx *state.Tx) error {
		g, _ := identity.FindGrant(tx.View(), "grt_0")
		g.Revoke(start, "first")
		g.Revoke(start.Add(time.Hour), "second")
		return identity.PutGrant(tx, g)
	})
	for range 2 {
		for _, c := range []struct {
			user, app int64
			want      []string
		}{{1, 1, []string{"grt_3"}}, {1, 0, []string{"grt_3", "grt_1", "grt_4"}}, {2, 0, []string{"grt_2"}},
			{256, 0, []string{"grt_5"}}, {3, 0, nil}} {
			var got []string
			for _, g := range identity.ListGrants(s.View(), c.user, c.app) {
				got = append(got, g.ID)
			}
			if !slices.Equal(got, c.want) {
				t.Errorf("user %d, app %d: got %v, want %v", c.user, c.app, got, c.want)
			}
		}
		if g, ok := identity.FindGrantByFamily(s.View(), hash(0)); !ok || g.Live(start) || g.Reason != "first" ||
			!g.Revoked.Equal(start) {
			t.Errorf("the revoked one: got %+v, %v", g, ok)
		}
		s = open(t, store, newClock().Now)
	}
}
