package videoclient

import (
	"context"
	"errors"
	"math/rand/v2"
	"time"
)

// tries limits the attempts of a request that changes something. An observation goes on
// until its user ends it.
const tries = 5

const (
	firstPause = 500 * time.Millisecond
	longPause  = 15 * time.Second
)

// pause spaces attempts: each waits twice as long as the one before, and a random
// part of it, so that all who lost a gateway do not come back at once.
type pause struct {
	first time.Duration // before the second attempt
	most  int           // attempts, 0: any number
	made  int
}

// reset begins anew, after an attempt that went well.
func (p *pause) reset() { p.made = 0 }

// sleep waits for the next attempt. Its error is cause if there is none.
func (p *pause) sleep(ctx context.Context, cause error, tell func(error, time.Duration)) error {
	p.made++
	if p.most > 0 && p.made >= p.most {
		return cause
	}
	wait := p.next(cause)
	if tell != nil {
		tell(cause, wait)
	}
	timer := time.NewTimer(wait)
	defer timer.Stop()
	select {
	case <-ctx.Done():
		return context.Cause(ctx)
	case <-timer.C:
		return nil
	}
}

// next returns the time until the next attempt: what the gateway asked for, or twice the time before, with a random
// part so that clients which lost the same gateway do not come back at once.
func (p *pause) next(cause error) time.Duration {
	var e *Error
	if errors.As(cause, &e) && e.RetryAfter > 0 {
		return min(e.RetryAfter, time.Minute)
	}
	wait := min(p.first<<min(p.made-1, 10), longPause)
	return wait/2 + rand.N(wait/2)
}

// passing tells whether what failed may succeed later: a line that broke, a
// gateway that restarts or is busy.
func passing(err error) bool {
	var e *Error
	var f fatal
	switch {
	case errors.Is(err, context.Canceled), errors.Is(err, errForeign), errors.As(err, &f):
		return false
	case errors.As(err, &e):
		return e.passing()
	}
	return true
}
