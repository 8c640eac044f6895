package throttle

import (
	"cmp"
	"slices"
	"time"
)

// Stats is a snapshot of a provider's limiter. The totals count since the program started.
type Stats struct {
	InFlight    int
	MaxInFlight int // 0: no limit
	Requests    Level
	Tokens      Level
	Queued      int
	Queues      []OwnerQueue  // longest first
	CoolDown    time.Duration // the remaining time of the longest cool-down
	Breaker     State
	ReopensIn   time.Duration // until the next probe, when open
	Paused      bool
	Service     time.Duration // the average time a request takes

	Granted  int64
	Waited   time.Duration // total time that granted requests were queued
	Refused  map[string]int64
	Outcomes map[string]int64
}

// OwnerQueue describes the queued requests of one owner in one class.
type OwnerQueue struct {
	Owner  string
	Class  int
	Count  int
	Oldest time.Duration // how long the first of them has waited
}

// stats returns a snapshot of the limiter.
func (c *core) stats(now time.Time) Stats {
	s := Stats{
		InFlight:    int(c.shared.inFlight.Load()),
		MaxInFlight: c.config.MaxInFlight,
		Requests:    c.requests.level(now),
		Tokens:      c.tokens.level(now),
		Queued:      c.queue.total,
		CoolDown:    c.cooling.longest(now),
		Breaker:     c.breaker.state,
		Paused:      c.paused,
		Service:     c.service,
		Granted:     c.shared.granted.Load(),
		Waited:      time.Duration(c.shared.waited.Load()),
		Refused:     make(map[string]int64),
		Outcomes:    make(map[string]int64),
	}
	if s.Breaker == Open {
		s.ReopensIn = max(c.breaker.until.Sub(now), 0)
	}
	for _, f := range c.queue.flows {
		s.Queues = append(s.Queues, f.queues(now)...)
	}
	slices.SortFunc(s.Queues, func(a, b OwnerQueue) int {
		return cmp.Or(cmp.Compare(b.Count, a.Count), cmp.Compare(a.Class, b.Class), cmp.Compare(a.Owner, b.Owner))
	})
	for r := range c.shared.refused {
		s.Refused[Reason(r).String()] = c.shared.refused[r].Load()
	}
	for k := range c.shared.outcomes {
		s.Outcomes[Kind(k).String()] = c.shared.outcomes[k].Load()
	}
	return s
}

// queues returns the flow's queued tickets by class.
func (f *flow) queues(now time.Time) []OwnerQueue {
	var all []OwnerQueue
	for class, n := range f.classes {
		if n == 0 {
			continue
		}
		q := OwnerQueue{Owner: f.owner, Class: class, Count: n}
		for t := range f.upTo(class) {
			if t.class == class {
				q.Oldest = max(q.Oldest, now.Sub(t.asked))
			}
		}
		all = append(all, q)
	}
	return all
}
