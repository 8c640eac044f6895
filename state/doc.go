// Package state keeps the records of the gateway. This package is the core, which knows no table but its own small
// facts and the audit log: transactions, the writer, loading, sweeping, verification, ids and time. The tables are in
// the packages beside it, and each of them is a Module: state/identity (users, keys, OAuth), state/money (accounts
// and the ledger) and state/work (stored responses, video jobs, deliveries). They do not import each other;
// state/schema lists them. go-memdb is the index over hot records, and package journal below it is the truth.
//
// # Usage
//
//	s, err := schema.Open(store, time.Now)
//	user, found := identity.FindUser(s.View(), id)
//	account, err := state.Do(ctx, s, func(tx *state.Tx) (money.Account, error) {
//		account, _, err := money.Post(tx, user.Username, postings)
//		return account, err
//	})
//
// One rule holds everywhere: durable before visible. A command (Do) is a pure decision over the open transaction. It
// returns a result and leaves operations, or refuses. One goroutine runs the commands that wait, each seeing what those
// before it did, and then
//
//	commits the group to the journal -> commits memdb -> acknowledges
//
// so that a reader never sees what a crash could take back, and a group whose commit fails leaves no trace. A command
// that refuses or panics takes back its own changes only. Results wait for the group's commit, and refusals do, too,
// because they may depend on a command before them. A command may be decided more than once; see Do.
//
// # Concurrency
//
// All methods may be called by many goroutines. Reads never wait, because they read snapshots of memdb (View). What
// they return is shared and must not be changed. Large bodies stay in the journal and are read by key.
//
// Time never goes back (Now), so that what has expired stays expired when the wall clock is set back.
//
// # Errors
//
// ErrUnavailable means that nothing was changed, or that the outcome is unknown because the store has failed. After
// the latter Failed is closed, and the process should start again from disk. Other errors are refusals of commands.
//
// The package does not know HTTP, API shapes or actors.
//
// # Files
//
//	state.go module.go table.go indexkeys.go view.go   opening, modules, tables in memory and their indexes
//	writer.go tx.go clock.go follow.go node.go         commands, time, changes of other processes
//	load.go verify.go sweep.go                         loading, checking and the removal of what has expired
//	facts.go ids.go hash.go audit.go auditlog.go       single values, names, hashes of secrets, the audit log
package state
