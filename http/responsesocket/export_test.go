package responsesocket

import (
	"sync/atomic"
	"time"
)

// Limits changes the limits of new connections. Zero keeps a limit.
func (hs *Handlers) Limits(silence, patience, accept, linger time.Duration, message int64) {
	for _, l := range []struct{ to, from *time.Duration }{{&hs.limits.silence, &silence},
		{&hs.limits.patience, &patience}, {&hs.limits.accept, &accept}, {&hs.limits.linger, &linger}} {
		if *l.from > 0 {
			*l.to = *l.from
		}
	}
	if message > 0 {
		hs.limits.message = message
	}
}

// AgeBy replaces the clock of new connections: they reach their age when aged has a value. It returns a function that
// returns the age that the last connection asked for.
func (hs *Handlers) AgeBy(aged <-chan time.Time) (asked func() time.Duration) {
	var last atomic.Int64
	hs.limits.after = func(age time.Duration) <-chan time.Time {
		last.Store(int64(age))
		return aged
	}
	return func() time.Duration { return time.Duration(last.Load()) }
}
