package identity_test

import (
	"context"
	"fmt"
	"testing"
	"time"

	"stagedoor/state"
	"stagedoor/state/identity"
	"stagedoor/state/journal"
)

// A day of guessing at full speed leaves little more than a thousand records, and the log still shows how often.
func TestFailedSignInsCannotFillTheAuditLog(t *testing.T) {
	clock := newClock()
	s := open(t, journal.NewMemory(), clock.Now)
	const hours, each = 24, 1000
	ctx := state.WithActor(context.Background(), state.Actor{Kind: state.ActorVisitor, Address: "192.0.2.1"})
	for range hours {
		for range each {
			if err := identity.RecordFailedSignIn(ctx, s, state.Target{Kind: "user"}, "wrong"); err != nil {
				t.Fatal(err)
			}
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
