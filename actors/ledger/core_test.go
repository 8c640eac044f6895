package ledger

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"time"

	"pgregory.net/rapid"

	"stagedoor/state"
	"stagedoor/state/budget"
	"stagedoor/state/identity"
	"stagedoor/state/journal"
	"stagedoor/state/money"
	"stagedoor/state/schema"
	"stagedoor/state/statetest"
)

// answers counts the replies that a waiter gets.
type answers struct {
	count int
	err   error
}

func (a *answers) done(err error) { a.count++; a.err = err }

var keyOne = budget.Scope{Kind: budget.KeyScope, ID: "key_1"}

// The test drives a core with random operations and a journal that sometimes fails, and checks the
// ledger at the end.
func TestCoreNeverOverdraws(t *testing.T) {
	for range 10 { // what it finds, it finds once in some hundred runs
		rapid.Check(t, coreNeverOverdraws)
	}
}

func coreNeverOverdraws(rt *rapid.T) {
	now := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	store, err := schema.Open(statetest.DecideTwice(journal.NewMemory()), func() time.Time { return now })
	if err != nil {
		rt.Fatal(err)
	}
	defer store.Close()
	ctx := context.Background()
	credits := rapid.Int64Range(0, 1000).Draw(rt, "credits")
	if _, _, err := money.CommitPostings(ctx, store, "a",
		[]money.Posting{{Kind: money.Credit, Amount: credits}}); err != nil {
		rt.Fatal(err)
	}
	budget := rapid.Int64Range(1, 800).Draw(rt, "budget")
	if err := identity.CreateKey(ctx, store, identity.Key{ID: "key_1", Hash: state.Hash{1},
		Budget: budget}); err != nil {
		rt.Fatal(err)
	}
	c := newCore(money.FindAccount(store.View(), "a"), nil, budgetsOf(store), new(shared))
	var holds []*hold
	var waiting []*answers
	var flying []money.Posting
	requests := 0
	indebted := false // at some time
	wait := func() *answers {
		a := new(answers)
		waiting = append(waiting, a)
		return a
	}
	pick := func(rt *rapid.T) *hold {
		if len(holds) == 0 {
			rt.Skip("no hold")
		}
		return holds[rapid.IntRange(0, len(holds)-1).Draw(rt, "hold")]
	}
	amount := rapid.Int64Range(0, 400)
	land := func(rt *rapid.T, fail bool) {
		if fail {
			c.posted(money.Account{}, nil, state.ErrUnavailable)
		} else {
			a, results, err := money.CommitPostings(ctx, store, "a", flying)
			if err != nil {
				rt.Fatal(err)
			}
			for i, r := range results {
				// An extension whose begin failed is refused, and so is a late begin while the
				// account is in debt. The settlement is of all then.
				late := flying[i].Kind == money.Begin && indebted
				if r.Err != nil && flying[i].Kind != money.Extend && flying[i].Kind != money.Progress && !late {
					rt.Fatalf("the journal refused %+v: %v", flying[i], r.Err)
				}
			}
			c.posted(a, results, nil)
		}
		flying = nil
	}
	rt.Repeat(map[string]func(*rapid.T){
		"hold": func(rt *rapid.T) {
			requests++
			a, durable := new(answers), rapid.Bool().Draw(rt, "durable")
			if durable {
				waiting = append(waiting, a)
			}
			key := rapid.SampledFrom([]string{"", "key_1"}).Draw(rt, "key")
			asked, room := amount.Draw(rt, "amount"), c.available()
			receipt := money.Receipt{Request: fmt.Sprint("r", requests), Key: key}
			h, err := c.beginHold(now, asked, receipt, durable, a)
			if h != nil && asked > room {
				rt.Fatalf("%d was held of an account with %d available", asked, room)
			}
			if h != nil && errors.Is(err, errPending) == durable {
				holds = append(holds, h)
			} else {
				a.count++
			}
		},
		"extend":   func(rt *rapid.T) { _ = c.extend(now, pick(rt), amount.Draw(rt, "amount"), nil) },
		"progress": func(rt *rapid.T) { c.progress(pick(rt), amount.Draw(rt, "amount")) },
		"settle": func(rt *rapid.T) {
			h, a, charge := pick(rt), wait(), amount.Draw(rt, "amount")
			if h.phase == open {
				indebted = indebted || charge-h.amount > c.room(now, h.bounds)
			}
			if err := c.settle(now, h, &Settlement{Amount: charge, Reason: "finished"}, a); !errors.Is(err,
				errPending) {
				a.done(err)
			}
		},
		"settle later": func(rt *rapid.T) {
			h, charge := pick(rt), amount.Draw(rt, "amount")
			if h.phase == open {
				indebted = indebted || charge-h.amount > c.room(now, h.bounds)
			}
			_ = c.settle(now, h, &Settlement{Amount: charge, Reason: "finished"}, nil)
		},
		"release": func(rt *rapid.T) { c.release(pick(rt), "refused", nil, nil) },
		"adjust": func(rt *rapid.T) {
			a := wait()
			m := &adjusting{amount: rapid.Int64Range(-200, 200).Draw(rt, "by"), reason: "correction"}
			if err := c.adjust(m, a); !errors.Is(err, errPending) {
				a.done(err)
			}
		},
		"time passes": func(rt *rapid.T) { now = now.Add(20 * time.Millisecond) },
		"flush": func(rt *rapid.T) {
			if ps := c.next(now); len(ps) > 0 {
				flying = ps
			}
		},
		"land": func(rt *rapid.T) {
			if flying == nil {
				rt.Skip("nothing in flight")
			}
			land(rt, rapid.IntRange(0, 3).Draw(rt, "outcome") == 0)
		},
		"": func(rt *rapid.T) {
			var sum int64
			for h := range c.open {
				if h.phase == open { // of those that end, a part may be free already
					sum += h.amount
				}
			}
			if c.available() < 0 && !indebted || c.held < sum {
				rt.Fatalf("credits %d, debits %d, spent %d, held %d, open %d", c.credits, c.debits, c.spent, c.held,
					sum)
			}
			if p := c.scopes[keyOne]; p != nil && (p.held < 0 || p.spend.Total+p.held > budget && !indebted) {
				rt.Fatalf("a key with a budget of %d has spent %d and holds %d", budget, p.spend.Total, p.held)
			}
		},
	})
	for _, h := range holds {
		c.release(h, "end", nil, nil)
	}
	for range 1000 {
		if flying != nil {
			land(rt, false)
		}
		now = now.Add(time.Second)
		if flying = c.next(now); len(flying) == 0 {
			break
		}
	}
	for _, h := range holds { // whose settlement was withdrawn meanwhile
		if h.phase == open {
			rt.Fatalf("hold %+v is open", h)
		}
	}
	if !c.idle() || c.held != 0 || c.debits != 0 {
		rt.Fatalf("left: held %d, debits %d, open %d", c.held, c.debits, len(c.open))
	}
	totals, err := money.CheckLedger(ctx, store)
	if err != nil || totals.Held != 0 || totals.Open != 0 || totals.Spent != c.spent || totals.Credits != c.credits {
		rt.Fatalf("ledger: %+v, %v; core: credits %d, spent %d", totals, err, c.credits, c.spent)
	}
	if p := c.scopes[keyOne]; p != nil &&
		(p.held != 0 || p.spend.Total != money.SpentByKey(store.View(), "key_1").Total) {
		rt.Fatalf("the key has spent %+v and holds %d, the store has %+v", p.spend, p.held,
			money.SpentByKey(store.View(), "key_1"))
	}
	for i, a := range waiting {
		if a.count != 1 {
			rt.Fatalf("waiter %d got %d replies", i, a.count)
		}
	}
}

func TestSettlementBeyondTheHold(t *testing.T) {
	tests := []struct {
		name           string
		credits, other int64
		hold, charge   int64
		want           int64
		flags          []string
	}{
		{"within", 100, 0, 10, 10, 10, nil},
		{"less", 100, 0, 10, 3, 3, nil},
		{"negative", 100, 0, 10, -5, 0, nil},
		{"beyond, from what is left", 100, 50, 10, 30, 30, []string{FlagOverHold}},
		{"beyond all there is", 100, 50, 10, 90, 90, []string{FlagOverHold, FlagOverrun}},
		{"beyond, and nothing left", 100, 90, 10, 11, 11, []string{FlagOverHold, FlagOverrun}},
		{"beyond all reason", 100, 0, 10, 1 << 62, budget.MaxCredits, []string{FlagOverHold, FlagOverrun}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			now := time.Now()
			c := newCore(money.Account{Credits: tt.credits}, nil, noBudgets{}, new(shared))
			if _, err := c.beginHold(now, tt.other, money.Receipt{Request: "other"}, false, nil); err != nil {
				t.Fatal(err)
			}
			h, err := c.beginHold(now, tt.hold, money.Receipt{Request: "r"}, false, nil)
			if err != nil {
				t.Fatal(err)
			}
			if err := c.settle(now, h, &Settlement{Amount: tt.charge}, new(answers)); !errors.Is(err, errPending) {
				t.Fatal(err)
			}
			ps := c.next(now)
			if len(ps) != 1 || ps[0].Amount != tt.want || ps[0].Held != tt.hold ||
				fmt.Sprint(ps[0].Receipt.Flags) != fmt.Sprint(tt.flags) {
				t.Errorf("got %+v, want %d %v", ps, tt.want, tt.flags)
			}
		})
	}
}

// noBudgets has no budget for any scope.
type noBudgets struct{}

func (noBudgets) AccessVersion() uint64 { return 0 }

func (noBudgets) BudgetScopes(string, string) []budget.Scope { return nil }

func (noBudgets) BudgetOf(budget.Scope) budget.Budget { return budget.Budget{} }

func (noBudgets) SpentBy(s budget.Scope) money.KeySpend { return money.KeySpend{Key: s.Name()} }

// Batches of decisions and of old holds are bounded together, and a burst does not leave a large
// buffer behind.
func TestBatchesAreBounded(t *testing.T) {
	now := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	c := newCore(money.Account{ID: "a", Credits: 1 << 30}, nil, noBudgets{}, new(shared))
	for i := range 4 * maxBatch {
		h, err := c.beginHold(now, 1, money.Receipt{Request: fmt.Sprint("r", i)}, false, nil)
		if err != nil {
			t.Fatal(err)
		}
		if i%4 == 0 {
			c.release(h, "done", nil, nil)
		}
	}
	now = now.Add(2 * linger)
	for round := range 2 {
		ps := c.next(now)
		if len(ps) == 0 || len(ps) > maxBatch {
			t.Fatalf("round %d: a batch of %d, want up to %d", round, len(ps), maxBatch)
		}
		c.posted(money.Account{ID: "a", Credits: 1 << 30}, make([]money.Posted, len(ps)), nil)
	}
	for range 8 * maxBatch {
		c.progress(&hold{begun: true, amount: 1}, 1)
	}
	ps := c.next(now)
	c.posted(money.Account{ID: "a", Credits: 1 << 30}, make([]money.Posted, len(ps)), nil)
	if len(ps) != maxBatch || cap(c.spare) > spareMost {
		t.Errorf("a batch of %d leaves room for %d, want at most %d", len(ps), cap(c.spare), spareMost)
	}
}
