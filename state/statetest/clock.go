package statetest

import (
	"sync/atomic"
	"time"
)

// Clock is a time that a test sets.
type Clock struct{ at atomic.Pointer[time.Time] }

// NewClock returns one that stands at a time.
func NewClock(at time.Time) *Clock {
	c := new(Clock)
	c.at.Store(&at)
	return c
}

// Now is the time it stands at.
func (c *Clock) Now() time.Time { return *c.at.Load() }

// Add sets it forward.
func (c *Clock) Add(d time.Duration) {
	at := c.Now().Add(d)
	c.at.Store(&at)
}
