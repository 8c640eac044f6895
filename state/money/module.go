package money

import (
	"context"
	"sync"
	"sync/atomic"
	"time"

	"stagedoor/state"
	"stagedoor/state/budget"
)

// ledgerMemory is the state of the ledger beside its tables. Only the writer uses it, except for
// folding and packEntries.
type ledgerMemory struct {
	last uint64 // sequence of the last durable entry
	next uint64 // sequence of the last entry of the group that is being decided
	// records and pages hold the encoded keys and ledger pages of a group.
	records, pages arena
	names          map[string]uint64 // texts of the page that is being written
	index          indexWriter       // of that page

	spent       atomic.Pointer[func(scope, account string)]
	recalled    atomic.Pointer[func(account string, name AllowanceName)]
	folding     sync.Mutex // held by Fold and Pack
	packEntries int        // smallest number of ledger entries in a pack
}

// OnSpent sets the function that is called with each scope whose spending has changed, and the account of a key. The
// writer calls it when the change is durable, so it must not block. Nil calls nothing.
func OnSpent(s *state.State, report func(scope, account string)) {
	spent := &state.MemoryOf[*ledgerMemory](s).spent
	if report == nil {
		spent.Store(nil)
		return
	}
	spent.Store(&report)
}

// Period returns the begin of the day, or of the month, of the newest spending, and what was spent in it. For all time
// the begin is zero.
func (s *KeySpend) Period(w budget.Window) (begin time.Time, spent int64) {
	begin, _ = time.Parse(time.DateOnly, s.Day)
	switch w {
	case budget.WindowDay:
		return begin, s.OfDay
	case budget.WindowMonth:
		return begin.AddDate(0, 0, 1-begin.Day()), s.OfMonth
	}
	return time.Time{}, s.Total
}

// Module returns the tables of accounts and of the ledger.
func Module() state.Module {
	m := &ledgerMemory{names: map[string]uint64{}, packEntries: packEntries}
	return state.Module{
		Memory: m,
		// A group that is decided again gives its entries the same sequence numbers.
		BeforeDecision: func() { m.next = m.last },
		AfterGroup: func() {
			m.records.reset()
			m.pages.reset()
		},
		Tables: []state.Registration{
			state.Register(&accounts, state.Hooks[Account]{
				Loaded: func(s *state.State) { m.last = lastEntry(s.View()) },
				Committed: func(_ *state.State, _, after *Account) {
					if after != nil {
						m.last = max(m.last, after.Last)
					}
				},
			}),
			state.Register(&holds, state.Hooks[Hold]{}),
			state.Register(&allowances, state.Hooks[Allowance]{Committed: m.reportRecall}),
			state.Register(&redeemCodes, state.Hooks[RedeemCode]{}),
			state.Register(&spends, state.Hooks[KeySpend]{Committed: func(_ *state.State, _, after *KeySpend) {
				if report := m.spent.Load(); report != nil && after != nil {
					(*report)(after.Key, after.Account)
				}
			}}),
			state.Register(&payments, state.Hooks[Payment]{}),
			state.Register(&usages, state.Hooks[UsageRow]{
				LoadFrom: func(now time.Time) []byte { return []byte(coldBefore(now)) },
			}),
		},
		Checks: checks,
		Verify: func(ctx context.Context, v *state.Verifier) error {
			_, err := Verify(ctx, v)
			return err
		},
	}
}
