// Package money stores accounts and the ledger: payments, holds, charges and usage, and the
// receipts of requests.
//
// # Usage
//
// All money moves through Post. It enters postings on an account as part of a command. Each posting
// is either entered or refused on its own. Post returns the account afterwards:
//
//	account, posted, err := money.Post(tx, name,
//		[]money.Posting{{Kind: money.Settle, Hold: id, Amount: cost, Receipt: r}})
//
// The entries of one Post are stored as one record of the ledger, a page. An entry that ends a hold
// contains its receipt, and the receipt tables lead from requests to these entries. Each Post also
// counts what keys and groups have spent (KeySpend) and what was used in a day (UsageRow), so that
// a budget can be checked without reading the ledger.
//
// The ledger grows with every priced request. Pack joins old pages into compressed ones, and Fold
// replaces the oldest entries by a sum for each account. CheckLedger proves that entries,
// checkpoints, accounts and holds agree, before and after both.
//
// # Concurrency
//
// Post runs on the writer goroutine and uses buffers that belong to it. All functions that read may
// be called by any goroutine.
//
// # Errors
//
// ErrInsufficient, ErrReused and ErrRedeemed refuse a request. A damaged record is a
// *journal.CorruptError.
//
// # Files
//
//	ledger.go ledgerpage.go pack.go fold.go        entries, pages, packs and checkpoints
//	accounts.go holds.go allowances.go limits.go   what may be held, by one process and by several
//	receipts.go receiptlist.go usage.go spend.go tally.go   what a request cost, and sums
//	payments.go redeem.go                          credits that must be made once, redeem codes
//	check.go verify.go                             the proof that all of it agrees
//	encode.go module.go                            the form of records, and the tables
package money
