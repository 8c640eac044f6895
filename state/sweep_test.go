package state_test

import (
	"errors"
	"fmt"
	"testing"
	"time"

	"stagedoor/state"
	"stagedoor/state/identity"
	"stagedoor/state/journal"
	"stagedoor/state/money"
)

func TestSweepTakesExpiredOfEveryTable(t *testing.T) {
	clock, store := newClock(), journal.NewMemory()
	s := open(t, store, clock.Now)
	must(t, s, func(tx *state.Tx) error {
		var errs []error
		for n := range 10 {
			at := start.Add(time.Duration(n) * time.Minute)
			errs = append(
				errs,
				identity.PutSession(tx,
					identity.Session{ID: fmt.Sprint("ses_", n), Hash: hash(n), User: 1, Expires: at}),
				identity.PutGrant(
					tx,
					identity.Grant{
						ID:      fmt.Sprint("grt_", n),
						User:    1,
						App:     1,
						Family:  hash(n),
						Code:    identity.Code{Hash: hash(n)},
						Expires: at,
					},
				),
				identity.PutAccessToken(tx,
					identity.AccessToken{ID: fmt.Sprint("acc_", n), Hash: hash(n), Grant: "grt_0", Expires: at}),
				identity.PutConsent(tx, identity.Consent{User: 1, App: int64(n + 1), Expires: at}),
			)
		}
		return errors.Join(errs...)
	})
	for _, c := range []struct {
		after time.Duration
		limit int
		want  int
	}{{0, 0, 4}, {59 * time.Second, 0, 0}, {time.Second, 0, 4}, {5 * time.Minute, 7, 7}, {0, 0, 13}, {time.Hour, 0, 12},
		{0, 0, 0}} {
		clock.Add(c.after)
		if n, err := s.Sweep(ctx, c.limit); err != nil || n != c.want {
			t.Errorf("at %v: got %d, %v, want %d", clock.Now().Sub(start), n, err, c.want)
		}
	}
	again := open(t, store, clock.Now)
	if n := len(identity.ListSessions(again.View(), 1)) + len(identity.ListGrants(again.View(), 1, 0)); n != 0 {
		t.Errorf("%d are back after a restart", n)
	}
}

func TestSweepForgetsUsedCodesInTime(t *testing.T) {
	clock := newClock()
	s := open(t, journal.NewMemory(), clock.Now)
	var codes []money.RedeemCode
	var texts []string
	for n := range 3 {
		text, c, err := money.NewRedeemCode(start, seeded(uint64(n)), 10, "root")
		if err != nil {
			t.Fatal(err)
		}
		codes, texts = append(codes, c), append(texts, text)
	}
	codes[1].Expires = start.Add(time.Hour)
	if err := money.AddRedeemCodes(ctx, s, codes); err != nil {
		t.Fatal(err)
	}
	if _, _, err := money.Redeem(ctx, s, "a", texts[0]); err != nil {
		t.Fatal(err)
	}
	clock.Add(money.RedeemedFor - time.Second)
	if n, err := s.Sweep(ctx, 0); n != 0 || err != nil {
		t.Errorf("early: %d, %v", n, err)
	}
	if _, _, err := money.Redeem(ctx, s, "b", texts[0]); !errors.Is(err, money.ErrRedeemed) {
		t.Errorf("got %v, want ErrRedeemed", err)
	}
	clock.Add(2 * time.Hour)
	if n, err := s.Sweep(ctx, 0); n != 2 || err != nil {
		t.Errorf("in time: %d, %v, want the used one and the expired one", n, err)
	}
	if _, _, err := money.Redeem(ctx, s, "b", texts[2]); err != nil {
		t.Errorf("the one that waits: %v", err)
	}
}

// A payment's key is kept whatever the wall clock does: after a leap of 40 days and
// back, in the same process or the next one, the same key credits nothing.
func TestPaymentKeyOutlivesAClockThatLeapsAndReturns(t *testing.T) {
	clock, store := newClock(), journal.NewMemory()
	s := open(t, store, clock.Now)
	pay := func() uint64 {
		t.Helper()
		var sequence uint64
		must(t, s, func(tx *state.Tx) error {
			_, posted, err := money.Post(tx, "a", []money.Posting{{Kind: money.Credit, Amount: 10, Once: "p1"}})
			if err != nil {
				return err
			}
			sequence = posted[0].Sequence
			return posted[0].Err
		})
		return sequence
	}
	first := pay()
	for _, leap := range []time.Duration{40 * 24 * time.Hour, -40 * 24 * time.Hour, 10 * 365 * 24 * time.Hour} {
		clock.Add(leap)
		if n, err := s.Sweep(ctx, 0); n != 0 || err != nil {
			t.Errorf("after %v: swept %d, %v", leap, n, err)
		}
		if again := pay(); again != first {
			t.Errorf("after %v: paid again as entry %d", leap, again)
		}
		s.Close()
		s = open(t, store, clock.Now)
		if again := pay(); again != first {
			t.Errorf("after %v and a restart: paid again as entry %d", leap, again)
		}
	}
	if a := money.FindAccount(s.View(), "a"); a.Credits != 10 {
		t.Errorf("credits are %d, want 10", a.Credits)
	}
}
