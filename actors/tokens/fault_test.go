package tokens_test

import (
	"context"
	"errors"
	"testing"
	"time"

	"stagedoor/actors/tokens"
	"stagedoor/state/journal"
	"stagedoor/state/statetest"
)

func TestFullDiskUsesNothingUp(t *testing.T) {
	store := statetest.NewFaulty()
	b := newBenchOn(t, store, tokens.Config{})
	code, pair := b.code(t), b.tokens(t)
	store.Refuse(journal.ErrReadOnly)
	for name, try := range map[string]func() error{
		"exchange": func() error { return second(b.exchange(code)) },
		"refresh":  func() error { return second(b.refresh(pair.Refresh)) },
		"revoke":   func() error { return b.Revoke(ctx, b.creds, pair.Refresh) },
		"approve":  func() error { return second(b.Approve(ctx, b.approval())) },
		"status":   func() error { return second(b.SetUserStatus(ctx, b.user.ID, tokens.StatusDisabled)) },
	} {
		if err := try(); !errors.Is(err, tokens.ErrUnavailable) || errors.Is(err, tokens.ErrInvalidGrant) {
			t.Errorf("%s: got %v, want ErrUnavailable", name, err)
		}
	}
	b.alive(t, pair)
	store.Refuse(nil)
	if _, err := b.exchange(code); err != nil {
		t.Errorf("the code afterwards: %v", err)
	}
	if _, err := b.refresh(pair.Refresh); err != nil {
		t.Errorf("the refresh token afterwards: %v", err)
	}
}

func TestACancelledCallChangesNothing(t *testing.T) {
	b := newBench(t, tokens.Config{})
	code, why := b.code(t), errors.New("gone")
	gone, leave := context.WithCancelCause(ctx)
	leave(why)
	if _, err := b.Exchange(gone, tokens.Exchange{Client: b.creds, Code: code, RedirectURI: callback}); !errors.Is(err,
		why) {
		t.Errorf("got %v, want the cause", err)
	}
	if _, err := b.exchange(code); err != nil {
		t.Errorf("the code afterwards: %v", err)
	}
}

func TestStoppedRegistryAnswers(t *testing.T) {
	b := newBench(t, tokens.Config{})
	pair := b.tokens(t)
	limit, cancel := context.WithTimeout(ctx, time.Minute)
	defer cancel()
	if err := b.sys.Stop(limit); err != nil {
		t.Fatal(err)
	}
	if _, err := b.refresh(pair.Refresh); !errors.Is(err, tokens.ErrUnavailable) {
		t.Errorf("got %v, want ErrUnavailable", err)
	}
	if _, _, err := b.login("ada", secretWord); !errors.Is(err, tokens.ErrUnavailable) {
		t.Errorf("got %v, want ErrUnavailable", err)
	}
	if _, err := b.Lookup(pair.Access); err != nil {
		t.Errorf("reading goes on: %v", err)
	}
}

// TestACodeIsUsedEvenIfItsAnswerIsLost: B4. The exchange was written and its answer
// lost; the next process knows the code as used, and its user can begin again.
func TestACodeIsUsedEvenIfItsAnswerIsLost(t *testing.T) {
	store := statetest.NewFaulty()
	b := newBenchOn(t, store, tokens.Config{})
	code := b.code(t)
	// As if the process died after the commit, so that no caller gets the reply.
	store.After(func([]journal.Batch) error { return journal.ErrPoisoned })
	if pair, err := b.exchange(code); !errors.Is(err, tokens.ErrUnavailable) || pair.Access != "" {
		t.Errorf("got %+v, %v, want ErrUnavailable", pair, err)
	}
	store.After(nil)
	b.reopen(t, tokens.Config{})
	if pair, err := b.exchange(code); !errors.Is(err, tokens.ErrInvalidGrant) || pair.Access != "" {
		t.Errorf("again: got %+v, %v, want ErrInvalidGrant", pair, err)
	}
	if n := b.devices(); n != 0 {
		t.Errorf("the replay left %d grants", n)
	}
	b.alive(t, b.tokens(t))
}
