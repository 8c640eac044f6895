// Package webhook sends events to other servers in the form of Standard Webhooks, as a signed POST
// that is retried for three days. Each event is delivered at least once.
//
// The command that causes an event stores its delivery (state.Delivery), so this package has nothing to lose. One actor
// starts the deliveries that are due, a few at a time for each endpoint, so that an endpoint which does not answer
// delays no other. retry.go decides whether and when a failure is retried, and guard.go decides which addresses may be
// called.
//
// The package knows no jobs and makes no events.
package webhook
