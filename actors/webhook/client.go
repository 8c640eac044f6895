package webhook

import (
	"sync/atomic"

	"github.com/asynkron/protoactor-go/actor"

	"stagedoor/actors/kit"
	"stagedoor/state"
	"stagedoor/state/work"
)

// endpoints has the configured endpoints, which outlive restarts of the actor.
type endpoints struct{ all atomic.Pointer[[]Endpoint] }

// get returns the endpoints in force.
func (e *endpoints) get() []Endpoint {
	if all := e.all.Load(); all != nil {
		return *all
	}
	return nil
}

func (e *endpoints) set(all []Endpoint) { e.all.Store(&all) }

// Client configures the sender. It is safe for concurrent use.
type Client struct {
	system *kit.System
	state  *state.State
	given  *endpoints
	pid    *actor.PID
}

// Start starts the sender, which continues with the deliveries of earlier processes.
func Start(system *kit.System, s *state.State) (*Client, error) {
	given := &endpoints{}
	props := system.Props("webhooks", func() actor.Actor { return &sender{system: system, state: s, given: given} })
	pid, err := system.SpawnUnique(props, "webhooks")
	if err != nil {
		return nil, err
	}
	work.OnSurplusDelivery(s, func(d *work.Delivery) { system.Send(pid, &surplus{delivery: d}) })
	return &Client{system: system, state: s, given: given, pid: pid}, nil
}

// Configure replaces the endpoints, of which there are at most MaxEndpoints. Deliveries to a removed endpoint wait for
// its return until they expire. Configure cannot fail, because it is part of a change that is made as a whole; a sender
// that is being restarted starts with the new endpoints.
func (c *Client) Configure(all []Endpoint) {
	var hooks []work.Webhook
	for _, e := range all {
		hooks = append(hooks, e.Webhook)
	}
	work.SetWebhooks(c.state, hooks)
	c.given.set(all)
	c.system.Send(c.pid, &configured{})
}
