// Package soak kills the whole gateway again and again under a load of writes and
// compares the state afterwards with the replies that clients got.
//
//	soak.go     cycles: start, check, load, SIGKILL at a random moment
//	client.go   calls, whose outcome is an answer or not known
//	payer.go    priced requests, whole and streamed, and their receipts
//	grantee.go  browsers, authorization codes, refresh tokens, revocations
//	keeper.go   gateway keys over the control socket and the API of administration
//	depositor.go payments over the API of administration
//	redeemer.go redeem codes on the top-up page
//	books.go    the ledger, read from the dead process's directory
//	leaks.go    secrets in logs and files
//
// Each writer keeps its own oracle: what was acknowledged must be there, what was
// refused must not, and of a call whose answer was lost either may be true, but
// only one of them, and for good.
//
// It is for what several packages do together. Crashes of single packages are tested there
// (state, actors/ledger, actors/tokens), with more writes and no network.
//
// # Usage
//
// Run makes a whole run and returns a Report. An error of Run says that the run could not be made or was given up. A
// fault of the gateway is no error but a line in Report.Wrong, so that one run can show several. The seed decides the
// moments of the kills and what the writers send, but not how far the gateway comes, so that a run with the same seed
// is similar and not the same.
//
// # What a cycle checks
//
// A cycle starts a process on the directory of the last one and lets every writer check what it has sent since its last
// check, and samples of what is older. Then all writers send at once, and the process gets SIGKILL. After some cycles
// the ledger is read from the directory while no process runs: as the kill has left it, or after another process has
// recovered it.
//
// # A new writer
//
// A writer is a type with the methods step and check. step makes one call and notes what is known of it before the call
// (unknown) and after the answer (accepted or refused). check compares these notes with the gateway, settles those that
// are unknown, and calls soak.found once for each acknowledged write that is there. Add it in prepare, and a test in
// soak_test.go that damages the state with Options.Tamper and expects the oracle to notice.
package soak
