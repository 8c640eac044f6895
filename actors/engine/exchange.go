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
	// Prepare begins an attempt, before any money is held for it and before it has a permit. A failure ends the
	// attempt, and the rules of decide say what follows. c.Runtime is nil if the provider is no longer configured.
	// Prepare need not report that, because the engine fails such an attempt itself after Prepare.
	Prepare(c *Candidate) *upstream.Failure
	// Try makes one attempt at a candidate and delivers the output to out. It returns nil if the client needs no other
	// attempt, because out has the whole reply or End sends what is left of it. The engine releases p when Try returns.
	Try(ctx context.Context, c *Candidate, p *throttle.Permit, out Sink[T]) *upstream.Failure
	// Policy says which failures may be retried. It is asked after each failure.
	Policy() Policy
	// End sends the last pieces of a good reply, or the error f of the last attempt, to out. It is called once for each
	// request, when no attempt follows and the permit has been released. If Prepare or Try panicked, f is an internal
	// error and the exchange may be in the middle of an attempt.
	End(out Sink[T], f *upstream.Failure)
	// Result returns the outcome that actors/flow shows and counts. It is called once, after End.
	Result() flow.Result
}

// Forker is an Exchange whose request may be served by two targets at the same time until one of them has begun its
// reply. The engine forks it for requests with a Hedge.
type Forker[T any] interface {
	Exchange[T]
	// Fork returns an exchange for the same request, with attempts of its own, and its money, which is nil if the
	// request is free. It is called while an attempt runs, and must read only what attempts do not change. End and
	// Result are called for one of the exchanges of a request, which is the one that served it.
	Fork() (Exchange[T], Money)
	// Overtaken is called instead of End for the others. f is the failure of their attempt. It is ErrOvertaken for one
	// that was cancelled because another one was faster, and the engine settles what its provider did until then.
	Overtaken(f *upstream.Failure)
}

// Policy says how a kind of request differs from others in what may be repeated. The zero value allows everything that
// the rules of decide allow.
type Policy struct {
	// Structured says that the request has a schema, which is left out if the upstream refuses it.
	Structured bool
	// Repeatable, if set, reports whether the request may be sent again after a failure, to this target or to another.
	// It is for requests such as images, for which providers charge once they have made the image, whether it arrives
	// or not.
	Repeatable func(f *upstream.Failure) bool
	// MoveOn makes a request whose upstream was not reached go to the next target after one retry.
	MoveOn bool
}

// Money holds what a request may cost and settles what it did cost.
type Money interface {
	// Hold makes the request's one hold cover what the attempt at c may cost, before the attempt is made. A later
	// attempt extends the hold only if it may cost more. An error ends the request, and no other target is tried.
	Hold(ctx context.Context, c *Candidate) *dialogue.Error
	// Settlement copies the outcome as it is now and returns a function that settles the request by this copy. The
	// function may run on another goroutine, while the exchange goes on. Its error means that the settlement was not
	// written, and is meant for the client. Sink.Settle uses Settlement for a good reply, before the client gets its
	// end. The engine uses it after End if the request has not been settled by then.
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
	// Hedge, if set, has another target of the plan take part if one is slow. The exchange must be a Forker.
	Hedge *catalog.Hedge
	// Money is nil if the request is free.
	Money Money
	// Dry, if set, makes the request stop where its first call would be sent. Money then only estimates.
	Dry *DryRun
	// Window bounds the pieces of output that wait for the caller. It is at least 1.
	Window int
}

// CallerFault returns err as the failure of a request that no target can serve, so no attempt follows. An err that is
// no *dialogue.Error becomes an internal error with status 500, because it would occur at each target.
func CallerFault(err error) *upstream.Failure {
	var e *dialogue.Error
	if !errors.As(err, &e) {
		e = dialogue.Internal(err)
	}
	return &upstream.Failure{Class: upstream.CallerFault, Err: e}
}

// Cancelled returns the failure of an attempt whose context has ended. The cause of the context decides which error it
// is: a timeout of the upstream, the shutdown of the gateway, the *dialogue.Error with which the request was cancelled,
// or else a client that closed its connection. ctx must have ended.
func Cancelled(ctx context.Context) *upstream.Failure {
	return upstream.CancelledBy(context.Cause(ctx))
}

// FailureOf returns the *upstream.Failure in err, which all errors of providers/upstream have. Any other err counts as
// the failure of a reply that was cut off, and may be retried. err must not be nil.
func FailureOf(err error) *upstream.Failure {
	var f *upstream.Failure
	if errors.As(err, &f) {
		return f
	}
	return upstream.Broken(err)
}

// ClientLeft reports whether f means that the client closed its connection, so that an error need not be written. f
// must not be nil.
func ClientLeft(f *upstream.Failure) bool {
	return f.Class == upstream.Cancelled && f.Err.Status == dialogue.StatusClientClosed
}

// shuttingDown returns the failure of a request that comes while the gateway shuts down. No retry follows it.
func shuttingDown() *upstream.Failure { return upstream.CancelledBy(upstream.ErrDraining) }
