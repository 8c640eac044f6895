package identity_test

import (
	"fmt"
	"maps"
	"testing"
	"time"

	"stagedoor/state"
	"stagedoor/state/identity"
	"stagedoor/state/journal"
)

func fail(t *testing.T, s *state.State, kind identity.FailureKind) {
	t.Helper()
	ctx := state.WithActor(t.Context(), state.Actor{Kind: state.ActorVisitor, Address: "192.0.2.1"})
	if err := identity.RecordFailedSignIn(ctx, s, kind, state.Target{Kind: "user"}, fmt.Sprint(kind)); err != nil {
		t.Fatal(err)
	}
}

// A day of guessing at full speed leaves little more than a thousand records, and the log still shows how often.
func TestFailedSignInsCannotFillTheAuditLog(t *testing.T) {
	clock := newClock()
	s := open(t, journal.NewMemory(), clock.Now)
	const hours, each = 24, 1000
	for range hours {
		for range each {
			fail(t, s, identity.WrongPassword)
		}
		clock.Add(time.Hour)
	}
	n := 0
	for r, err := range s.AuditLog(t.Context(), state.AuditQuery{Action: "sign_in.fail"}) {
		if err != nil {
			t.Fatal(err)
		}
		if n == 0 {
			if got := fmt.Sprintf("%s %s", r.Changes[0].Field, r.Changes[0].After); got != "failures_this_hour 512" {
				t.Errorf("the last record has %s", got)
			}
		}
		n++
	}
	if n != hours*(32+4) { // 64, 128, 256 and 512
		t.Errorf("%d records of %d failures", n, hours*each)
	}
}

func TestWrongPasswordsHideNoOtherFailuresOfSigningIn(t *testing.T) {
	s := open(t, journal.NewMemory(), newClock().Now)
	for range 40 {
		fail(t, s, identity.WrongPassword)
	}
	others := []identity.FailureKind{identity.WrongCode, identity.WrongAdminToken, identity.RefusedIdentity,
		identity.RefusedPasskey}
	for _, kind := range others {
		fail(t, s, kind)
	}
	counts := map[string]int{}
	for r, err := range s.AuditLog(t.Context(), state.AuditQuery{Action: "sign_in.fail"}) {
		if err != nil {
			t.Fatal(err)
		}
		_, reason := r.Changes[1].Texts()
		counts[reason]++
	}
	want := map[string]int{fmt.Sprint(identity.WrongPassword): 32}
	for _, kind := range others {
		want[fmt.Sprint(kind)] = 1
	}
	if !maps.Equal(counts, want) {
		t.Errorf("records by kind: %v, want %v", counts, want)
	}
}
