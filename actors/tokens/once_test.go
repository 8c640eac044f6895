package tokens_test

import (
	"errors"
	"fmt"
	"testing"
	"time"

	"stagedoor/actors/tokens"
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

// TestMarksOfOneUserAndAppAreBoundedAndHoldUpNobodyElse: what remembers that something
// was used belongs to a user and an app.
func TestMarksOfOneUserAndAppAreBoundedAndHoldUpNobodyElse(t *testing.T) {
	b := newBench(t, tokens.Config{})
	a := b.approval()
	approve := func(i int) error {
		a.Request = tokens.Once{ID: fmt.Sprint(i), Expires: b.clock.Now().Add(30 * time.Minute)}
		_, err := b.Approve(ctx, a)
		return err
	}
	for i := range 100 {
		if err := approve(i); err != nil {
			t.Fatal(err)
		}
	}
	var limited *tokens.Limited
	if err := approve(100); !errors.As(err, &limited) || limited.RetryAfter != 30*time.Minute {
		t.Errorf("the 101st: %v", err)
	}
	if err := approve(0); !errors.Is(err, tokens.ErrUsed) {
		t.Errorf("the first again: %v", err)
	}
	other := b.signUp(t, "grace")
	a.User = other.ID
	if err := approve(100); err != nil {
		t.Errorf("another user: %v", err)
	}
	a.User = b.user.ID
	b.clock.Add(30 * time.Minute)
	if err := approve(101); err != nil {
		t.Errorf("when the marks have expired: %v", err)
	}
}
