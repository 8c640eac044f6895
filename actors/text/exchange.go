package text

import (
	"context"
	"errors"
	"time"

	"stagedoor/actors/engine"
	"stagedoor/actors/flow"
	"stagedoor/actors/recording"
	"stagedoor/actors/throttle"
	"stagedoor/providers/dialogue"
	"stagedoor/providers/memory"
	"stagedoor/providers/shapes"
	"stagedoor/providers/upstream"
)

// window bounds the chunks of a stream that wait for the client. A chunk holds what one read of the upstream brought,
// so a stream whose client stalls holds a few kilobytes, and TCP slows the upstream down.
const window = 8

// windowOf returns the window of a reply. A whole one is a single chunk.
func windowOf(mode shapes.Mode) int {
	if mode == shapes.Whole {
		return 1
	}
	return window
}

// errorTime bounds the time that a terminal error event waits for a slow client
// once the request itself has been cancelled.
const errorTime = 5 * time.Second

// exchange makes the attempts of one request for text. Its state belongs to the attempt loop until the output is
// closed.
type exchange struct {
	run     engine.Run[Chunk]
	svc     *Service
	env     *dialogue.Env // for the owner of the request
	request *Request
	outcome Outcome
	attempt *attempt // the last one; nil: there was none
	first   attempt  // most requests make no other
	// shortened lists the turns that attempts leave out since a provider found it too long.
	shortened shortened
	// reasoningRefused, callIDsRefused, compactionRefused, contextRefused and topKRefused are the targets that refused
	// the reasoning of another model, the ids that another upstream gave to its calls, to compact a conversation, to
	// edit one, and top_k. See attempt.targetName.
	reasoningRefused, callIDsRefused, compactionRefused, contextRefused, topKRefused string
	// origin is the exchange that this one was forked from; nil: none. served is the fork that served the request, set
	// at its end on the origin; nil: the origin did.
	origin, served *exchange
	// unfit is set if no target can serve the request, so that no call is made.
	unfit *upstream.Failure
	draft *recording.Draft // nil: the exchange is not recorded
}

var (
	_ engine.Forker[Chunk] = (*exchange)(nil)
	_ engine.Money         = (*exchange)(nil)
)

// Prepare implements engine.Exchange.
func (x *exchange) Prepare(c *engine.Candidate) *upstream.Failure {
	a := &x.first
	if x.attempt != nil {
		x.attempt.opening.Free() // another attempt is made, so nothing of that one is sent
		a = new(attempt)
	}
	*a = attempt{exchange: x, c: c, provider: c.Runtime}
	a.meta = Meta{Provider: c.Provider.Name, Attempts: c.Number}
	x.attempt = a
	x.outcome.Usage, x.outcome.Reason, x.outcome.Counted = dialogue.NoUsage, 0, 0
	x.outcome.ReplyModel = ""
	return x.unfit
}

// Hold implements engine.Money.
func (x *exchange) Hold(ctx context.Context, c *engine.Candidate) *dialogue.Error {
	a := x.attempt
	tight, err := x.request.Meter.Begin(ctx, c.Candidate, a.promptTimes())
	a.tight = tight
	return err
}

// Try implements engine.Exchange.
func (x *exchange) Try(ctx context.Context, c *engine.Candidate, p *throttle.Permit,
	out engine.Sink[Chunk]) *upstream.Failure {
	a := x.attempt
	a.sink, a.permit, a.ctx, a.unbounded, a.entered = out, p, ctx, out.Context(), c.Entered
	a.meta.Queued = c.Queued
	a.memory = memory.NewClaim(x.svc.env.Memory, x.request.Owner)
	defer a.memory.End()
	a.recordAttempt()
	a.failed = a.call(ctx)
	a.amendAfter(a.failed)
	a.recordTarget()
	a.translation(ctx, a.failed)
	if c.Dry != nil && a.shape != nil {
		c.Dry.Report(a.shape.Name, a.meta.Untouched, &a.report)
	}
	c.Used = tokensOf(&x.outcome.Usage)
	return a.failed
}

// Policy implements engine.Exchange.
func (x *exchange) Policy() engine.Policy {
	return engine.Policy{Structured: x.request.Head.Structured}
}

// End implements engine.Exchange. A failure of which nothing was sent yet is a chunk of its own; after that, the stream
// ends with an error event.
func (x *exchange) End(out engine.Sink[Chunk], f *upstream.Failure) {
	x.svc.inFlight.Add(-1)
	o := &x.outcome
	if f != nil && o.Err == nil {
		o.Err = f.Err
	}
	if a := x.attempt; a != nil {
		a.noteCalls()
		if f != nil {
			a.endStream(out, f)
		}
		o.Meta = a.meta
		o.Attempts = max(o.Attempts, out.Attempts())
	}
	if x.origin != nil {
		x.origin.served = x
	}
	o.Committed = out.Committed()
	if o.Err == nil && !o.Committed {
		o.Err = dialogue.Incomplete()
	}
	if !o.Committed {
		_ = out.Send(context.Background(), Chunk{Err: o.Err, Meta: &o.Meta}) // nothing was sent, so there is room
	}
	x.recordEnd()
	if x.request.Ended != nil {
		x.request.Ended(o)
	}
}

// Fork implements engine.Forker. The fork has a meter and so a hold of its own, so that each bill depends only on what
// its provider did. What attempts at the first target have learned does not apply to another one.
func (x *exchange) Fork() (engine.Exchange[Chunk], engine.Money) {
	q := *x.request
	fork := &exchange{svc: x.svc, request: &q, origin: x, outcome: Outcome{Usage: dialogue.NoUsage}}
	fork.draft, fork.env = x.draft.Fork(x.env)
	if q.Meter == nil {
		return fork, nil
	}
	q.Meter = q.Meter.Another()
	return fork, fork
}

// Overtaken implements engine.Forker. Nothing of the reply was delivered. A provider that failed is not paid.
func (x *exchange) Overtaken(f *upstream.Failure) {
	o := &x.outcome
	o.Err, o.Overtaken = f.Err, true
	x.draft.Drop()
	a := x.attempt
	if a == nil {
		return
	}
	if !errors.Is(f, engine.ErrOvertaken) {
		a.accepted.Store(0)
	}
	a.counted = counter{}
	o.Counted = 0
	a.opening.Free()
	a.last.Free()
}

// Settlement implements engine.Money.
func (x *exchange) Settlement() func(ctx context.Context) *dialogue.Error {
	out := x.outcome
	if x.attempt != nil {
		x.attempt.noteCalls()
		out = x.outcome
		out.Meta = x.attempt.meta
	}
	meter := x.request.Meter
	return func(ctx context.Context) *dialogue.Error { return meter.Settle(ctx, &out) }
}

// Result implements engine.Exchange.
func (x *exchange) Result() flow.Result { return resultOf(&x.outcome) }
