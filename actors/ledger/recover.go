package ledger

import (
	"context"
	"errors"
	"fmt"

	"stagedoor/state"
)

// maxRecover bounds the postings of one command of Recover.
const maxRecover = 256

// Recover ends the holds of processes that were killed: at their last progress,
// or with nothing. Those that keep, if it is not nil, claims stay open, for
// Resume. It runs before New and before anything is served. Killed itself, it
// ends nothing twice: a hold's row goes with its one terminal entry.
func Recover(ctx context.Context, store *state.State, keep func(state.Hold) bool) (ended int, err error) {
	byAccount := make(map[string][]state.Posting)
	for _, h := range store.Holds("") {
		if keep != nil && keep(h) {
			continue
		}
		p := state.Posting{Kind: state.Release, Hold: h.ID, Reason: ReasonCrash, Receipt: &h.Receipt}
		if h.Progress > 0 {
			p.Kind, p.Amount = state.Settle, h.Progress
		}
		byAccount[h.Account] = append(byAccount[h.Account], p)
	}
	for account, ps := range byAccount {
		for len(ps) > 0 {
			n := min(len(ps), maxRecover)
			_, results, err := store.Post(ctx, account, ps[:n])
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
