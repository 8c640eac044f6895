package tokens_test

import (
	"errors"
	"net/netip"
	"strings"
	"testing"
	"time"

	"stagedoor/actors/tokens"
	"stagedoor/state/identity"
)

// TestCodesAreThoseOfTheRFCs has the vectors of RFC 4226, appendix D, and of RFC 6238, appendix B, whose codes of eight
// digits end with those of six.
func TestCodesAreThoseOfTheRFCs(t *testing.T) {
	secret := []byte("12345678901234567890")
	for i, want := range []string{"755224", "287082", "359152", "969429", "338314", "254676", "287922", "162583",
		"399871", "520489"} {
		if got := tokens.CodeAt(secret, time.Unix(int64(i)*30, 0)); got != want {
			t.Errorf("count %d: %s, want %s", i, got, want)
		}
	}
	for at, want := range map[int64]string{59: "287082", 1111111109: "081804", 1111111111: "050471",
		1234567890: "005924", 2000000000: "279037", 20000000000: "353130"} {
		if got := tokens.CodeAt(secret, time.Unix(at, 0)); got != want {
			t.Errorf("at %d: %s, want %s", at, got, want)
		}
	}
}

var factor = []byte("12345678901234567890")

// enrolled returns a bench with a user who has a second factor, and the user's recovery codes.
func enrolled(t *testing.T) (*bench, tokens.User, []string) {
	t.Helper()
	b := newBench(t, tokens.Config{})
	u := b.signUp(t, "grace")
	recovery, err := b.EnableSecondFactor(ctx, u.ID, "", factor, tokens.CodeAt(factor, b.clock.Now()))
	if err != nil || len(recovery) != 10 {
		t.Fatal(recovery, err)
	}
	b.clock.Add(time.Minute)
	return b, u, recovery
}

func (b *bench) halfway(t *testing.T) tokens.Halfway {
	t.Helper()
	var code *tokens.CodeRequired
	if cookie, _, err := b.login("grace", secretWord); !errors.As(err, &code) || cookie != "" {
		t.Fatalf("the password alone: %q, %v", cookie, err)
	}
	return code.Halfway
}

func TestACodeSignsInOnceBesideThePassword(t *testing.T) {
	b, u, recovery := enrolled(t)
	h := b.halfway(t)
	finish := func(what, code string, want error) {
		t.Helper()
		cookie, _, err := b.FinishLogin(ctx, h, code, tokens.Sender{})
		if !errors.Is(err, want) || (cookie != "") != (want == nil) {
			t.Errorf("%s: %v, want %v", what, err, want)
		}
	}
	now := b.clock.Now()
	finish("an older code", tokens.CodeAt(factor, now.Add(-time.Minute)), tokens.ErrCode)
	finish("no code", "", tokens.ErrCode)
	finish("a code", tokens.CodeAt(factor, now), nil)
	finish("the same code", tokens.CodeAt(factor, now), tokens.ErrCode)
	finish("one before it", tokens.CodeAt(factor, now.Add(-30*time.Second)), tokens.ErrCode)
	finish("that of a fast clock", tokens.CodeAt(factor, now.Add(30*time.Second)), nil)
	finish("a recovery code", recovery[3], nil)
	finish("the same recovery code", recovery[3], tokens.ErrCode)
	if n := b.RecoveryLeft(u.ID); n != 9 {
		t.Errorf("%d recovery codes are left", n)
	}
	b.reopen(t, tokens.Config{})
	finish("the same after a restart", recovery[3], tokens.ErrCode)
	if _, err := b.UpdateUser(ctx, u.ID, tokens.UserChange{Password: new("another long password")}); err != nil {
		t.Fatal(err)
	}
	finish("after a change of the password", recovery[4], tokens.ErrLogin)
	if n := b.RecoveryLeft(u.ID); n != 9 {
		t.Errorf("a refused login used a recovery code: %d are left", n)
	}
}

func TestALoginFromBeforeAChangeOfThePasswordCountsNoGuesses(t *testing.T) {
	b, u, recovery := enrolled(t)
	old := b.halfway(t)
	if _, err := b.UpdateUser(ctx, u.ID, tokens.UserChange{Password: new("another long password")}); err != nil {
		t.Fatal(err)
	}
	for range 6 {
		if _, _, err := b.FinishLogin(ctx, old, "000000", tokens.Sender{}); !errors.Is(err, tokens.ErrLogin) {
			t.Errorf("a guess: %v", err)
		}
	}
	if _, err := b.RenewRecovery(ctx, u.ID, recovery[0]); err != nil {
		t.Errorf("the user's own code: %v", err)
	}
}

func TestGuessesOfCodesAreLimitedForEachUser(t *testing.T) {
	b, u, recovery := enrolled(t)
	h := b.halfway(t)
	at := func(n byte) tokens.Sender { return tokens.Sender{Address: netip.AddrFrom4([4]byte{192, 0, 2, n})} }
	guess := func(h tokens.Halfway, from byte, code string) error {
		_, _, err := b.FinishLogin(ctx, h, code, at(from))
		return err
	}
	for i := range 20 { // of four addresses
		if err := guess(h, byte(i/5), "000000"); !errors.Is(err, tokens.ErrCode) {
			t.Errorf("guess %d: %v", i, err)
		}
		if i != 4 {
			continue
		}
		if err := guess(h, 0, "000000"); !errors.Is(err, tokens.ErrLimited) {
			t.Errorf("after the guesses of one address: %v", err)
		}
	}
	if err := guess(h, 99, "000000"); !errors.Is(err, tokens.ErrLimited) {
		t.Errorf("an unknown browser after the guesses of others: %v", err)
	}
	// The guesser keeps the user neither out of a browser that has signed in before, nor from the pages.
	known := h
	known.Device = "laptop"
	if err := guess(known, 99, recovery[9]); err != nil {
		t.Errorf("a known browser after the guesses of others: %v", err)
	}
	for i := range 5 {
		if err := b.ConfirmCode(ctx, u.ID, "000000"); !errors.Is(err, tokens.ErrCode) {
			t.Errorf("guess %d of a session: %v", i, err)
		}
		if err := guess(known, 99, "000000"); !errors.Is(err, tokens.ErrCode) {
			t.Errorf("guess %d in a known browser: %v", i, err)
		}
	}
	for what, try := range map[string]func() error{
		"signing in":  func() error { return guess(known, 99, "000000") },
		"turning off": func() error { return b.DisableSecondFactor(ctx, u.ID, recovery[0]) },
		"new codes":   func() error { _, err := b.RenewRecovery(ctx, u.ID, recovery[0]); return err },
	} {
		if err := try(); !errors.Is(err, tokens.ErrLimited) {
			t.Errorf("%s after the guesses: %v", what, err)
		}
	}
	// A recovery code cannot be guessed, so that a person who knows the password keeps the user out of no browser.
	for _, half := range []tokens.Halfway{h, known} {
		if err := guess(half, 0, strings.ToLower(recovery[8])); (err == nil) != (half == h) {
			t.Errorf("a recovery code after the guesses of others: %v", err) // the second time it is used
		}
	}
	b.clock.Add(time.Minute)
	fresh, err := b.RenewRecovery(ctx, u.ID, recovery[0])
	if err != nil {
		t.Fatal(err)
	}
	if err := b.DisableSecondFactor(ctx, u.ID, recovery[1]); !errors.Is(err, tokens.ErrCode) {
		t.Errorf("a recovery code that was replaced: %v", err)
	}
	if err := b.DisableSecondFactor(ctx, u.ID, fresh[0]); err != nil {
		t.Fatal(err)
	}
	if _, _, err := b.login("grace", secretWord); err != nil {
		t.Errorf("the password alone: %v", err)
	}
}

func TestASecondFactorIsEnabledWithACodeOnly(t *testing.T) {
	b := newBench(t, tokens.Config{})
	u := b.signUp(t, "grace")
	if _, err := b.EnableSecondFactor(ctx, u.ID, "", factor, "123456"); !errors.Is(err, tokens.ErrCode) {
		t.Errorf("a wrong code: %v", err)
	}
	code := tokens.CodeAt(factor, b.clock.Now())
	if _, err := b.EnableSecondFactor(ctx, u.ID, "", factor, code); err != nil {
		t.Fatal(err)
	}
	if _, err := b.EnableSecondFactor(ctx, u.ID, "", factor, code); !errors.Is(err, tokens.ErrExists) {
		t.Errorf("again: %v", err)
	}
	kept, _ := identity.FindUser(b.state.View(), u.ID)
	got, err := b.UpdateUser(ctx, u.ID, tokens.UserChange{ResetSecondFactor: true})
	if err != nil || got.SecondFactor || kept.SecondFactor == nil {
		t.Errorf("%+v, %v", got, err)
	}
	if _, _, err := b.login("grace", secretWord); err != nil {
		t.Errorf("after the reset: %v", err)
	}
}
