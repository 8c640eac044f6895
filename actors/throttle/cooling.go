package throttle

import "time"

// coolDowns are for how long a provider asked to be left alone: as a whole, or for single
// models, because providers count what they allow by model.
type coolDowns struct {
	until  time.Time
	models map[string]*modelCooling
}

// modelCooling is that of one model; "" are the requests that name none.
type modelCooling struct {
	until time.Time
	met   int // refusals in a row that the provider put no number on
}

const (
	minRetry   = time.Second
	maxCool    = time.Hour
	firstCool  = time.Second
	maxBackOff = 30 * time.Second
	// keptModels is how many models are kept that do not cool. Clients may name any.
	keptModels = 64
)

// end is when requests for the model may be sent again.
func (c *coolDowns) end(model string) time.Time {
	if m := c.models[model]; m != nil && m.until.After(c.until) {
		return m.until
	}
	return c.until
}

// left is how long that is from now.
func (c *coolDowns) left(now time.Time, model string) time.Duration {
	return c.end(model).Sub(now)
}

// active says whether requests for any model have to wait.
func (c *coolDowns) active(now time.Time) bool { return !c.next(now).IsZero() }

// next is the first moment after now at which some model stops cooling; zero: none cools.
func (c *coolDowns) next(now time.Time) time.Time {
	var first time.Time
	earlier := func(t time.Time) {
		if t.After(now) && (first.IsZero() || t.Before(first)) {
			first = t
		}
	}
	earlier(c.until)
	for _, m := range c.models {
		earlier(m.until)
	}
	return first
}

// longest is how long the model that cools longest has left.
func (c *coolDowns) longest(now time.Time) time.Duration {
	d := c.until.Sub(now)
	for _, m := range c.models {
		d = max(d, m.until.Sub(now))
	}
	return max(d, 0)
}

// all sends nothing for d. A cool-down is never shortened.
func (c *coolDowns) all(now time.Time, d time.Duration) { extend(&c.until, now, d) }

// one sends nothing to a model for d.
func (c *coolDowns) one(now time.Time, model string, d time.Duration) {
	if d > 0 {
		extend(&c.model(now, model).until, now, d)
	}
}

func extend(until *time.Time, now time.Time, d time.Duration) {
	if at := now.Add(min(d, maxCool)); d > 0 && at.After(*until) {
		*until = at
	}
}

// refused hears that the provider refused a request for its rate: the model cools for as
// long as it said, else twice as long each time it is refused again. Requests that were
// under way at the same time do not add to it.
func (c *coolDowns) refused(now time.Time, model string, said time.Duration) {
	if said <= 0 {
		if now.Before(c.end(model)) {
			return
		}
		m := c.model(now, model)
		said = min(firstCool<<min(m.met, 5), maxBackOff)
		m.met++
	}
	c.one(now, model, said)
}

// served hears that a request for the model was not refused.
func (c *coolDowns) served(now time.Time, model string) {
	if m := c.models[model]; m != nil {
		if m.met = 0; !m.until.After(now) {
			delete(c.models, model)
		}
	}
}

// over ends the cool-down of a model, and of the provider as a whole.
func (c *coolDowns) over(now time.Time, model string) {
	c.until = now
	delete(c.models, model)
}

func (c *coolDowns) model(now time.Time, name string) *modelCooling {
	m := c.models[name]
	if m != nil {
		return m
	}
	if c.models == nil {
		c.models = make(map[string]*modelCooling)
	}
	if len(c.models) >= keptModels {
		for other, m := range c.models {
			if !m.until.After(now) {
				delete(c.models, other)
			}
		}
	}
	m = new(modelCooling)
	c.models[name] = m
	return m
}
