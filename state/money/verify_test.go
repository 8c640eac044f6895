package money_test

import (
	"strings"
	"testing"
	"time"

	"stagedoor/state/journal"
	"stagedoor/state/money"
	"stagedoor/state/schema"
	"stagedoor/state/statetest/fixture"
)

// paid returns a store with an open hold, a folded entry and a receipt.
func paid(t *testing.T) *journal.Memory {
	t.Helper()
	clock, store := newClock(), journal.NewMemory()
	s := open(t, store, clock.Now)
	post(t, s, "1", money.Posting{Kind: money.Credit, Amount: 100},
		money.Posting{Kind: money.Begin, Amount: 10, Receipt: about("r1")})
	post(t, s, "1", money.Posting{Kind: money.Settle, Held: 5, Amount: 3, Receipt: about("r2")})
	clock.Add(time.Hour)
	if n, err := money.Fold(ctx, s, clock.Now(), 2); n != 2 || err != nil {
		t.Fatal(n, err)
	}
	s.Close()
	return store
}

func TestVerifyAddsUpTheLedger(t *testing.T) {
	v, err := schema.Verify(ctx, paid(t))
	want := money.Totals{Entries: 1, Folded: 2, Accounts: 1, Open: 1, Credits: 100, Spent: 3, Held: 10}
	if err != nil || !v.Sound() || v.Ledger != want {
		t.Errorf("got %+v, %v", v, err)
	}
}

// The test changes one record of a sound store at a time.
func TestVerifyNamesDamageOfTheLedger(t *testing.T) {
	type damage func(*testing.T, journal.Store) journal.Op
	replace := func(table journal.Table, old, new string) damage {
		return func(t *testing.T, s journal.Store) journal.Op { return fixture.Edit(t, s, table, old, new) }
	}
	remove := func(table journal.Table) damage {
		return func(t *testing.T, s journal.Store) journal.Op {
			return journal.Op{Kind: journal.Delete, Table: table, Key: fixture.Edit(t, s, table, "", "").Key}
		}
	}
	put := func(table journal.Table, key, value string) damage {
		return func(*testing.T, journal.Store) journal.Op {
			return journal.Op{Table: table, Key: []byte(key), Value: []byte(value)}
		}
	}
	edit := func(fn func([]money.Entry)) damage {
		return func(t *testing.T, s journal.Store) journal.Op {
			op := fixture.Edit(t, s, journal.Ledger, "", "")
			op.Value = money.EditPage(journal.Record{Key: op.Key, Value: op.Value}, fn)
			return op
		}
	}
	for name, c := range map[string]struct {
		damage damage
		want   string
	}{
		"a balance":              {replace(journal.Balance, `"spent":3`, `"spent":2`), "its entries add up to"},
		"a balance is gone":      {remove(journal.Balance), "account 1 is missing"},
		"a checkpoint":           {replace(journal.Folded, `"credits":100`, `"credits":99`), "add up"},
		"a ledger entry":         {edit(func(e []money.Entry) { e[0].Amount++ }), "its entries add up to"},
		"a ledger entry is gone": {remove(journal.Ledger), "has no ledger entry"},
		"a hold is gone":         {remove(journal.Hold), "hold 2 is missing"},
		"a receipt is gone":      {remove(journal.ByHash), "its receipt is missing"},
		"a receipt's request": {edit(func(e []money.Entry) { e[0].Request = "r3" }),
			"its receipt is missing"},
		"a receipt's value":  {replace(journal.ByHash, "", "12345678"), "an unknown form"},
		"a receipt's key":    {put(journal.Receipt, "x", ""), "an unknown form"},
		"a receipt too many": {put(journal.Receipt, strings.Repeat("x", 20), "1234"), "has no ledger entry"},
		"an entry's form":    {put(journal.Ledger, "12345678", "[]"), "an unknown form"},
		"an entry follows":   {edit(func(e []money.Entry) { e[0].Previous = 1 }), "follows 1, not 2"},
	} {
		t.Run(name, func(t *testing.T) {
			store := paid(t)
			fixture.WantProblem(t, store, c.damage(t, store), c.want)
		})
	}
}
