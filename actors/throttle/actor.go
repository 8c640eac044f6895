package throttle

import (
	"time"

	"github.com/asynkron/protoactor-go/actor"

	"stagedoor/actors/kit"
)

// provider is the actor: it adds mailbox lanes, a clock and a timer to a core. Only
// Receive and Failed touch its fields.
type provider struct {
	client *Client
	core   *core
	timer  *kit.Timer
}

// Receive implements actor.Actor.
func (p *provider) Receive(c actor.Context) {
	switch m := c.Message().(type) {
	case *actor.Started:
		p.start(c)
	case *actor.Stopping, *actor.Restarting:
		p.refuseAll()
	case *acquiring:
		p.acquire((*ticket)(m))
	case *releasing:
		now := time.Now()
		p.core.release(now, (*ticket)(m), &m.outcome)
		p.dispatch(now)
	case *releasingFree:
		now := time.Now()
		p.core.releaseFree(now, &m.outcome, m.counted)
		p.dispatch(now)
	case *cancelling:
		p.core.cancel((*ticket)(m))
		p.dispatch(time.Now())
	case *kit.Tick:
		if p.timer.Fired(m) {
			p.dispatch(time.Now())
		}
	case *waking:
		p.dispatch(time.Now())
	case *configuring:
		now := time.Now()
		p.core.configure(now, m.config)
		p.dispatch(now)
	case *pausing:
		p.core.paused = p.core.shared.paused.Load()
		p.dispatch(time.Now())
	case *statsAsk:
		m.Resolve(p.core.stats(time.Now()), nil)
	case *borrowing:
		now := time.Now()
		p.core.borrow(now, *p.client.config.Load(), &m.limits)
		m.Resolve(p.core.demand(now), nil)
		p.dispatch(now)
	case *queueAsk:
		m.Resolve(p.core.queue.waiters(time.Now()), nil)
	}
}

// start makes a new core. After a crash the actor does not know how much of the limits is
// used, so the core begins with empty buckets and a probe.
func (p *provider) start(c actor.Context) {
	now := time.Now()
	careful := p.client.incarnations.Add(1) > 1
	p.core = newCore(now, *p.client.config.Load(), &p.client.shared, careful)
	p.timer = p.client.sys.NewTimer(c.Self())
	p.client.pid.Store(c.Self())
	p.dispatch(now)
}

// Failed implements kit.Failer. It refuses the queued requests, which would otherwise wait
// until the restart.
func (p *provider) Failed(any) { p.refuseAll() }

// refuseAll refuses the queued requests and closes the core.
func (p *provider) refuseAll() {
	p.client.free.Store(nil)
	if p.core == nil {
		return // it never started
	}
	p.timer.Stop()
	p.core.close()
}

// acquire passes a ticket to the core, unless its caller has given up already.
func (p *provider) acquire(t *ticket) {
	if t.decided.Load() {
		return // its caller gave up before it arrived; the cancel overtook it
	}
	now := time.Now()
	p.core.acquire(now, t)
	p.dispatch(now)
}

// dispatch lets the core grant what it can, and sets the timer for the next decision.
func (p *provider) dispatch(now time.Time) {
	p.publish(now)
	next := p.core.dispatch(now)
	if next.IsZero() {
		p.publish(now)
		return
	}
	p.timer.Wake(now, next)
}

// publish lets requests bypass the actor, or stops that. It must stop it before the core
// counts the requests in flight: a release that still bypassed the actor is then either
// counted already, or it sees that the bypass is off and wakes the actor.
func (p *provider) publish(now time.Time) {
	if p.core.free(now) {
		p.client.free.Store(p.core.breaker)
		return
	}
	p.client.free.Store(nil)
}
