// Package state remembers: keys, stored responses and generated secrets now,
// accounts, authorizations, money and jobs beside them. go-memdb is the index
// over hot records; package journal under it is the truth.
//
// One rule: durable before visible. A command (Do) is a pure decision over the
// open transaction: it returns a result and leaves operations, or refuses. One
// goroutine runs the commands that wait, each seeing what those before it did,
// then
//
//	commits the group to the journal -> commits memdb -> acknowledges
//
// so that a reader never sees what a crash could take back, and a group whose
// commit fails leaves no trace. A command that refuses or panics takes back its
// own changes only. Answers wait for the group's commit, refusals too: they may
// rest on what a command before them did.
//
// Reads never wait: they are snapshots of memdb, and what they return is shared
// and must not be changed. Large bodies stay in the journal and are read by key.
//
// Its time never goes back (Now), so that what has expired stays expired whatever
// is done to the wall clock. What is posted together is one record of the ledger, a
// page; the entry that ends a hold carries its receipt. Old pages become sums (Fold),
// and Verify proves that nothing is missing of either.
//
// It does not know HTTP, shapes or actors, and it limits nothing: rates, budgets
// and permissions are checked by those who ask. Keys fixed in the configuration
// are not here either; package auth lays them over these.
package state
