package money_test

import (
	"errors"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"stagedoor/state"
	"stagedoor/state/budget"
	"stagedoor/state/journal"
	"stagedoor/state/money"
)

func mint(t testing.TB, s *state.State, n uint64, amount int64) (string, money.RedeemCode) {
	t.Helper()
	code, c, err := money.NewRedeemCode(start.Add(time.Duration(n)*time.Second), seeded(n), amount, "operator")
	if err != nil {
		t.Fatal(err)
	}
	if err := money.AddRedeemCodes(ctx, s, []money.RedeemCode{c}); err != nil {
		t.Fatal(err)
	}
	return code, c
}

func TestCodeIsRedeemedOnce(t *testing.T) {
	store := journal.NewMemory()
	s := open(t, store, newClock().Now)
	code, _ := mint(t, s, 1, 5_000_000)
	var wg sync.WaitGroup
	var won, lost atomic.Int32
	for range 32 {
		wg.Go(func() {
			switch _, _, err := money.Redeem(ctx, s, "a", code); {
			case err == nil:
				won.Add(1)
			case errors.Is(err, money.ErrRedeemed):
				lost.Add(1)
			default:
				t.Error(err)
			}
		})
	}
	wg.Wait()
	if won.Load() != 1 || lost.Load() != 31 || money.FindAccount(s.View(), "a").Credits != 5_000_000 {
		t.Errorf("got %d winners, %d losers, %+v", won.Load(), lost.Load(), money.FindAccount(s.View(), "a"))
	}
	s.Close()
	s = open(t, store, newClock().Now)
	if _, _, err := money.Redeem(ctx, s, "b", code); !errors.Is(err, money.ErrRedeemed) {
		t.Errorf("after a restart: got %v, want ErrRedeemed", err)
	}
	if c := money.ListRedeemCodes(s.View()); len(c) != 1 || c[0].UsedBy != "a" || !c[0].Used.Equal(start) {
		t.Errorf("listed: got %+v", c)
	}
}

// A code that cannot be used any more is listed with its state and removed after a while.
func TestUsedCodesAreShownAndThenRemoved(t *testing.T) {
	clock := newClock()
	s := open(t, journal.NewMemory(), clock.Now)
	used, _ := mint(t, s, 1, 1_000_000)
	_, cancelled := mint(t, s, 2, 1_000_000)
	_, open := mint(t, s, 3, 1_000_000)
	if _, _, err := money.Redeem(ctx, s, "a", used); err != nil {
		t.Fatal(err)
	}
	if _, err := money.CancelRedeemCode(ctx, s, cancelled.ID); err != nil {
		t.Fatal(err)
	}
	for i, want := range []string{money.RedeemUsed, money.RedeemCancelled, money.RedeemOpen} {
		if got := money.ListRedeemCodes(s.View())[i].State(clock.Now()); got != want {
			t.Errorf("code %d: got %s, want %s", i, got, want)
		}
	}
	expiring := money.RedeemCode{Expires: start.Add(time.Hour)}
	if now, later := expiring.State(start), expiring.State(start.Add(time.Hour)); now != money.RedeemOpen ||
		later != money.RedeemExpired {
		t.Errorf("expiring: got %s, then %s", now, later)
	}
	clock.Add(money.RedeemedFor)
	if _, err := s.Sweep(ctx, 0); err != nil {
		t.Fatal(err)
	}
	if left := money.ListRedeemCodes(s.View()); len(left) != 1 || left[0].ID != open.ID {
		t.Errorf("left: %+v", left)
	}
}

func TestCodesAreFoundHoweverTypedAndNotGuessed(t *testing.T) {
	clock := newClock()
	s := open(t, journal.NewMemory(), clock.Now)
	for i, typed := range []func(string) string{
		strings.ToLower,
		func(c string) string { return strings.ReplaceAll(c, "-", "") },
		func(c string) string { return " " + strings.ReplaceAll(c, "-", " ") + "\n" },
		func(c string) string { return strings.NewReplacer("0", "o", "1", "l").Replace(c) },
	} {
		code, _ := mint(t, s, uint64(i), 10)
		if _, _, err := money.Redeem(ctx, s, "a", typed(code)); err != nil {
			t.Errorf("%q for %q: %v", typed(code), code, err)
		}
	}
	for _, wrong := range []string{"", "-", "AAAA-AAAA-AAAA-AAAA-AAAA-AAAA", strings.Repeat("x", 1<<16)} {
		if _, _, err := money.Redeem(ctx, s, "a", wrong); !errors.Is(err, state.ErrNotFound) {
			t.Errorf("%.40q: got %v, want ErrNotFound", wrong, err)
		}
	}
	code, c, err := money.NewRedeemCode(start, seeded(99), 10, "operator")
	if err != nil {
		t.Fatal(err)
	}
	c.Expires = start.Add(time.Hour)
	if err := money.AddRedeemCodes(ctx, s, []money.RedeemCode{c}); err != nil {
		t.Fatal(err)
	}
	clock.Add(time.Hour)
	if _, _, err := money.Redeem(ctx, s, "a", code); !errors.Is(err, state.ErrNotFound) {
		t.Errorf("expired: got %v, want ErrNotFound", err)
	}
}

func TestCodesAreAddedAllOrNone(t *testing.T) {
	s := newState(t)
	_, there := mint(t, s, 1, 10)
	_, fresh, err := money.NewRedeemCode(start, seeded(2), 10, "")
	if err != nil {
		t.Fatal(err)
	}
	if err := money.AddRedeemCodes(ctx, s, []money.RedeemCode{fresh, there}); !errors.Is(err, state.ErrExists) {
		t.Errorf("got %v, want ErrExists", err)
	}
	free := fresh
	free.Amount = 0
	if err := money.AddRedeemCodes(ctx, s, []money.RedeemCode{fresh, free}); !errors.Is(err, state.ErrInvalid) {
		t.Errorf("got %v, want ErrInvalid", err)
	}
	if c := money.ListRedeemCodes(s.View()); len(c) != 1 {
		t.Errorf("got %+v, want only the first", c)
	}
}

// A code whose amount cannot be credited is not used up.
func TestFullAccountKeepsTheCode(t *testing.T) {
	s := newState(t)
	post(t, s, "rich", money.Posting{Kind: money.Credit, Amount: budget.MaxCredits})
	code, _ := mint(t, s, 1, 10)
	if _, _, err := money.Redeem(ctx, s, "rich", code); !errors.Is(err, state.ErrInvalid) {
		t.Errorf("got %v, want ErrInvalid", err)
	}
	if _, _, err := money.Redeem(ctx, s, "poor", code); err != nil {
		t.Errorf("the code was lost: %v", err)
	}
}
