package ledger

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"stagedoor/state"
	"stagedoor/state/money"
)

// maxRecover bounds the postings of one command of Recover, and the allowances of one of TakeBack.
const maxRecover = 256

// Recover ends the holds of processes that have ended, and returns how many. It charges the last progress of each hold,
// or nothing. Holds for which keep returns true stay open, for Resume or because their process goes on; a command asks
// it with all earlier changes in view. A process that is the only one to change the state calls Recover before New and
// before requests are served, and one of several whenever another one may have ended. No hold is ended twice, because
// the entry that ends a hold also deletes its row.
func Recover(ctx context.Context, store *state.State, keep func(state.View, *money.Hold) bool) (ended int, err error) {
	left := slices.DeleteFunc(money.ListHolds(store.View(), ""), func(h money.Hold) bool {
		return keep != nil && keep(store.View(), &h)
	})
	for part := range slices.Chunk(left, maxRecover) {
		n, err := state.Do(ctx, store, func(tx *state.Tx) (int, error) { return endHolds(tx, part, keep) })
		if ended += n; err != nil {
			return ended, fmt.Errorf("end holds of a process that has ended: %w", err)
		}
	}
	return ended, nil
}

// TakeBack removes the allowances of processes that have ended. What they had not charged is free again. Recover ends
// their holds that have an entry. A request whose hold had none, because it was shorter than linger, costs nothing. It
// takes them back in parts. An error therefore leaves some of them taken back, and a second call goes on with the
// others.
func TakeBack(ctx context.Context, store *state.State, ended func(state.Node) bool) error {
	left := slices.DeleteFunc(money.ListAllowances(store.View(), ""), func(a money.Allowance) bool {
		return !ended(a.Node)
	})
	for part := range slices.Chunk(left, maxRecover) {
		if err := state.Run(ctx, store, func(tx *state.Tx) error { return money.TakeBack(tx, part) }); err != nil {
			return fmt.Errorf("take back allowances of a process that has ended: %w", err)
		}
	}
	return nil
}

// endHolds ends those of some holds that are still open and are not to be kept.
func endHolds(tx *state.Tx, some []money.Hold, keep func(state.View, *money.Hold) bool) (ended int, err error) {
	byAccount := make(map[string][]money.Posting)
	for i := range some {
		h, open := money.FindHold(tx.View(), some[i].Account, some[i].ID)
		if !open || keep != nil && keep(tx.View(), &h) {
			continue
		}
		p := money.Posting{Kind: money.Release, Hold: h.ID, Reason: ReasonCrash, Receipt: &h.Receipt}
		if h.Progress > 0 {
			p.Kind, p.Amount = money.Settle, h.Progress
		}
		byAccount[h.Account] = append(byAccount[h.Account], p)
		ended++
	}
	for account, ps := range byAccount {
		_, results, failed := money.Post(tx, account, ps)
		err = errors.Join(err, failed)
		for _, r := range results {
			err = errors.Join(err, r.Err)
		}
	}
	return ended, err
}
