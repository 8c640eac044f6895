package throttle

import "time"

const (
	// longCool is the cool-down that nobody waits for.
	longCool = 10 * time.Second
	// trialRest is between trials that were told to stay away again.
	trialRest = time.Second
)

// leftAlone says whether the provider gets nothing but trials for the model.
func (c *core) leftAlone(now time.Time, model string) bool {
	return c.breaker.state == Open || c.cooling.left(now, model) > longCool
}

// mayTry says whether t may find out that the provider is well again, because
// it has nowhere else to go.
func (c *core) mayTry(now time.Time, t *ticket) bool {
	return t.last && c.trial == nil && !c.paused && c.leftAlone(now, t.model) && !now.Before(c.trialFrom)
}

// nextTrial says whether t would be the next trial, if not now then soon.
func (c *core) nextTrial(t *ticket) bool { return t.last && c.trial == nil && c.queue.total == 0 }

// rest is how long t has to wait for the end of a cool-down, or for its trial.
func (c *core) rest(now time.Time, t *ticket) time.Duration {
	if t.last && c.trial == nil && c.leftAlone(now, t.model) {
		return c.trialFrom.Sub(now)
	}
	return c.cooling.left(now, t.model)
}

// tried hears how a trial went. A good one ends the rest that was prescribed.
func (c *core) tried(now time.Time, o *Outcome) {
	c.trial = nil
	if o.Kind.alive() {
		c.breaker.shut()
	}
	switch o.Kind {
	case Success:
		c.cooling.over(now, o.Model)
	case RateLimited:
		c.trialFrom = now.Add(trialRest)
	}
}
