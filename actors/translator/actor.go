package translator

import (
	"context"
	"fmt"
	"time"

	"github.com/asynkron/protoactor-go/actor"

	"stagedoor/actors/kit"
	"stagedoor/providers/dialogue"
	"stagedoor/providers/upstream"
)

// message is anything a request actor accepts besides the library's own. The
// set is closed, and only pointers are in it.
type message interface{ requestMessage() }

// attemptEnded is the pump's last act.
type attemptEnded struct{ failure *upstream.Failure }

func (*attemptEnded) requestMessage() {}

var _ message = (*attemptEnded)(nil)

// IgnoreDeadLetterLogging: a request that was stopped does not wait for its pump.
func (*attemptEnded) IgnoreDeadLetterLogging() {}

// request is the control plane of one request. Its state is private to Receive.
// It is never restarted: half a reply cannot be begun again.
type request struct {
	svc      *Service
	order    *Order
	ctx      context.Context
	cancel   context.CancelCauseFunc
	conduit  *conduit
	progress progress
	number   int // of the attempt under way
	retrying bool
	timer    *kit.Timer
	started  time.Time
}

// Receive implements actor.Actor.
func (r *request) Receive(c actor.Context) {
	switch m := c.Message().(type) {
	case *actor.Started:
		r.svc.budget.inFlight.Add(1)
		r.started = r.svc.env.Now()
		r.timer = r.svc.system.NewTimer(c.Self())
		r.attempt(c.Self())
	case *attemptEnded:
		r.ended(c, m.failure)
	case *kit.Tick:
		if r.timer.Fired(m) {
			r.attempt(c.Self())
		}
	case *kit.Crashed:
		r.svc.system.Logger().Error("pump panicked", "request_id", r.order.ID,
			"panic", fmt.Sprintf("%T", m.Recovered.Value), "stack", string(m.Recovered.Stack))
		r.over(c, internal(m.Recovered.AsError()))
	case *actor.Stopping:
		r.cancel(upstream.ErrDraining)
	case *actor.Stopped:
		r.settle(internal(nil))
	}
}

// Failed implements kit.Failer: a panic in Receive ends this request with its
// shape's error, and nothing else.
func (r *request) Failed(reason any) {
	r.cancel(fmt.Errorf("request actor panicked: %T", reason))
	r.conduit.finish(internal(nil))
}

// attempt starts a pump for the candidate whose turn it is.
func (r *request) attempt(self *actor.PID) {
	r.number++
	candidate := r.order.Plan[r.progress.candidate]
	a := &attempt{svc: r.svc, order: r.order, conduit: r.conduit, candidate: candidate, number: r.number,
		provider: r.svc.providers(candidate.Provider.Name), noSchema: r.progress.noSchema}
	r.conduit.enter()
	r.svc.system.Go(self, "pump", func(context.Context) any {
		defer r.conduit.leave()
		defer a.crashed()
		return &attemptEnded{a.run(r.ctx)}
	})
}

// ended decides what follows an attempt.
func (r *request) ended(c actor.Context, f *upstream.Failure) {
	if f == nil {
		r.over(c, nil)
		return
	}
	next, what, wait := decide(r.progress, r.facts(f))
	r.progress = next
	if what == giveUp {
		r.over(c, f.Err)
		return
	}
	if what == again && !r.retrying {
		r.retrying = true
		r.svc.budget.retrying.Add(1)
	}
	if wait <= 0 {
		r.attempt(c.Self())
		return
	}
	now := time.Now()
	r.timer.Wake(now, now.Add(wait))
}

func (r *request) facts(f *upstream.Failure) facts {
	p := r.svc.providers(r.order.Plan[r.progress.candidate].Provider.Name)
	now := r.svc.env.Now()
	facts := facts{class: f.Class, schema: f.Schema, structured: r.order.Head.Structured, retryAfter: f.RetryAfter,
		committed: r.conduit.committed, candidates: len(r.order.Plan), budget: r.retrying || r.svc.budget.room(),
		remaining: time.Hour}
	if p == nil {
		return facts
	}
	facts.allowed = p.Spec.Retries
	if p.Client != nil {
		resting, all := p.Client.Keys().Benched(now)
		facts.spareKeys = max(all-resting-1, 0)
		if all > 1 && resting > 0 {
			facts.spareKeys = all - resting // the one that failed is among the resting
		}
	}
	if total := p.Spec.Timeouts.Total; total > 0 {
		facts.remaining = total - now.Sub(r.started)
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
	if r.timer == nil {
		return
	}
	r.timer.Stop()
	r.timer = nil
	r.cancel(context.Canceled)
	r.svc.budget.inFlight.Add(-1)
	if r.retrying {
		r.svc.budget.retrying.Add(-1)
	}
}

// crashed writes the terminal event of a stream whose pump panicked, before the
// panic goes on to the actor as kit.Crashed.
func (a *attempt) crashed() {
	reason := recover()
	if reason == nil {
		return
	}
	if a.permit != nil {
		a.permit.Release(a.outcome(callerFault(internal(nil))))
	}
	if a.conduit.committed && a.failStream != nil {
		func() {
			// The emitter's own state may be what is broken.
			defer func() { _ = recover() }()
			last := newBuffer()
			last.B = a.failStream(last.B, internal(nil))
			a.lastWords(last)
		}()
	}
	panic(reason)
}
