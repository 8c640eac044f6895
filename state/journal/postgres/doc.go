// Package postgres is a journal.Shared in a Postgres database that the operator has. The database holds all records as
// rows and one log of what each append did to the hot ones. schema.sql has the tables and the one function through
// which everything is written, so that an append is one statement, one round trip and one sync.
//
// # Usage
//
//	store, err := postgres.Open(ctx, "postgres://stagedoor@db/stagedoor", postgres.Options{Node: "gw-1"})
//	s, err := schema.Open(store, time.Now)
//
// # Failures
//
// An append whose reply was lost is not repeated blindly. The store looks whether it arrived, by the number of the
// node's last append and by the tag of its entry, and sends it again only on the same condition as before, so that it
// counts once. Such an append is waited for as long as its context lasts. What was certainly not sent within two
// seconds is refused with journal.ErrUnreachable, and nothing has changed.
//
// A log that has lost entries, as after a failover to a standby that had not got them, shows by its tags and is
// journal.ErrForked. Only synchronous replication keeps acknowledged commits from being lost so.
//
// The package makes no copies of the database, which has tools of its own for that. It is the only package that knows
// the driver.
package postgres
