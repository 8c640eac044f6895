package money_test

import (
	"errors"
	"fmt"
	"slices"
	"sync"
	"testing"
	"time"

	"pgregory.net/rapid"

	"stagedoor/state"
	"stagedoor/state/journal"
	"stagedoor/state/money"
	"stagedoor/state/schema"
	"stagedoor/state/statetest"
)

// Postings and folds happen in random order on several accounts. Balances stay the same, and
// CheckLedger proves them from checkpoints and entries.
func TestFoldingKeepsEverySum(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		clock, store := newClock(), journal.NewMemory()
		s, err := schema.Open(statetest.DecideTwice(store), clock.Now)
		if err != nil {
			rt.Fatal(err)
		}
		defer func() { s.Close() }()
		account := rapid.SampledFrom([]string{"a", "b", "c"})
		amount := rapid.Int64Range(0, 40)
		entered, folded := 0, 0
		enter := func(account string, p money.Posting) {
			if p.Receipt == nil {
				p.Receipt = about(fmt.Sprint("r", entered))
			}
			_, posted, err := money.CommitPostings(ctx, s, account, []money.Posting{p})
			if err != nil {
				rt.Fatal(err)
			}
			if posted[0].Err == nil && p.Kind != money.Progress {
				entered++
			}
		}
		rt.Repeat(map[string]func(*rapid.T){
			"credit": func(rt *rapid.T) {
				enter(account.Draw(rt, "account"), money.Posting{Kind: money.Credit, Amount: amount.Draw(rt, "amount")})
			},
			"adjust": func(rt *rapid.T) {
				enter(account.Draw(rt, "account"),
					money.Posting{Kind: money.Adjust, Amount: -amount.Draw(rt, "amount")})
			},
			"begin": func(rt *rapid.T) {
				enter(account.Draw(rt, "account"), money.Posting{Kind: money.Begin, Amount: amount.Draw(rt, "amount")})
			},
			"settle at once": func(rt *rapid.T) {
				enter(account.Draw(rt, "account"),
					money.Posting{Kind: money.Settle, Held: 9, Amount: amount.Draw(rt, "amount")})
			},
			"go on": func(rt *rapid.T) {
				holds := money.ListHolds(s.View(), "")
				if len(holds) == 0 {
					rt.Skip("no hold")
				}
				h := rapid.SampledFrom(holds).Draw(rt, "hold")
				kind := rapid.SampledFrom([]money.EntryKind{money.Extend, money.Settle, money.Release, money.Progress}).
					Draw(rt, "kind")
				enter(h.Account,
					money.Posting{Kind: kind, Hold: h.ID, Amount: amount.Draw(rt, "amount"), Receipt: &h.Receipt})
			},
			"time": func(rt *rapid.T) { clock.Add(time.Hour) },
			"fold": func(rt *rapid.T) {
				before, held := money.ListAccounts(s.View()), money.ListHolds(s.View(), "")
				n, err := money.Fold(ctx, s,
					clock.Now().Add(-time.Duration(rapid.IntRange(-1, 2).Draw(rt, "hours"))*time.Hour),
					rapid.IntRange(1, 5).Draw(rt, "limit"))
				if err != nil {
					rt.Fatal(err)
				}
				folded += n
				if after := money.ListAccounts(s.View()); fmt.Sprint(before) != fmt.Sprint(after) ||
					fmt.Sprint(held) != fmt.Sprint(money.ListHolds(s.View(), "")) {
					rt.Fatalf("accounts were %v, are %v", before, after)
				}
			},
			"restart": func(rt *rapid.T) {
				s.Close()
				if s, err = schema.Open(statetest.DecideTwice(store), clock.Now); err != nil {
					rt.Fatal(err)
				}
			},
			"": func(rt *rapid.T) {
				totals, err := money.CheckLedger(ctx, s)
				if err != nil || totals.Entries+folded != entered || totals.Folded != int64(folded) {
					rt.Fatalf("%d entered, %d folded: %+v, %v", entered, folded, totals, err)
				}
				for _, a := range money.ListAccounts(s.View()) {
					if _, err := money.History(ctx, s, a.ID, 0, 1000); err != nil {
						rt.Fatalf("history of %s: %v", a.ID, err)
					}
				}
			},
		})
	})
}

func TestFoldTakesOldEntriesWithTheirReceipts(t *testing.T) {
	clock := newClock()
	s := open(t, journal.NewMemory(), clock.Now)
	post(t, s, "a", money.Posting{Kind: money.Credit, Amount: 100},
		money.Posting{Kind: money.Settle, Held: 5, Amount: 5, Receipt: about("old")})
	clock.Add(time.Hour)
	post(t, s, "a", money.Posting{Kind: money.Settle, Held: 7, Amount: 7, Receipt: about("new")})
	if n, err := money.Fold(ctx, s, clock.Now(), 0); n != 2 || err != nil {
		t.Fatalf("got %d, %v", n, err)
	}
	if n, err := money.Fold(ctx, s, clock.Now(), 0); n != 0 || err != nil {
		t.Errorf("again: got %d, %v", n, err)
	}
	if _, err := money.Receipts(ctx, s, "a", "old"); !errors.Is(err, state.ErrNotFound) {
		t.Errorf("the old receipt: %v", err)
	}
	if r, err := money.Receipts(ctx, s, "a", "new"); err != nil || r[0].Charged != 7 {
		t.Errorf("the new receipt: %+v, %v", r, err)
	}
	if h, err := money.History(ctx, s, "a", 0, 10); err != nil || len(h) != 1 || h[0].Amount != 7 {
		t.Errorf("history: %+v, %v", h, err)
	}
	if a := money.FindAccount(s.View(), "a"); a.Credits != 100 || a.Spent != 12 {
		t.Errorf("account: %+v", a)
	}
}

// Entries that were posted together are folded together.
func TestFoldEndsWithAPage(t *testing.T) {
	clock := newClock()
	s := open(t, journal.NewMemory(), clock.Now)
	credit := money.Posting{Kind: money.Credit, Amount: 1}
	for _, size := range []int{2, 3, 1, 1, 4} {
		post(t, s, "a", slices.Repeat([]money.Posting{credit}, size)...)
	}
	clock.Add(time.Hour)
	for _, c := range []struct{ limit, want int }{{2, 2}, {1, 3}, {3, 6}, {1, 0}} {
		if n, err := money.Fold(ctx, s, clock.Now(), c.limit); n != c.want || err != nil {
			t.Errorf("%d: folded %d, %v, want %d", c.limit, n, err, c.want)
		}
	}
}

// Of concurrent folds only one takes effect, and concurrent postings are not disturbed.
func TestOnlyOneOfConcurrentFoldsCounts(t *testing.T) {
	clock := newClock()
	s := open(t, journal.NewMemory(), clock.Now)
	for range 200 {
		post(t, s, "a", money.Posting{Kind: money.Credit, Amount: 1})
	}
	clock.Add(time.Hour)
	var wg sync.WaitGroup
	for range 4 {
		wg.Go(func() {
			for range 20 {
				if _, err := money.Fold(ctx, s, clock.Now(), 7); err != nil {
					t.Error(err)
				}
				if _, err := money.History(ctx, s, "a", 0, 1000); err != nil {
					t.Error(err)
				}
				if _, _, err := money.CommitPostings(ctx, s, "a",
					[]money.Posting{{Kind: money.Credit, Amount: 1}}); err != nil {
					t.Error(err)
				}
			}
		})
	}
	wg.Wait()
	totals, err := money.CheckLedger(ctx, s)
	if err != nil || totals.Credits != 280 || totals.Entries+int(totals.Folded) != 280 || totals.Folded == 0 {
		t.Errorf("%+v, %v", totals, err)
	}
}

// The test changes a checkpoint in the store.
func TestCheckLedgerNoticesAWrongCheckpoint(t *testing.T) {
	for name, op := range map[string]journal.Op{
		"another sum": {Table: journal.Folded, Key: []byte("a"),
			Value: []byte(`{"account":"a","entries":1,"credits":11,"last":1}`)},
		"other sums": {Table: journal.Folded, Key: []byte("a"),
			Value: []byte(`{"account":"a","entries":1,"credits":10,"held":3,"last":1}`)},
		"beyond": {Table: journal.Folded, Key: []byte("a"),
			Value: []byte(`{"account":"a","entries":1,"credits":10,"last":2}`)},
		"another's": {Table: journal.Folded, Key: []byte("a"),
			Value: []byte(`{"account":"b","entries":1,"credits":10,"last":1}`)},
		"none": {Kind: journal.Delete, Table: journal.Folded, Key: []byte("a")},
	} {
		clock, store := newClock(), journal.NewMemory()
		s := open(t, store, clock.Now)
		post(t, s, "a", money.Posting{Kind: money.Credit, Amount: 10})
		clock.Add(time.Hour)
		post(t, s, "a", money.Posting{Kind: money.Credit, Amount: 20})
		if n, err := money.Fold(ctx, s, clock.Now(), 0); n != 1 || err != nil {
			t.Fatal(n, err)
		}
		if _, err := money.CheckLedger(ctx, s); err != nil {
			t.Fatal(err)
		}
		if _, err := store.Commit(ctx, []journal.Batch{{Ops: []journal.Op{op}}}); err != nil {
			t.Fatal(err)
		}
		if _, err := money.CheckLedger(ctx, s); !errors.Is(err, journal.ErrCorrupt) {
			t.Errorf("%s: got %v, want ErrCorrupt", name, err)
		}
	}
}
