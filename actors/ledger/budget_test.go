package ledger_test

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"stagedoor/actors/kit"
	"stagedoor/actors/kit/kittest"
	"stagedoor/actors/ledger"
	"stagedoor/providers/dialogue"
	"stagedoor/state"
	"stagedoor/state/budget"
	"stagedoor/state/identity"
	"stagedoor/state/journal"
	"stagedoor/state/money"
	"stagedoor/state/statetest"
)

func addKey(t *testing.T, s *state.State, id string, budget int64, w budget.Window) {
	t.Helper()
	if err := identity.CreateKey(ctx, s, identity.Key{ID: id, Hash: state.HashSecret(id), User: "7", Enabled: true,
		Budget: budget, Window: w}); err != nil {
		t.Fatal(err)
	}
}

// spend holds and settles, and reports whether the key's budget refused it.
func spend(t *testing.T, c *ledger.Client, id, key string, amount, charge int64) bool {
	t.Helper()
	h, err := c.Hold(ctx, ledger.Ask{Account: "7", RequestID: id, Amount: amount, Key: key})
	var over *budget.Error
	if errors.As(err, &over) {
		return false
	}
	if err != nil {
		t.Fatal(err)
	}
	if err := h.Settle(ctx, ledger.Settlement{Amount: charge, Reason: "finished"}); err != nil {
		t.Fatal(err)
	}
	return true
}

func TestBudgetIsNeverExceeded(t *testing.T) {
	run(t, func(t *testing.T, c *ledger.Client, s *state.State, _ *statetest.Faulty) {
		credit(t, c, "7", 1_000_000)
		addKey(t, s, "key_1", 1000, "")
		addKey(t, s, "key_2", 0, "")
		var spent, overrun atomic.Int64
		var wg sync.WaitGroup
		for i := range 200 {
			wg.Go(func() {
				// Some cost more than they were held for.
				charge := int64(i % 17)
				if spend(t, c, fmt.Sprint("r", i), "key_1", 11, charge) {
					spent.Add(charge)
					overrun.Add(max(charge-11, 0))
				}
				if !spend(t, c, fmt.Sprint("x", i), "key_2", 11, charge) {
					t.Error("a key without a budget was refused")
				}
			})
		}
		wg.Wait()
		got := money.SpentByKey(s.View(), "key_1").Total
		if got > 1000+overrun.Load() || got != spent.Load() {
			t.Errorf("the key has spent %d of its budget of 1000, %d were asked for", got, spent.Load())
		}
		a := money.FindAccount(s.View(), "7")
		if other := money.SpentByKey(s.View(), "key_2").Total; a.Spent != got+other {
			t.Errorf("the account has spent %d, its keys %d and %d", a.Spent, got, other)
		}
	})
}

func TestBudgetRefusalNamesIt(t *testing.T) {
	run(t, func(t *testing.T, c *ledger.Client, s *state.State, _ *statetest.Faulty) {
		credit(t, c, "7", 10_000_000)
		addKey(t, s, "key_1", 1_250_000, budget.WindowMonth)
		_, err := c.Hold(ctx, ledger.Ask{Account: "7", RequestID: "r", Amount: 1_250_001, Key: "key_1"})
		var e *dialogue.Error
		if !errors.As(err, &e) || e.Status != 429 || e.Code != "insufficient_quota" || !e.NoRetry ||
			!strings.Contains(e.Message, "budget of $1.25 a month") {
			t.Errorf("got %v", err)
		}
	})
}

// A changed budget also applies to a hold that is open.
func TestBudgetChangesAtOnce(t *testing.T) {
	run(t, func(t *testing.T, c *ledger.Client, s *state.State, _ *statetest.Faulty) {
		credit(t, c, "7", 1_000_000)
		addKey(t, s, "key_1", 100, "")
		set := func(budget int64) {
			if _, err := identity.ChangeKey(ctx, s, "key_1", func(k *identity.Key) error {
				k.Budget = budget
				return nil
			}); err != nil {
				t.Fatal(err)
			}
		}
		h, err := c.Hold(ctx, ledger.Ask{Account: "7", RequestID: "r", Amount: 100, Key: "key_1"})
		if err != nil {
			t.Fatal(err)
		}
		var refused []int64
		c.OnRefused(func(e *budget.Error) { refused = append(refused, e.Asked) })
		if err := h.Extend(ctx, 1); err == nil {
			t.Error("a hold was extended beyond the budget")
		}
		if spend(t, c, "r2", "key_1", 2, 2) || !slices.Equal(refused, []int64{1, 2}) {
			t.Errorf("refusals of %v were reported, want 1 and 2", refused)
		}
		set(150)
		if room, err := h.Room(ctx); err != nil || room != 50 {
			t.Errorf("room of %d (%v), want 50", room, err)
		}
		if err := h.Extend(ctx, 50); err != nil {
			t.Error(err)
		}
		set(20)
		if room, err := h.Room(ctx); err != nil || room != 0 {
			t.Errorf("room of %d (%v) in a budget that is overdrawn, want 0", room, err)
		}
		if err := h.Settle(ctx, ledger.Settlement{Amount: 200, Reason: "finished"}); err != nil {
			t.Fatal(err)
		}
		if got := money.SpentByKey(s.View(), "key_1").Total; got != 200 {
			t.Errorf("%d charged, want all of it, whatever was held", got)
		}
		set(0)
		if !spend(t, c, "free", "key_1", 1000, 1000) {
			t.Error("a key whose budget was taken away was refused")
		}
	})
}

func TestBudgetOfADayComesBack(t *testing.T) {
	run(t, func(t *testing.T, c *ledger.Client, s *state.State, _ *statetest.Faulty) {
		credit(t, c, "7", 1_000_000)
		addKey(t, s, "day", 100, budget.WindowDay)
		addKey(t, s, "month", 100, budget.WindowMonth)
		addKey(t, s, "total", 100, budget.WindowTotal)
		want := func(when string, day, month, total bool) {
			t.Helper()
			for key, want := range map[string]bool{"day": day, "month": month, "total": total} {
				if got := spend(t, c, when+key, key, 60, 60); got != want {
					t.Errorf("%s, key %s: %v, want %v", when, key, got, want)
				}
			}
		}
		want("first", true, true, true) // synctest begins on a first of January
		want("again", false, false, false)
		kittest.Pass(24 * time.Hour)
		want("tomorrow", true, false, false)
		kittest.Pass(31 * 24 * time.Hour)
		want("later", true, true, false)
	})
}

// The store has what a key has spent, and holds of the previous process count until they are ended.
func TestBudgetSurvivesARestart(t *testing.T) {
	kittest.Run(t, func(t *testing.T, sys *kit.System) {
		store := journal.NewMemory()
		s := open(t, store)
		c := start(t, sys, s)
		credit(t, c, "7", 1_000_000)
		addKey(t, s, "key_1", 100, "")
		if !spend(t, c, "r1", "key_1", 40, 40) {
			t.Fatal("refused")
		}
		if _, err := c.Hold(ctx, ledger.Ask{Account: "7", RequestID: "r2", Amount: 50, Key: "key_1",
			Durable: true}); err != nil {
			t.Fatal(err)
		}
		s.Close() // as a crash leaves it
		s = open(t, store)
		defer s.Close()
		again := start(t, kittest.Start(t), s)
		if spend(t, again, "r3", "key_1", 11, 0) {
			t.Error("the open hold was forgotten")
		}
		if !spend(t, again, "r4", "key_1", 10, 10) {
			t.Error("what is left of the budget was refused")
		}
	})
}

// What a member of a group holds counts for the others after a restart, also before the member's account has an
// actor again. Users draw on the budget of their group at the same time and never exceed it.
func TestBudgetOfAGroupBindsAllAccountsAndSurvivesARestart(t *testing.T) {
	kittest.Run(t, func(t *testing.T, sys *kit.System) {
		store := journal.NewMemory()
		s := open(t, store)
		c := start(t, sys, s)
		group, err := state.Do(ctx, s, func(tx *state.Tx) (identity.Group, error) {
			g, err := identity.AddGroup(tx, identity.Group{Name: "staff", Ceiling: identity.Ceiling{Budget: 1000}})
			for _, name := range []string{"a", "b", "c", "d"} {
				if err == nil {
					_, err = identity.AddUser(tx, identity.User{Username: name, Status: identity.UserActive,
						Group: g.ID})
				}
			}
			return g, err
		})
		if err != nil {
			t.Fatal(err)
		}
		names := []string{"a", "b", "c", "d"}
		for _, name := range names {
			credit(t, c, name, 1_000_000)
		}
		granted := func(c *ledger.Client, account, id string, amount int64, durable bool) *ledger.Hold {
			h, err := c.Hold(ctx,
				ledger.Ask{Account: account, RequestID: id, Amount: amount, Key: "key_" + account, Durable: durable})
			var over *budget.Error
			if err != nil && !errors.As(err, &over) {
				t.Error(err)
			}
			return h
		}
		var wg sync.WaitGroup
		for i := range 400 {
			wg.Go(func() {
				if h := granted(c, names[i%4], fmt.Sprint("r", i), 7, false); h != nil {
					if err := h.Settle(ctx, ledger.Settlement{Amount: 7, Reason: "finished"}); err != nil {
						t.Error(err)
					}
				}
			})
		}
		wg.Wait()
		left := 1000 - money.SpentBy(s.View(), group.Scope()).Total
		if left < 0 || left > 500 {
			t.Errorf("%d left of 1000, after 400 requests for 7", left)
		}
		if granted(c, "a", "video", left-1, true) == nil {
			t.Fatal("what is left of the budget was refused")
		}
		s.Close() // as a crash leaves it
		s = open(t, store)
		defer s.Close()
		again := start(t, kittest.Start(t), s)
		if granted(again, "b", "r1", 2, false) != nil {
			t.Error("the open hold of another member was forgotten")
		}
		if granted(again, "b", "r2", 1, false) == nil {
			t.Error("what is left of the budget was refused")
		}
		if h, err := again.Resume(ctx, "a", "video"); err != nil || h == nil {
			t.Fatal(err)
		}
		if granted(again, "c", "r3", 1, false) != nil {
			t.Error("the hold was forgotten when its account got an actor")
		}
	})
}
