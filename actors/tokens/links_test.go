package tokens_test

import (
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"stagedoor/actors/tokens"
	"stagedoor/state"
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
	g := b.group(t, "staff")
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
	g := b.group(t, "staff")
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
	err := state.Run(ctx, b.state, func(tx *state.Tx) error { // invitations one by one would take a second
		for n := range 999 {
			l := identity.Link{ID: fmt.Sprint("lnk_", n), Hash: state.HashSecret(fmt.Sprint(n)), Username: "dora",
				Created: tx.Now(), Expires: tx.Now().Add(tokens.InvitationLife)}
			if err := identity.PutLink(tx, l); err != nil {
				return err
			}
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	if _, _, err := b.Invite(ctx, tokens.Invitation{Username: "dora"}); err != nil {
		t.Errorf("the 1,000th: %v", err)
	}
	if _, _, err := b.Invite(ctx, tokens.Invitation{Username: "dora"}); !errors.Is(err, tokens.ErrTooMany) {
		t.Errorf("the 1,001st: %v", err)
	}
}

func TestAnInvitationTriesFewUsernames(t *testing.T) {
	b := newBench(t, tokens.Config{})
	secret, _, err := b.Invite(ctx, tokens.Invitation{Email: "dora@example.com"})
	if err != nil {
		t.Fatal(err)
	}
	other, _, err := b.Invite(ctx, tokens.Invitation{Email: "eric@example.com"})
	if err != nil {
		t.Fatal(err)
	}
	for range 10 {
		if _, err := b.UseLink(ctx, secret, b.user.Username, secretWord); !errors.Is(err, tokens.ErrExists) {
			t.Fatal(err)
		}
	}
	b.clock.Add(time.Hour)
	if _, err := b.UseLink(ctx, secret, "free", secretWord); !errors.Is(err, tokens.ErrUsed) {
		t.Errorf("the eleventh username: %v", err)
	}
	if _, err := b.UseLink(ctx, other, "eric", secretWord); err != nil {
		t.Errorf("another invitation: %v", err)
	}
}

func TestALeadTriesFewUsernamesWithManyInvitations(t *testing.T) {
	b := newBench(t, tokens.Config{})
	g := b.ledGroup(t, b.user.Username)
	tried := 0
	for range 10 {
		secret, l, err := b.Invite(ctx, tokens.Invitation{Email: "dora@example.com", Group: g.ID, Lead: b.user.ID})
		if err != nil {
			t.Fatal(err)
		}
		for err = tokens.ErrExists; errors.Is(err, tokens.ErrExists) && tried < 100; tried++ {
			_, err = b.UseLink(ctx, secret, b.user.Username, secretWord)
		}
		if errors.Is(err, tokens.ErrLimited) {
			break
		}
		if _, err := b.WithdrawInvitation(ctx, l.ID); err != nil && !errors.Is(err, tokens.ErrNotFound) {
			t.Fatal(err)
		}
	}
	if tried > 23 { // 20, and the try after each invitation that has ended
		t.Errorf("a lead tried %d usernames in a minute", tried)
	}
}
