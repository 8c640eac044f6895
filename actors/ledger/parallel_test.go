package ledger_test

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"stagedoor/actors/kit/kittest"
	"stagedoor/actors/ledger"
	"stagedoor/state"
	"stagedoor/state/journal"
	"stagedoor/state/money"
)

// Concurrent callers hold, extend, settle, release and disconnect on a few accounts while payments
// arrive. No account is overdrawn at any moment, nothing stays held, and every sum is exact.
func TestThousandsOfHoldsOnOneBalance(t *testing.T) {
	const accounts, callers, each = 3, 64, 120
	sys := kittest.Start(t)
	s := open(t, journal.NewMemory())
	t.Cleanup(func() { s.Close() })
	c := start(t, sys, s)
	var credited [accounts]int64
	for i := range accounts {
		credited[i] = 100_000
		credit(t, c, fmt.Sprint(i), credited[i])
	}
	var wg sync.WaitGroup
	var charged, refused, left [accounts]atomic.Int64
	watch, stop := context.WithCancel(ctx)
	for i := range accounts {
		wg.Go(func() {
			for watch.Err() == nil {
				if b := balance(t, c, fmt.Sprint(i)); b.Available() < 0 || b.Held < 0 {
					t.Errorf("account %d is overdrawn: %+v", i, b)
				}
				if a := money.FindAccount(s.View(), fmt.Sprint(i)); a.Available() < 0 || a.Held < 0 {
					t.Errorf("account %d is overdrawn on disk: %+v", i, a)
				}
				time.Sleep(time.Millisecond)
			}
		})
	}
	var work sync.WaitGroup
	for n := range callers {
		work.Go(func() {
			random := rand.New(rand.NewPCG(uint64(n), 1))
			for k := range each {
				i := random.IntN(accounts)
				ask := ledger.Ask{
					Account:   fmt.Sprint(i),
					RequestID: fmt.Sprintf("req_%d-%d", n, k),
					Amount:    random.Int64N(4000),
					Durable:   random.IntN(4) == 0,
				}
				patience, cancel := context.WithCancel(ctx)
				if random.IntN(10) == 0 {
					time.AfterFunc(time.Duration(random.IntN(300))*time.Microsecond, cancel)
				}
				h, err := c.Hold(patience, ask)
				cancel()
				switch {
				case errors.Is(err, money.ErrInsufficient):
					refused[i].Add(1)
					continue
				case errors.Is(err, context.Canceled):
					left[i].Add(1)
					continue
				case err != nil:
					t.Error(err)
					return
				}
				if random.IntN(8) == 0 {
					time.Sleep(60 * time.Millisecond) // lives long enough to be journaled
				}
				if random.IntN(3) == 0 {
					if err := h.Extend(ctx, random.Int64N(500)); err != nil && !errors.Is(err, money.ErrInsufficient) {
						t.Error(err)
					}
				}
				h.Progress(random.Int64N(h.Amount() + 1))
				if random.IntN(3) == 0 {
					h.Release("end", nil)
					continue
				}
				amount := random.Int64N(h.Amount() + 1)
				if err := h.Settle(ctx, ledger.Settlement{Amount: amount, Reason: "finished"}); err != nil {
					t.Error(err)
				}
				charged[i].Add(amount)
				if random.IntN(20) == 0 { // give some of it back, so that there is more to do
					credit(t, c, fmt.Sprint(i), amount+1)
					atomic.AddInt64(&credited[i], amount+1)
				}
			}
		})
	}
	work.Wait()
	stop()
	wg.Wait()
	for i := range accounts {
		settled(t, c, s, fmt.Sprint(i))
		want := ledger.Balance{Credits: credited[i], Spent: charged[i].Load()}
		if got := balance(t, c, fmt.Sprint(i)); got != want {
			t.Errorf("account %d: got %+v, want %+v", i, got, want)
		}
		t.Logf("account %d: %+v, %d refused, %d left while waiting", i, want, refused[i].Load(), left[i].Load())
	}
	if err := sys.Stop(ctx); err != nil { // releases are journaled late
		t.Error(err)
	}
	totals, err := money.CheckLedger(ctx, s)
	if err != nil || totals.Open != 0 || totals.Held != 0 {
		t.Errorf("ledger: %+v, %v", totals, err)
	}
	if s := s.Stats(); s.Groups >= s.Commands {
		t.Logf("%d commits for %d commands", s.Groups, s.Commands)
	}
}

// settled waits until the operations without a waiter are journaled.
func settled(tb testing.TB, c *ledger.Client, s *state.State, account string) {
	tb.Helper()
	for deadline := time.Now().Add(10 * time.Second); ; {
		if b := balance(tb, c, account); b.Held == 0 && len(money.ListHolds(s.View(), account)) == 0 {
			return
		}
		if time.Now().After(deadline) {
			tb.Fatalf("account %s: still held: %+v, %+v", account, balance(tb, c, account),
				money.ListHolds(s.View(), account))
		}
		time.Sleep(time.Millisecond)
	}
}

// A thousand concurrent calls with a balance for ten get ten holds.
func TestParallelCallsCannotOverdraw(t *testing.T) {
	sys := kittest.Start(t)
	s := open(t, journal.NewMemory())
	t.Cleanup(func() { s.Close() })
	c := start(t, sys, s)
	credit(t, c, "7", 1000)
	var granted atomic.Int32
	var wg sync.WaitGroup
	for i := range 1000 {
		wg.Go(func() {
			if _, err := c.Hold(ctx, ledger.Ask{Account: "7", RequestID: fmt.Sprint("req_", i), Amount: 100,
				Durable: i%2 == 0}); err == nil {
				granted.Add(1)
			} else if !errors.Is(err, money.ErrInsufficient) {
				t.Error(err)
			}
		})
	}
	wg.Wait()
	if granted.Load() != 10 {
		t.Errorf("got %d calls admitted, want 10", granted.Load())
	}
}
