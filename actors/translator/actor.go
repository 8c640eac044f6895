package translator

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/asynkron/protoactor-go/actor"

	"stagedoor/actors/flow"
	"stagedoor/actors/kit"
	"stagedoor/actors/throttle"
	"stagedoor/providers/dialogue"
	"stagedoor/providers/upstream"
)

// message is anything a request actor accepts besides the library's own. The
// set is closed, and only pointers are in it.
type message interface{ requestMessage() }

// attemptEnded is the pump's last act.
type attemptEnded struct {
	failure *upstream.Failure // nil: the client has, or will have, its reply
	opening *opening
}

func (*attemptEnded) requestMessage() {}

// answered is how most attempts end.
var answered = &attemptEnded{}

// IgnoreDeadLetterLogging: a request that was stopped does not wait for its pump.
func (*attemptEnded) IgnoreDeadLetterLogging() {}

// cancelledWaiting tells a request that waits between two attempts, when no pump
// could notice, that it need not.
type cancelledWaiting struct{}

func (*cancelledWaiting) requestMessage() {}

// IgnoreDeadLetterLogging: the wait may be over.
func (*cancelledWaiting) IgnoreDeadLetterLogging() {}

var _, _ message = (*attemptEnded)(nil), (*cancelledWaiting)(nil)

// request is the control plane of one request. Its state is private to Receive.
// It is never restarted: half a reply cannot be begun again.
type request struct {
	svc      *Service
	order    *Order
	ctx      context.Context
	cancel   context.CancelCauseFunc
	conduit  *conduit
	progress progress
	number   int        // of the attempt under way
	retrying bool       // holds a place in the retry budget
	begun    bool       // counted as in flight
	timer    *kit.Timer // nil until the first wait
	// unwatch, if set, means that the request waits to try again, and ends the
	// watch over its context.
	unwatch func() bool
	settled bool
	started time.Time
	first   attempt // most requests make no other
}

// Receive implements actor.Actor.
func (r *request) Receive(c actor.Context) {
	switch m := c.Message().(type) {
	case *actor.Started:
		r.started = r.svc.env.Now()
		r.begun = true
		r.svc.budget.inFlight.Add(1)
		r.attempt(c)
	case *attemptEnded:
		r.ended(c, m)
	case *kit.Tick:
		if r.timer.Fired(m) {
			r.awake()
			r.attempt(c)
		}
	case *cancelledWaiting:
		if r.unwatch != nil {
			r.over(c, cancelled(r.ctx).Err)
		}
	case *kit.Crashed:
		r.svc.system.Logger().Error("pump panicked", "request_id", r.order.ID,
			"panic", fmt.Sprintf("%T", m.Recovered.Value), "stack", string(m.Recovered.Stack))
		r.over(c, internal(m))
	case *actor.Stopping:
		r.cancel(upstream.ErrDraining)
	case *actor.Stopped:
		if !r.settled { // stopped from above, or after Failed
			r.settle(shuttingDown())
		}
	}
}

// Failed implements kit.Failer: a panic in Receive ends this request with its
// shape's error, and nothing else.
func (r *request) Failed(any) {
	err := internal(nil)
	r.cancel(err)
	r.conduit.finish(err)
}

// attempt starts a pump for the candidate whose turn it is.
func (r *request) attempt(c actor.Context) {
	if !r.conduit.enter() {
		r.over(c, nil) // the reply has ended
		return
	}
	r.number++
	candidate := r.order.Plan[r.progress.candidate]
	r.conduit.flow.Attempt(&r.order.Plan[r.progress.candidate])
	a := &r.first
	if r.number > 1 {
		a = new(attempt)
	}
	*a = attempt{svc: r.svc, order: r.order, conduit: r.conduit, candidate: candidate, number: r.number,
		provider: r.svc.providers(candidate.Provider.Name), noSchema: r.progress.noSchema,
		alone: r.progress.candidate+1 == len(r.order.Plan)}
	if r.number > 1 {
		a.deadline = r.started.Add(a.provider.Total())
	}
	r.svc.system.Go(c.Self(), "pump", func(context.Context) any {
		defer r.conduit.leave()
		defer a.crashed()
		return a.run(r.ctx)
	})
}

// ended decides what follows an attempt.
func (r *request) ended(c actor.Context, m *attemptEnded) {
	f := m.failure
	if f == nil {
		r.over(c, nil)
		return
	}
	reserved := !r.retrying && r.svc.budget.take()
	next, what, wait := decide(r.progress, r.facts(f, r.retrying || reserved))
	retry := what == again && next.retries > r.progress.retries
	if reserved && !retry {
		r.svc.budget.giveBack()
	}
	r.retrying = r.retrying || retry
	if what != giveUp {
		r.tellRetry(f, wait)
	}
	r.progress = next
	if what == giveUp {
		r.giveUp(c, f, m.opening)
		return
	}
	if m.opening != nil {
		m.opening.data.Free()
	}
	if wait <= 0 {
		r.attempt(c)
		return
	}
	r.conduit.flow.Enter(flow.Resting)
	now, self := time.Now(), c.Self()
	if r.timer == nil {
		r.timer = r.svc.system.NewTimer(self)
	}
	r.timer.Wake(now, now.Add(wait))
	r.unwatch = context.AfterFunc(r.ctx, func() { r.svc.system.Send(self, &cancelledWaiting{}) })
}

// giveUp ends the reply with the last attempt's failure: a stream that had begun
// upstream ends as it did there, anything else is a status.
func (r *request) giveUp(c actor.Context, f *upstream.Failure, o *opening) {
	if o != nil {
		r.conduit.outcome.Meta = *o.meta
		// Nothing has been sent: the window has room.
		if r.conduit.send(r.ctx, Frame{Meta: o.meta, Data: o.data, Failed: f.Err}) != nil {
			o.data.Free()
		}
	}
	r.over(c, f.Err)
}

// awake ends the wait between two attempts.
func (r *request) awake() {
	if r.timer != nil {
		r.timer.Stop()
	}
	if r.unwatch != nil {
		r.unwatch()
		r.unwatch = nil
	}
}

func (r *request) facts(f *upstream.Failure, budget bool) facts {
	p := r.svc.providers(r.order.Plan[r.progress.candidate].Provider.Name)
	now := r.svc.env.Now()
	facts := facts{class: f.Class, schema: f.Schema, tooLarge: f.TooLarge, structured: r.order.Head.Structured, retryAfter: f.RetryAfter,
		committed: r.conduit.committed, candidates: len(r.order.Plan), budget: budget, remaining: p.Total() - now.Sub(r.started)}
	var refused *throttle.Refused
	facts.gated = errors.As(f, &refused)
	if p != nil {
		facts.allowed, facts.spareKeys = p.Spec.Retries, p.SpareKeys(now, r.order.Plan[r.progress.candidate].Model)
	}
	return facts
}

// over ends the reply and the actor.
func (r *request) over(c actor.Context, err *dialogue.Error) {
	r.settle(err)
	c.Stop(c.Self())
}

// settle gives back what the request holds. It may be called more than once.
func (r *request) settle(err *dialogue.Error) {
	r.conduit.finish(err)
	if r.settled {
		return
	}
	r.settled = true
	r.awake()
	r.cancel(context.Canceled)
	if r.begun {
		r.svc.budget.inFlight.Add(-1)
	}
	if r.retrying {
		r.svc.budget.giveBack()
	}
}
