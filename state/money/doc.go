// Package money keeps accounts and the ledger: what was put in, held, charged and used, and the receipts of requests.
//
// # Usage
//
// Money moves in one way only. Post enters postings on an account as part of a command, each of them or not, and
// returns the account as it is then:
//
//	account, posted, err := money.Post(tx, name,
//		[]money.Posting{{Kind: money.Settle, Hold: id, Amount: cost, Receipt: r}})
//
// The entries of one Post are one record of the ledger, a page. An entry that ends a hold carries its receipt, and the
// receipt tables lead from requests to these entries. Each Post also counts what keys and groups have spent (KeySpend)
// and what was used in a day (UsageRow), so that a budget is known without reading the ledger.
//
// The ledger grows with every priced request. Pack joins old pages into compressed ones, and Fold replaces the oldest
// entries by a sum for each account. CheckLedger proves that entries, checkpoints, accounts and holds agree, before and
// after both.
//
// # Concurrency
//
// Post runs on the writer and uses buffers that the writer owns. All reads may be called by any goroutine.
//
// # Errors
//
// ErrInsufficient, ErrReused and ErrRedeemed are refusals; see there. A damaged record is a *journal.CorruptError.
package money
