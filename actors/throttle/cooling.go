package throttle

import "time"

// coolDowns holds the times until which a provider gets no requests, as a whole or for
// single models. They are kept per model because providers count their limits per model.
type coolDowns struct {
	until  time.Time
	models map[string]*modelCooling
}

// modelCooling is the cool-down of one model. Requests without a model use the empty name.
type modelCooling struct {
	until   time.Time
	unnamed int // refusals in a row for which the provider gave no time
}

const (
	minRetry   = time.Second
	maxCool    = time.Hour
	firstCool  = time.Second
	maxBackOff = 30 * time.Second
	// keptModels bounds the models without a cool-down that are kept: clients may name any.
	keptModels = 64
	// maxCooling bounds the models that cool. A new one takes the place of the one that ends first.
	maxCooling = 1024
)

// end returns the time from which requests for the model may be sent.
func (c *coolDowns) end(model string) time.Time {
	if m := c.models[model]; m != nil && m.until.After(c.until) {
		return m.until
	}
	return c.until
}

// left returns how long that is from now.
func (c *coolDowns) left(now time.Time, model string) time.Duration {
	return c.end(model).Sub(now)
}

// active reports whether requests for any model have to wait.
func (c *coolDowns) active(now time.Time) bool { return !c.next(now).IsZero() }

// next returns the first time after now at which a cool-down ends, or zero if there is none.
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

// longest returns the remaining time of the longest cool-down.
func (c *coolDowns) longest(now time.Time) time.Duration {
	d := c.until.Sub(now)
	for _, m := range c.models {
		d = max(d, m.until.Sub(now))
	}
	return max(d, 0)
}

// all starts a cool-down of the whole provider. A cool-down is never shortened.
func (c *coolDowns) all(now time.Time, d time.Duration) { extend(&c.until, now, d) }

// one starts a cool-down of one model.
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

// refused records that the provider refused a request because of its rate. The model cools
// down for the time the provider gave, or else for twice as long at each further refusal.
// Refusals of requests that were in flight at the same time do not add to it.
func (c *coolDowns) refused(now time.Time, model string, said time.Duration) {
	if said <= 0 {
		if now.Before(c.end(model)) {
			return
		}
		m := c.model(now, model)
		said = min(firstCool<<min(m.unnamed, 5), maxBackOff)
		m.unnamed++
	}
	c.one(now, model, said)
}

// served records that a request for the model was not refused.
func (c *coolDowns) served(now time.Time, model string) {
	if m := c.models[model]; m != nil {
		if m.unnamed = 0; !m.until.After(now) {
			delete(c.models, model)
		}
	}
}

// over ends the cool-down of a model, and of the provider as a whole.
func (c *coolDowns) over(now time.Time, model string) {
	c.until = now
	delete(c.models, model)
}

// forgetFirst forgets the model whose cool-down ends first.
func (c *coolDowns) forgetFirst() {
	first, found := "", false
	for name, m := range c.models {
		if !found || m.until.Before(c.models[first].until) {
			first, found = name, true
		}
	}
	delete(c.models, first)
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
	if len(c.models) >= maxCooling {
		c.forgetFirst()
	}
	m = new(modelCooling)
	c.models[name] = m
	return m
}
