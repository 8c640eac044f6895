package videoclient

import (
	"context"
	"errors"
	"math/rand/v2"
	"time"
)

// tries limits the attempts of a request that changes something. Watch goes on until its caller ends it.
const tries = 5

const (
	firstPause = 500 * time.Millisecond
	longPause  = 15 * time.Second
)

// pause computes the waits between the attempts of one call. Each is twice as long as the one before, with a random
// part, so that clients which lost the same gateway do not come back at once.
type pause struct {
	first time.Duration // before the second attempt
	most  int           // attempts, 0: any number
	made  int
}

// reset makes the next wait a short one again, after an attempt that went well.
func (p *pause) reset() { p.made = 0 }

// sleep waits until the next attempt may begin, after tell has been called with the reason and the time. It returns
// cause if no attempt is left, and the cause of ctx if that ends first.
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

// next returns the time until the next attempt: the time that the gateway asked for, at most a minute, or the wait of
// pause.
func (p *pause) next(cause error) time.Duration {
	var e *Error
	if errors.As(cause, &e) && e.RetryAfter > 0 {
		return min(e.RetryAfter, time.Minute)
	}
	wait := min(p.first<<min(p.made-1, 10), longPause)
	return wait/2 + rand.N(wait/2)
}

// passing reports whether a call that failed may succeed later: the connection broke, or the gateway restarts or is
// busy.
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
