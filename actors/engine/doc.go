// Package engine runs every request to a model. It owns what all of them have in common: admission, the supervised
// actor, the attempt loop, the retry rules and their shared budget, the permit of the provider's limiter, the hold of
// money and its settlement, the deadline, the drain, traces, the entry in actors/flow, and exactly one end. How one
// attempt is made is an Exchange, of which there is one implementation for each kind of request. The engine names none
// of them: a new kind is a new package that imports this one.
//
// # Usage
//
// An exchange embeds a Run, which is the request's state in the engine, and begins it:
//
//	type exchange struct {
//		run engine.Run[Chunk]
//		...
//	}
//
//	x.run.Begin(ctx, e, engine.Request{About: about, Plan: plan}, x)
//	for chunk := range x.run.Output() { ... }
//
// # One request
//
//	caller ── Begin ──> shard: refused while the gateway drains, else a new actor
//	                    actor ── starts ──> attempt loop
//	caller <── Output (bounded) <────────── attempt loop ── Try ──> upstream
//	                    actor <── Stop ──── attempt loop, at its end
//
// The attempt loop is one goroutine that belongs to the actor. It is the only writer of the output and of the request's
// state, so neither needs a lock. Only a race has one:
//
//	for {
//		prepare the attempt, hold money, wait for a permit, Try, release the permit
//		if there was no failure, or the rules say that the request must not be repeated: end
//		wait
//	}
//
// A request with a Hedge may make the attempt at several targets at the same time. The attempt of the loop runs as
// ever. A timer starts another leg, which has an exchange, a hold and a permit of its own. The leg that claims the
// output first goes on, and the others are cancelled (race).
//
// Who owns what:
//
//	caller        the context of the request; reading the output
//	shard         the set of requests in flight; whether new ones are refused
//	actor         the loop's goroutine, and ending the request's context for a drain or an administrator
//	attempt loop  progress, permit, place in the retry budget, hold, output and its end
//	race          which leg may deliver, while there are several; under its lock
//	exchange      what it learns of the reply; touched by the loop only, until the output is closed
//
// Before its actor runs, a request belongs to the goroutine that called Begin, which ends it if it is refused.
//
// Messages of a request's actor:
//
//	*actor.Started   starts the attempt loop
//	*cancel          ends the request's context: a drain, or an administrator
//	*kit.Crashed     the loop panicked: the client has its error by then, the actor logs and stops
//	*actor.Stopping  ends the request's context
//
// A good request takes two passes through a mailbox, Started and Stop. Everything else that ends a request ends its
// context: the client that leaves, a deadline, a revoked key. There is no message that asks how a request is doing,
// because actors/flow shows that without disturbing it.
//
// # The output
//
// Sink is the exchange's side, Output the caller's side of one bounded channel. Send waits while the caller is slow,
// which slows the upstream down. Nothing is repeated after the first Send: the client may have seen it. The channel is
// closed once, at the end of the attempt loop, after Exchange.End has sent what was left to say and after the request
// has left actors/flow. What the caller reads of the exchange after that does not change any more.
//
// # Concurrency
//
// An Engine may be used by any goroutine. The methods of an Exchange are called one after the other. Try may use
// goroutines of its own, which must have ended when it returns.
//
// # Errors
//
// An attempt fails with an *upstream.Failure, whose class decides about a retry and whose Err is what the client gets. A
// panic in an exchange ends its request with the error internal_error and touches no other request.
package engine
