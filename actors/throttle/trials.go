package throttle

import "time"

const (
	// longCool is the longest cool-down that requests wait for in the queue.
	longCool = 10 * time.Second
	// trialRest is the time between two trials that the provider rate-limited.
	trialRest = time.Second
)

// onlyTrials reports whether the provider gets nothing but trials for the model.
func (c *core) onlyTrials(now time.Time, model string) bool {
	return c.breaker.state == Open || c.cooling.left(now, model) > longCool
}

// mayTry reports whether t may be sent as a trial, to learn whether the provider works
// again. Only a request with no other provider left may.
func (c *core) mayTry(now time.Time, t *ticket) bool {
	return t.last && c.trial == nil && !c.paused && c.onlyTrials(now, t.model) && !now.Before(c.trialFrom)
}

// nextTrial reports whether t would be the next trial, now or when trialFrom has passed.
func (c *core) nextTrial(t *ticket) bool { return t.last && c.trial == nil && c.queue.total == 0 }

// rest returns how long t has to wait for the end of a cool-down or for its trial.
func (c *core) rest(now time.Time, t *ticket) time.Duration {
	if t.last && c.trial == nil && c.onlyTrials(now, t.model) {
		return c.trialFrom.Sub(now)
	}
	return c.cooling.left(now, t.model)
}

// endTrial records the outcome of a trial. A successful one ends the cool-down.
func (c *core) endTrial(now time.Time, o *Outcome) {
	c.trial = nil
	if o.Kind.alive() {
		c.breaker.close()
	}
	switch o.Kind {
	case Success:
		c.cooling.end(o.Model)
	case RateLimited:
		c.trialFrom = now.Add(trialRest)
	}
}
