package runtime

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"sync"

	"github.com/asynkron/protoactor-go/actor"

	"stagedoor/actors/kit"
	"stagedoor/actors/throttle"
)

// limiters has the throttles of the configured providers and their parent.
type limiters struct {
	parent *actor.PID

	mu     sync.Mutex
	byName map[string]*throttle.Client
}

// startLimiters starts the parent of all throttles. The clients are kept outside of the actor, so
// that they survive its restart.
func startLimiters(system *kit.System, report func(kit.Failure)) (*limiters, error) {
	l := &limiters{byName: make(map[string]*throttle.Client)}
	props := system.Props("providers", func() actor.Actor { return &parent{system: system, limiters: l} },
		kit.WithSupervisor(providerPolicy(report)))
	var err error
	l.parent, err = system.SpawnUnique(props, "providers")
	return l, err
}

// adopt spawns a throttle below the parent.
func (l *limiters) adopt(ctx context.Context, system *kit.System, name string, limiter *throttle.Client) error {
	pid, err := kit.Ask(ctx, system, l.parent, &adopt{name: name, limiter: limiter})
	if err != nil {
		l.forget(name)
		return err
	}
	limiter.Spawned(pid)
	return nil
}

// keep records the limiter of a provider, so that the parent spawns it again after a restart.
func (l *limiters) keep(name string, limiter *throttle.Client) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.byName[name] = limiter
}

// forget removes the limiter of a provider, so that the parent does not spawn it again after it was stopped.
func (l *limiters) forget(name string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	delete(l.byName, name)
}

// all returns a copy of the limiters by provider, so that the caller need not hold the lock.
func (l *limiters) all() map[string]*throttle.Client {
	l.mu.Lock()
	defer l.mu.Unlock()
	return maps.Clone(l.byName)
}

// adopt asks the parent to spawn a child.
type adopt struct {
	kit.Reply[*actor.PID]
	name    string
	limiter *throttle.Client
}

// ping asks the parent whether it still handles messages.
type ping struct{ kit.Reply[struct{}] }

// parent supervises the throttles. Its restart stops them, so it spawns them again, and the new actors report to
// their clients.
type parent struct {
	system   *kit.System
	limiters *limiters
	asked    *adopt // being handled
}

// Receive implements actor.Actor.
func (p *parent) Receive(c actor.Context) {
	switch m := c.Message().(type) {
	case *actor.Started:
		p.readopt(c)
	case *adopt:
		p.asked = m
		pid, err := p.spawn(c, m.name, m.limiter)
		if err == nil {
			p.limiters.keep(m.name, m.limiter)
		}
		m.Resolve(pid, err)
	case *ping:
		m.Resolve(struct{}{}, nil)
	}
}

// Failed implements kit.Failer. It answers the caller, which would otherwise wait until the
// restart.
func (p *parent) Failed(reason any) {
	if p.asked != nil {
		p.asked.Resolve(nil, fmt.Errorf("spawn panicked: %T", reason))
	}
}

// readopt starts the throttles again after a restart of their parent, which has stopped them. One
// that fails must not keep the others from starting.
func (p *parent) readopt(c actor.Context) {
	all := p.limiters.all()
	for _, name := range slices.Sorted(maps.Keys(all)) {
		if _, err := p.spawn(c, name, all[name]); err != nil {
			p.system.Logger().Error("throttle not spawned", "provider", name, "cause", err)
		}
	}
}

// spawn starts the actor of a throttle as a child.
func (p *parent) spawn(c actor.Context, name string, limiter *throttle.Client) (*actor.PID, error) {
	return p.system.SpawnChild(c, limiter.Props(), "p/"+name)
}
