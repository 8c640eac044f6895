package throttle

import (
	"context"
	"sync/atomic"
	"time"

	"github.com/asynkron/protoactor-go/actor"

	"stagedoor/actors/kit"
)

// Ask is what a request says about itself.
type Ask struct {
	// ID is the request's, for those who look at the queue.
	ID string
	// Owner is the user that the request counts for, or the key if it has no user.
	// Owners take turns.
	Owner string
	// Model is the provider's name of the model, for which it may have asked to be left
	// alone; "": the request is about none.
	Model string
	// Class is Interactive, Normal or Background.
	Class int
	// Tokens is the estimate, settled at release.
	Tokens int
	// Deadline ends the wait; zero: the context's deadline, if there is one.
	Deadline time.Time
	// Last: no other provider is left to ask. Where others are told to stay away
	// (the breaker is open, a long cool-down) one such request at a time goes
	// through: being heard to fail serves its client better than not being sent.
	Last bool
}

// Client is a provider's gate. It survives restarts of the actor behind it. Any
// goroutine may use it.
type Client struct {
	sys    *kit.System
	config atomic.Pointer[Config]
	pid    atomic.Pointer[actor.PID]
	// free is the breaker to tell while requests may pass the actor by; nil:
	// they may not.
	free         atomic.Pointer[breaker]
	incarnations atomic.Int64
	shared       shared
}

// backlog bounds the mailbox's acquire lane: what the actor has not looked at yet.
const backlog = 1024

// NewClient prepares a gate. Its actor is spawned from Props; until it runs all
// requests are refused as Closed.
func NewClient(sys *kit.System, config Config) *Client {
	c := &Client{sys: sys}
	c.config.Store(&config)
	return c
}

// Spawn starts a gate as a top-level actor.
func Spawn(sys *kit.System, name string, config Config) (*Client, error) {
	c := NewClient(sys, config)
	pid, err := sys.SpawnUnique(c.Props(), name)
	if err != nil {
		return nil, err
	}
	c.Spawned(pid)
	return c, nil
}

// Spawned tells the client which actor its Props were spawned as. Requests that
// come before the actor has begun then wait in its mailbox, not refused.
func (c *Client) Spawned(pid *actor.PID) { c.pid.CompareAndSwap(nil, pid) }

// Props describes the gate's actor, for a supervisor to spawn, one at a time. On
// failure the actor must be restarted, not resumed: it has refused all that
// waited, and is closed.
func (c *Client) Props() *actor.Props {
	return c.sys.Props("provider",
		func() actor.Actor { return &provider{client: c} },
		kit.WithLanes(kit.Lanes{Bound: backlog, FailFast: true}))
}

// Acquire waits for the request's turn. It fails with a *Refused, or with the
// cause of ctx if that ends first. The permit must be released.
func (c *Client) Acquire(ctx context.Context, ask Ask) (*Permit, error) {
	// A pause is in force when Pause returns, not only once the actor has heard of it.
	if c.free.Load() != nil && !c.shared.paused.Load() {
		c.shared.inFlight.Add(1)
		c.shared.granted.Add(1)
		return &Permit{client: c}, nil
	}
	return c.acquire(ctx, ask)
}

func (c *Client) acquire(ctx context.Context, ask Ask) (*Permit, error) {
	t := &ticket{
		id: ask.ID, owner: ask.Owner, model: ask.Model, class: ask.Class, tokens: max(ask.Tokens, 0),
		asked: time.Now(), deadline: ask.Deadline, last: ask.Last,
		verdict: make(chan *Refused, 1),
	}
	t.permit.client, t.permit.ticket = c, t
	if t.deadline.IsZero() {
		t.deadline, _ = ctx.Deadline()
	}
	c.send((*acquiring)(t))
	select {
	case refused := <-t.verdict:
		return t.result(refused)
	case <-ctx.Done():
		return c.leave(ctx, t)
	}
}

// leave settles a ticket whose owner no longer waits: if its verdict was faster,
// the place goes back.
func (c *Client) leave(ctx context.Context, t *ticket) (*Permit, error) {
	if t.abandon() {
		c.send((*cancelling)(t))
		return nil, context.Cause(ctx)
	}
	if refused := <-t.verdict; refused == nil {
		t.permit.Release(Outcome{Kind: Unused})
	}
	return nil, context.Cause(ctx)
}

func (t *ticket) result(refused *Refused) (*Permit, error) {
	if refused != nil {
		return nil, refused
	}
	return &t.permit, nil
}

// releaseFree counts a request that passed the actor by. What the actor must
// know, it is told.
func (c *Client) releaseFree(o Outcome) {
	b := c.free.Load()
	if b == nil {
		c.send(&releasingFree{client: c, outcome: o})
		return
	}
	if judge := b.count(time.Since(b.base), o.Kind); judge || !o.plain() {
		c.send(&releasingFree{client: c, outcome: o, counted: true})
		return
	}
	c.shared.outcomes[o.Kind].Add(1)
	c.shared.inFlight.Add(-1)
	if c.free.Load() == nil {
		c.send(&waking{}) // the actor may have counted us and be waiting
	}
}

// send refuses what nobody is there for. An actor that has stopped does the
// same by way of the dead letters.
func (c *Client) send(message any) {
	if pid := c.pid.Load(); pid != nil {
		c.sys.Send(pid, message)
		return
	}
	if r, ok := message.(kit.Rejecter); ok {
		r.Reject(kit.ReasonDead)
	}
}

// Configure changes the limits at once. Tickets in the queue stay.
func (c *Client) Configure(config Config) {
	c.config.Store(&config)
	c.send(&configuring{config})
}

// Pause holds all requests in the queue until Resume; their deadlines count on. A
// gate that is paused before its actor begins lets nobody through.
func (c *Client) Pause() { c.setPaused(true) }

// Resume ends Pause.
func (c *Client) Resume() { c.setPaused(false) }

func (c *Client) setPaused(paused bool) {
	c.shared.paused.Store(paused)
	c.send(&pausing{})
}

// CoolDown sends nothing for d, an hour at most.
func (c *Client) CoolDown(d time.Duration) { c.send(&cooling{d}) }

// InFlight is how many permits are out. It costs nothing.
func (c *Client) InFlight() int { return int(c.shared.inFlight.Load()) }

// Stats asks the actor for a snapshot.
func (c *Client) Stats(ctx context.Context) (Stats, error) {
	pid := c.pid.Load()
	if pid == nil {
		return Stats{}, &kit.Rejected{Reason: kit.ReasonDead}
	}
	return kit.Ask(ctx, c.sys, pid, &statsAsk{})
}

// Queue asks the actor who waits, in the order in which they would be served if
// nobody else came.
func (c *Client) Queue(ctx context.Context) ([]Waiter, error) {
	pid := c.pid.Load()
	if pid == nil {
		return nil, &kit.Rejected{Reason: kit.ReasonDead}
	}
	return kit.Ask(ctx, c.sys, pid, &queueAsk{})
}

// Stop refuses all that wait and ends the actor. Permits stay valid; releasing
// them counts to the end.
func (c *Client) Stop(ctx context.Context) error {
	pid := c.pid.Load()
	if pid == nil {
		return nil
	}
	return c.sys.StopActor(ctx, pid)
}
