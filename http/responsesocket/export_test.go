package responsesocket

import "time"

// Limits changes the limits of new connections. Zero keeps a limit.
func (hs *Handlers) Limits(age, silence, patience, accept, linger time.Duration, message int64) {
	for _, l := range []struct{ to, from *time.Duration }{{&hs.limits.age, &age}, {&hs.limits.silence, &silence},
		{&hs.limits.patience, &patience}, {&hs.limits.accept, &accept}, {&hs.limits.linger, &linger}} {
		if *l.from > 0 {
			*l.to = *l.from
		}
	}
	if message > 0 {
		hs.limits.message = message
	}
}

// Age returns how long a connection lasts.
func (hs *Handlers) Age() time.Duration { return hs.limits.age }
