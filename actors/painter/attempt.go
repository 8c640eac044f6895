package painter

import (
	"context"
	"errors"
	"sync"
	"time"

	"stagedoor/actors/engine"
	"stagedoor/actors/flow"
	"stagedoor/actors/throttle"
	"stagedoor/providers/catalog"
	"stagedoor/providers/dialogue"
	"stagedoor/providers/picture"
	"stagedoor/providers/upstream"
)

// failure is why an attempt did not succeed.
type failure struct {
	*upstream.Failure
	refused bool // by a status of the upstream
	gated   bool // by the throttle
}

// attempt is one try at one target. It runs on a goroutine of its own.
type attempt struct {
	svc       *Service
	order     *Order
	reply     *Reply
	candidate catalog.Candidate
	provider  *engine.Provider
	alone     bool // no candidate is left after this one
	deadline  time.Time

	shape  *picture.Shape // nil: the sandbox
	mu     sync.Mutex     // of report and out, while several calls are under way
	report dialogue.Report
	out    Outcome
}

// run performs the attempt.
func (a *attempt) run(ctx context.Context) *attemptEnded {
	ctx, cancel := context.WithDeadlineCause(ctx, a.deadline, upstream.ErrTotal)
	defer cancel()
	f := a.perform(ctx)
	a.out.Losses = a.report.Header()
	return &attemptEnded{outcome: a.out, failure: f}
}

func (a *attempt) perform(ctx context.Context) *failure {
	if f := a.choose(); f != nil {
		return f
	}
	if f := a.weigh(ctx); f != nil {
		return f
	}
	made, f := a.paint(ctx)
	if f != nil {
		return f
	}
	if f := a.prepare(ctx, made); f != nil {
		return f
	}
	a.out.Reply, a.out.Delivered, a.out.Usage = made, made.Delivered(), made.Usage
	return a.settle(ctx)
}

// choose finds out how the provider is spoken to.
func (a *attempt) choose() *failure {
	if a.provider == nil {
		return &failure{Failure: &upstream.Failure{Class: upstream.NotSent, Err: noRoute(time.Second, nil)}}
	}
	spec, inbound := a.provider.Spec, a.order.Request.Inbound
	if spec.Shape == catalog.Sandbox && a.svc.Simulate != nil {
		return nil
	}
	if spec.Serves(inbound) {
		a.shape = a.svc.shapes[inbound]
	}
	for _, name := range append([]dialogue.Shape{spec.Shape}, spec.Also...) {
		if a.shape == nil {
			a.shape = a.svc.shapes[name]
		}
	}
	if a.shape == nil {
		return callerFault(dialogue.Invalid("model", "makes no pictures here: its provider is of another kind"))
	}
	return nil
}

func noRoute(after time.Duration, cause error) *dialogue.Error {
	return &dialogue.Error{Status: 503, Type: dialogue.TypeAPI, Code: "no_route", RetryAfter: after, Cause: cause,
		Message: "no provider is available for this model at the moment, try again later"}
}

// weigh lets the meter hold what the attempt may cost.
func (a *attempt) weigh(ctx context.Context) *failure {
	if a.order.Meter == nil {
		return nil
	}
	err := a.order.Meter.Begin(ctx, &a.candidate)
	switch {
	case err == nil:
		return nil
	case ctx.Err() != nil:
		return cancelled(ctx)
	}
	return callerFault(err)
}

// settle pays for what was made, before the client sees it.
func (a *attempt) settle(ctx context.Context) *failure {
	switch {
	case a.reply.over():
		return cancelled(ctx)
	case ctx.Err() != nil:
		return cancelled(ctx)
	case a.order.Meter == nil:
		return nil
	}
	out := a.out
	out.Losses = a.report.Header()
	if err := a.order.Meter.End(ctx, &out); err != nil {
		return callerFault(err)
	}
	return nil
}

// acquire waits for the throttle's permit.
func (a *attempt) acquire(ctx context.Context) (*throttle.Permit, *failure) {
	ask := throttle.Ask{ID: a.order.ID, Owner: a.order.Owner, Model: a.candidate.Model, Class: a.order.Class, Tokens: a.order.Tokens, Last: a.alone}
	if d := a.provider.Spec.Limits.QueueTimeout; d > 0 {
		ask.Deadline = a.svc.Now().Add(d)
	}
	a.reply.flow.Enter(flow.Queued)
	permit, err := a.queued(ctx, ask)
	if err == nil {
		a.reply.flow.Enter(flow.Waiting)
		return permit, nil
	}
	var r *throttle.Refused
	if !errors.As(err, &r) {
		return nil, cancelled(ctx)
	}
	told := &dialogue.Error{Status: 429, Type: dialogue.TypeRateLimit, Code: "rate_limit_exceeded", Cause: err,
		Message:    "the provider of this model is at its limit and the request cannot be served in time, try again later",
		RetryAfter: min(max(r.RetryAfter, time.Second), upstream.MaxClientRetryAfter)}
	if r.Reason == throttle.BreakerOpen || r.Reason == throttle.Closed {
		told = noRoute(told.RetryAfter, err)
	}
	return nil, &failure{Failure: &upstream.Failure{Class: upstream.NotSent, Err: told, RetryAfter: r.RetryAfter}, gated: true}
}

// tell is what the throttle learns of one call.
func (a *attempt) tell(f *failure, u *picture.Usage) throttle.Outcome {
	if f == nil {
		o := throttle.Outcome{Kind: throttle.Success, Model: a.candidate.Model}
		if u != nil {
			o.TokensUsed = int(u.Input() + u.Output())
		}
		return o
	}
	kind, wait := a.provider.Judge(f.Failure, a.candidate.Model, a.svc.Now())
	return throttle.Outcome{Kind: kind, Model: a.candidate.Model, RetryAfter: wait}
}

func callerFault(err error) *failure {
	var e *dialogue.Error
	if !errors.As(err, &e) {
		e = internal(err)
	}
	return &failure{Failure: &upstream.Failure{Class: upstream.CallerFault, Err: e}}
}

func cancelled(ctx context.Context) *failure {
	return &failure{Failure: upstream.CancelledBy(context.Cause(ctx))}
}
