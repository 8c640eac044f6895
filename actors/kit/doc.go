// Package kit adds to the actor library what a server needs that must not lose a reply: a dispatcher that reuses
// goroutines, a mailbox with lanes that refuses messages instead of blocking or dropping them, a guard around every
// actor, requests with a context, timers that recognise stale ticks, supervision with exponential back-off, goroutines
// that report to their actor, and counters.
//
// It contains no business logic. The packages above it offer typed clients and show no PIDs. It does not support
// clusters; every actor is local.
//
// # Usage
//
// A package makes Props once for each kind of actor and starts actors with Spawn, SpawnChild or SpawnOnce. A message
// that has a reply embeds a Reply, which the actor resolves, and its sender calls Ask. System.Go runs slow work beside
// an actor.
//
// # Lost messages
//
// A message with a waiting caller implements Rejecter. Reject is called once if the message cannot be delivered, by the
// full mailbox (on the sender's goroutine), by the mailbox as it closes, or by the subscriber of dead letters. An actor
// must answer every message that has reached it, also in Stopping and in Failed.
//
// # Concurrency
//
// A System and its methods are safe for concurrent use. Receive runs on one goroutine at a time. It must not block or
// call Ask; slow work runs in System.Go, whose result comes back as a message.
//
// # The library
//
// library_test.go pins the behaviour of the library that this package relies on or works around, and fails if an
// update changes it.
package kit
