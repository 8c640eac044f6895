package throttle

import "time"

// coolDowns holds the times until which a provider gets no requests for single models. There is none for a provider as
// a whole: providers count their limits for each model, and shed the load of one while they serve another.
type coolDowns struct{ models map[string]*modelCooling }

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

// until returns the time from which requests for the model may be sent.
func (c *coolDowns) until(model string) time.Time {
	if m := c.models[model]; m != nil {
		return m.until
	}
	return time.Time{}
}

// left returns how long that is from now.
func (c *coolDowns) left(now time.Time, model string) time.Duration {
	return c.until(model).Sub(now)
}

// active reports whether requests for any model have to wait.
func (c *coolDowns) active(now time.Time) bool { return !c.next(now).IsZero() }

// next returns the first time after now at which a cool-down ends, or zero if there is none.
func (c *coolDowns) next(now time.Time) time.Time {
	var first time.Time
	for _, m := range c.models {
		if m.until.After(now) && (first.IsZero() || m.until.Before(first)) {
			first = m.until
		}
	}
	return first
}

// longest returns the remaining time of the longest cool-down.
func (c *coolDowns) longest(now time.Time) time.Duration {
	d := time.Duration(0)
	for _, m := range c.models {
		d = max(d, m.until.Sub(now))
	}
	return d
}

// start starts a cool-down of a model, or makes it longer.
func (c *coolDowns) start(now time.Time, model string, d time.Duration) {
	if d <= 0 {
		return
	}
	if m, at := c.model(now, model), now.Add(min(d, maxCool)); at.After(m.until) {
		m.until = at
	}
}

// refused records that the provider refused a request because of its rate. The model cools
// down for the time the provider gave, or else for twice as long at each further refusal.
// Refusals of requests that were in flight at the same time do not add to it.
func (c *coolDowns) refused(now time.Time, model string, said time.Duration) {
	if said <= 0 {
		if now.Before(c.until(model)) {
			return
		}
		m := c.model(now, model)
		said = min(firstCool<<min(m.unnamed, 5), maxBackOff)
		m.unnamed++
	}
	c.start(now, model, said)
}

// served records that a request for the model was not refused.
func (c *coolDowns) served(now time.Time, model string) {
	if m := c.models[model]; m != nil {
		if m.unnamed = 0; !m.until.After(now) {
			delete(c.models, model)
		}
	}
}

// end ends the cool-down of a model.
func (c *coolDowns) end(model string) { delete(c.models, model) }

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

// model returns the entry of a model and adds it if necessary. Before that it drops models without
// a cool-down and, if there are too many, the one whose cool-down ends first.
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
