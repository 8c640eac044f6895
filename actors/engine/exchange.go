package engine

import (
	"context"
	"errors"

	"stagedoor/actors/flow"
	"stagedoor/actors/throttle"
	"stagedoor/providers/catalog"
	"stagedoor/providers/dialogue"
	"stagedoor/providers/upstream"
)

// Exchange makes the attempts of one request and delivers output of type T. Its methods are called by the request's
// attempt loop, one after the other.
type Exchange[T any] interface {
	// Prepare begins an attempt, before any money is held for it and before it has a permit. c.Runtime is nil if the
	// provider is no longer configured; the attempt fails then.
	Prepare(c *Candidate) *upstream.Failure
	// Try makes one attempt at a candidate and delivers the output to out. It returns nil if the client has, or will
	// have, the whole reply. The engine releases the permit when Try returns.
	Try(ctx context.Context, c *Candidate, p *throttle.Permit, out Sink[T]) *upstream.Failure
	// Policy says which failures may be retried. It is asked after each failure.
	Policy() Policy
	// End is called once, when no attempt follows, with the failure of the last attempt or nil. It delivers what is left
	// to say. Nothing is held at this time, no permit and no connection. It may be called after a panic of Try.
	End(out Sink[T], f *upstream.Failure)
	// Result says how the request went. It is called after End.
	Result() flow.Result
}

// Policy says how a kind of request differs from others in what may be repeated. The zero value allows everything that
// the rules of decide allow.
type Policy struct {
	// Structured says that the request has a schema, which is left out if the upstream refuses it.
	Structured bool
	// Repeatable, if set, reports whether the request may be sent again after a failure, to this target or to another.
	// It is for requests that cost money when they are made, and not when they are delivered.
	Repeatable func(f *upstream.Failure) bool
	// MoveOn makes a request whose upstream was not reached go to the next target after one retry.
	MoveOn bool
}

// Money holds what a request may cost and settles what it did cost.
type Money interface {
	// Hold holds what the attempt at c may cost, before it is made. An error ends the request.
	Hold(ctx context.Context, c *Candidate) *dialogue.Error
	// Settlement returns a function that settles the request as it stands now. For a reply in good order Sink.Settle
	// calls it before the client gets the end of the reply. For any other request, and for one that could not be settled
	// then, it is called when all is over.
	Settlement() func(ctx context.Context) *dialogue.Error
}

// Request describes a request, which has been checked and routed.
type Request struct {
	// About describes the request to actors/flow. The provider's queue knows the request by its ID and Owner.
	About flow.About
	// Class is the priority class and Tokens the estimate for the limiter.
	Class, Tokens int
	// Plan lists what to try, in this order. It is never empty.
	Plan []catalog.Candidate
	// Money, if not nil, is held and settled.
	Money Money
	// Window bounds the pieces of output that wait for the caller. It is at least 1.
	Window int
}

// CallerFault returns the failure of a request that no target can serve. An err that is no *dialogue.Error is an
// internal error.
func CallerFault(err error) *upstream.Failure {
	var e *dialogue.Error
	if !errors.As(err, &e) {
		e = dialogue.Internal(err)
	}
	return &upstream.Failure{Class: upstream.CallerFault, Err: e}
}

// Cancelled returns the failure of an attempt whose context has ended.
func Cancelled(ctx context.Context) *upstream.Failure {
	return upstream.CancelledBy(context.Cause(ctx))
}

// FailureOf returns err as a failure. All errors of providers/upstream are failures already.
func FailureOf(err error) *upstream.Failure {
	var f *upstream.Failure
	if errors.As(err, &f) {
		return f
	}
	return upstream.Broken(err)
}

// ClientLeft reports whether f means that nothing reads the reply any more.
func ClientLeft(f *upstream.Failure) bool {
	return f.Class == upstream.Cancelled && f.Err.Status == dialogue.StatusClientClosed
}

// shuttingDown is the failure of a request that the gateway has no time for.
func shuttingDown() *upstream.Failure { return upstream.CancelledBy(upstream.ErrDraining) }
