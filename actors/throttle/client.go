package throttle

import (
	"context"
	"sync/atomic"
	"time"

	"github.com/asynkron/protoactor-go/actor"

	"stagedoor/actors/kit"
)

// Ask describes a request that needs a permit.
type Ask struct {
	// ID is the request's ID, which the queue shows to operators.
	ID string
	// Owner is the user that the request counts for, or the key if it has no user.
	// Owners take turns.
	Owner string
	// Model is the provider's name of the model. Cool-downs are per model. It is empty if
	// the request is about no model.
	Model string
	// Class is Interactive, Normal or Background.
	Class int
	// Tokens is the estimated use, which Release corrects.
	Tokens int
	// Deadline ends the wait. If it is zero, the deadline of the context does.
	Deadline time.Time
	// Last says that no other provider is left to try. While other requests are refused
	// because the breaker is open or a cool-down is long, one such request at a time is
	// sent: the provider's own answer serves the client better than a refusal.
	Last bool
}

// Client is the limiter of one provider. It survives restarts of the actor behind it. Any
// goroutine may use it.
type Client struct {
	sys    *kit.System
	config atomic.Pointer[Config]
	pid    atomic.Pointer[actor.PID]
	// free is the breaker that counts outcomes while requests bypass the actor. It is nil
	// while they may not.
	free         atomic.Pointer[breaker]
	incarnations atomic.Int64
	shared       shared
}

// backlog bounds the acquire lane of the mailbox: the requests that the actor has not seen.
const backlog = 1024

// NewClient returns a limiter without an actor. The caller spawns the actor from Props.
// Until it runs, all requests are refused as Closed.
func NewClient(sys *kit.System, config Config) *Client {
	c := &Client{sys: sys}
	c.config.Store(&config)
	return c
}

// Spawn returns a running limiter, whose actor is a top-level actor.
func Spawn(sys *kit.System, name string, config Config) (*Client, error) {
	c := NewClient(sys, config)
	pid, err := sys.SpawnUnique(c.Props(), name)
	if err != nil {
		return nil, err
	}
	c.Spawned(pid)
	return c, nil
}

// Spawned sets the actor that was spawned from Props. Requests that arrive before that
// actor has started then wait in its mailbox and are not refused.
func (c *Client) Spawned(pid *actor.PID) { c.pid.CompareAndSwap(nil, pid) }

// Props returns the props of the limiter's actor, of which a supervisor spawns one at a
// time. After a failure the actor must be restarted and not resumed, because it has refused
// all queued requests and is closed.
func (c *Client) Props() *actor.Props {
	return c.sys.Props("provider",
		func() actor.Actor { return &provider{client: c} },
		kit.WithLanes(kit.Lanes{Bound: backlog, FailFast: true}))
}

// Acquire returns a permit as soon as it is the request's turn. It fails with a *Refused, or
// with the cause of ctx if ctx ends first. The caller must release the permit.
func (c *Client) Acquire(ctx context.Context, ask Ask) (*Permit, error) {
	// A pause and new limits are in force as soon as Pause and Configure return, even before the actor has received
	// them.
	if c.free.Load() != nil && !c.shared.paused.Load() && c.config.Load().unlimited() {
		c.shared.inFlight.Add(1)
		c.shared.granted.Add(1)
		return &Permit{client: c}, nil
	}
	return c.acquire(ctx, ask)
}

// acquire sends a ticket to the actor and waits for its verdict or the end of ctx.
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

// leave ends a ticket whose caller no longer waits. If the ticket was granted first, leave
// releases its permit.
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

// result returns what Acquire returns. A nil *Refused must not become an error that is not nil.
func (t *ticket) result(refused *Refused) (*Permit, error) {
	if refused != nil {
		return nil, refused
	}
	return &t.permit, nil
}

// releaseFree counts a request that bypassed the actor. It sends the outcome to the actor
// only if the outcome changes more than counters.
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
		c.send(&waking{}) // the actor may count this request as in flight and wait for it
	}
}

// send sends a message to the actor, or rejects it if the actor was never spawned. A
// stopped actor's messages are rejected by the dead letters.
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

// Pause holds all requests in the queue until Resume. Their deadlines stay in force. A
// limiter that is paused before its actor starts grants nothing.
func (c *Client) Pause() { c.setPaused(true) }

// Resume ends Pause.
func (c *Client) Resume() { c.setPaused(false) }

// Paused reports whether the limiter is paused.
func (c *Client) Paused() bool { return c.shared.paused.Load() }

// setPaused sets the flag at once, so that callers see it without waiting for the actor, and has
// the actor act on it.
func (c *Client) setPaused(paused bool) {
	c.shared.paused.Store(paused)
	c.send(&pausing{})
}

// Borrows reports whether a limit is borrowed.
func (c *Client) Borrows() bool { return c.config.Load().Borrows != [Limits]bool{} }

// InFlight returns the number of permits that are not released. It is one atomic read.
func (c *Client) InFlight() int { return int(c.shared.inFlight.Load()) }

// Stats returns a snapshot of the limiter. It waits for the actor until ctx ends. The error is a *kit.Rejected if the
// limiter has no actor, or that of ctx.
func (c *Client) Stats(ctx context.Context) (Stats, error) {
	pid := c.pid.Load()
	if pid == nil {
		return Stats{}, &kit.Rejected{Reason: kit.ReasonDead}
	}
	return kit.Ask(ctx, c.sys, pid, &statsAsk{})
}

// Queue returns the queued requests in the order in which they would be served if no other request arrived. It waits
// for the actor until ctx ends. The error is the same as for Stats.
func (c *Client) Queue(ctx context.Context) ([]Waiter, error) {
	pid := c.pid.Load()
	if pid == nil {
		return nil, &kit.Rejected{Reason: kit.ReasonDead}
	}
	return kit.Ask(ctx, c.sys, pid, &queueAsk{})
}

// Stop refuses all queued requests and stops the actor. Permits stay valid, and releasing
// them still counts.
func (c *Client) Stop(ctx context.Context) error {
	pid := c.pid.Load()
	if pid == nil {
		return nil
	}
	return c.sys.StopActor(ctx, pid)
}
