package painter

import (
	"context"
	"sync/atomic"
	"time"

	"github.com/asynkron/protoactor-go/actor"

	"stagedoor/actors/kit"
	"stagedoor/providers/dialogue"
	"stagedoor/providers/upstream"
)

// open asks the parent for a request actor. It is a local message: it carries a
// context and a channel, and a request never leaves its node.
type open struct {
	svc     *Service
	order   *Order
	ctx     context.Context
	reply   *Reply
	counted atomic.Bool // out of the requests under way
}

// Lane puts orders behind everything else, so that a drain overtakes them.
func (*open) Lane() kit.Lane { return kit.LaneAcquire }

// Reject implements kit.Rejecter: the gateway is going down.
func (o *open) Reject(kit.Reason) { o.end(shuttingDown()) }

// end ends an order that has no actor, or no longer.
func (o *open) end(err *dialogue.Error) {
	o.reply.finish(Outcome{Err: err})
	if !o.counted.Swap(true) {
		o.svc.inFlight.Leave()
	}
}

// cut tells the parent to cancel every request it has, and to refuse what is
// still in its mailbox.
type cut struct{ cause error }

func (*open) painterMessage() {}
func (*cut) painterMessage()  {}

// How failures are treated: a request is stopped, because it has ended with an
// error (request.Failed) and a new actor could not go on with it. The parent is
// the system's to restart.
var stopAlways = actor.NewOneForOneStrategy(0, 0, func(any) actor.Directive { return actor.StopDirective })

// sweepEvery is how often the parent has expired pictures removed.
const sweepEvery = 5 * time.Minute

// parent is above the requests under way. Its state is private to Receive.
type parent struct {
	svc      *Service
	children *actor.Props
	pending  *open // the order whose actor is being spawned; see spawn
	live     map[string]*open
	refusing bool
	timer    *kit.Timer
	sweeping bool
}

func newParent(s *Service) *parent {
	p := &parent{svc: s, live: make(map[string]*open)}
	p.children = s.System.Props("picture", p.produce, kit.Crowd())
	return p
}

// swept ends a sweep.
type swept struct{}

func (*swept) painterMessage() {}

// Receive implements actor.Actor.
func (p *parent) Receive(c actor.Context) {
	switch m := c.Message().(type) {
	case *actor.Started:
		p.watch(c)
	case *open:
		p.spawn(c, m)
	case *cut:
		p.cancel(m.cause)
		p.refusing = true
	case *kit.Tick:
		if p.timer.Fired(m) {
			p.sweep(c)
			p.watch(c)
		}
	case *swept:
		p.sweeping = false
	case *kit.Crashed:
		p.sweeping = false
		p.svc.System.Logger().Error("work beside the painter panicked", "work", m.Work, "stack", string(m.Recovered.Stack))
	case *actor.Terminated:
		o := p.live[m.Who.GetId()]
		delete(p.live, m.Who.GetId())
		if o != nil {
			o.end(internal(nil)) // which changes nothing if it has ended
		}
	case *actor.Stopping:
		p.cancel(upstream.ErrDraining)
		p.stop()
	}
}

// watch arms the timer of the next sweep.
func (p *parent) watch(c actor.Context) {
	if p.svc.Sweep == nil {
		return
	}
	if p.timer == nil {
		p.timer = p.svc.System.NewTimer(c.Self())
	}
	now := time.Now()
	p.timer.Wake(now, now.Add(sweepEvery))
}

func (p *parent) stop() {
	if p.timer != nil {
		p.timer.Stop()
	}
}

func (p *parent) sweep(c actor.Context) {
	if p.sweeping {
		return
	}
	p.sweeping = true
	p.svc.System.Go(c.Self(), "sweep", func(context.Context) any {
		if err := p.svc.Sweep(); err != nil {
			p.svc.System.Logger().Warn("expired pictures not removed", "cause", err)
		}
		return &swept{}
	})
}

func (p *parent) cancel(cause error) {
	for _, o := range p.live {
		o.reply.cancel(cause)
	}
}

// Failed implements kit.Failer: whoever was being served ends here. The next
// incarnation knows none of them.
func (p *parent) Failed(any) {
	p.stop()
	if o := p.pending; o != nil {
		p.pending = nil
		o.end(internal(nil))
	}
	for _, o := range p.live {
		o.end(internal(nil))
	}
}

// spawn starts the request's actor. Its producer runs on this goroutine, during
// the call, and takes its order from pending: so one Props serves them all.
func (p *parent) spawn(c actor.Context, m *open) {
	if p.refusing {
		m.Reject(kit.ReasonStopped)
		return
	}
	p.pending = m
	pid, err := p.svc.System.SpawnChild(c, p.children, "r")
	p.pending = nil
	if err != nil {
		m.end(internal(err))
		return
	}
	p.live[pid.GetId()] = m
}

// produce makes the actor of the pending order.
func (p *parent) produce() actor.Actor {
	m := p.pending
	if m == nil {
		return &gone{}
	}
	return &request{svc: p.svc, order: m.order, ctx: m.ctx, reply: m.reply}
}

// gone stands for a request that cannot be begun again.
type gone struct{}

// Receive implements actor.Actor.
func (*gone) Receive(c actor.Context) {
	if _, ok := c.Message().(*actor.Started); ok {
		c.Stop(c.Self())
	}
}

func shuttingDown() *dialogue.Error { return upstream.CancelledBy(upstream.ErrDraining).Err }

func internal(cause error) *dialogue.Error {
	return &dialogue.Error{Status: 500, Type: dialogue.TypeAPI, Code: "internal_error",
		Message: "the gateway met an internal error", Cause: cause}
}
