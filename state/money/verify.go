package money

import (
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
	if !isIndex(t, r) {
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

// verifyReceipts compares the receipt tables with the ledger. Different entries have different
// keys, so if every entry that closes a hold has its record and both counts are equal, there is no
// other record. A table of all keys in memory would take gigabytes for a large ledger.
func verifyReceipts(ctx context.Context, v *state.Verifier) error {
	records, ended := int64(0), int64(0)
	err := ReadLedger(ctx, v.State, 0, func(e Entry) error {
		if !e.endsHold() {
			return nil
		}
		key := receiptKey(e.Request, e.Account, e.Sequence)
		_, err := v.State.Get(ctx, receiptTable(key), key)
		if e.receipt == nil || errors.Is(err, journal.ErrNotFound) {
			v.Report("ledger entry %d charged %d for request %s, but its receipt is missing",
				e.Sequence, e.Amount, e.Request)
			return nil
		}
		ended++
		return err
	})
	for _, t := range receiptTables {
		if err == nil {
			err = v.State.Range(ctx, t, nil, nil, 0, func(journal.Record) error { records++; return nil })
		}
	}
	if err != nil || records == ended {
		return err
	}
	for _, t := range receiptTables {
		if err := v.State.Range(ctx, t, nil, nil, 0, func(rec journal.Record) error {
			e, err := (&entryReader{state: v.State}).entry(ctx, state.SequenceOf(rec.Key[16:]))
			if errors.Is(err, journal.ErrNotFound) || err == nil && !e.indexedBy(rec.Key) {
				v.Report("%s/%q has no ledger entry", t, rec.Key)
				return nil
			}
			return err
		}); err != nil {
			return err
		}
	}
	return nil
}

var receiptTables = []journal.Table{journal.Receipt, journal.ByHash}
