package tokens_test

import (
	"errors"
	"testing"

	"stagedoor/actors/tokens"
)

func TestLinkEndsWithEveryChangeThatEndsSessions(t *testing.T) {
	b := newBench(t, tokens.Config{})
	link := func() tokens.Link {
		t.Helper()
		l, err := b.UserLink(b.user.ID)
		if err != nil {
			t.Fatal(err)
		}
		return l
	}
	used := func(what string, l tokens.Link) {
		t.Helper()
		if _, err := b.CheckLink(l); !errors.Is(err, tokens.ErrUsed) {
			t.Errorf("%s: %v", what, err)
		}
	}
	l := link()
	if u, err := b.CheckLink(l); err != nil || u.ID != b.user.ID {
		t.Errorf("%+v, %v", u, err)
	}
	if err := b.EndSessions(ctx, b.user.ID); err != nil {
		t.Fatal(err)
	}
	used("after signing out everywhere", l)
	l = link()
	if _, err := b.SetUserStatus(ctx, b.user.ID, tokens.StatusDisabled); err != nil {
		t.Fatal(err)
	}
	used("of a disabled user", l)
	if _, err := b.UserLink(b.user.ID); !errors.Is(err, tokens.ErrUserDisabled) {
		t.Errorf("a link for a disabled user: %v", err)
	}
	if _, err := b.UserLink(99); !errors.Is(err, tokens.ErrNotFound) {
		t.Errorf("a link for no user: %v", err)
	}
	if _, err := b.UseLink(ctx, l, "", "a long password"); !errors.Is(err, tokens.ErrUsed) {
		t.Errorf("the link was used: %v", err)
	}
}
