package state_test

import (
	"errors"
	"testing"
	"time"

	"stagedoor/state"
	"stagedoor/state/identity"
)

func TestHashesFindWholeAndOnce(t *testing.T) {
	s := newState(t)
	put := func(id string, h state.Hash) map[string]func(*state.Tx) error {
		return map[string]func(*state.Tx) error{
			"session": func(tx *state.Tx) error {
				return identity.PutSession(tx, identity.Session{ID: id, Hash: h, User: 1, Expires: start})
			},
			"developer": func(tx *state.Tx) error {
				return identity.PutDeveloperToken(tx, identity.DeveloperToken{ID: id, Hash: h, User: 1})
			},
			"grant": func(tx *state.Tx) error {
				return identity.PutGrant(tx,
					identity.Grant{ID: id, User: 1, App: 1, Family: h, Code: identity.Code{Hash: h}, Expires: start})
			},
			"access": func(tx *state.Tx) error {
				return identity.PutAccessToken(tx,
					identity.AccessToken{ID: id, Hash: h, Grant: "a", Expires: start.Add(time.Hour)})
			},
		}
	}
	for _, cmd := range put("a", hash(1)) {
		must(t, s, cmd)
	}
	find := func(h state.Hash) map[string]bool {
		v := s.View()
		_, session := identity.FindSession(v, h)
		_, developer := identity.FindDeveloperTokenByHash(v, h)
		_, grant := identity.FindGrantByFamily(v, h)
		_, _, access := identity.FindAccessToken(v, h)
		return map[string]bool{"session": session, "developer": developer, "grant": grant, "access": access}
	}
	for name := range find(hash(1)) {
		if !find(hash(1))[name] || find(twin(hash(1)))[name] || find(hash(2))[name] {
			t.Errorf("%s: got %v, twin %v, other %v", name, find(hash(1))[name], find(twin(hash(1)))[name],
				find(hash(2))[name])
		}
		for what, c := range map[string]struct {
			id   string
			h    state.Hash
			want error
		}{
			"another's hash": {"b", hash(1), state.ErrExists},
			"half of it":     {"b", twin(hash(1)), state.ErrExists},
			"no hash":        {"b", state.Hash{}, state.ErrInvalid},
			"no id":          {"", hash(3), state.ErrInvalid},
			"its own":        {"a", hash(1), nil},
		} {
			if err := try(s, put(c.id, c.h)[name]); !errors.Is(err, c.want) {
				t.Errorf("%s, %s: got %v, want %v", name, what, err, c.want)
			}
		}
	}
}
