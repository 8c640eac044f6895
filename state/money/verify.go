package money

import (
	"bytes"
	"context"
	"errors"

	"stagedoor/state"
	"stagedoor/state/journal"
)

// checks has a check for each table that is not loaded into memory. It checks one record at a time.
var checks = map[journal.Table]func(journal.Record) error{
	journal.Ledger: func(r journal.Record) error { return checkForm(errorOf(decodePage(r))) },
	journal.Folded: func(r journal.Record) error { return checkForm(errorOf(decodeCheckpoint(r))) },
	// Verify checks to which entries the records of these tables lead.
	journal.Receipt: func(r journal.Record) error { return checkIndex(journal.Receipt, r) },
	journal.ByHash:  func(r journal.Record) error { return checkIndex(journal.ByHash, r) },
}

// errorOf returns the error of a call whose value is not needed.
func errorOf[T any](_ T, err error) error { return err }

// checkIndex returns an error for a record that has not the form of an index entry.
func checkIndex(t journal.Table, r journal.Record) error {
	if _, ok := entriesIn(t, r, mark{}); !ok {
		return errUnknownForm
	}
	return nil
}

// checkForm replaces the error of a decoder, which could quote what is in the record.
func checkForm(err error) error {
	if err != nil {
		return errUnknownForm
	}
	return nil
}

var errUnknownForm = errors.New("has an unknown form")

// Verify compares the ledger with the receipt tables, the accounts and the holds, and returns the
// sums of the ledger.
func Verify(ctx context.Context, v *state.Verifier) (Totals, error) {
	if err := verifyReceipts(ctx, v); err != nil {
		return Totals{}, err
	}
	totals, err := CheckLedger(ctx, v.State)
	for _, problem := range joinedErrors(err) {
		if !errors.Is(problem, journal.ErrCorrupt) {
			return totals, problem
		}
		v.Report("%v", problem)
	}
	return totals, nil
}

// joinedErrors returns the errors that errors.Join has joined.
func joinedErrors(err error) []error {
	if joined, ok := err.(interface{ Unwrap() []error }); ok {
		return joined.Unwrap()
	}
	if err != nil {
		return []error{err}
	}
	return nil
}

// verifyReceipts compares the index of receipts with the ledger. Different Posts have different keys, so if every Post
// has its records and both counts are equal, there is no other record. A table of all keys in memory would take
// gigabytes for a large ledger.
func verifyReceipts(ctx context.Context, v *state.Verifier) error {
	records, expected := int64(0), int64(0)
	err := readPages(ctx, v.State, 0, 0, func(page []Entry) error {
		for post := range posts(page) {
			for _, want := range indexOf(post) {
				have, err := v.State.Get(ctx, want.place.table(), want.key)
				switch {
				case err == nil:
					expected++
				case !errors.Is(err, journal.ErrNotFound):
					return err
				}
				if err != nil || !bytes.Equal(have.Value, want.value) {
					v.Report("ledger entry %d ended a request, but its receipt is missing, or one of the same commit",
						want.first)
				}
			}
			for _, e := range post {
				if e.endsHold() && e.receipt == nil {
					v.Report("ledger entry %d charged %d for request %s, but its receipt is missing",
						e.Sequence, e.Amount, e.Request)
				}
			}
		}
		return nil
	})
	for _, t := range receiptTables {
		if err == nil {
			err = v.State.Range(ctx, t, nil, nil, 0, func(journal.Record) error { records++; return nil })
		}
	}
	if err != nil || records == expected {
		return err
	}
	for _, t := range receiptTables {
		if err := v.State.Range(ctx, t, nil, nil, 0, func(rec journal.Record) error {
			needed, err := (&entryReader{state: v.State}).needsIndex(ctx, t, rec.Key)
			if err == nil && !needed {
				v.Report("%s/%q has no ledger entry", t, rec.Key)
			}
			return err
		}); err != nil {
			return err
		}
	}
	return nil
}

// needsIndex reports whether a record of table t with a key is one that a Post has made for its entries.
func (r *entryReader) needsIndex(ctx context.Context, t journal.Table, key []byte) (bool, error) {
	_, err := r.entry(ctx, state.SequenceOf(key[len(key)-8:]))
	if errors.Is(err, journal.ErrNotFound) {
		return false, nil
	}
	if err != nil {
		return false, err
	}
	for post := range posts(r.page) {
		for _, made := range indexOf(post) {
			if made.place.table() == t && bytes.Equal(made.key, key) {
				return true, nil
			}
		}
	}
	return false, nil
}

var receiptTables = []journal.Table{journal.Receipt, journal.ByHash}
