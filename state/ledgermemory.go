package state

import (
	"context"
	"sync"
	"time"
)

// ledgerMemory is what the ledger keeps beside its tables. All but folding and packEntries belongs to the writer.
type ledgerMemory struct {
	last uint64 // sequence of the last durable entry
	next uint64 // sequence of the last entry of the group that is being decided
	// records and pages are where a group writes the keys of its records and the pages of the ledger.
	records, pages paper
	names          map[string]uint64 // in the page that is being written

	folding     sync.Mutex // held by Fold and Pack
	packEntries int        // how many ledger entries make a pack, at least
}

// MoneyModule returns the tables of accounts and the ledger.
func MoneyModule() Module {
	m := &ledgerMemory{names: map[string]uint64{}, packEntries: packEntries}
	return Module{
		Memory: m,
		// A group that is decided again gives its entries the same sequence numbers.
		BeforeDecision: func() { m.next = m.last },
		AfterGroup: func() {
			m.records.clear()
			m.pages.clear()
		},
		Tables: []Registration{
			Register(&accounts, Hooks[Account]{
				Loaded: func(s *State) { m.last = lastEntry(s.View()) },
				Committed: func(_ *State, _, after *Account) {
					if after != nil {
						m.last = max(m.last, after.Last)
					}
				},
			}),
			Register(&holds, Hooks[Hold]{}),
			Register(&redeemCodes, Hooks[RedeemCode]{}),
			Register(&spends, Hooks[KeySpend]{}),
			Register(&payments, Hooks[Payment]{}),
			Register(&usages, Hooks[UsageRow]{
				LoadFrom: func(now time.Time) []byte { return []byte(coldBefore(now)) },
			}),
		},
		Checks: checks,
		Verify: func(ctx context.Context, v *Verifier) error {
			_, err := VerifyMoney(ctx, v)
			return err
		},
	}
}
