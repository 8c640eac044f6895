package throttle

import "time"

// Waiter is a request in the queue.
type Waiter struct {
	ID       string // as its Ask had it
	Key      string
	Class    int
	Position int // from 1
	Waited   time.Duration
}

// turn is a flow's part in a round that is only thought of.
type turn struct {
	next    *ticket
	deficit int
	visited bool
}

// waiters lists the tickets in the order in which they would be served. It changes
// nothing: the rounds are gone through on copies.
func (q *queue) waiters(now time.Time) []Waiter {
	all := make([]Waiter, 0, q.total)
	for i := range q.classes {
		for turns := q.classes[i].turns(); len(turns) > 0; {
			turns = served(turns, func(t *ticket) {
				all = append(all, Waiter{ID: t.id, Key: t.key, Class: t.class, Position: len(all) + 1, Waited: now.Sub(t.asked)})
			})
		}
	}
	return all
}

// turns are the flows of a class, beginning with the one whose turn it is.
func (r *round) turns() []turn {
	var all []turn
	for f := r.current; f != nil; {
		all = append(all, turn{f.head, f.deficit, f.visited})
		if f = f.next; f == r.current {
			break
		}
	}
	return all
}

// served goes round once, and returns the flows that have tickets left.
func served(turns []turn, serve func(*ticket)) (left []turn) {
	for _, f := range turns {
		if !f.visited {
			f.deficit += quantum
		}
		for f.next != nil && f.deficit >= f.next.cost {
			serve(f.next)
			f.deficit -= f.next.cost
			f.next = f.next.next
		}
		f.visited = false
		if f.next != nil {
			left = append(left, f)
		}
	}
	return left
}
