package webhook

import (
	"context"
	"sync/atomic"

	"github.com/asynkron/protoactor-go/actor"

	"stagedoor/actors/kit"
	"stagedoor/state"
)

// endpoints are those in force, over restarts of the actor.
type endpoints struct{ all atomic.Pointer[[]Endpoint] }

func (e *endpoints) get() []Endpoint {
	if all := e.all.Load(); all != nil {
		return *all
	}
	return nil
}

func (e *endpoints) set(all []Endpoint) { e.all.Store(&all) }

// Client configures the sender. Safe for concurrent use.
type Client struct {
	system *kit.System
	state  *state.State
	pid    *actor.PID
}

// Start starts the sender, which goes on with what an earlier process left.
func Start(system *kit.System, s *state.State) (*Client, error) {
	given := &endpoints{}
	props := system.Props("webhooks", func() actor.Actor { return &sender{system: system, state: s, given: given} })
	pid, err := system.SpawnUnique(props, "webhooks")
	if err != nil {
		return nil, err
	}
	return &Client{system: system, state: s, pid: pid}, nil
}

// Configure puts endpoints in force, at most MaxEndpoints. What is to be delivered
// to one that is gone waits for it to come back, until its time is over.
func (c *Client) Configure(ctx context.Context, all []Endpoint) error {
	var hooks []state.Webhook
	for _, e := range all {
		hooks = append(hooks, e.Webhook)
	}
	c.state.SetWebhooks(hooks)
	_, err := kit.Ask(ctx, c.system, c.pid, &configure{endpoints: all})
	return err
}
