package tokens_test

import (
	"errors"
	"fmt"
	"testing"
	"time"

	"stagedoor/actors/tokens"
	"stagedoor/state/identity"
)

func TestAnAuthorizationRequestGetsOneCodeAlsoAfterARestart(t *testing.T) {
	b := newBench(t, tokens.Config{})
	a := b.approval()
	a.Request = tokens.Once{ID: "request", Expires: start.Add(30 * time.Minute)}
	if _, err := b.Approve(ctx, a); err != nil {
		t.Fatal(err)
	}
	for range 2 {
		if code, err := b.Approve(ctx, a); !errors.Is(err, tokens.ErrUsed) || code != "" {
			t.Errorf("a second time: %q, %v", code, err)
		}
		b.reopen(t, tokens.Config{})
	}
	b.clock.Add(30 * time.Minute)
	if code, err := b.Approve(ctx, a); !errors.Is(err, tokens.ErrUsed) || code != "" {
		t.Errorf("after its time, when the mark is gone: %q, %v", code, err)
	}
}

// TestMarksOfOneUserAndAppAreBoundedAndBlockNoOther: however many requests a user
// approves, the marks are few, no request gets two codes, and a fresh one gets its code.
func TestMarksOfOneUserAndAppAreBoundedAndBlockNoOther(t *testing.T) {
	b := newBench(t, tokens.Config{})
	a := b.approval()
	requests := make([]tokens.Once, 120)
	for i := range requests {
		requests[i] = tokens.Once{ID: fmt.Sprint(i), Expires: b.clock.Now().Add(30 * time.Minute)}
		b.clock.Add(time.Second)
	}
	for i, r := range requests {
		if i == 0 {
			continue // it waits while the others are approved
		}
		a.Request = r
		if _, err := b.Approve(ctx, a); err != nil {
			t.Fatalf("request %d: %v", i, err)
		}
	}
	for i, r := range requests {
		a.Request = r
		if code, err := b.Approve(ctx, a); !errors.Is(err, tokens.ErrUsed) || code != "" {
			t.Errorf("request %d again: %q, %v", i, code, err)
		}
	}
	if c, _ := identity.FindConsent(b.state.View(), b.user.ID, b.app.ID); len(c.Used) != 100 {
		t.Errorf("%d marks are kept", len(c.Used))
	}
	a.User = b.signUp(t, "grace").ID
	if _, err := b.Approve(ctx, a); err != nil {
		t.Errorf("another user: %v", err)
	}
}
