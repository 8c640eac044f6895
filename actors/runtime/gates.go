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

// gates are the throttles in force and their parent.
type gates struct {
	parent *actor.PID

	mu     sync.Mutex
	byName map[string]*throttle.Client
}

func startGates(system *kit.System, report func(kit.Failure)) (*gates, error) {
	g := &gates{byName: make(map[string]*throttle.Client)}
	props := system.Props(
		"providers",
		func() actor.Actor { return &parent{system: system, gates: g} },
		kit.WithSupervisor(providerPolicy(report)),
	)
	var err error
	g.parent, err = system.SpawnUnique(props, "providers")
	return g, err
}

// adopt spawns a throttle below the parent.
func (g *gates) adopt(ctx context.Context, system *kit.System, name string, gate *throttle.Client) error {
	pid, err := kit.Ask(ctx, system, g.parent, &adopt{name: name, gate: gate})
	if err != nil {
		g.forget(name)
		return err
	}
	gate.Spawned(pid)
	return nil
}

func (g *gates) keep(name string, gate *throttle.Client) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.byName[name] = gate
}

// forget keeps a throttle that is to be stopped from being spawned again.
func (g *gates) forget(name string) {
	g.mu.Lock()
	defer g.mu.Unlock()
	delete(g.byName, name)
}

func (g *gates) all() map[string]*throttle.Client {
	g.mu.Lock()
	defer g.mu.Unlock()
	return maps.Clone(g.byName)
}

// adopt asks the parent for a child.
type adopt struct {
	kit.Reply[*actor.PID]
	name string
	gate *throttle.Client
}

// ping asks the parent whether it still handles messages.
type ping struct{ kit.Reply[struct{}] }

// parent supervises the throttles. A restart of it stops them, so it has them
// spawned again: their clients are told by the new actors themselves.
type parent struct {
	system *kit.System
	gates  *gates
	asked  *adopt // being handled
}

// Receive implements actor.Actor.
func (p *parent) Receive(c actor.Context) {
	switch m := c.Message().(type) {
	case *actor.Started:
		p.readopt(c)
	case *adopt:
		p.asked = m
		pid, err := p.spawn(c, m.name, m.gate)
		if err == nil {
			p.gates.keep(m.name, m.gate)
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

func (p *parent) readopt(c actor.Context) {
	all := p.gates.all()
	for _, name := range slices.Sorted(maps.Keys(all)) {
		if _, err := p.spawn(c, name, all[name]); err != nil {
			p.system.Logger().Error("throttle not spawned", "provider", name, "cause", err)
		}
	}
}

func (p *parent) spawn(c actor.Context, name string, gate *throttle.Client) (*actor.PID, error) {
	return p.system.SpawnChild(c, gate.Props(), "p/"+name)
}
