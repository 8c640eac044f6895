// Package kit is what the actor library lacks for a server that must not lose an
// answer: a dispatcher that keeps warm goroutines, a mailbox with lanes that
// refuses instead of blocking or forgetting, a guard around every actor, asks
// with a context, timers that know when they are stale, supervision with true
// exponential back-off, goroutines that report to their actor, and counters.
//
// It is not for business: no package above learns about PIDs from here, they
// offer typed clients. It is not for clusters either, every actor is local.
//
// The life of a message that carries somebody's wait: it implements Rejecter,
// and whoever cannot deliver it calls Reject, once: the full mailbox (on the
// sender's goroutine), the closing mailbox, or the dead-letter subscriber. What
// has reached the actor is the actor's to answer, also in Stopping and in Failed.
//
// The library's behaviours that this package relies on or works around are
// pinned in library_test.go; they break loudly if the dependency moves.
package kit
