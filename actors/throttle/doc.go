// Package throttle limits the requests that are sent to one upstream provider. It limits
// requests per minute, tokens per minute and requests in flight. A request over a limit
// waits in a queue that is fair between owners (users, or keys without a user), and it is
// refused at once if it cannot be served before its deadline. Keys limits the gateway's own
// API keys in the same units, without a queue.
//
// The package neither calls a provider nor chooses one.
//
// # Usage
//
//	permit, err := client.Acquire(ctx, throttle.Ask{Owner: user, Tokens: estimate})
//	if err != nil {
//		return err // a *Refused, or the cause of ctx
//	}
//	outcome := call(ctx)
//	permit.Release(outcome)
//
// Release must be called once for each permit, with the outcome: the outcome feeds the
// circuit breaker, the cool-downs and the token bucket.
//
// # Concurrency
//
// Client, Permit and Keys are safe for use by many goroutines. The limiter has three parts:
//
//	Client    typed front; a provider without limits is counted by atomics alone
//	provider  the actor: mailbox lanes (control, release, acquire), clock and timer
//	core      buckets, queue, breaker and cool-downs; no clock, no goroutine, no lock
//
// Each ticket gets exactly one verdict: it is granted, it is refused, or its caller gives
// up first. A grant never blocks the actor.
//
// # Errors
//
// Acquire returns a *Refused, which names the reason, the limit and the time after which a
// retry can succeed. It returns the cause of the context if the context ends first.
//
// # Circuit breaker
//
//	closed --5 failures in a row, or more than half of 20 in 30 s--> open
//	open --5 s, doubled each time up to 60 s--> half open
//	half open: one probe; success --> closed, failure --> open
//
// While the breaker is open, requests that have no other provider left (Ask.Last) are sent
// one at a time, and all others are refused.
//
// # Files
//
//	client.go config.go permit.go refused.go outcome.go   what a caller sees
//	actor.go messages.go core.go ticket.go waiter.go      the actor, and its decisions without a clock or a goroutine
//	fair.go classes.go keys.go                            whose turn it is, and the shares of keys
//	bucket.go breaker.go trials.go cooling.go             rates, the circuit breaker, pauses that providers want
//	stats.go                                              snapshots
package throttle
