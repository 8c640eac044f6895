package throttle

import (
	"container/heap"
	"time"
)

// queue holds the waiting tickets: three classes in strict order, in each class
// a deficit round robin over keys, in each key first come first served. A heap
// of due times finds deadlines and tickets that have aged.
type queue struct {
	classes [classCount]round
	due     dueHeap
	total   int
}

// round is the round robin of one class.
type round struct {
	flows   map[string]*flow
	current *flow // in a ring; nil: empty
	total   int
	tokens  int
}

// flow is one key's tickets in one class. It exists only while it has some.
type flow struct {
	key        string
	class      int
	head, tail *ticket
	count      int
	tokens     int
	deficit    int
	visited    bool // this turn's quantum was given
	next, prev *flow
}

// A key may spend quantum in one turn; the most expensive ticket costs maxCost,
// so a turn is found in maxCost/quantum rounds at the latest.
const (
	quantum       = 4
	maxCost       = 64
	tokensPerCost = 512
)

// costOf weighs a ticket. Where tokens are limited, they are what keys share.
func costOf(tokens int, limited bool) int {
	if !limited {
		return 1
	}
	return min(1+tokens/tokensPerCost, maxCost)
}

func (q *queue) push(t *ticket) {
	q.classes[t.class].push(t)
	q.total++
	if !t.due.IsZero() {
		heap.Push(&q.due, t)
	}
}

func (q *queue) remove(t *ticket) {
	q.classes[t.class].remove(t)
	q.total--
	if t.index >= 0 {
		heap.Remove(&q.due, t.index)
	}
}

// peek is the ticket whose turn it is. It stays so until it is removed or a
// lower class gets a ticket.
func (q *queue) peek() *ticket {
	for i := range q.classes {
		if t := q.classes[i].peek(); t != nil {
			return t
		}
	}
	return nil
}

// any is some ticket, for flushing.
func (q *queue) any() *ticket {
	for i := range q.classes {
		if f := q.classes[i].current; f != nil {
			return f.head
		}
	}
	return nil
}

// firstDue is the ticket that must be looked at next.
func (q *queue) firstDue() *ticket {
	if len(q.due) == 0 {
		return nil
	}
	return q.due[0]
}

// promote moves a ticket up one class, and from now on only its deadline counts.
func (q *queue) promote(t *ticket) {
	q.remove(t)
	t.class--
	t.aged = true
	t.due = t.deadline
	q.push(t)
}

// count is how many tickets a key has waiting in a class.
func (q *queue) count(key string, class int) int {
	if f := q.classes[class].flows[key]; f != nil {
		return f.count
	}
	return 0
}

// blocked says whether a ticket of this class would have others before it.
func (q *queue) blocked(class int) bool {
	for i := range class + 1 {
		if q.classes[i].total > 0 {
			return true
		}
	}
	return false
}

// ahead is how many tickets, and tokens of tickets, will probably be served
// before a new one: all of the lower classes, the key's own, and from each other
// key of the class as many as the key itself will have had turns.
func (q *queue) ahead(key string, class int) (tickets, tokens int) {
	for i := range class {
		tickets += q.classes[i].total
		tokens += q.classes[i].tokens
	}
	r := &q.classes[class]
	if r.current == nil {
		return tickets, tokens
	}
	own := q.count(key, class)
	f := r.current
	for { // the ring: a map of as many flows takes five times as long
		n := min(f.count, own+1)
		if f.key == key {
			n = own
		}
		tickets += n
		tokens += f.tokens / f.count * n
		if f = f.next; f == r.current {
			return tickets, tokens
		}
	}
}

// longest is the flow with most tickets among those a ticket of this class may
// push out, lowest priority first.
func (q *queue) longest(class int) *flow {
	for i := classCount - 1; i >= class; i-- {
		var best *flow
		for _, f := range q.classes[i].flows {
			if best == nil || f.count > best.count {
				best = f
			}
		}
		if best != nil {
			return best
		}
	}
	return nil
}

func (r *round) push(t *ticket) {
	f := r.flows[t.key]
	if f == nil {
		f = r.join(t.key, t.class)
	}
	t.flow, t.prev, t.next = f, f.tail, nil
	if f.tail == nil {
		f.head = t
	} else {
		f.tail.next = t
	}
	f.tail = t
	f.count++
	f.tokens += t.tokens
	r.total++
	r.tokens += t.tokens
}

// join adds a flow at the end of the round that is under way.
func (r *round) join(key string, class int) *flow {
	f := &flow{key: key, class: class}
	if r.flows == nil {
		r.flows = make(map[string]*flow)
	}
	r.flows[key] = f
	if r.current == nil {
		f.next, f.prev = f, f
		r.current = f
		return f
	}
	f.next, f.prev = r.current, r.current.prev
	f.prev.next, f.next.prev = f, f
	return f
}

func (r *round) remove(t *ticket) {
	f := t.flow
	if t.prev == nil {
		f.head = t.next
	} else {
		t.prev.next = t.next
	}
	if t.next == nil {
		f.tail = t.prev
	} else {
		t.next.prev = t.prev
	}
	t.flow, t.next, t.prev = nil, nil, nil
	f.count--
	f.tokens -= t.tokens
	r.total--
	r.tokens -= t.tokens
	if f.count == 0 {
		r.leave(f)
	}
}

func (r *round) leave(f *flow) {
	delete(r.flows, f.key)
	f.prev.next, f.next.prev = f.next, f.prev
	if r.current != f {
		return
	}
	r.current = f.next
	if f.next == f {
		r.current = nil
	}
}

func (r *round) peek() *ticket {
	for f := r.current; f != nil; f = r.current {
		if !f.visited {
			f.visited = true
			f.deficit += quantum
		}
		if f.deficit >= f.head.cost {
			return f.head
		}
		f.visited = false
		r.current = f.next
	}
	return nil
}

// serve removes a ticket that had its turn and charges its flow for it.
func (q *queue) serve(t *ticket) {
	t.flow.deficit -= t.cost
	q.remove(t)
}

// dueHeap implements heap.Interface.
type dueHeap []*ticket

func (h dueHeap) Len() int           { return len(h) }
func (h dueHeap) Less(i, j int) bool { return h[i].due.Before(h[j].due) }
func (h dueHeap) Swap(i, j int) {
	h[i], h[j] = h[j], h[i]
	h[i].index, h[j].index = i, j
}

func (h *dueHeap) Push(x any) {
	t := x.(*ticket)
	t.index = len(*h)
	*h = append(*h, t)
}

func (h *dueHeap) Pop() any {
	last := len(*h) - 1
	t := (*h)[last]
	(*h)[last] = nil
	*h = (*h)[:last]
	t.index = -1
	return t
}

// ageAfter is when a ticket without a deadline moves up a class.
const ageAfter = 5 * time.Second

// schedule sets when the queue must look at a new ticket.
func (t *ticket) schedule() {
	t.index, t.due = -1, t.deadline
	if t.class == Interactive {
		return
	}
	if t.deadline.IsZero() {
		t.due = t.asked.Add(ageAfter)
		return
	}
	t.due = t.asked.Add(t.deadline.Sub(t.asked) / 2)
}
