package identity_test

import (
	"testing"
	"time"

	"stagedoor/state"
	"stagedoor/state/identity"
	"stagedoor/state/journal"
)

func TestAppsSurviveARestart(t *testing.T) {
	clock, store := newClock(), journal.NewMemory()
	s := open(t, store, clock.Now)
	want := identity.App{ClientID: "ci_a", Secret: hash(1), Previous: hash(2), PreviousUntil: start.Add(time.Hour),
		Owner: 7, Name: `<b>"A" & ü`, RedirectURI: "https://a.example/cb?x=1&y=<2>"}
	must(t, s, func(tx *state.Tx) (err error) { want, err = identity.AddApp(tx, want); return err })
	for name, a := range map[string]identity.App{
		"same client": {ClientID: "ci_a", Secret: hash(3), RedirectURI: "x"},
		"no client":   {Secret: hash(3), RedirectURI: "x"},
		"no secret":   {ClientID: "ci_b", RedirectURI: "x"},
	} {
		if err := try(s, func(tx *state.Tx) error { _, err := identity.AddApp(tx, a); return err }); err == nil {
			t.Errorf("%s: it was kept", name)
		}
	}
	s = open(t, store, clock.Now)
	for _, got := range [][]identity.App{identity.ListApps(s.View(), 7), identity.ListApps(s.View(), 0)} {
		if len(got) != 1 || got[0].RedirectURI != want.RedirectURI || got[0].Name != want.Name ||
			!got[0].PreviousUntil.Equal(want.PreviousUntil) {
			t.Errorf("got %+v, want %+v", got, want)
		}
	}
	a, ok := identity.FindAppByClientID(s.View(), "ci_a")
	if !ok || a.ID != 1 {
		t.Fatalf("got %+v, %v", a, ok)
	}
	for _, c := range []struct {
		h    state.Hash
		at   time.Duration
		want bool
	}{{hash(1), 0, true}, {hash(1), 48 * time.Hour, true}, {hash(2), time.Hour - 1, true}, {hash(2), time.Hour, false},
		{hash(3), 0, false}, {state.Hash{}, 0, false}} {
		if got := a.Authenticates(c.h, start.Add(c.at)); got != c.want {
			t.Errorf("after %v: got %v, want %v", c.at, got, c.want)
		}
	}
}
