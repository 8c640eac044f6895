// Package soak kills the whole gateway again and again under a load of writes and
// compares the state afterwards with the replies that clients got.
//
//	soak.go     cycles: start, check, load, SIGKILL at a random moment
//	client.go   calls, whose outcome is an answer or not known
//	payer.go    priced requests, whole and streamed, and their receipts
//	grantee.go  browsers, authorization codes, refresh tokens, revocations
//	keeper.go   gateway keys over the control socket and the API of administration
//	banker.go   payments over the API of administration
//	redeemer.go redeem codes on the top-up page
//	books.go    the ledger, read from the dead process's directory
//	leaks.go    secrets in logs and files
//
// Each writer keeps its own oracle: what was acknowledged must be there, what was
// refused must not, and of a call whose answer was lost either may be true, but
// only one of them, and for good.
//
// Its clients also measure how many refreshes the program makes a second.
//
// It is for what spans the floors. Crashes of single packages are tested there
// (state, actors/ledger, actors/tokens), with more writes and no network.
package soak
