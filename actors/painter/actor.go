package painter

import (
	"context"
	"fmt"
	"time"

	"github.com/asynkron/protoactor-go/actor"

	"stagedoor/actors/flow"
	"stagedoor/actors/kit"
	"stagedoor/providers/dialogue"
	"stagedoor/providers/upstream"
)

// message is anything a request's actor or their parent accept besides the library's
// own. The set is closed, and only pointers are in it.
type message interface{ painterMessage() }

// attemptEnded is the pump's last act: outcome or failure.
type attemptEnded struct {
	outcome Outcome
	failure *failure // nil: outcome is a good one, and settled
}

func (*attemptEnded) painterMessage() {}

// IgnoreDeadLetterLogging: a request that was stopped does not wait for its pump.
func (*attemptEnded) IgnoreDeadLetterLogging() {}

// cancelledWaiting tells a request that waits between two attempts that it need
// not.
type cancelledWaiting struct{}

func (*cancelledWaiting) painterMessage() {}

// IgnoreDeadLetterLogging: the wait may be over.
func (*cancelledWaiting) IgnoreDeadLetterLogging() {}

var _ = []message{(*open)(nil), (*cut)(nil), (*swept)(nil), (*attemptEnded)(nil), (*cancelledWaiting)(nil)}

// request is the control plane of one request. Its state is private to Receive.
// It is never restarted: what may have been made is not made again.
type request struct {
	svc      *Service
	order    *Order
	ctx      context.Context
	reply    *Reply
	progress progress
	number   int // of the attempt under way
	last     Outcome
	timer    *kit.Timer
	unwatch  func() bool // set while it waits to try again
	settled  bool
	started  time.Time
}

// Receive implements actor.Actor.
func (r *request) Receive(c actor.Context) {
	switch m := c.Message().(type) {
	case *actor.Started:
		r.started = r.svc.Now()
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
			r.fail(c, upstream.CancelledBy(context.Cause(r.ctx)).Err)
		}
	case *kit.Crashed:
		r.svc.System.Logger().Error("pump panicked", "request_id", r.order.ID,
			"panic", fmt.Sprintf("%T", m.Recovered.Value), "stack", string(m.Recovered.Stack))
		r.fail(c, internal(m))
	case *actor.Stopping:
		r.reply.cancel(upstream.ErrDraining)
	case *actor.Stopped:
		r.settle(Outcome{Meta: r.last.Meta, Err: shuttingDown()}) // unless it has ended
	}
}

// Failed implements kit.Failer: a panic in Receive ends this request and nothing
// else.
func (r *request) Failed(any) { r.settle(Outcome{Meta: r.last.Meta, Err: internal(nil)}) }

// attempt starts a pump for the candidate whose turn it is.
func (r *request) attempt(c actor.Context) {
	r.number++
	candidate := r.order.Plan[r.progress.candidate]
	r.reply.flow.Attempt(&r.order.Plan[r.progress.candidate])
	a := &attempt{svc: r.svc, order: r.order, reply: r.reply, candidate: candidate,
		provider: r.svc.Providers(candidate.Provider.Name), alone: r.progress.candidate+1 == len(r.order.Plan)}
	a.out.Meta = Meta{Provider: candidate.Provider.Name, Model: candidate.Model, Attempts: r.number}
	a.deadline = r.started.Add(a.provider.Total())
	r.svc.System.Go(c.Self(), "pump", func(context.Context) any { return a.run(r.ctx) })
}

// ended decides what follows an attempt.
func (r *request) ended(c actor.Context, m *attemptEnded) {
	r.last = m.outcome
	if m.failure == nil {
		r.over(c, m.outcome, true)
		return
	}
	next, what, wait := decide(r.progress, r.facts(m))
	r.progress = next
	switch {
	case what == giveUp:
		r.fail(c, m.failure.Err)
	case wait <= 0:
		r.attempt(c)
	default:
		r.rest(c, wait)
	}
}

// rest waits before the next attempt.
func (r *request) rest(c actor.Context, wait time.Duration) {
	r.reply.flow.Enter(flow.Resting)
	now, self := time.Now(), c.Self()
	if r.timer == nil {
		r.timer = r.svc.System.NewTimer(self)
	}
	r.timer.Wake(now, now.Add(wait))
	r.unwatch = context.AfterFunc(r.ctx, func() { r.svc.System.Send(self, &cancelledWaiting{}) })
}

func (r *request) awake() {
	if r.timer != nil {
		r.timer.Stop()
	}
	if r.unwatch != nil {
		r.unwatch()
		r.unwatch = nil
	}
}

func (r *request) facts(m *attemptEnded) facts {
	p := r.svc.Providers(r.order.Plan[r.progress.candidate].Provider.Name)
	f := facts{class: m.failure.Class, tooLarge: m.failure.TooLarge, refused: m.failure.refused, status: m.failure.Err.Status, retryAfter: m.failure.RetryAfter,
		committed: m.outcome.Committed, gated: m.failure.gated, candidates: len(r.order.Plan), remaining: p.Total() - r.svc.Now().Sub(r.started)}
	if p != nil {
		f.allowed, f.spareKeys = p.Spec.Retries, p.SpareKeys(r.svc.Now(), r.order.Plan[r.progress.candidate].Model)
	}
	return f
}

func (r *request) fail(c actor.Context, err *dialogue.Error) {
	o := r.last
	o.Reply, o.Delivered, o.Err = nil, 0, err
	if err.Status == upstream.StatusClientLeft {
		o.Delivered = o.Made
	}
	r.over(c, o, false)
}

// over ends the request and the actor.
func (r *request) over(c actor.Context, o Outcome, paid bool) {
	if paid {
		r.settled = true
		r.awake()
		r.reply.finish(o)
	} else {
		r.settle(o)
	}
	c.Stop(c.Self())
}

// settle ends a request that failed, and gives back what it holds. It may be
// called more than once.
func (r *request) settle(o Outcome) {
	if r.settled {
		return
	}
	r.settled = true
	r.awake()
	r.reply.finish(o)
	if r.order.Meter != nil {
		r.svc.settle(r.order.Meter, &o)
	}
}
