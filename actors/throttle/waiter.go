package throttle

import (
	"time"
)

// Waiter describes a queued request.
type Waiter struct {
	ID       string // the ID of its Ask
	Owner    string
	Class    int
	Position int // from 1
	Waited   time.Duration
}

// waiters returns the tickets in the order in which they would be served. It simulates the
// rounds on a copy and changes nothing.
func (q *queue) waiters(now time.Time) []Waiter {
	all := make([]Waiter, 0, q.total)
	played := q.copy()
	for t := played.peek(nil); t != nil; t = played.peek(nil) {
		all = append(all,
			Waiter{ID: t.id, Owner: t.owner, Class: t.class, Position: len(all) + 1, Waited: now.Sub(t.asked)})
		played.serve(t)
	}
	return all
}

// copy returns a queue with the same tickets and turns, without the due times.
func (q *queue) copy() *queue {
	c := &queue{
		flows:  make(map[string]*flow, len(q.flows)),
		spent:  make(map[string]struct{}),
		begun:  q.begun,
		joined: q.joined,
		total:  q.total,
	}
	for _, r := range []*round{&q.current, &q.later} {
		for i := range r {
			for f := r[i].first; f != nil; f = f.next {
				twin := &flow{
					owner:   f.owner,
					classes: f.classes,
					count:   f.count,
					tokens:  f.tokens,
					deficit: f.deficit,
					turn:    f.turn,
					done:    f.done,
				}
				for rank := range f.ranks {
					for t := f.ranks[rank].first; t != nil; t = t.next {
						twin.ranks[rank].append(&ticket{
							id:     t.id,
							owner:  t.owner,
							class:  t.class,
							rank:   t.rank,
							tokens: t.tokens,
							cost:   t.cost,
							asked:  t.asked,
							flow:   twin,
							index:  -1,
						})
					}
				}
				c.flows[f.owner] = twin
				c.place(twin)
			}
		}
	}
	return c
}
