package identity_test

import (
	"errors"
	"reflect"
	"testing"
	"time"

	"stagedoor/state"
	"stagedoor/state/identity"
)

func TestConsentsMergeAndFade(t *testing.T) {
	const uri = "https://a.example/cb"
	yes := func(uri string, until time.Duration, scopes ...string) identity.Given {
		return identity.Given{RedirectURI: uri, Scopes: scopes, Expires: start.Add(until)}
	}
	c := identity.Consent{User: 1, App: 1}.
		With(yes(uri, 90, "profile", "balance"), start).
		With(yes(uri, 95, "profile"), start).
		With(yes(uri, 97, "profile"), start).
		With(yes("https://b.example/", 50, "profile"), start)
	if len(c.Given) != 3 || !c.Expires.Equal(start.Add(97)) {
		t.Errorf("got %+v", c)
	}
	for _, q := range []struct {
		uri    string
		scopes []string
		at     time.Duration
		want   bool
	}{
		{uri, []string{"balance", "profile"}, 89, true},
		{uri, []string{"balance", "profile"}, 90, false},
		{uri, []string{"profile"}, 96, true},
		{uri, []string{"profile"}, 97, false},
		{uri + "/", []string{"profile"}, 0, false},
		{"https://b.example/", []string{"profile"}, 0, true},
		{"https://b.example/", []string{"balance"}, 0, false},
	} {
		if got := c.Covers(q.uri, q.scopes, start.Add(q.at)); got != q.want {
			t.Errorf("%+v: got %v", q, got)
		}
	}
	if later := c.With(yes(uri, 200, "balance"), start.Add(96)); len(later.Given) != 2 {
		t.Errorf("the expired stay: %+v", later.Given)
	}
	s := newState(t)
	must(t, s, func(tx *state.Tx) error { return identity.PutConsent(tx, c) })
	if got, ok := identity.FindConsent(s.View(), 1, 1); !ok || !reflect.DeepEqual(got, c) {
		t.Errorf("got %+v, %v", got, ok)
	}
	must(t, s, func(tx *state.Tx) error {
		identity.RemoveConsent(tx, 1, 1)
		identity.RemoveConsent(tx, 1, 2)
		return nil
	})
	if _, ok := identity.FindConsent(s.View(), 1, 1); ok {
		t.Error("found after its removal")
	}
	err := try(s, func(tx *state.Tx) error { return identity.PutConsent(tx, identity.Consent{User: 1, App: 1}) })
	if !errors.Is(err, state.ErrInvalid) {
		t.Errorf("without expiry: got %v", err)
	}
}
