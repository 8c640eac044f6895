package embeddings

import (
	"context"
	"errors"
	"sync"

	"stagedoor/actors/engine"
	"stagedoor/actors/flow"
	"stagedoor/actors/recording"
	"stagedoor/actors/text"
	"stagedoor/actors/throttle"
	"stagedoor/providers/catalog"
	"stagedoor/providers/dialogue"
	"stagedoor/providers/memory"
	"stagedoor/providers/upstream"
	"stagedoor/providers/vector"
)

// exchange makes the attempts of one request. Its state belongs to the attempt loop until the output is closed.
type exchange struct {
	run     engine.Run[Piece]
	svc     *Service
	request *Request
	outcome text.Outcome
	attempt *attempt     // the last one; nil: there was none
	memory  memory.Claim // for calls that are not the client's own bytes
}

var (
	_ engine.Exchange[Piece] = (*exchange)(nil)
	_ engine.Money           = (*exchange)(nil)
)

// attempt is one try at one target.
type attempt struct {
	*exchange
	c       *engine.Candidate
	sink    engine.Sink[Piece]
	dialect *vector.Dialect // nil: the sandbox

	report dialogue.Report
	calls  []*call
	mu     sync.Mutex // of what calls have learnt
}

// Prepare implements engine.Exchange. It finds out how the provider is spoken to, and divides the request.
// The whole body counts as memory a second time if it is translated or divided, because the calls are copies
// of its parts.
func (x *exchange) Prepare(c *engine.Candidate) *upstream.Failure {
	a := &attempt{exchange: x, c: c}
	x.attempt = a
	x.outcome = text.Outcome{Usage: dialogue.NoUsage,
		Meta: text.Meta{Provider: c.Provider.Name, Model: c.Model, Attempts: c.Number}}
	if c.Runtime == nil {
		return nil
	}
	r := x.request.Vectors
	a.dialect = x.svc.dialectOf(c.Runtime.Spec, x.request.Inbound)
	switch {
	case a.dialect != nil:
	case c.Runtime.Spec.Shape != catalog.Sandbox:
		return engine.CallerFault(dialogue.Invalid("model",
			"makes no embeddings here: its provider is of another kind"))
	default:
		a.calls = []*call{{attempt: a, batch: vector.Batch{To: len(r.Inputs)}}}
		return nil
	}
	x.memory.End()
	x.memory = memory.NewClaim(x.svc.env.Memory, x.request.About.Owner)
	if a.dialect != x.request.Inbound || a.dialect.Batch(r, 0).To < len(r.Inputs) {
		if err := x.memory.Grow(memory.OfTranslation(r.Body)); err != nil {
			return engine.CallerFault(dialogue.NoMemory(err))
		}
	}
	for from := 0; from < len(r.Inputs); {
		k := &call{attempt: a, batch: a.dialect.Batch(r, from), usage: dialogue.NoUsage}
		var err error
		if k.call, err = a.dialect.Encode(r, k.batch, c.Model, &a.report); err != nil {
			return engine.CallerFault(err)
		}
		a.calls, from = append(a.calls, k), k.batch.To
	}
	c.Tokens = x.request.Tokens/len(a.calls) + 1 // each call sends a part of the inputs
	x.outcome.Untouched = a.passes()
	return nil
}

// passes reports whether the reply passes through unchanged.
func (a *attempt) passes() bool { return a.dialect == a.request.Inbound && len(a.calls) == 1 }

// Hold implements engine.Money. Every input is sent once, however many calls there are.
func (x *exchange) Hold(ctx context.Context, c *engine.Candidate) *dialogue.Error {
	_, err := x.request.Meter.Begin(ctx, c.Candidate, 1)
	return err
}

// Try implements engine.Exchange.
func (x *exchange) Try(ctx context.Context, c *engine.Candidate, p *throttle.Permit,
	out engine.Sink[Piece]) *upstream.Failure {
	a := x.attempt
	a.sink, x.outcome.Queued, x.outcome.Losses = out, c.Queued, a.report.Header()
	if d := recording.From(ctx); d != nil {
		d.Try(c.Provider.Name, c.Model, a.dialect == nil, c.Runtime.Secrets())
	}
	if c.Dry != nil {
		c.Dry.Report(a.dialect.Shape.Name, a.passes(), &a.report)
	} else {
		for _, loss := range a.report.Losses() {
			x.svc.engine.Metrics().Lost(loss)
		}
	}
	defer func() {
		a.note()
		c.Used = int(dialogue.CountOrZero(a.calls[0].usage.InputTotal)) // the others have permits of their own
	}()
	if a.passes() {
		return a.calls[0].forward(ctx)
	}
	return a.join(ctx, p)
}

// note keeps what the calls have learnt for the outcome. Accepted calls whose upstream reports no usage are
// estimated. It runs at several moments, so it computes everything anew and adds nothing to earlier results.
func (a *attempt) note() {
	a.mu.Lock()
	defer a.mu.Unlock()
	o := &a.outcome
	o.Calls, o.AcceptedCalls, o.Usage = len(a.calls), 0, dialogue.NoUsage
	for _, k := range a.calls {
		if !k.accepted {
			continue
		}
		o.AcceptedCalls++
		if a.c.PricedByReply() {
			o.ReplyModel = k.model // all calls are for the same model
		}
		u := k.usage
		if u.InputTotal < 0 {
			if k.counted == 0 {
				k.counted = a.request.Vectors.CountTokens(k.batch)
			}
			u.InputTotal, u.Estimated = k.counted, true
		}
		u.OutputTotal = 0
		o.Usage.Add(u)
	}
	o.Accepted = o.AcceptedCalls > 0
}

// Policy implements engine.Exchange. The same request has the same vectors, so it may be sent again at any time.
func (x *exchange) Policy() engine.Policy { return engine.Policy{} }

// End implements engine.Exchange. An outcome with an error after the reply was committed is a reply that was
// cut off.
func (x *exchange) End(out engine.Sink[Piece], f *upstream.Failure) {
	x.memory.End()
	o := &x.outcome
	o.Committed = out.Committed()
	if f != nil {
		o.Err = f.Err
	}
	if x.request.Ended != nil {
		x.request.Ended(o)
	}
}

// Settlement implements engine.Money.
func (x *exchange) Settlement() func(ctx context.Context) *dialogue.Error {
	if x.attempt != nil {
		x.attempt.note()
	}
	out, meter := x.outcome, x.request.Meter
	return func(ctx context.Context) *dialogue.Error { return meter.Settle(ctx, &out) }
}

// Result implements engine.Exchange.
func (x *exchange) Result() flow.Result {
	o := &x.outcome
	r := flow.Result{Queued: o.Queued, Usage: o.Usage, Untouched: o.Untouched, Losses: o.Losses}
	r.Fail(o.Err)
	return r
}

// send delivers a piece, the first one with what the headers say.
func (a *attempt) send(ctx context.Context, data []byte, last bool) *upstream.Failure {
	p := Piece{Data: data, Last: last}
	if !a.sink.Committed() {
		a.sink.Flow().Enter(flow.Replying)
		p.Meta, p.Estimated = a.outcome.Meta, a.outcome.Usage.Estimated
	}
	if err := a.sink.Send(ctx, p); err != nil {
		return upstream.CancelledBy(err)
	}
	return nil
}

// settle settles a reply in good order before its last piece is sent.
func (a *attempt) settle(ctx context.Context) *upstream.Failure {
	a.note()
	if ctx.Err() != nil {
		return engine.Cancelled(ctx)
	}
	if err := a.sink.Settle(a.sink.Context()); err != nil {
		return engine.CallerFault(err)
	}
	return nil
}

// refused returns the failure of a reply that is an error or is malformed.
func (a *attempt) refused(err error) *upstream.Failure {
	var e *dialogue.Error
	if !errors.As(err, &e) {
		return upstream.Broken(err)
	}
	return upstream.InStream(a.request.Inbound.Shape.Traits, e, a.c.Runtime.Secrets()...)
}
