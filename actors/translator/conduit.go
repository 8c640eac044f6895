package translator

import (
	"context"
	"sync"

	"stagedoor/providers/dialogue"
)

// window is how many frames may wait for the door. A frame holds what one read
// of the upstream brought, so a stream whose client stalls holds a few
// kilobytes, and TCP slows the upstream down.
const window = 8

// conduit is the channel between one request's pumps and its door. It is
// closed exactly once: by the pump that is running, or by the actor if none is.
type conduit struct {
	frames chan Frame

	mu      sync.Mutex
	pumping bool
	closed  bool
	orphan  *dialogue.Error // the actor ended while a pump was running

	committed bool // only touched by the pump, and by the actor between pumps
	outcome   Outcome
}

func newConduit() *conduit {
	return &conduit{frames: make(chan Frame, window)}
}

// send hands a frame to the door and waits while its window is full.
func (c *conduit) send(ctx context.Context, f Frame) error {
	select {
	case c.frames <- f:
		c.committed = true
		return nil
	default:
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
	c.pumping = false
	orphan := c.orphan
	c.mu.Unlock()
	if orphan != nil {
		c.finish(orphan)
	}
}

// finish ends the reply. err is told to the client if nothing was sent yet;
// after that the pump has already written the terminal event. While a pump is
// running, the end waits for it.
func (c *conduit) finish(err *dialogue.Error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.closed {
		return
	}
	if c.pumping {
		if err == nil {
			err = internal(nil)
		}
		c.orphan = err
		return
	}
	c.closed = true
	if err != nil && c.outcome.Err == nil {
		c.outcome.Err = err
	}
	if err != nil && !c.committed {
		c.frames <- Frame{Err: err, Meta: &c.outcome.Meta} // the window is empty: nothing was sent
	}
	c.outcome.Committed = c.committed
	close(c.frames)
}

func internal(cause error) *dialogue.Error {
	return &dialogue.Error{Status: 500, Type: dialogue.TypeAPI, Code: "internal_error",
		Message: "the gateway met an internal error", Cause: cause}
}
