// Package postgres is a journal.Shared in a Postgres database that the operator has. The database holds all records as
// rows and one log of what each append did to the hot ones. schema.sql has the tables and the one function through
// which everything is written, so that an append is one statement, one round trip and one sync.
//
// # Usage
//
//	store, err := postgres.Open(ctx, "postgres://stagedoor@db/stagedoor", postgres.Options{Node: "gw-1"})
//	s, err := schema.Open(store, time.Now)
//
// A node with Options.Standby that finds another one live follows the log as a stand-by. It may append once Await has
// returned, which it does when the other one has left or its lease has ended:
//
//	s, err := schema.Open(store, time.Now) // is kept up to date meanwhile
//	err = store.Await(ctx)
//
// OpenMembers is for commands that list the nodes, let one leave or expel it, without joining them.
//
// # Failures
//
// An append whose reply was lost is not repeated blindly. The store looks whether it arrived, by the number of the
// node's last append and by the tag of its entry, and sends it again only on the same condition as before, so that it
// counts once. Such an append is waited for as long as its context lasts. What was certainly not sent within two
// seconds is refused with journal.ErrUnreachable, and nothing has changed. An append that the database refuses after an
// earlier sending of it got no answer is voided, so that the earlier one cannot arrive later.
//
// An append that may not have reached a synchronous standby of the database, because the wait for it was cancelled,
// counts as one without a reply. It is acknowledged after a later change was replicated.
//
// A node is expelled only by another one that has itself seen its beat unchanged for a lease, with the database
// answering. Times of the database are not compared, and the time in which it was away does not count.
//
// A node whose lease has ended, or whose name another process has taken, is journal.ErrFenced and cannot append. Its
// transactions, on which other nodes wait, are ended by the database after a few seconds if it hangs.
//
// A log that has lost entries, as after a failover to a standby that had not got them, shows by its tags and is
// journal.ErrForked. Only synchronous replication keeps acknowledged commits from being lost so.
//
// The package makes no copies of the database, which has tools of its own for that. It is the only package that knows
// the driver.
//
// # Files
//
//	store.go watch.go members.go silence.go   joining, beats, the list of nodes, and nodes that fell silent
//	commit.go plan.go append.go               commits: what they touch, and the end of the log
//	read.go                                   reading, and following the log
//	beside.go files.go                        tables beside the log, and the files of blobs
package postgres
