// Package throttle is the gate in front of one upstream provider: an actor whose
// mailbox limits requests and tokens per minute and requests in flight, queues
// what has to wait, fairly between owners (users, or keys without a user), and refuses
// at once what cannot be served in time. It also limits the gateway's own keys (Keys).
//
// It is not for calling upstreams, nor for choosing one: it is told outcomes and
// answers with a Permit or a Refused.
//
// Three parts (design: lane mailbox in front of a pure core):
//
//	Client   typed front; a provider without limits is counted by atomics alone
//	actor    lanes (control, release, acquire), clock and timer, nothing else
//	core     buckets, queue, breaker, cool-down; no clock, no goroutine, no lock
//
// A ticket gets exactly one verdict, whatever happens: granted, refused, or its
// owner left first. Grants never block the actor.
//
// The breaker:
//
//	closed --5 failures in a row, or more than half of 20 in 30 s--> open
//	open --5 s, doubled each time up to 60 s--> half open
//	half open: one probe; success --> closed, failure --> open
//
// Requests that have no other provider left to ask are tried one at a time while
// others are told to stay away.
package throttle
