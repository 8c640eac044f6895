package identity_test

import (
	"testing"
	"time"

	"stagedoor/state/identity"
)

func TestSessionIsOfAUserAndAnEpoch(t *testing.T) {
	s := identity.Session{User: 1, Epoch: 2, Expires: start}
	for name, c := range map[string]struct {
		u    identity.User
		at   time.Duration
		want bool
	}{
		"live":         {identity.User{ID: 1, Epoch: 2, Status: identity.UserActive}, -1, true},
		"expired":      {identity.User{ID: 1, Epoch: 2, Status: identity.UserActive}, 0, false},
		"another user": {identity.User{ID: 2, Epoch: 2, Status: identity.UserActive}, -1, false},
		"new password": {identity.User{ID: 1, Epoch: 3, Status: identity.UserActive}, -1, false},
		"disabled":     {identity.User{ID: 1, Epoch: 2, Status: identity.UserDisabled}, -1, false},
	} {
		if got := s.Live(&c.u, start.Add(c.at)); got != c.want {
			t.Errorf("%s: got %v", name, got)
		}
	}
}
