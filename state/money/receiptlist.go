package money

import (
	"context"
	"errors"
	"fmt"
	"time"

	"stagedoor/state"
	"stagedoor/state/journal"
)

// ReceiptQuery selects receipts. An empty field selects all.
type ReceiptQuery struct {
	Account, Key string
	From, To     time.Time // range of the times at which the receipts were written; To is excluded
	// Before is the cursor that the previous page returned, or 0 for the first page.
	Before uint64
	Limit  int // 0 selects 100
}

const (
	receiptPage = 100
	// maxReceiptScan is the number of ledger entries that are read for one page.
	maxReceiptScan = 10_000
	ledgerChunk    = 256
)

// ListReceipts returns receipts, newest first, and the cursor of the next page, or 0 if there is
// none. Because the number of entries that it reads is bounded, a page may have fewer receipts than
// Limit or none although more follow.
//
// It reads the ledger, which is in time order, so receipts of folded entries are not found.
func ListReceipts(ctx context.Context, s *state.State, q ReceiptQuery) (found []Receipt, next uint64, err error) {
	if q.Limit <= 0 {
		q.Limit = receiptPage
	}
	back, err := entriesBackwards(ctx, s, q.Account, q.Before)
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
		if !e.endsHold() || (!q.To.IsZero() && !e.At.Before(q.To)) {
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

// errOldest says that the oldest entry was reached.
var errOldest = errors.New("no entry before")

// entriesBackwards returns a function that returns ledger entries, newest first: those of an
// account, or of all accounts if account is "", below the sequence number before unless it is 0.
func entriesBackwards(ctx context.Context, s *state.State, account string, before uint64) (func() (Entry, error),
	error) {
	if account == "" {
		return ledgerBackwards(ctx, s, before), nil
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

// ledgerBackwards returns a function that reads the ledger from its end, in chunks, down to the
// folded part.
func ledgerBackwards(ctx context.Context, s *state.State, before uint64) func() (Entry, error) {
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
			if some, before, err = readBefore(ctx, s, before); err != nil {
				return Entry{}, fmt.Errorf("read the ledger: %w", err)
			}
		}
		e := some[len(some)-1]
		some = some[:len(some)-1]
		return e, nil
	}
}

// readBefore returns the last entries below the sequence number before, and the first sequence
// number that it has read.
func readBefore(ctx context.Context, s *state.State, before uint64) (found []Entry, from uint64, err error) {
	from = before - min(before-1, ledgerChunk)
	err = readPages(ctx, s, from, 0, func(entries []Entry) error {
		for _, e := range entries {
			if e.Sequence >= before {
				return errStop
			}
			found = append(found, e)
		}
		return nil
	})
	if err != nil && !errors.Is(err, errStop) {
		return nil, 0, err
	}
	if len(found) > 0 {
		from = min(from, found[0].Sequence)
	}
	return found, from, nil
}
