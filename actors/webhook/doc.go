// Package webhook sends events to other servers in the form of Standard Webhooks, as a signed POST that is retried
// for three days. Each event is delivered at least once. Alerts can go to a person by mail in the same way.
//
// The command that causes an event stores its delivery (work.Delivery), so this package has nothing to lose. One
// actor starts the deliveries that are due, a few at a time for each endpoint, so that an endpoint which does not
// answer delays no other. retry.go decides whether and when a failure is retried, and guard.go decides which
// addresses may be called.
//
// The package knows no jobs and makes no events.
//
// # Failures
//
// A reply other than 2xx, a connection that fails and a reply that takes too long are failures, and are retried after
// pauses that grow from five seconds to eight hours. After three days, or when the endpoint answers 410, a delivery
// is given up and logged. An endpoint may get an event twice, with the same id, because a delivery is marked as done
// only after the reply.
//
// # Addresses
//
// Endpoints come from the configuration, and their names may resolve to anything. The guard therefore looks at the
// address of each connection after the name was resolved, and refuses private networks unless the endpoint allows
// them.
//
// # Usage
//
// Start begins to deliver what is stored, and Configure sets the endpoints, also while the gateway runs. To
// send a new type of event, add it to state/work: the command that causes the event stores one delivery for
// each endpoint that wants it.
//
// # Concurrency
//
// The actor decides which deliveries are tried, and each try runs on a goroutine beside it, which stores the
// result and then sends it to the actor. Deliveries of one endpoint take turns by owner, so an owner with
// many events does not delay those of others (turns.go).
package webhook
