package tokens_test

import (
	"context"
	"crypto/sha256"
	"encoding/base64"
	"errors"
	"net/netip"
	"slices"
	"strings"
	"testing"
	"time"

	"stagedoor/actors/kit"
	"stagedoor/actors/kit/kittest"
	"stagedoor/actors/tokens"
	"stagedoor/state"
	"stagedoor/state/identity"
	"stagedoor/state/journal"
	"stagedoor/state/password"
	"stagedoor/state/schema"
	"stagedoor/state/statetest"
)

const (
	callback   = "https://app.example.com/cb"
	secretWord = "correct horse"
)

var (
	ctx   = context.Background()
	start = time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	home  = netip.MustParseAddr("192.0.2.1")
)

// newClock stands at start.
func newClock() *statetest.Clock { return statetest.NewClock(start) }

// bench is a registry with a user, and an app of his.
type bench struct {
	*tokens.Client
	clock *statetest.Clock
	store journal.Store
	state *state.State
	sys   *kit.System
	user  tokens.User
	app   tokens.App
	creds tokens.ClientCredentials
	other tokens.ClientCredentials // of another app, where a test makes one
	// passwords hashes them; nil: as a gateway does.
	passwords *password.Hasher
}

func newBench(t testing.TB, config tokens.Config) *bench {
	t.Helper()
	return newBenchOn(t, journal.NewMemory(), config)
}

// newHashingBench is a bench on which passwords cost as much as on a gateway.
func newHashingBench(t testing.TB) *bench {
	t.Helper()
	b := newBench(t, tokens.Config{})
	b.passwords = nil
	b.reopen(t, tokens.Config{})
	return b
}

func newBenchOn(t testing.TB, store journal.Store, config tokens.Config) *bench {
	t.Helper()
	return newBenchIn(t, kittest.Start(t), store, config)
}

func newBenchIn(t testing.TB, sys *kit.System, store journal.Store, config tokens.Config) *bench {
	t.Helper()
	b := &bench{clock: newClock(), store: store, sys: sys, passwords: password.NewForTests()}
	b.open(t, config)
	_, err := state.Do(ctx, b.state, func(tx *state.Tx) (identity.User, error) {
		return identity.AddUser(tx,
			identity.User{Username: "Ada", Email: "ada@example.com", Status: identity.UserActive})
	})
	if err != nil {
		t.Fatal(err)
	}
	if b.user, err = b.UserByName("ada"); err != nil {
		t.Fatal(err)
	}
	b.app, b.creds = b.register(t, "App", callback)
	return b
}

func (b *bench) open(t testing.TB, config tokens.Config) {
	t.Helper()
	var err error
	store := b.store
	if _, shared := store.(journal.Shared); !shared {
		store = statetest.DecideTwice(store)
	}
	if b.state, err = schema.Open(store, b.clock.Now); err != nil {
		t.Fatal(err)
	}
	s := b.state
	t.Cleanup(func() { s.Close() })
	if b.Client, err = tokens.Start(tokens.Options{System: b.sys, State: b.state, Now: b.clock.Now,
		Config: config, Passwords: b.passwords}); err != nil {
		t.Fatal(err)
	}
}

// reopen reads everything from the store again.
func (b *bench) reopen(t testing.TB, config tokens.Config) {
	t.Helper()
	if err := b.state.Close(); err != nil {
		t.Fatal(err)
	}
	b.open(t, config)
}

// group makes a group that restricts nothing.
func (b *bench) group(t testing.TB, name string) identity.Group {
	t.Helper()
	g, err := b.CreateGroup(ctx, name, tokens.CeilingChange{})
	if err != nil {
		t.Fatal(err)
	}
	return g
}

// ledGroup makes a group whose first member leads it.
func (b *bench) ledGroup(t testing.TB, lead string, members ...string) identity.Group {
	t.Helper()
	g := b.group(t, "staff")
	var err error
	for _, name := range append([]string{lead}, members...) {
		if err == nil {
			_, err = b.AddMember(ctx, g.ID, name)
		}
	}
	if err == nil {
		_, err = b.SetLead(ctx, g.ID, lead, true)
	}
	if err != nil {
		t.Fatal(err)
	}
	return g
}

// beside returns a bench of another process, whose store has the same records.
func (b *bench) beside(t testing.TB, store journal.Store, config tokens.Config) *bench {
	t.Helper()
	other := *b
	other.store = store
	other.open(t, config)
	return &other
}

func (b *bench) register(t testing.TB, name, redirect string) (tokens.App, tokens.ClientCredentials) {
	t.Helper()
	secret, app, err := b.RegisterApp(ctx, tokens.NewApp{Owner: b.user.ID, Name: name, RedirectURI: redirect})
	if err != nil {
		t.Fatal(err)
	}
	return app, tokens.ClientCredentials{ID: app.ClientID, Secret: secret, From: home}
}

func (b *bench) approval() tokens.Approval {
	return tokens.Approval{
		User:        b.user.ID,
		AuthTime:    b.clock.Now(),
		ClientID:    b.app.ClientID,
		RedirectURI: b.app.RedirectURI,
		Scopes:      tokens.Scopes(),
		Consented:   true,
	}
}

func (b *bench) code(t testing.TB) string {
	t.Helper()
	code, err := b.Approve(ctx, b.approval())
	if err != nil {
		t.Fatal(err)
	}
	return code
}

func (b *bench) exchange(code string) (tokens.Tokens, error) {
	return b.Exchange(ctx, tokens.Exchange{Client: b.creds, Code: code, RedirectURI: b.app.RedirectURI})
}

// devices is the number of redeemed grants in the user's list of apps.
func (b *bench) devices() (n int) {
	for _, a := range b.AllowedApps(b.user.ID) {
		n += a.Devices
	}
	return n
}

func (b *bench) refresh(token string) (tokens.Tokens, error) {
	return b.Refresh(ctx, tokens.Refresh{Client: b.creds, Token: token})
}

// tokens is a fresh pair.
func (b *bench) tokens(t testing.TB) tokens.Tokens {
	t.Helper()
	pair, err := b.exchange(b.code(t))
	if err != nil {
		t.Fatal(err)
	}
	return pair
}

// dead checks that nothing of a pair works.
func (b *bench) dead(t testing.TB, pair tokens.Tokens) {
	t.Helper()
	if _, err := b.Lookup(pair.Access); !errors.Is(err, tokens.ErrInvalidToken) {
		t.Errorf("access token: got %v, want ErrInvalidToken", err)
	}
	if _, err := b.refresh(pair.Refresh); !errors.Is(err, tokens.ErrInvalidGrant) {
		t.Errorf("refresh token: got %v, want ErrInvalidGrant", err)
	}
	for _, token := range []string{pair.Access, pair.Refresh} {
		if got, err := b.Introspect(ctx, b.creds, token); err != nil || got.Active {
			t.Errorf("introspection: got %+v, %v", got, err)
		}
	}
}

func (b *bench) alive(t testing.TB, pair tokens.Tokens) {
	t.Helper()
	if a, err := b.Lookup(pair.Access); err != nil || a.User != b.user || a.App != b.app.ID {
		t.Errorf("access token: got %+v, %v", a, err)
	}
	for i, token := range []string{pair.Access, pair.Refresh} {
		if got, err := b.Introspect(ctx, b.creds, token); err != nil || !got.Active || got.Refresh != (i == 1) ||
			got.ClientID != b.app.ClientID ||
			got.User != b.user {
			t.Errorf("introspection: got %+v, %v", got, err)
		}
	}
}

func challenge(verifier string) string {
	sum := sha256.Sum256([]byte(verifier))
	return base64.RawURLEncoding.EncodeToString(sum[:])
}

func TestCodeBecomesTokensOfTheDocumentedForm(t *testing.T) {
	b := newBench(t, tokens.Config{})
	code := b.code(t)
	pair, err := b.exchange(code)
	if err != nil {
		t.Fatal(err)
	}
	if !strings.HasPrefix(code, "ac_") || !strings.HasPrefix(pair.Access, "at_") ||
		!strings.HasPrefix(pair.Refresh, "rt_") {
		t.Errorf("got %s, %+v", code, pair)
	}
	if pair.ExpiresIn != 7200*time.Second || !slices.Equal(pair.Scopes, []string{"profile", "balance"}) {
		t.Errorf("got %v, %v", pair.ExpiresIn, pair.Scopes)
	}
	b.alive(t, pair)
	next, err := b.refresh(pair.Refresh)
	if err != nil || next.Refresh == pair.Refresh || next.Access == pair.Access || next.ExpiresIn != 7200*time.Second {
		t.Fatalf("got %+v, %v", next, err)
	}
	b.alive(t, next)
	if _, err := b.Lookup(pair.Access); err != nil {
		t.Errorf("the access token from before the rotation: %v", err)
	}
	b.reopen(t, tokens.Config{})
	b.alive(t, next)
	apps := b.AllowedApps(b.user.ID)
	if len(apps) != 1 || apps[0].App.ID != b.app.ID || apps[0].Devices != 1 {
		t.Errorf("apps: got %+v", apps)
	}
}

// TestCodeMisuse has every way to present a code wrongly. burnt: it does not
// work afterwards either.
func TestCodeMisuse(t *testing.T) {
	const verifier = "0123456789abcdefghijklmnopqrstuvwxyzABCDEFG"
	long := strings.Repeat("v", 129)
	for name, c := range map[string]struct {
		challenge string
		change    func(b *bench, e *tokens.Exchange)
		want      error
		burnt     bool
	}{
		"wrong secret": {change: func(_ *bench, e *tokens.Exchange) { e.Client.Secret += "x" },
			want: tokens.ErrInvalidClient},
		"no secret": {change: func(_ *bench, e *tokens.Exchange) { e.Client.Secret = "" },
			want: tokens.ErrInvalidClient},
		"no client": {change: func(_ *bench, e *tokens.Exchange) { e.Client.ID = "ci_unknown" },
			want: tokens.ErrInvalidClient},
		"unknown code": {change: func(_ *bench, e *tokens.Exchange) { e.Code = "ac_x" }, want: tokens.ErrInvalidGrant},
		"changed code": {
			change: func(_ *bench, e *tokens.Exchange) {
				other := "A"
				if e.Code[20] == 'A' {
					other = "B"
				}
				e.Code = e.Code[:20] + other + e.Code[21:]
			},
			want: tokens.ErrInvalidGrant,
		},
		"no code": {change: func(_ *bench, e *tokens.Exchange) { e.Code = "" },
			want: tokens.ErrInvalidGrant},
		"expired": {change: func(b *bench, e *tokens.Exchange) { b.clock.Add(time.Minute) },
			want: tokens.ErrInvalidGrant, burnt: true},
		"another app's": {change: func(b *bench, e *tokens.Exchange) { e.Client = b.other },
			want: tokens.ErrInvalidGrant},
		"another app's with a wrong verifier": {challenge: challenge(verifier),
			change: func(b *bench, e *tokens.Exchange) { e.Client, e.Verifier = b.other, "" },
			want:   tokens.ErrInvalidGrant},
		"other redirect": {change: func(_ *bench, e *tokens.Exchange) { e.RedirectURI += "/" },
			want: tokens.ErrInvalidGrant},
		"no redirect": {change: func(_ *bench, e *tokens.Exchange) { e.RedirectURI = "" },
			want: tokens.ErrInvalidGrant},
		"verifier without challenge": {change: func(_ *bench, e *tokens.Exchange) { e.Verifier = verifier },
			want: tokens.ErrInvalidGrant, burnt: true},
		"challenge without verifier": {challenge: challenge(verifier),
			change: func(_ *bench, e *tokens.Exchange) { e.Verifier = "" }, want: tokens.ErrInvalidGrant, burnt: true},
		"wrong verifier": {challenge: challenge(verifier),
			change: func(_ *bench, e *tokens.Exchange) { e.Verifier = verifier[1:] + "x" },
			want:   tokens.ErrInvalidGrant, burnt: true},
		"the challenge as verifier": {challenge: challenge(verifier),
			change: func(_ *bench, e *tokens.Exchange) { e.Verifier = challenge(verifier) },
			want:   tokens.ErrInvalidGrant, burnt: true},
		"verifier too short": {challenge: challenge(verifier[:42]),
			change: func(_ *bench, e *tokens.Exchange) { e.Verifier = verifier[:42] }, want: tokens.ErrInvalidGrant,
			burnt: true},
		"verifier too long": {challenge: challenge(long),
			change: func(_ *bench, e *tokens.Exchange) { e.Verifier = long }, want: tokens.ErrInvalidGrant,
			burnt: true},
	} {
		t.Run(name, func(t *testing.T) {
			b := newBench(t, tokens.Config{})
			_, b.other = b.register(t, "Other", callback)
			a := b.approval()
			a.Challenge = c.challenge
			code, err := b.Approve(ctx, a)
			if err != nil {
				t.Fatal(err)
			}
			good := tokens.Exchange{Client: b.creds, Code: code, RedirectURI: callback}
			if c.challenge != "" {
				good.Verifier = verifier
			}
			bad := good
			c.change(b, &bad)
			if got, err := b.Exchange(ctx, bad); !errors.Is(err, c.want) || got.Access != "" {
				t.Errorf("got %+v, %v, want %v", got, err, c.want)
			}
			pair, err := b.Exchange(ctx, good)
			if c.burnt {
				if !errors.Is(err, tokens.ErrInvalidGrant) {
					t.Errorf("the code still works: %v", err)
				}
				return
			}
			if err != nil {
				t.Fatalf("the code is used up: %v", err)
			}
			b.alive(t, pair)
		})
	}
}

func TestVerifierProvesTheChallenge(t *testing.T) {
	b := newBench(t, tokens.Config{})
	// The example of RFC 7636, appendix B.
	a := b.approval()
	a.Challenge = "E9Melhoa2OwvFrEMTJguCHaoeK1t8URWbuGJSstw-cM"
	code, err := b.Approve(ctx, a)
	if err != nil {
		t.Fatal(err)
	}
	pair, err := b.Exchange(
		ctx,
		tokens.Exchange{
			Client:      b.creds,
			Code:        code,
			RedirectURI: callback,
			Verifier:    "dBjftJeZ4CVP-mB92K27uhbUJU1p1r_wW1gFWFOEjXk",
		},
	)
	if err != nil {
		t.Fatal(err)
	}
	b.alive(t, pair)
}

func TestReplayedCodeEndsWhatItBrought(t *testing.T) {
	for name, change := range map[string]func(b *bench, e *tokens.Exchange){
		"same request":     func(*bench, *tokens.Exchange) {},
		"other redirect":   func(_ *bench, e *tokens.Exchange) { e.RedirectURI = "https://evil.example/" },
		"other client":     func(b *bench, e *tokens.Exchange) { e.Client = b.other },
		"after its expiry": func(b *bench, _ *tokens.Exchange) { b.clock.Add(time.Hour) },
	} {
		t.Run(name, func(t *testing.T) {
			b := newBench(t, tokens.Config{})
			_, b.other = b.register(t, "Other", callback)
			replay := tokens.Exchange{Client: b.creds, Code: b.code(t), RedirectURI: callback}
			pair, err := b.Exchange(ctx, replay)
			if err != nil {
				t.Fatal(err)
			}
			next, err := b.refresh(pair.Refresh)
			if err != nil {
				t.Fatal(err)
			}
			untouched := b.tokens(t)
			change(b, &replay)
			if _, err := b.Exchange(ctx, replay); !errors.Is(err, tokens.ErrInvalidGrant) {
				t.Errorf("got %v, want ErrInvalidGrant", err)
			}
			b.dead(t, pair)
			b.dead(t, next)
			b.alive(t, untouched)
			b.reopen(t, tokens.Config{})
			b.dead(t, next)
		})
	}
}

func TestReplayWithoutAuthenticationEndsNothing(t *testing.T) {
	b := newBench(t, tokens.Config{})
	code := b.code(t)
	pair, err := b.exchange(code)
	if err != nil {
		t.Fatal(err)
	}
	wrong := b.creds
	wrong.Secret = "as_wrong"
	if _, err := b.Exchange(ctx, tokens.Exchange{Client: wrong, Code: code, RedirectURI: callback}); !errors.Is(err,
		tokens.ErrInvalidClient) {
		t.Errorf("got %v", err)
	}
	if _, err := b.Refresh(ctx, tokens.Refresh{Client: wrong, Token: pair.Refresh}); !errors.Is(err,
		tokens.ErrInvalidClient) {
		t.Errorf("got %v", err)
	}
	b.alive(t, pair)
}

func TestReusedRefreshTokenEndsTheFamily(t *testing.T) {
	for name, grace := range map[string]time.Duration{"strict": 0, "grace": 10 * time.Second} {
		for generations := 1; generations <= 3; generations++ {
			b := newBench(t, tokens.Config{RefreshGrace: grace})
			first := b.tokens(t)
			last := first
			for range generations {
				var err error
				if last, err = b.refresh(last.Refresh); err != nil {
					t.Fatal(err)
				}
			}
			if generations == 1 {
				b.clock.Add(grace) // two generations back there is none
			}
			if _, err := b.refresh(first.Refresh); !errors.Is(err, tokens.ErrInvalidGrant) {
				t.Errorf("%s, %d generations: got %v, want ErrInvalidGrant", name, generations, err)
			}
			b.dead(t, last)
			b.dead(t, first)
			b.reopen(t, tokens.Config{RefreshGrace: grace})
			b.dead(t, last)
		}
	}
}

// An app can refresh its tokens without end, and the records of tokens are in memory.
func TestAGrantHasABoundedNumberOfAccessTokens(t *testing.T) {
	b := newBench(t, tokens.Config{})
	other, all := b.tokens(t), []tokens.Tokens{b.tokens(t)}
	for range 60 {
		next, err := b.refresh(all[len(all)-1].Refresh)
		if err != nil {
			t.Fatal(err)
		}
		all = append(all, next)
	}
	for i, pair := range all {
		_, err := b.Lookup(pair.Access)
		if ended := i < len(all)-50; ended != errors.Is(err, tokens.ErrInvalidToken) || !ended && err != nil {
			t.Errorf("access token %d of %d: %v", i+1, len(all), err)
		}
	}
	b.alive(t, all[len(all)-1])
	b.alive(t, other)
}

func TestInventedTokenOfAFamilyEndsNothingBeforeTheExchange(t *testing.T) {
	b := newBench(t, tokens.Config{})
	code := b.code(t)
	forged := tokens.Forge(code, "rt_") // the family is in the code, which browsers see
	if _, err := b.refresh(forged); !errors.Is(err, tokens.ErrInvalidGrant) {
		t.Errorf("got %v, want ErrInvalidGrant", err)
	}
	if _, err := b.exchange(tokens.Forge(code, "ac_")); !errors.Is(err, tokens.ErrInvalidGrant) {
		t.Errorf("got %v, want ErrInvalidGrant", err)
	}
	pair, err := b.exchange(code)
	if err != nil {
		t.Fatal(err)
	}
	b.alive(t, pair)
}

func TestLostAnswerIsGivenOnceMoreWithinTheGrace(t *testing.T) {
	b := newBench(t, tokens.Config{RefreshGrace: 10 * time.Second})
	first := b.tokens(t)
	next, err := b.Refresh(ctx, tokens.Refresh{Client: b.creds, Token: first.Refresh, Scopes: []string{"profile"}})
	if err != nil {
		t.Fatal(err)
	}
	b.reopen(t, tokens.Config{RefreshGrace: 10 * time.Second})
	b.clock.Add(9 * time.Second)
	again, err := b.refresh(first.Refresh)
	if err != nil {
		t.Fatal(err)
	}
	if again.Access != next.Access || again.Refresh != next.Refresh || !slices.Equal(again.Scopes, next.Scopes) ||
		again.ExpiresIn != 7191*time.Second {
		t.Errorf("got %+v, want %+v nine seconds later", again, next)
	}
	_, other := b.register(t, "Other", callback)
	if _, err := b.Refresh(ctx, tokens.Refresh{Client: other, Token: first.Refresh}); !errors.Is(err,
		tokens.ErrInvalidGrant) {
		t.Errorf("another client: got %v", err)
	}
	b.alive(t, next)
	third, err := b.refresh(next.Refresh)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := b.refresh(first.Refresh); !errors.Is(err, tokens.ErrInvalidGrant) {
		t.Errorf("its successor was used: got %v, want ErrInvalidGrant", err)
	}
	b.dead(t, third)
}

func TestRefreshRefusals(t *testing.T) {
	b := newBench(t, tokens.Config{})
	a := b.approval()
	a.Scopes = []string{"profile"}
	code, err := b.Approve(ctx, a)
	if err != nil {
		t.Fatal(err)
	}
	pair, err := b.exchange(code)
	if err != nil {
		t.Fatal(err)
	}
	_, other := b.register(t, "Other", callback)
	for name, c := range map[string]struct {
		r    tokens.Refresh
		want error
	}{
		"wider": {tokens.Refresh{Client: b.creds, Token: pair.Refresh, Scopes: []string{"profile", "balance"}},
			tokens.ErrInvalidScope},
		"unknown scope": {tokens.Refresh{Client: b.creds, Token: pair.Refresh, Scopes: []string{"profile", "admin"}},
			tokens.ErrInvalidScope},
		"no scope": {tokens.Refresh{Client: b.creds, Token: pair.Refresh, Scopes: []string{}},
			tokens.ErrInvalidScope},
		"other client": {tokens.Refresh{Client: other, Token: pair.Refresh}, tokens.ErrInvalidGrant},
		"access token": {tokens.Refresh{Client: b.creds, Token: pair.Access}, tokens.ErrInvalidGrant},
		"code":         {tokens.Refresh{Client: b.creds, Token: code}, tokens.ErrInvalidGrant},
		"garbage":      {tokens.Refresh{Client: b.creds, Token: "rt_\x00"}, tokens.ErrInvalidGrant},
		"nothing":      {tokens.Refresh{Client: b.creds}, tokens.ErrInvalidGrant},
	} {
		if _, err := b.Refresh(ctx, c.r); !errors.Is(err, c.want) {
			t.Errorf("%s: got %v, want %v", name, err, c.want)
		}
	}
	b.alive(t, pair)
}

func TestNarrowedScopeDoesNotShrinkTheGrant(t *testing.T) {
	b := newBench(t, tokens.Config{})
	pair := b.tokens(t)
	narrow, err := b.Refresh(ctx, tokens.Refresh{Client: b.creds, Token: pair.Refresh, Scopes: []string{"balance"}})
	if err != nil || !slices.Equal(narrow.Scopes, []string{"balance"}) {
		t.Fatalf("got %+v, %v", narrow, err)
	}
	if a, err := b.Lookup(narrow.Access); err != nil || a.Allows("profile") || !a.Allows("balance") {
		t.Errorf("got %+v, %v", a, err)
	}
	wide, err := b.refresh(narrow.Refresh)
	if err != nil || !slices.Equal(wide.Scopes, []string{"profile", "balance"}) {
		t.Errorf("got %+v, %v", wide, err)
	}
}

func TestThingsExpireOnTime(t *testing.T) {
	const day = 24 * time.Hour
	b := newBench(t, tokens.Config{})
	pair := b.tokens(t)
	b.clock.Add(7199 * time.Second)
	b.alive(t, pair)
	b.clock.Add(time.Second)
	if _, err := b.Lookup(pair.Access); !errors.Is(err, tokens.ErrInvalidToken) {
		t.Errorf("after 7200 s: got %v", err)
	}
	b.clock.Add(30*day - 7201*time.Second)
	next, err := b.refresh(pair.Refresh)
	if err != nil {
		t.Fatalf("a second before 30 days: %v", err)
	}
	b.clock.Add(30*day - time.Second)
	if next, err = b.refresh(next.Refresh); err != nil {
		t.Fatalf("30 days anew with the rotation: %v", err)
	}
	b.clock.Add(30 * day)
	b.dead(t, next)
	code := b.code(t)
	b.clock.Add(59 * time.Second)
	if _, err := b.exchange(code); err != nil {
		t.Errorf("a code after 59 s: %v", err)
	}
}

func TestSweepRemovesOnlyWhatIsDead(t *testing.T) {
	b := newBench(t, tokens.Config{})
	old, unused := b.tokens(t), b.code(t)
	b.clock.Add(2 * time.Hour)
	kept := b.tokens(t)
	sweepAll := func() (n int) {
		for {
			m, err := b.state.Sweep(ctx, 2)
			if err != nil {
				t.Fatal(err)
			}
			if n += m; m < 2 {
				return n
			}
		}
	}
	if n := sweepAll(); n != 2 {
		t.Errorf("an access token and an unused code: got %d", n)
	}
	if _, err := b.exchange(unused); !errors.Is(err, tokens.ErrInvalidGrant) {
		t.Errorf("got %v", err)
	}
	b.alive(t, kept)
	if _, err := b.refresh(old.Refresh); err != nil {
		t.Errorf("a refresh token outlives its access token: %v", err)
	}
	b.clock.Add(100 * 24 * time.Hour)
	if n := sweepAll(); n != 2+2+1 {
		t.Errorf("two grants, two access tokens, one consent: got %d", n)
	}
}

func TestApproveRefusals(t *testing.T) {
	b := newBench(t, tokens.Config{})
	disabled, _ := b.register(t, "Off", "https://off.example/cb")
	if err := b.DisableApp(ctx, disabled.ID); err != nil {
		t.Fatal(err)
	}
	for name, c := range map[string]struct {
		change func(*tokens.Approval)
		want   error
	}{
		"no app":      {func(a *tokens.Approval) { a.ClientID = "" }, tokens.ErrInvalidClient},
		"unknown app": {func(a *tokens.Approval) { a.ClientID = a.ClientID[1:] }, tokens.ErrInvalidClient},
		"disabled app": {func(a *tokens.Approval) {
			a.ClientID, a.RedirectURI = disabled.ClientID,
				disabled.RedirectURI
		}, tokens.ErrInvalidClient},
		"redirect case": {func(a *tokens.Approval) { a.RedirectURI = "https://app.example.com/CB" },
			tokens.ErrInvalidRequest},
		"redirect slash": {func(a *tokens.Approval) { a.RedirectURI += "/" }, tokens.ErrInvalidRequest},
		"redirect port": {func(a *tokens.Approval) { a.RedirectURI = "https://app.example.com:443/cb" },
			tokens.ErrInvalidRequest},
		"redirect query": {func(a *tokens.Approval) { a.RedirectURI += "?" }, tokens.ErrInvalidRequest},
		"redirect escape": {func(a *tokens.Approval) { a.RedirectURI = "https://app.example.com/%63b" },
			tokens.ErrInvalidRequest},
		"no redirect": {func(a *tokens.Approval) { a.RedirectURI = "" }, tokens.ErrInvalidRequest},
		"short challenge": {func(a *tokens.Approval) { a.Challenge = strings.Repeat("a", 42) },
			tokens.ErrInvalidRequest},
		"long challenge": {func(a *tokens.Approval) { a.Challenge = strings.Repeat("a", 44) },
			tokens.ErrInvalidRequest},
		"padded challenge": {func(a *tokens.Approval) { a.Challenge = challenge("x")[:42] + "=" },
			tokens.ErrInvalidRequest},
		"no scope": {func(a *tokens.Approval) { a.Scopes = nil }, tokens.ErrInvalidScope},
		"unknown scope": {func(a *tokens.Approval) { a.Scopes = []string{"profile", "developer"} },
			tokens.ErrInvalidScope},
		"unknown user": {func(a *tokens.Approval) { a.User = 99 }, tokens.ErrNotFound},
		"no consent":   {func(a *tokens.Approval) { a.Consented = false }, tokens.ErrConsentRequired},
	} {
		a := b.approval()
		c.change(&a)
		if code, err := b.Approve(ctx, a); !errors.Is(err, c.want) || code != "" {
			t.Errorf("%s: got %q, %v, want %v", name, code, err, c.want)
		}
	}
	if n := len(b.AllowedApps(b.user.ID)); n != 0 {
		t.Errorf("%d apps are allowed", n)
	}
}

// TestAConsentIsListedUntilItEnds: a user sees what an app may ask for also while the app uses none of it, and
// withdrawing it ends the code that was not redeemed.
func TestAConsentIsListedUntilItEnds(t *testing.T) {
	b := newBench(t, tokens.Config{})
	given := b.clock.Now()
	b.code(t)
	check := func(devices int, used bool) {
		t.Helper()
		list := b.AllowedApps(b.user.ID)
		if len(list) != 1 || list[0].App.ID != b.app.ID || list[0].Devices != devices || list[0].Used.IsZero() == used ||
			!list[0].Since.Equal(given) || !slices.Equal(list[0].Scopes, b.approval().Scopes) {
			t.Errorf("got %+v", list)
		}
	}
	check(0, false)
	b.clock.Add(time.Hour) // the code has expired
	check(0, false)
	given = b.clock.Now()
	pair := b.tokens(t)
	check(1, true)
	if err := b.Revoke(ctx, b.creds, pair.Refresh); err != nil {
		t.Fatal(err)
	}
	check(0, false)
	code := b.code(t)
	if err := b.RevokeUserApp(ctx, b.user.ID, b.app.ID); err != nil {
		t.Fatal(err)
	}
	if list := b.AllowedApps(b.user.ID); len(list) != 0 {
		t.Errorf("withdrawn, but listed: %+v", list)
	}
	if _, err := b.exchange(code); !errors.Is(err, tokens.ErrInvalidGrant) {
		t.Errorf("the code of a withdrawn consent: %v", err)
	}
	b.code(t)
	b.clock.Add(90 * 24 * time.Hour)
	if list := b.AllowedApps(b.user.ID); len(list) != 0 {
		t.Errorf("expired, but listed: %+v", list)
	}
}

func TestEarlierYesCovers(t *testing.T) {
	for name, c := range map[string]struct {
		scopes  []string // consented to
		between func(t *testing.T, b *bench)
		want    bool
	}{
		"same":      {scopes: []string{"profile", "balance"}, want: true},
		"fewer now": {scopes: []string{"balance", "profile"}, want: true},
		"more now":  {scopes: []string{"profile"}},
		"after 89 days": {scopes: tokens.Scopes(),
			between: func(_ *testing.T, b *bench) { b.clock.Add(90*24*time.Hour - time.Second) }, want: true},
		"after 90 days": {scopes: tokens.Scopes(),
			between: func(_ *testing.T, b *bench) { b.clock.Add(90 * 24 * time.Hour) }},
		"narrower yes afterwards": {scopes: tokens.Scopes(), between: func(t *testing.T, b *bench) {
			a := b.approval()
			a.Scopes = []string{"profile"}
			if _, err := b.Approve(ctx, a); err != nil {
				t.Fatal(err)
			}
		}, want: true},
		"app revoked": {scopes: tokens.Scopes(), between: func(t *testing.T, b *bench) {
			if err := b.RevokeUserApp(ctx, b.user.ID, b.app.ID); err != nil {
				t.Fatal(err)
			}
		}},
		"revoked by the client": {scopes: tokens.Scopes(), between: func(t *testing.T, b *bench) {
			if err := b.Revoke(ctx, b.creds, b.tokens(t).Refresh); err != nil {
				t.Fatal(err)
			}
		}, want: true},
		"user disabled": {scopes: tokens.Scopes(), between: func(t *testing.T, b *bench) {
			if _, err := b.SetUserStatus(ctx, b.user.ID, tokens.StatusDisabled); err != nil {
				t.Fatal(err)
			}
		}},
	} {
		t.Run(name, func(t *testing.T) {
			b := newBench(t, tokens.Config{})
			a := b.approval()
			a.Scopes = c.scopes
			code, err := b.Approve(ctx, a)
			if err != nil {
				t.Fatal(err)
			}
			if _, err := b.exchange(code); err != nil {
				t.Fatal(err)
			}
			if c.between != nil {
				c.between(t, b)
			}
			b.reopen(t, tokens.Config{})
			auto := b.approval()
			auto.Consented = false
			if _, err := b.Approve(ctx, auto); (err == nil) != c.want {
				t.Errorf("Approve: got %v, want ok %v", err, c.want)
			}
		})
	}
}

func TestAutomaticGrantsAreFew(t *testing.T) {
	b := newBench(t, tokens.Config{})
	b.code(t)
	auto := b.approval()
	auto.Consented = false
	for i := range 12 {
		if _, err := b.Approve(ctx, auto); (err == nil) != (i < 10) {
			t.Errorf("grant %d: got %v", i, err)
		}
	}
	b.clock.Add(time.Hour)
	if _, err := b.Approve(ctx, auto); err != nil {
		t.Errorf("after an hour it is not approved: %v", err)
	}
}

func TestOldestGrantsGoFirst(t *testing.T) {
	b := newBench(t, tokens.Config{})
	var pairs []tokens.Tokens
	for range 101 {
		pairs = append(pairs, b.tokens(t))
		b.clock.Add(time.Millisecond)
	}
	b.dead(t, pairs[0])
	b.alive(t, pairs[1])
	b.alive(t, pairs[100])
	if n := b.devices(); n != 100 {
		t.Errorf("grants: got %d, want 100", n)
	}
}

func TestRevocation(t *testing.T) {
	for name, c := range map[string]struct {
		revoke func(b *bench, pair tokens.Tokens) error
		want   error
		access bool // still works
		family bool // still works
	}{
		"access token": {revoke: func(b *bench, p tokens.Tokens) error { return b.Revoke(ctx, b.creds, p.Access) },
			family: true},
		"refresh token": {revoke: func(b *bench, p tokens.Tokens) error { return b.Revoke(ctx, b.creds, p.Refresh) }},
		"unknown": {revoke: func(b *bench, p tokens.Tokens) error { return b.Revoke(ctx, b.creds, "at_x") },
			access: true, family: true},
		"nothing": {revoke: func(b *bench, p tokens.Tokens) error { return b.Revoke(ctx, b.creds, "") },
			access: true, family: true},
		"other's access": {revoke: func(b *bench, p tokens.Tokens) error { return b.Revoke(ctx, b.other, p.Access) },
			access: true, family: true},
		"other's refresh": {revoke: func(b *bench, p tokens.Tokens) error { return b.Revoke(ctx, b.other, p.Refresh) },
			access: true, family: true},
		"not authenticated": {revoke: func(b *bench, p tokens.Tokens) error {
			return b.Revoke(ctx, tokens.ClientCredentials{ID: b.creds.ID}, p.Refresh)
		}, want: tokens.ErrInvalidClient, access: true, family: true},
		"app by its user": {revoke: func(b *bench, p tokens.Tokens) error {
			return b.RevokeUserApp(ctx, b.user.ID,
				b.app.ID)
		}},
		"another app": {revoke: func(b *bench, p tokens.Tokens) error {
			return b.RevokeUserApp(ctx, b.user.ID,
				b.app.ID+1)
		}, access: true, family: true},
		"app by another user": {revoke: func(b *bench, p tokens.Tokens) error {
			return b.RevokeUserApp(ctx, 99,
				b.app.ID)
		}, access: true, family: true},
		"unknown app": {revoke: func(b *bench, p tokens.Tokens) error {
			return b.RevokeUserApp(ctx, b.user.ID,
				99)
		}, want: tokens.ErrNotFound, access: true, family: true},
	} {
		t.Run(name, func(t *testing.T) {
			b := newBench(t, tokens.Config{})
			_, b.other = b.register(t, "Other", callback)
			pair := b.tokens(t)
			for range 2 { // twice is once
				if err := c.revoke(b, pair); !errors.Is(err, c.want) && name != "grant by its user" {
					t.Errorf("got %v, want %v", err, c.want)
				}
				if name == "grant by its user" {
					break
				}
			}
			if _, err := b.Lookup(pair.Access); (err == nil) != c.access {
				t.Errorf("access token: got %v", err)
			}
			if _, err := b.refresh(pair.Refresh); (err == nil) != c.family {
				t.Errorf("refresh token: got %v", err)
			}
		})
	}
}

func TestOthersTokensAreNotActive(t *testing.T) {
	b := newBench(t, tokens.Config{})
	_, other := b.register(t, "Other", callback)
	pair := b.tokens(t)
	for _, token := range []string{pair.Access, pair.Refresh, "", "x", b.code(t)} {
		if got, err := b.Introspect(ctx, other, token); err != nil || got.Active || got.User.ID != 0 {
			t.Errorf("%.3s: got %+v, %v", token, got, err)
		}
	}
	if _, err := b.Introspect(ctx, tokens.ClientCredentials{ID: other.ID, Secret: "x"}, pair.Access); !errors.Is(err,
		tokens.ErrInvalidClient) {
		t.Errorf("got %v", err)
	}
	if _, err := b.refresh(pair.Refresh); err != nil {
		t.Fatal(err)
	}
	if got, err := b.Introspect(ctx, b.creds, pair.Refresh); err != nil || got.Active {
		t.Errorf("a used refresh token: got %+v, %v", got, err)
	}
}

func TestDisabledUserAndAppAreRefusedAtOnceAndComeBack(t *testing.T) {
	b := newBench(t, tokens.Config{})
	pair, code := b.tokens(t), b.code(t)
	set := func(status int) {
		t.Helper()
		if u, err := b.SetUserStatus(ctx, b.user.ID, status); err != nil || u.Status != status {
			t.Fatalf("got %+v, %v", u, err)
		}
	}
	set(tokens.StatusDisabled)
	b.dead(t, pair)
	if _, err := b.exchange(code); !errors.Is(err, tokens.ErrInvalidGrant) {
		t.Errorf("code: got %v", err)
	}
	set(tokens.StatusActive)
	b.alive(t, pair)

	if err := b.DisableApp(ctx, b.app.ID); err != nil {
		t.Fatal(err)
	}
	if _, err := b.Lookup(pair.Access); !errors.Is(err, tokens.ErrInvalidToken) {
		t.Errorf("access token: got %v", err)
	}
	if _, err := b.refresh(pair.Refresh); !errors.Is(err, tokens.ErrInvalidClient) {
		t.Errorf("refresh token: got %v", err)
	}
	if _, err := b.UpdateApp(ctx, b.app.ID, tokens.AppChange{Enabled: new(true)}); err != nil {
		t.Fatal(err)
	}
	b.alive(t, pair)
	if _, err := b.exchange(code); err != nil {
		t.Errorf("code: %v", err)
	}
}

func TestOldSecretEndsAfterADay(t *testing.T) {
	b := newBench(t, tokens.Config{})
	pair := b.tokens(t)
	old := b.creds
	rotate := func() tokens.ClientCredentials {
		t.Helper()
		secret, app, err := b.RotateSecret(ctx, b.app.ID, tokens.DefaultOverlap)
		if err != nil || !app.PreviousSecretUntil.Equal(b.clock.Now().Add(24*time.Hour)) {
			t.Fatalf("got %+v, %v", app, err)
		}
		return tokens.ClientCredentials{ID: app.ClientID, Secret: secret, From: home}
	}
	works := func(name string, creds tokens.ClientCredentials, want bool) {
		t.Helper()
		if _, err := b.Introspect(ctx, creds, pair.Refresh); (err == nil) != want {
			t.Errorf("%s: got %v, want ok %v", name, err, want)
		}
	}
	second := rotate()
	b.clock.Add(24*time.Hour - time.Second)
	works("old", old, true)
	works("new", second, true)
	b.clock.Add(time.Second)
	works("old after a day", old, false)
	works("new after a day", second, true)
	third := rotate()
	fourth := rotate()
	works("two rotations back", second, false)
	works("one rotation back", third, true)
	works("newest", fourth, true)
	b.reopen(t, tokens.Config{})
	works("one rotation back, reopened", third, true)
}
