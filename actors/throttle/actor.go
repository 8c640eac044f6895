package throttle

import (
	"time"

	"github.com/asynkron/protoactor-go/actor"

	"stagedoor/actors/kit"
)

// provider is the actor: lanes, a clock and a timer around a core. Its fields
// are touched in Receive and Failed only.
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
		p.end()
	case *acquiring:
		p.acquire((*ticket)(m))
	case *releasing:
		now := time.Now()
		p.core.release(now, (*ticket)(m), &m.outcome)
		p.pump(now)
	case *releasingFree:
		now := time.Now()
		p.core.releaseFree(now, &m.outcome, m.counted)
		p.pump(now)
	case *cancelling:
		p.core.cancel((*ticket)(m))
		p.pump(time.Now())
	case *kit.Tick:
		if p.timer.Fired(m) {
			p.pump(time.Now())
		}
	case *waking:
		p.pump(time.Now())
	case *configuring:
		now := time.Now()
		p.core.configure(now, m.config)
		p.pump(now)
	case *pausing:
		p.core.paused = p.core.shared.paused.Load()
		p.pump(time.Now())
	case *cooling:
		now := time.Now()
		p.core.cooling.all(now, m.d)
		p.pump(now)
	case *statsAsk:
		m.Resolve(p.core.stats(time.Now()), nil)
	case *queueAsk:
		m.Resolve(p.core.queue.waiters(time.Now()), nil)
	}
}

// start makes a new core. After a crash nothing is known of what was used, and
// something is wrong: begin with empty buckets and a probe.
func (p *provider) start(c actor.Context) {
	now := time.Now()
	careful := p.client.incarnations.Add(1) > 1
	p.core = newCore(now, *p.client.config.Load(), &p.client.shared, careful)
	p.timer = p.client.sys.NewTimer(c.Self())
	p.client.pid.Store(c.Self())
	p.pump(now)
}

// Failed implements kit.Failer: whoever waits here would wait through the back-off.
func (p *provider) Failed(any) { p.end() }

func (p *provider) end() {
	p.client.free.Store(nil)
	if p.core == nil {
		return // it never started
	}
	p.timer.Stop()
	p.core.close()
}

func (p *provider) acquire(t *ticket) {
	if t.decided.Load() {
		return // its owner left before it arrived; the cancel went past it
	}
	now := time.Now()
	p.core.acquire(now, t)
	p.pump(now)
}

// pump lets the core decide, and arranges to come back.
func (p *provider) pump(now time.Time) {
	p.publish(now)
	next := p.core.pump(now)
	if next.IsZero() {
		p.publish(now)
		return
	}
	p.timer.Wake(now, next)
}

// publish opens or closes the way past the actor. It closes before the core
// counts what is in flight: a release that still went past the actor was counted
// by then, or sees the closed way and wakes us.
func (p *provider) publish(now time.Time) {
	if p.core.free(now) {
		p.client.free.Store(p.core.breaker)
		return
	}
	p.client.free.Store(nil)
}
