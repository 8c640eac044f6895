package money

import (
	"context"
	"errors"
	"fmt"
	"time"

	"stagedoor/state"
	"stagedoor/state/journal"
)

// ReceiptQuery asks for receipts. Empty fields do not restrict.
type ReceiptQuery struct {
	Account, Key string
	From, To     time.Time // when they were written; To is not included
	// Before is where the list goes on: the cursor of the page before it.
	Before uint64
	Limit  int // at most; 0: 100
}

const (
	receiptPage = 100
	// maxReceiptScan bounds how many ledger entries one page looks at.
	maxReceiptScan = 10_000
	ledgerStretch  = 256
)

// ListReceipts returns receipts, newest first, and the cursor of the next page; 0:
// there is none. A page may have fewer receipts than there is room for, even
// none, and the list go on all the same: what a page looks at is bounded.
//
// It follows the ledger, which is in time order, so it finds the requests
// whose entries are there still.
func ListReceipts(ctx context.Context, s *state.State, q ReceiptQuery) (found []Receipt, next uint64, err error) {
	if q.Limit <= 0 {
		q.Limit = receiptPage
	}
	back, err := backwards(ctx, s, q.Account, q.Before)
	if err != nil {
		return nil, 0, err
	}
	for range maxReceiptScan {
		e, err := back()
		switch {
		case errors.Is(err, errOldest):
			return found, 0, nil
		case err != nil:
			return nil, 0, err
		case !q.From.IsZero() && e.At.Before(q.From):
			return found, 0, nil
		}
		next = e.Sequence
		if !e.ends() || (!q.To.IsZero() && !e.At.Before(q.To)) {
			continue
		}
		if e.receipt == nil || q.Key != "" && e.receipt.Key != q.Key {
			continue
		}
		if found = append(found, *e.receipt); len(found) == q.Limit {
			return found, next, nil
		}
	}
	return found, next, nil
}

var errOldest = errors.New("no entry before")

// backwards returns a function that returns ledger entries, newest first: those
// of an account, or ("") all, before a sequence number, or (0) all of them.
func backwards(ctx context.Context, s *state.State, account string, before uint64) (func() (Entry, error), error) {
	if account == "" {
		return stretches(ctx, s, before), nil
	}
	entries := entryReader{state: s}
	at := FindAccount(s.View(), account).Last
	if before != 0 {
		e, err := entries.entry(ctx, before)
		switch {
		case errors.Is(err, journal.ErrNotFound), err == nil && e.Account != account:
			return nil, fmt.Errorf("%w: there is no such place in the list", state.ErrInvalid)
		case err != nil:
			return nil, err
		}
		at = e.Previous
	}
	return func() (Entry, error) {
		if at == 0 {
			return Entry{}, errOldest
		}
		e, err := entries.entry(ctx, at)
		if errors.Is(err, journal.ErrNotFound) {
			return Entry{}, errOldest // older ones were folded
		}
		at = e.Previous
		return e, err
	}, nil
}

// stretches reads the ledger from its end, some pages at a time, down to where it is
// folded.
func stretches(ctx context.Context, s *state.State, before uint64) func() (Entry, error) {
	if before == 0 {
		before = lastEntry(s.View()) + 1
	}
	folded := foldedThrough(s.View())
	var some []Entry
	return func() (Entry, error) {
		for len(some) == 0 {
			if before <= folded+1 {
				return Entry{}, errOldest
			}
			var err error
			if some, before, err = stretch(ctx, s, before); err != nil {
				return Entry{}, fmt.Errorf("read the ledger: %w", err)
			}
		}
		e := some[len(some)-1]
		some = some[:len(some)-1]
		return e, nil
	}
}

// stretch reads the last entries before a sequence number, and those before on the
// page of the first of them. from is where the stretch before ends.
func stretch(ctx context.Context, s *state.State, before uint64) (found []Entry, from uint64, err error) {
	from = before - min(before-1, ledgerStretch)
	err = readPages(ctx, s, from, 0, func(entries []Entry) error {
		for _, e := range entries {
			if e.Sequence >= before {
				return errEnough
			}
			found = append(found, e)
		}
		return nil
	})
	if err != nil && !errors.Is(err, errEnough) {
		return nil, 0, err
	}
	if len(found) > 0 {
		from = min(from, found[0].Sequence)
	}
	return found, from, nil
}
