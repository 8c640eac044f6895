package tokens_test

import (
	"encoding/binary"
	"errors"
	"fmt"
	"net/netip"
	"runtime"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"stagedoor/actors/tokens"
)

// K3: after any change of the clock, what has expired stays expired, and a jump ahead ends what expires in
// between.
func TestClockMovesReviveNothing(t *testing.T) {
	for _, restarts := range []bool{false, true} {
		t.Run(fmt.Sprint("restarts=", restarts), func(t *testing.T) {
			b := newBench(t, tokens.Config{})
			b.signUp(t, "grace")
			cookie, _, err := b.login("grace", secretWord)
			if err != nil {
				t.Fatal(err)
			}
			pair, code, old := b.tokens(t), b.code(t), b.creds
			secret, _, err := b.RotateSecret(ctx, b.app.ID, tokens.DefaultOverlap)
			if err != nil {
				t.Fatal(err)
			}
			b.creds.Secret = secret
			moved := func(by time.Duration) {
				b.clock.Add(by)
				if restarts {
					b.reopen(t, tokens.Config{})
				}
			}
			gone := func(when string, all bool) {
				t.Helper()
				if _, err := b.exchange(code); !errors.Is(err, tokens.ErrInvalidGrant) {
					t.Errorf("%s: the code: got %v", when, err)
				}
				if _, err := b.Lookup(pair.Access); !errors.Is(err, tokens.ErrInvalidToken) {
					t.Errorf("%s: the access token: got %v", when, err)
				}
				if _, err := b.Introspect(ctx, old, pair.Access); !errors.Is(err, tokens.ErrInvalidClient) {
					t.Errorf("%s: the old secret: got %v", when, err)
				}
				if !all {
					return
				}
				if _, err := b.refresh(pair.Refresh); !errors.Is(err, tokens.ErrInvalidGrant) {
					t.Errorf("%s: the refresh token: got %v", when, err)
				}
				if _, err := b.Session(ctx, cookie, tokens.Sender{}); !errors.Is(err, tokens.ErrNoSession) {
					t.Errorf("%s: the session: got %v", when, err)
				}
			}
			moved(25 * time.Hour)
			gone("a day ahead", false)
			if i, err := b.Introspect(ctx, b.creds, pair.Refresh); err != nil || !i.Active {
				t.Errorf("the refresh token after a day: %+v, %v", i, err)
			}
			moved(-26 * time.Hour)
			gone("an hour behind where it began", false)
			moved(31*24*time.Hour + 26*time.Hour)
			gone("a month ahead", true)
			moved(-32 * 24 * time.Hour)
			gone("a month back", true)
		})
	}
}

// work returns the bytes that a call allocates. A password hash allocates 19 MiB, so that the result shows how
// many were computed, on a busy machine too.
func work(call func()) uint64 {
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	call()
	runtime.ReadMemStats(&after)
	return after.TotalAlloc - before.TotalAlloc
}

// oneHash is the memory of one password hash (decisions, Users).
const oneHash = 19 << 20

// G1: the work for a login reveals neither whether the user exists nor whether the user is disabled.
func TestEveryRefusedLoginIsTheSameWork(t *testing.T) {
	b := newHashingBench(t)
	b.signUp(t, "grace")
	u := b.signUp(t, "disabled")
	if _, err := b.SetUserStatus(ctx, u.ID, tokens.StatusDisabled); err != nil {
		t.Fatal(err)
	}
	for name, l := range map[string]struct{ username, password string }{
		"right":            {"grace", secretWord},
		"wrong":            {"grace", "wrong horse"},
		"no such user":     {"nosuchuser", secretWord},
		"no such name":     {"no body", secretWord},
		"no password":      {"ada", secretWord}, // a user who has none
		"disabled":         {"disabled", secretWord},
		"disabled, wrong":  {"disabled", "wrong horse"},
		"empty":            {"", ""},
		"as long as it is": {strings.Repeat("x", 64), strings.Repeat("x", 512)},
	} {
		got := work(func() { _, _, _ = b.login(l.username, l.password) })
		if got < oneHash || got > oneHash+oneHash/4 {
			t.Errorf("%s: %d bytes allocated, want those of one hash, %d", name, got, oneHash)
		}
	}
}

// G3: of a flood of logins the few that fit are computed and the others refused,
// and no app is held up.
func TestFloodOfLoginsDelaysNoOtherUser(t *testing.T) {
	flood := 1000
	if testing.Short() {
		flood = 400
	}
	b := newHashingBench(t)
	pair := b.tokens(t)
	var hashed, refused atomic.Int32
	var wg sync.WaitGroup
	done := make(chan struct{})
	served := 0
	for i := range flood {
		wg.Go(func() {
			_, _, err := b.Login(ctx,
				tokens.Login{Username: fmt.Sprint("user", i), Password: secretWord, From: address(i)})
			var limited *tokens.Limited
			switch {
			case errors.Is(err, tokens.ErrLogin):
				hashed.Add(1)
			case errors.As(err, &limited) && limited.RetryAfter > 0:
				refused.Add(1)
			default:
				t.Errorf("got %v", err)
			}
		})
	}
	go func() { wg.Wait(); close(done) }()
	for running := true; running; served++ {
		if i, err := b.Introspect(ctx, b.creds, pair.Access); err != nil || !i.Active {
			t.Fatalf("an app meanwhile: %+v, %v", i, err)
		}
		select {
		case <-done:
			running = false
		default:
		}
	}
	if n := int(hashed.Load()); n < 1 || n+int(refused.Load()) != flood || n > flood/2 {
		t.Errorf("%d of %d computed, %d refused", n, flood, refused.Load())
	}
	if served < 10 {
		t.Errorf("the app was served %d times during the flood", served)
	}
}

func address(i int) netip.Addr {
	ip := [4]byte{10}
	binary.BigEndian.PutUint16(ip[2:], uint16(i))
	return netip.AddrFrom4(ip)
}

// G2: guesses are refused. From the sixth guess of a secret on, the reply does not say whether it was right. Memory
// does not grow, and the right secret works all the time.
func TestTenThousandGuessesFindNoSecret(t *testing.T) {
	const guesses = 10_000
	b := newBench(t, tokens.Config{})
	pair, code := b.tokens(t), b.code(t)
	healthy := func() {
		t.Helper()
		if i, err := b.Introspect(ctx, b.creds, pair.Access); err != nil || !i.Active {
			t.Fatalf("the app itself: %+v, %v", i, err)
		}
	}
	for name, c := range map[string]struct {
		guess func(i int) error
		want  error
		wrong int // guesses whose reply says that they were wrong; the others must wait
	}{
		"secrets": {func(i int) error {
			_, err := b.Introspect(ctx, tokens.ClientCredentials{ID: b.creds.ID, Secret: fmt.Sprint("as_", i),
				From: address(i)}, pair.Access)
			return err
		}, tokens.ErrInvalidClient, 5},
		"codes": {func(int) error {
			_, err := b.exchange(tokens.Forge(code, "ac_"))
			return err
		}, tokens.ErrInvalidGrant, guesses},
		"access tokens": {func(int) error {
			_, err := b.Lookup(tokens.Mint("at_"))
			return err
		}, tokens.ErrInvalidToken, guesses},
	} {
		before, wrong := heap(), 0
		for i := range guesses {
			switch err := c.guess(i); {
			case errors.Is(err, c.want):
				wrong++
			case !errors.Is(err, tokens.ErrLimited):
				t.Fatalf("%s: got %v", name, err)
			}
			if i%100 == 0 {
				healthy()
			}
		}
		if wrong != c.wrong {
			t.Errorf("%s: %d replies say that the guess was wrong, want %d", name, wrong, c.wrong)
		}
		if grown := heap() - before; grown > 8<<20 {
			t.Errorf("%s: %d bytes are kept of them", name, grown)
		}
	}
	if _, err := b.exchange(code); err != nil {
		t.Errorf("the code that was guessed at: %v", err)
	}
}

// heap returns the bytes in use after a collection.
func heap() int64 {
	runtime.GC()
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return int64(m.HeapAlloc)
}
