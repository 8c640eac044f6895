package money

import (
	"context"
	"sync"
	"time"

	"stagedoor/state"
)

// ledgerMemory is the state of the ledger beside its tables. Only the writer uses it, except for
// folding and packEntries.
type ledgerMemory struct {
	last uint64 // sequence of the last durable entry
	next uint64 // sequence of the last entry of the group that is being decided
	// records and pages hold the encoded keys and ledger pages of a group.
	records, pages arena
	names          map[string]uint64 // texts of the page that is being written

	folding     sync.Mutex // held by Fold and Pack
	packEntries int        // smallest number of ledger entries in a pack
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
			state.Register(&redeemCodes, state.Hooks[RedeemCode]{}),
			state.Register(&spends, state.Hooks[KeySpend]{}),
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
