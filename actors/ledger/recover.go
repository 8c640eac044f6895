package ledger

import (
	"context"
	"errors"
	"fmt"

	"stagedoor/state"
	"stagedoor/state/money"
)

// maxRecover bounds the postings of one command of Recover.
const maxRecover = 256

// Recover ends the holds of a process that was killed. It charges the last progress of each
// hold, or nothing. If keep is not nil, the holds for which it returns true stay open for
// Resume. Recover must run before New and before requests are served. If it is killed itself,
// no hold is ended twice, because the entry that ends a hold also deletes its row.
func Recover(ctx context.Context, store *state.State, keep func(money.Hold) bool) (ended int, err error) {
	byAccount := make(map[string][]money.Posting)
	for _, h := range money.ListHolds(store.View(), "") {
		if keep != nil && keep(h) {
			continue
		}
		p := money.Posting{Kind: money.Release, Hold: h.ID, Reason: ReasonCrash, Receipt: &h.Receipt}
		if h.Progress > 0 {
			p.Kind, p.Amount = money.Settle, h.Progress
		}
		byAccount[h.Account] = append(byAccount[h.Account], p)
	}
	for account, ps := range byAccount {
		for len(ps) > 0 {
			n := min(len(ps), maxRecover)
			_, results, err := money.CommitPostings(ctx, store, account, ps[:n])
			for _, r := range results {
				err = errors.Join(err, r.Err)
			}
			if err != nil {
				return ended, fmt.Errorf("end holds of account %s: %w", account, err)
			}
			ended += n
			ps = ps[n:]
		}
	}
	return ended, nil
}
