package tokens_test

import (
	"errors"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/sourcegraph/conc/pool"

	"stagedoor/actors/tokens"
	"stagedoor/state/identity"
)

func TestLinkEndsWithEveryChangeThatEndsSessions(t *testing.T) {
	b := newBench(t, tokens.Config{})
	link := func() string {
		t.Helper()
		secret, _, err := b.ResetLink(ctx, b.user.ID, "root")
		if err != nil {
			t.Fatal(err)
		}
		return secret
	}
	used := func(what, secret string) {
		t.Helper()
		if _, _, err := b.CheckLink(secret); !errors.Is(err, tokens.ErrUsed) {
			t.Errorf("%s: %v", what, err)
		}
	}
	l := link()
	if _, u, err := b.CheckLink(l); err != nil || u.ID != b.user.ID {
		t.Errorf("%+v, %v", u, err)
	}
	if err := b.EndSessions(ctx, b.user.ID); err != nil {
		t.Fatal(err)
	}
	used("after signing out everywhere", l)
	l = link()
	next := link()
	used("after the next link", l)
	b.clock.Add(tokens.ResetLinkLife)
	used("a day later", next)
	l = link()
	if _, err := b.SetUserStatus(ctx, b.user.ID, tokens.StatusDisabled); err != nil {
		t.Fatal(err)
	}
	used("of a disabled user", l)
	if _, _, err := b.ResetLink(ctx, b.user.ID, ""); !errors.Is(err, tokens.ErrUserDisabled) {
		t.Errorf("a link for a disabled user: %v", err)
	}
	if _, _, err := b.ResetLink(ctx, 99, ""); !errors.Is(err, tokens.ErrNotFound) {
		t.Errorf("a link for no user: %v", err)
	}
	if _, err := b.UseLink(ctx, l, "", "a long password"); !errors.Is(err, tokens.ErrUsed) {
		t.Errorf("the link was used: %v", err)
	}
}

func TestInvitationMakesOneUserOnce(t *testing.T) {
	b := newBench(t, tokens.Config{})
	g, err := b.CreateGroup(ctx, "staff", tokens.CeilingChange{})
	if err != nil {
		t.Fatal(err)
	}
	want := tokens.Invitation{Username: "dora", Email: "dora@example.com", Group: g.ID, By: "root"}
	secret, l, err := b.Invite(ctx, want)
	if err != nil || !l.Expires.Equal(b.clock.Now().Add(tokens.InvitationLife)) {
		t.Fatalf("%+v, %v", l, err)
	}
	for name, bad := range map[string]string{"another": tokens.Mint("li_"), "a torn one": secret[:len(secret)-1],
		"none": "", "a session": strings.Replace(secret, "li_", "se_", 1)} {
		if _, _, err := b.CheckLink(bad); !errors.Is(err, tokens.ErrUsed) {
			t.Errorf("%s: %v", name, err)
		}
	}
	if _, err := b.UseLink(ctx, secret, b.user.Username, secretWord); !errors.Is(err, tokens.ErrExists) {
		t.Errorf("a name that is taken: %v", err)
	}
	b.reopen(t, tokens.Config{}) // the store has the hash only
	results := make(chan error, 4)
	for range 4 {
		go func() {
			_, err := b.UseLink(ctx, secret, "dora2", secretWord)
			results <- err
		}()
	}
	made := 0
	for range 4 {
		if err := <-results; err == nil {
			made++
		} else if !errors.Is(err, tokens.ErrUsed) {
			t.Error(err)
		}
	}
	u, err := b.UserByName("dora2")
	if made != 1 || err != nil || u.Email != "dora@example.com" || u.Admin || len(b.Invitations()) != 0 {
		t.Errorf("made %d: %+v, %v", made, u, err)
	}
	if kept, _ := identity.FindUser(b.state.View(), u.ID); kept.Group != g.ID {
		t.Errorf("the user is in group %d", kept.Group)
	}
}

func TestInvitationEndsWhenItIsWithdrawnOrItsGroupIsDeleted(t *testing.T) {
	b := newBench(t, tokens.Config{})
	g, err := b.CreateGroup(ctx, "staff", tokens.CeilingChange{})
	if err != nil {
		t.Fatal(err)
	}
	invite := func(name string, group int64) (string, identity.Link) {
		secret, l, err := b.Invite(ctx, tokens.Invitation{Username: name, Group: group})
		if err != nil {
			t.Fatal(err)
		}
		return secret, l
	}
	first, l := invite("dora", 0)
	second, _ := invite("eva", g.ID)
	third, _ := invite("fay", 0)
	if _, err := b.WithdrawInvitation(ctx, l.ID); err != nil {
		t.Fatal(err)
	}
	if _, err := b.WithdrawInvitation(ctx, l.ID); !errors.Is(err, tokens.ErrNotFound) {
		t.Errorf("again: %v", err)
	}
	if _, err := b.DeleteGroup(ctx, g.ID); err != nil {
		t.Fatal(err)
	}
	b.clock.Add(tokens.InvitationLife - time.Second)
	if _, _, err := b.CheckLink(third); err != nil {
		t.Errorf("the last second: %v", err)
	}
	b.clock.Add(time.Second)
	for _, secret := range []string{first, second, third} {
		if _, err := b.UseLink(ctx, secret, "x", secretWord); !errors.Is(err, tokens.ErrUsed) {
			t.Errorf("the link was used: %v", err)
		}
	}
}

func TestOpenInvitationsAreBounded(t *testing.T) {
	b := newBench(t, tokens.Config{})
	var refused atomic.Int64
	inviting := pool.New().WithMaxGoroutines(100) // those that come together are one commit
	for range 1001 {
		inviting.Go(func() {
			_, _, err := b.Invite(ctx, tokens.Invitation{Username: "dora"})
			if errors.Is(err, tokens.ErrTooMany) {
				refused.Add(1)
			} else if err != nil {
				t.Error(err)
			}
		})
	}
	inviting.Wait()
	if refused.Load() != 1 {
		t.Errorf("%d of 1,001 invitations were refused", refused.Load())
	}
}
