// Package videoclient creates, watches and downloads video jobs for the commands. It calls a gateway over its public
// API, like any other client, and goes on after a connection was lost. It sends a creation again with the same
// idempotency key, and continues a watch and a download where they stopped.
//
// It prints nothing and does not know terminals.
//
// # Usage
//
// New returns a Client for an address and a key. Create and Remix begin a job, Watch calls a function for each state
// of it until it has ended, and Download saves its content. Waits, if set, is called before each pause, so that a
// person can see why nothing moves.
//
// # Concurrency
//
// A Client may be used by several goroutines. Waits must then be safe for concurrent use, too.
//
// # Errors
//
// An *Error is an answer of the gateway and final unless it says when to try again. Errors of the network are retried
// for as long as the context lasts, because a job goes on at the provider meanwhile. errForeign says that the address
// leads to something other than a gateway.
//
// # Files
//
//	client.go pause.go   calls, errors, and the pauses between attempts
//	jobs.go events.go    jobs, and the stream of their changes
//	download.go          contents
package videoclient
