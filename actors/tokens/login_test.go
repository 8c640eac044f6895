package tokens_test

import (
	"context"
	"errors"
	"net/netip"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"stagedoor/actors/tokens"
	"stagedoor/state/identity"
)

func (b *bench) signUp(t testing.TB, name string) tokens.User {
	t.Helper()
	u, err := b.CreateUser(ctx, tokens.NewUser{Username: name, Email: name + "@example.com", Password: secretWord})
	if err != nil {
		t.Fatal(err)
	}
	return u
}

func (b *bench) login(name, password string) (string, tokens.Session, error) {
	return b.Login(ctx, tokens.Login{Username: name, Password: password, From: home})
}

func TestUserSignsInAndOut(t *testing.T) {
	b := newBench(t, tokens.Config{})
	u := b.signUp(t, "Grace")
	if u.ID != b.user.ID+1 || !u.Active() || !u.Created.Equal(start) {
		t.Errorf("got %+v", u)
	}
	cookie, s, err := b.login("gRACE", secretWord)
	if u.Seen = start; err != nil || s.User != u || !s.Expires.Equal(start.Add(14*24*time.Hour)) {
		t.Fatalf("got %+v, %v", s, err)
	}
	b.reopen(t, tokens.Config{})
	if got, err := b.Session(ctx, cookie, tokens.Sender{}); err != nil || got.ID != s.ID || got.User.ID != u.ID {
		t.Errorf("got %+v, %v", got, err)
	}
	second, other, err := b.login("grace", secretWord)
	if err != nil || second == cookie || other.ID == s.ID {
		t.Fatalf("a second login: got %+v, %v", other, err)
	}
	if n := len(b.Sessions(u.ID)); n != 2 {
		t.Errorf("sessions: got %d", n)
	}
	for range 2 {
		if err := b.Logout(ctx, cookie); err != nil {
			t.Error(err)
		}
	}
	if _, err := b.Session(ctx, cookie, tokens.Sender{}); !errors.Is(err, tokens.ErrNoSession) {
		t.Errorf("signed out: got %v", err)
	}
	if _, err := b.Session(ctx, second, tokens.Sender{}); err != nil {
		t.Errorf("the other one: %v", err)
	}
	for _, bad := range []string{"", "x", cookie + "x", second[:len(second)-1]} {
		if _, err := b.Session(ctx, bad, tokens.Sender{}); !errors.Is(err, tokens.ErrNoSession) {
			t.Errorf("%q: got %v", bad, err)
		}
		if err := b.Logout(ctx, bad); err != nil {
			t.Errorf("sign %q out: %v", bad, err)
		}
	}
}

func TestSessionsEnd(t *testing.T) {
	for name, end := range map[string]func(t *testing.T, b *bench, u tokens.User){
		"expiry": func(_ *testing.T, b *bench, _ tokens.User) { b.clock.Add(14 * 24 * time.Hour) },
		"new password": func(t *testing.T, b *bench, u tokens.User) {
			if _, err := b.UpdateUser(ctx, u.ID, tokens.UserChange{Password: new("battery staple")}); err != nil {
				t.Fatal(err)
			}
			if _, _, err := b.login("grace", secretWord); !errors.Is(err, tokens.ErrLogin) {
				t.Errorf("the old password: got %v", err)
			}
			if _, _, err := b.login("grace", "battery staple"); err != nil {
				t.Errorf("the new password: %v", err)
			}
		},
		"disabled and enabled": func(t *testing.T, b *bench, u tokens.User) {
			for _, status := range []int{tokens.StatusDisabled, tokens.StatusActive} {
				if _, err := b.SetUserStatus(ctx, u.ID, status); err != nil {
					t.Fatal(err)
				}
			}
		},
		"fifty others": func(t *testing.T, b *bench, u tokens.User) {
			if err := b.OpenSessions(ctx, u.ID, 50); err != nil {
				t.Fatal(err)
			}
			if n := len(b.Sessions(u.ID)); n != 50 {
				t.Errorf("sessions: got %d", n)
			}
		},
	} {
		t.Run(name, func(t *testing.T) {
			b := newBench(t, tokens.Config{})
			u := b.signUp(t, "grace")
			cookie, _, err := b.login("grace", secretWord)
			if err != nil {
				t.Fatal(err)
			}
			b.clock.Add(time.Second)
			end(t, b, u)
			if _, err := b.Session(ctx, cookie, tokens.Sender{}); !errors.Is(err, tokens.ErrNoSession) {
				t.Errorf("got %v, want ErrNoSession", err)
			}
		})
	}
}

func TestSessionIsSeenToTheQuarterOfAnHour(t *testing.T) {
	b := newBench(t, tokens.Config{})
	u := b.signUp(t, "grace")
	first := tokens.Sender{Address: home, Browser: "Firefox 143 on Linux"}
	cookie, _, err := b.Login(ctx, tokens.Login{Username: "grace", Password: secretWord, From: home,
		Browser: first.Browser})
	if err != nil {
		t.Fatal(err)
	}
	away := tokens.Sender{Address: netip.MustParseAddr("2001:db8::1"), Browser: "Chrome 140 on Android"}
	before := b.state.Stats().Commands
	for _, c := range []struct {
		after, seen time.Duration
		from        tokens.Sender
	}{{0, 0, first}, {14 * time.Minute, 0, first}, {time.Minute, 15 * time.Minute, away},
		{14 * time.Minute, 15 * time.Minute, away}} {
		b.clock.Add(c.after)
		s, err := b.Session(ctx, cookie, away)
		if err != nil || !s.Seen.Equal(start.Add(c.seen)) || s.Browser != c.from.Browser ||
			s.Address != c.from.Address.String() {
			t.Errorf("got %+v, %v, want %v", s, err, c)
		}
		if u, err := b.User(u.ID); err != nil || !u.Seen.Equal(start.Add(c.seen)) {
			t.Errorf("the user was seen %v, %v", u.Seen, err)
		}
	}
	if n := b.state.Stats().Commands - before; n != 1 {
		t.Errorf("%d writes", n)
	}
}

func TestAUserWhoIsSeenWakesNoRequest(t *testing.T) {
	b := newBench(t, tokens.Config{})
	u := b.signUp(t, "grace")
	watched := identity.AccessOf(b.state).WatchAccess()
	if _, _, err := b.login("grace", secretWord); err != nil {
		t.Fatal(err)
	}
	select {
	case <-watched:
		t.Error("the requests in flight look again")
	default:
	}
	if _, err := b.SetUserStatus(ctx, u.ID, tokens.StatusDisabled); err != nil {
		t.Fatal(err)
	}
	<-watched
}

func TestLoginRefusals(t *testing.T) {
	b := newBench(t, tokens.Config{})
	u := b.signUp(t, "grace")
	if _, err := b.SetUserStatus(ctx, u.ID, tokens.StatusDisabled); err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		name, password string
		want           error
	}{
		{"grace", secretWord, tokens.ErrUserDisabled},
		{"grace", secretWord + "x", tokens.ErrLogin},
		{"nosuchuser", secretWord, tokens.ErrLogin},
		{"", "", tokens.ErrLogin},
		{"ada", "", tokens.ErrLogin}, // who has no password
		{strings.Repeat("x", 100), secretWord, tokens.ErrLogin},
		{"grace", strings.Repeat("x", 1000), tokens.ErrLogin},
	} {
		if cookie, _, err := b.login(c.name, c.password); !errors.Is(err, c.want) || cookie != "" {
			t.Errorf("%.10q: got %v, want %v", c.name, err, c.want)
		}
	}
}

func TestGuessingPasswordsIsSlow(t *testing.T) {
	b := newBench(t, tokens.Config{})
	b.signUp(t, "grace")
	for range 5 {
		if _, _, err := b.login("grace", "wrong"); !errors.Is(err, tokens.ErrLogin) {
			t.Fatalf("got %v", err)
		}
	}
	var limited *tokens.Limited
	_, _, err := b.login("GRACE", secretWord)
	if !errors.Is(err, tokens.ErrLimited) || !errors.As(err, &limited) || limited.RetryAfter != time.Minute {
		t.Errorf("the sixth, right: got %v", err)
	}
	b.signUp(t, "other")
	if _, _, err := b.login("other", secretWord); err != nil {
		t.Errorf("another user: %v", err)
	}
	b.clock.Add(time.Minute)
	if _, _, err := b.login("grace", secretWord); err != nil {
		t.Errorf("after the pause: %v", err)
	}
}

// TestStrangersCannotLockAUserOut: guesses of one stranger hold up that stranger, and
// guesses of many hold up browsers that have never signed in.
func TestStrangersCannotLockAUserOut(t *testing.T) {
	b := newBench(t, tokens.Config{})
	b.signUp(t, "grace")
	guess := func(from netip.Addr) error {
		_, _, err := b.Login(ctx, tokens.Login{Username: "grace", Password: "wrong", From: from})
		return err
	}
	right := func(from, device string) error {
		_, _, err := b.Login(ctx,
			tokens.Login{Username: "grace", Password: secretWord, From: netip.MustParseAddr(from), Device: device})
		return err
	}
	for range 10 {
		guess(home)
	}
	if err := right("198.51.100.7", ""); err != nil {
		t.Errorf("an unknown browser, after guesses from another address: %v", err)
	}
	for i := range 40 {
		guess(netip.AddrFrom4([4]byte{203, 0, 113, byte(i)}))
	}
	if err := right("198.51.100.8", ""); !errors.Is(err, tokens.ErrLimited) {
		t.Errorf("an unknown browser, after guesses from many addresses: %v", err)
	}
	for range 3 {
		if err := right(home.String(), "known"); err != nil {
			t.Errorf("a known browser at the address of a stranger: %v", err)
		}
	}
	for i := range 6 {
		_, _, err := b.Login(ctx, tokens.Login{Username: "grace", Password: "wrong", From: home, Device: "stolen"})
		if want := map[bool]error{true: tokens.ErrLogin, false: tokens.ErrLimited}[i < 5]; !errors.Is(err, want) {
			t.Errorf("guess %d of a known browser: %v, want %v", i+1, err, want)
		}
	}
	if err := right(home.String(), "known"); err != nil {
		t.Errorf("another known browser: %v", err)
	}
}

func TestManyLoginsAtOnceAreAnsweredAndFewGuess(t *testing.T) {
	b := newBench(t, tokens.Config{})
	b.signUp(t, "grace")
	var wg sync.WaitGroup
	var wrong, limited atomic.Int32
	for range 200 {
		wg.Go(func() {
			switch _, _, err := b.login("grace", "wrong"); {
			case errors.Is(err, tokens.ErrLogin):
				wrong.Add(1)
			case errors.Is(err, tokens.ErrLimited):
				limited.Add(1)
			default:
				t.Errorf("got %v", err)
			}
		})
	}
	wg.Wait()
	if wrong.Load() != 5 || limited.Load() != 195 {
		t.Errorf("got %d checked, %d limited", wrong.Load(), limited.Load())
	}
}

func TestALoginCancelledWhileItWaitsIsNotCounted(t *testing.T) {
	b := newBench(t, tokens.Config{})
	b.signUp(t, "grace")
	for range 20 {
		// They leave before, while they are let in, and while they are checked.
		gone, leave := context.WithCancelCause(ctx)
		why := errors.New("gone")
		go leave(why)
		if _, _, err := b.Login(gone, tokens.Login{Username: "grace", Password: secretWord, From: home}); err != nil &&
			!errors.Is(err, why) {
			t.Fatalf("got %v, want the cause", err)
		}
	}
	if _, _, err := b.login("grace", secretWord); err != nil {
		t.Error(err)
	}
}

func TestWrongSecretsAreLimitedAndTheRightOneIsNot(t *testing.T) {
	b := newBench(t, tokens.Config{})
	pair := b.tokens(t)
	for i := range 20 {
		wrong := b.creds
		wrong.Secret = "as_wrong"
		_, err := b.Introspect(ctx, wrong, pair.Access)
		want := tokens.ErrInvalidClient
		if i >= 5 {
			want = tokens.ErrLimited
		}
		if !errors.Is(err, want) {
			t.Errorf("guess %d: got %v, want %v", i, err, want)
		}
		if _, err := b.Introspect(ctx, b.creds, pair.Access); err != nil {
			t.Fatalf("the client itself, after %d guesses: %v", i, err)
		}
		if _, err := b.Introspect(ctx, tokens.ClientCredentials{ID: b.creds.ID, From: home}, pair.Access); !errors.Is(
			err,
			tokens.ErrInvalidClient,
		) {
			t.Errorf("no secret is no guess: got %v", err)
		}
	}
	if _, err := b.refresh(pair.Refresh); err != nil {
		t.Error(err)
	}
	elsewhere := netip.MustParseAddr("198.51.100.7")
	limited := 0
	for range 30 {
		_, err := b.Introspect(ctx, tokens.ClientCredentials{ID: "ci_unknown", Secret: "x", From: elsewhere}, "")
		if errors.Is(err, tokens.ErrLimited) {
			limited++
		}
	}
	if limited != 10 {
		t.Errorf("unknown clients of one address: %d of 30 limited, want 10", limited)
	}
}

func TestUserRules(t *testing.T) {
	b := newBench(t, tokens.Config{})
	good := tokens.NewUser{Username: "x", Password: secretWord}
	for name, c := range map[string]struct {
		change func(*tokens.NewUser)
		want   error
		field  string
	}{
		"taken":   {func(n *tokens.NewUser) { n.Username = "aDA" }, tokens.ErrExists, ""},
		"no name": {func(n *tokens.NewUser) { n.Username = "" }, tokens.ErrInvalid, "username"},
		"long name": {func(n *tokens.NewUser) { n.Username = strings.Repeat("x", 65) }, tokens.ErrInvalid,
			"username"},
		"space in name":  {func(n *tokens.NewUser) { n.Username = "a b" }, tokens.ErrInvalid, "username"},
		"look-alike":     {func(n *tokens.NewUser) { n.Username = "аda" }, tokens.ErrInvalid, "username"},
		"NUL":            {func(n *tokens.NewUser) { n.Username = "ada\x00" }, tokens.ErrInvalid, "username"},
		"short password": {func(n *tokens.NewUser) { n.Password = "1234567" }, tokens.ErrInvalid, "password"},
		"long password": {func(n *tokens.NewUser) { n.Password = strings.Repeat("x", 513) }, tokens.ErrInvalid,
			"password"},
		"no address":    {func(n *tokens.NewUser) { n.Email = "x" }, tokens.ErrInvalid, "email"},
		"named address": {func(n *tokens.NewUser) { n.Email = "X <x@example.com>" }, tokens.ErrInvalid, "email"},
		"address, header": {func(n *tokens.NewUser) { n.Email = "x@example.com\r\nBcc: y@example.com" },
			tokens.ErrInvalid, "email"},
	} {
		n := good
		c.change(&n)
		_, err := b.CreateUser(ctx, n)
		if !errors.Is(err, c.want) {
			t.Errorf("%s: got %v, want %v", name, err, c.want)
		}
		var field *tokens.FieldError
		if c.field != "" && (!errors.As(err, &field) || field.Field != c.field) {
			t.Errorf("%s: got %v, want the field %s", name, err, c.field)
		}
	}
	for name, err := range map[string]error{
		"status":   second(b.SetUserStatus(ctx, b.user.ID, 3)),
		"password": second(b.UpdateUser(ctx, b.user.ID, tokens.UserChange{Password: new("x")})),
		"email":    second(b.UpdateUser(ctx, b.user.ID, tokens.UserChange{Email: new("x")})),
	} {
		if !errors.Is(err, tokens.ErrInvalid) {
			t.Errorf("%s: got %v", name, err)
		}
	}
	for name, err := range map[string]error{
		"status":   second(b.SetUserStatus(ctx, 99, 1)),
		"password": second(b.UpdateUser(ctx, 99, tokens.UserChange{Password: new(secretWord)})),
		"user":     second(b.User(99)),
		"name":     second(b.UserByName("x")),
	} {
		if !errors.Is(err, tokens.ErrNotFound) {
			t.Errorf("unknown, %s: got %v", name, err)
		}
	}
	u, err := b.UpdateUser(ctx, b.user.ID, tokens.UserChange{Email: new("new@example.com")})
	if err != nil || u.Email != "new@example.com" {
		t.Errorf("got %+v, %v", u, err)
	}
}

func second[T any](_ T, err error) error { return err }

func TestOneOfManySignUpsGetsTheName(t *testing.T) {
	b := newBench(t, tokens.Config{})
	var wg sync.WaitGroup
	var made atomic.Int32
	for range 8 {
		wg.Go(func() {
			switch _, err := b.CreateUser(ctx, tokens.NewUser{Username: "grace", Password: secretWord}); {
			case err == nil:
				made.Add(1)
			case !errors.Is(err, tokens.ErrExists):
				t.Errorf("got %v", err)
			}
		})
	}
	wg.Wait()
	if made.Load() != 1 || len(b.Users(0, 0)) != 2 {
		t.Errorf("made %d, users %v", made.Load(), b.Users(0, 0))
	}
	if list := b.Users(1, 1); len(list) != 1 || list[0].ID != 2 {
		t.Errorf("after 1: got %v", list)
	}
}

func TestOnlyTheOldPasswordAllowsAChange(t *testing.T) {
	b := newBench(t, tokens.Config{})
	u := b.signUp(t, "Grace")
	cookie, _, err := b.login("grace", secretWord)
	if err != nil {
		t.Fatal(err)
	}
	const fresh = "another long password"
	for name, test := range map[string]struct {
		old, new string
		want     error
	}{
		"wrong": {"wrong", fresh, tokens.ErrLogin},
		"short": {secretWord, "short", tokens.ErrInvalid},
		"long":  {strings.Repeat("x", 600), fresh, tokens.ErrLogin},
	} {
		login := tokens.Login{Username: "grace", Password: test.old, From: home}
		if err := b.ChangePassword(ctx, login, test.new); !errors.Is(err, test.want) {
			t.Errorf("%s: %v", name, err)
		}
	}
	if _, err := b.Session(ctx, cookie, tokens.Sender{}); err != nil {
		t.Errorf("a refused change ended a session: %v", err)
	}
	if err := b.ChangePassword(ctx, tokens.Login{Username: "grace", Password: secretWord, From: home},
		fresh); err != nil {
		t.Fatal(err)
	}
	if n := len(b.Sessions(u.ID)); n != 0 {
		t.Errorf("%d sessions are left", n)
	}
	if _, _, err := b.login("grace", secretWord); !errors.Is(err, tokens.ErrLogin) {
		t.Errorf("the old password: %v", err)
	}
	if _, _, err := b.login("grace", fresh); err != nil {
		t.Errorf("the new password: %v", err)
	}
}

func TestGuessesAtAChangeCountAsLogins(t *testing.T) {
	b := newBench(t, tokens.Config{})
	b.signUp(t, "Grace")
	for range 5 {
		login := tokens.Login{Username: "grace", Password: "wrong", From: home}
		if err := b.ChangePassword(ctx, login, secretWord); !errors.Is(err, tokens.ErrLogin) {
			t.Fatal(err)
		}
	}
	if _, _, err := b.login("grace", secretWord); !errors.Is(err, tokens.ErrLimited) {
		t.Errorf("after five guesses: %v", err)
	}
}

func TestSessionsEndOneByOneAndTogether(t *testing.T) {
	b := newBench(t, tokens.Config{})
	u, other := b.signUp(t, "Grace"), b.signUp(t, "Mary")
	cookie, first, err := b.login("grace", secretWord)
	if err != nil {
		t.Fatal(err)
	}
	for range 2 {
		if _, _, err := b.login("grace", secretWord); err != nil {
			t.Fatal(err)
		}
	}
	if err := b.EndSession(ctx, other.ID, first.ID); !errors.Is(err, tokens.ErrNotFound) {
		t.Errorf("another's session: %v", err)
	}
	if err := b.EndSession(ctx, u.ID, first.ID); err != nil {
		t.Fatal(err)
	}
	if _, err := b.Session(ctx, cookie, tokens.Sender{}); !errors.Is(err, tokens.ErrNoSession) {
		t.Errorf("an ended session: %v", err)
	}
	if n := len(b.Sessions(u.ID)); n != 2 {
		t.Errorf("%d sessions are left", n)
	}
	if err := b.EndSessions(ctx, u.ID); err != nil || len(b.Sessions(u.ID)) != 0 {
		t.Errorf("%d sessions are left, %v", len(b.Sessions(u.ID)), err)
	}
}
