package state_test

import (
	"testing"
	"time"

	"stagedoor/state"
)

func TestSessionIsOfAUserAndAnEpoch(t *testing.T) {
	s := state.Session{User: 1, Epoch: 2, Expires: start}
	for name, c := range map[string]struct {
		u    state.User
		at   time.Duration
		want bool
	}{
		"live":         {state.User{ID: 1, Epoch: 2, Status: state.UserActive}, -1, true},
		"expired":      {state.User{ID: 1, Epoch: 2, Status: state.UserActive}, 0, false},
		"another user": {state.User{ID: 2, Epoch: 2, Status: state.UserActive}, -1, false},
		"new password": {state.User{ID: 1, Epoch: 3, Status: state.UserActive}, -1, false},
		"disabled":     {state.User{ID: 1, Epoch: 2, Status: state.UserDisabled}, -1, false},
	} {
		if got := s.Live(&c.u, start.Add(c.at)); got != c.want {
			t.Errorf("%s: got %v", name, got)
		}
	}
}
