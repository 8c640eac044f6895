package translator

import (
	"context"
	"sync"

	"stagedoor/actors/flow"
	"stagedoor/actors/telemetry"
	"stagedoor/providers/dialogue"
	"stagedoor/providers/shapes"
)

// window is how many frames of a stream may wait for the door. A frame holds what
// one read of the upstream brought, so a stream whose client stalls holds a few
// kilobytes, and TCP slows the upstream down.
const window = 8

// windowOf is the window of a reply. A whole one is a single frame.
func windowOf(mode shapes.Mode) int {
	if mode == shapes.Whole {
		return 1
	}
	return window
}

// conduit is the channel between one request's pumps and its door. It is
// closed exactly once: by the pump that is running, or by the actor if none is.
type conduit struct {
	frames chan Frame
	// ended is Order.Ended.
	ended func(*Outcome)
	// after, if set, is told how it went when all is over, unless the request is
	// settled. It must not wait.
	after func(Outcome)
	paid  bool
	// flow shows the request to those who look; nil: nobody can.
	flow *flow.Request
	// metrics count the replies whose clients read slowly.
	metrics *telemetry.Metrics
	slow    bool

	mu       sync.Mutex
	pumping  bool
	closed   bool
	orphaned bool            // the actor ended while a pump was running
	orphan   *dialogue.Error // with this

	// Only touched by the pump, and by the actor between pumps.
	committed bool // the door has, or will have, a first frame
	complete  bool // and the last one of a good reply
	outcome   Outcome
}

// send hands a frame to the door and waits while its window is full. The frame's
// buffer is the door's from then on; if ctx ends first, it stays the caller's.
func (c *conduit) send(ctx context.Context, f Frame) error {
	select {
	case c.frames <- f:
		c.committed = true
		return nil
	default:
	}
	if !c.slow {
		c.slow = true
		c.metrics.Slow()
	}
	select {
	case c.frames <- f:
		c.committed = true
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

// enter marks a pump as running, unless the request is over.
func (c *conduit) enter() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.closed || c.pumping {
		return false
	}
	c.pumping = true
	return true
}

// leave ends what enter began.
func (c *conduit) leave() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.pumping = false
	if c.orphaned {
		c.close(c.orphan)
	}
}

// finish ends the reply. err is told to the client if nothing was sent yet;
// after that the pump has already written the terminal event. While a pump is
// running, the end waits for it.
func (c *conduit) finish(err *dialogue.Error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	switch {
	case c.closed:
	case !c.pumping:
		c.close(err)
	case !c.orphaned:
		c.orphaned, c.orphan = true, err
	}
}

// settled reports whether the reply has ended, or will with its pump.
func (c *conduit) settled() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.closed || c.orphaned
}

// close runs once, under the lock and with no pump running.
func (c *conduit) close(err *dialogue.Error) {
	c.closed = true
	switch {
	case c.complete:
		err = nil // whatever befell the actor, the client has its reply
	case err == nil && !c.committed:
		err = dialogue.Incomplete() // no door waits for a first frame in vain
	}
	if c.outcome.Err == nil {
		c.outcome.Err = err
	}
	if !c.committed {
		c.frames <- Frame{Err: c.outcome.Err, Meta: &c.outcome.Meta} // the window is empty: nothing was sent
	}
	c.outcome.Committed = c.committed
	c.flow.End(resultOf(&c.outcome))
	if c.ended != nil {
		c.ended(&c.outcome)
	}
	if c.after != nil && !c.paid {
		c.after(c.outcome)
	}
	close(c.frames)
}

func internal(cause error) *dialogue.Error {
	return &dialogue.Error{Status: 500, Type: dialogue.TypeAPI, Code: "internal_error",
		Message: "the gateway met an internal error", Cause: cause}
}
