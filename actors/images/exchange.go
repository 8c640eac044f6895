package images

import (
	"context"
	"sync"

	"stagedoor/actors/engine"
	"stagedoor/actors/flow"
	"stagedoor/actors/recording"
	"stagedoor/actors/throttle"
	"stagedoor/providers/dialogue"
	"stagedoor/providers/picture"
	"stagedoor/providers/upstream"
)

// exchange makes the attempts of one request for pictures. Its state belongs to the attempt loop until the request is
// over.
type exchange struct {
	run     engine.Run[Partial]
	svc     *Service
	request *Request
	attempt *attempt // the last one; nil: there was none
	outcome Outcome
}

var (
	_ engine.Exchange[Partial] = (*exchange)(nil)
	_ engine.Money             = (*exchange)(nil)
)

// attempt is one try at one target.
type attempt struct {
	*exchange
	c     *engine.Candidate
	sink  engine.Sink[Partial]
	shape *picture.Shape // nil: the sandbox
	// passthrough is set if the calls have the client's own body.
	passthrough bool

	// Several calls may run at the same time.
	mu      sync.Mutex // of report, called and outcome
	report  dialogue.Report
	called  bool       // a call to the provider was begun
	sending sync.Mutex // of sink; held while a slow client is waited for
}

// Prepare implements engine.Exchange. It finds out how the provider is spoken to.
func (x *exchange) Prepare(c *engine.Candidate) *upstream.Failure {
	a := &attempt{exchange: x, c: c}
	x.attempt = a
	x.outcome = Outcome{Meta: Meta{Provider: c.Provider.Name, Model: c.Model, Attempts: c.Number}}
	if c.Runtime == nil {
		return nil
	}
	var ok bool
	if a.shape, ok = x.svc.shapeOf(c.Runtime.Spec, x.request.Picture.Inbound); !ok {
		return engine.CallerFault(dialogue.Invalid("model", "makes no pictures here: its provider is of another kind"))
	}
	return nil
}

// Hold implements engine.Money.
func (x *exchange) Hold(ctx context.Context, c *engine.Candidate) *dialogue.Error {
	return x.request.Meter.Begin(ctx, c.Candidate)
}

// Try implements engine.Exchange. It makes, keeps and settles all pictures, or none.
func (x *exchange) Try(ctx context.Context, c *engine.Candidate, p *throttle.Permit,
	out engine.Sink[Partial]) *upstream.Failure {
	a := x.attempt
	a.sink, x.outcome.Queued = out, c.Queued
	if d := recording.From(ctx); d != nil {
		d.Try(c.Provider.Name, c.Model, a.shape == nil, c.Runtime.Secrets())
	}
	defer func() { x.outcome.Losses = a.report.Header() }()
	made, f := a.make(ctx, p)
	if c.Dry != nil && a.shape != nil {
		c.Dry.Report(a.shape.Name, a.passthrough, &a.report)
	}
	if f != nil {
		return f
	}
	if f := a.prepare(ctx, made); f != nil {
		return f
	}
	o := &x.outcome
	o.Reply, o.Delivered, o.Usage, o.Losses = made, made.Delivered(), made.Usage, a.report.Header()
	if ctx.Err() != nil {
		return engine.Cancelled(ctx)
	}
	if err := out.Settle(ctx); err != nil {
		return engine.CallerFault(err)
	}
	return nil
}

// Policy implements engine.Exchange.
func (x *exchange) Policy() engine.Policy {
	return engine.Policy{Repeatable: nothingMade, MoveOn: true}
}

// nothingMade reports whether a failure means that surely no picture was made: the upstream was not reached, or said
// that it would not or could not make one. A 502 or 504 says neither.
func nothingMade(f *upstream.Failure) bool {
	switch f.Class {
	case upstream.NotSent, upstream.RateLimited, upstream.Overloaded, upstream.Credential:
		return true
	case upstream.Transient:
		return f.Answered && f.Err.Status == 500
	}
	return false
}

// End implements engine.Exchange. A client that left pays for what was made by then.
func (x *exchange) End(out engine.Sink[Partial], f *upstream.Failure) {
	x.svc.inFlight.Add(-1)
	o := &x.outcome
	o.Committed = out.Committed()
	if f == nil {
		return
	}
	o.Reply, o.Delivered, o.Err = nil, 0, f.Err
	if f.Err.Status == dialogue.StatusClientClosed {
		o.Delivered = o.Made
	}
	if a := x.attempt; a != nil && a.called && f.Err.Status >= 500 && !nothingMade(f) {
		// SDKs repeat a request after such a status, and the provider would make and bill the pictures again.
		e := *f.Err
		e.NoRetry = true
		o.Err = &e
	}
}

// Settlement implements engine.Money.
func (x *exchange) Settlement() func(ctx context.Context) *dialogue.Error {
	out, meter := x.outcome, x.request.Meter
	return func(ctx context.Context) *dialogue.Error { return meter.Settle(ctx, &out) }
}

// Result implements engine.Exchange.
func (x *exchange) Result() flow.Result { return resultOf(&x.outcome) }
