package throttle

import (
	"container/heap"
	"time"
)

// queue holds the waiting tickets. Owners take turns: in each round, every owner that waits
// gets one turn, so an owner's share depends on how many owners wait and on nothing that the
// owner does. The class of an owner's best ticket decides how early in the round its turn
// comes, and the class of its tickets which of them the turn is spent on. A ticket that
// has waited for long moves up among the tickets of its own owner only. A heap of due times
// finds deadlines and tickets that have aged.
type queue struct {
	flows   map[string]*flow
	current round // owners whose turn is in progress or still to come
	later   round // owners that have had their turn
	// spent holds the owners that had their turn in this round and have no tickets left: an
	// owner that queues again each time it is served must not get a turn each time.
	spent  map[string]struct{}
	begun  int // owners that were queued when this round began
	joined int // owners that have joined it since
	due    dueHeap
	total  int
}

// round lists the owners of one round by class, and within a class in order of arrival.
type round [classCount]ring

// ring is a list of flows.
type ring struct{ first, last *flow }

// flow holds the tickets of one owner. It exists only while it has some.
type flow struct {
	owner      string
	ranks      [classCount + 1]line // of tickets that have aged, then by class
	classes    [classCount]int      // how many tickets of each class
	count      int
	tokens     int
	deficit    int
	turn       bool // it is in its turn, and has got the quantum
	done       bool // it has had its turn in this round
	in         *ring
	next, prev *flow
}

// rankAged is the line of tickets that have aged.
const rankAged = 0

// rankOf returns the index in flow.ranks of the line of a class.
func rankOf(class int) int { return class + 1 }

// line is a list of tickets, first come first served.
type line struct{ first, last *ticket }

// A turn is worth a quantum by the class of the owner's best ticket, and the most expensive
// ticket costs maxCost, so a turn is found in maxCost rounds at the latest. Requests that
// are in no hurry pay for that with a smaller share.
var quantum = [classCount]int{Interactive: 4, Normal: 4, Background: 1}

const (
	maxCost       = 64
	tokensPerCost = 512
	// extraTurns is the number of owners that may join a round beyond as many as began it. Later ones
	// join the next, so that a round ends however many new owners come.
	extraTurns = 16
)

// costOf returns the cost of a ticket. If tokens are limited, owners share tokens, else
// requests.
func costOf(tokens int, limited bool) int {
	if !limited {
		return 1
	}
	return min(1+tokens/tokensPerCost, maxCost)
}

// push adds a ticket to the flow of its owner.
func (q *queue) push(t *ticket) {
	f := q.flows[t.owner]
	if f == nil {
		f = q.join(t.owner)
	}
	t.flow = f
	f.ranks[t.rank].append(t)
	f.classes[t.class]++
	f.count++
	f.tokens += t.tokens
	q.place(f)
	q.total++
	if !t.due.IsZero() {
		heap.Push(&q.due, t)
	}
}

// join adds a flow for an owner that has no tickets yet.
func (q *queue) join(owner string) *flow {
	if q.flows == nil {
		q.flows, q.spent = make(map[string]*flow), make(map[string]struct{})
	}
	if q.total == 0 {
		q.beginRound()
	}
	f := &flow{owner: owner}
	if _, spent := q.spent[owner]; spent || q.joined >= q.begun+extraTurns {
		f.done = true
	}
	q.joined++
	q.flows[owner] = f
	return f
}

// beginRound starts a new round.
func (q *queue) beginRound() {
	q.current, q.later = q.later, round{}
	for i := range q.current {
		for f := q.current[i].first; f != nil; f = f.next {
			f.done, f.in = false, &q.current[i]
		}
	}
	clear(q.spent)
	q.begun, q.joined = len(q.flows), 0
}

// class returns the class of the flow's most urgent ticket.
func (f *flow) class() int {
	for class, n := range f.classes {
		if n > 0 {
			return class
		}
	}
	return Background
}

// head returns the ticket that the flow's turn is spent on, among those that can be served.
func (f *flow) head(can func(*ticket) bool) *ticket {
	for t := range f.upTo(Background) {
		if can == nil || can(t) {
			return t
		}
	}
	return nil
}

// place puts the flow in the list where it belongs, at its end if it was in another one.
func (q *queue) place(f *flow) {
	to := &q.current[f.class()]
	if f.done {
		to = &q.later[f.class()]
	}
	if f.in == to {
		return
	}
	f.leave()
	f.in, f.prev, f.next = to, to.last, nil
	if to.last == nil {
		to.first = f
	} else {
		to.last.next = f
	}
	to.last = f
}

// leave removes the flow from its list.
func (f *flow) leave() {
	if f.in == nil {
		return
	}
	if f.prev == nil {
		f.in.first = f.next
	} else {
		f.prev.next = f.next
	}
	if f.next == nil {
		f.in.last = f.prev
	} else {
		f.next.prev = f.prev
	}
	f.in, f.next, f.prev = nil, nil, nil
}

// remove takes a ticket out of the queue, and its flow if it was the last one.
func (q *queue) remove(t *ticket) {
	f := t.flow
	f.ranks[t.rank].remove(t)
	t.flow = nil
	f.classes[t.class]--
	f.count--
	f.tokens -= t.tokens
	q.total--
	if t.index >= 0 {
		heap.Remove(&q.due, t.index)
	}
	if f.count > 0 {
		q.place(f)
		return
	}
	f.leave()
	delete(q.flows, f.owner)
	if f.turn || f.done {
		q.spent[f.owner] = struct{}{}
	}
}

// append adds a ticket at the end. The tickets themselves are the list, so that one that is given
// up is removed without a search.
func (l *line) append(t *ticket) {
	t.prev, t.next = l.last, nil
	if l.last == nil {
		l.first = t
	} else {
		l.last.next = t
	}
	l.last = t
}

// remove takes a ticket out, wherever it is.
func (l *line) remove(t *ticket) {
	if t.prev == nil {
		l.first = t.next
	} else {
		t.prev.next = t.next
	}
	if t.next == nil {
		l.last = t.prev
	} else {
		t.next.prev = t.prev
	}
	t.next, t.prev = nil, nil
}

// peek returns the ticket whose turn it is among those that can be served (all of them if
// can is nil), or nil if there is none. An owner without such a ticket loses its turn. The
// result stays the same until the ticket is removed or an owner with a better class joins.
func (q *queue) peek(can func(*ticket) bool) *ticket {
	for idle := 0; q.total > 0 && idle <= len(q.flows); {
		f := q.current.best()
		if f == nil {
			q.beginRound()
			continue
		}
		t := f.head(can)
		switch {
		case t == nil:
			idle++
		case !f.turn:
			f.turn = true
			f.deficit += quantum[f.class()]
			fallthrough
		default:
			if f.deficit >= t.cost {
				return t
			}
			idle = 0
		}
		f.turn, f.done = false, true
		q.place(f)
	}
	return nil
}

// best returns the flow whose turn is next.
func (r *round) best() *flow {
	for i := range r {
		if f := r[i].first; f != nil {
			return f
		}
	}
	return nil
}

// serve removes a ticket that had its turn and charges its flow for it.
func (q *queue) serve(t *ticket) {
	t.flow.deficit -= t.cost
	q.remove(t)
}

// any returns some ticket, for flushing.
func (q *queue) any() *ticket {
	for _, f := range q.flows {
		return f.head(nil)
	}
	return nil
}

// firstDue returns the ticket whose due time is first.
func (q *queue) firstDue() *ticket {
	if len(q.due) == 0 {
		return nil
	}
	return q.due[0]
}

// promote puts a ticket that has aged before the others of its own owner. The turns of the
// owner stay as they are. From now on only the ticket's deadline counts.
func (q *queue) promote(t *ticket) {
	f := t.flow
	f.ranks[t.rank].remove(t)
	t.rank = rankAged
	f.ranks[t.rank].append(t)
	heap.Remove(&q.due, t.index)
	if t.due = t.deadline; !t.due.IsZero() {
		heap.Push(&q.due, t)
	}
}

// count returns how many tickets of a class an owner has queued.
func (q *queue) count(owner string, class int) int {
	if f := q.flows[owner]; f != nil {
		return f.classes[class]
	}
	return 0
}

// ahead estimates how many tickets and tokens will be served before a new ticket: the
// owner's own tickets that are not less urgent, and of each other owner as many as it has
// turns until then.
func (q *queue) ahead(owner string, class int) (tickets, tokens int) {
	turns := 0
	if f := q.flows[owner]; f != nil {
		for t := range f.upTo(class) {
			turns++
			tokens += t.tokens
		}
		tickets = turns
		if f.done {
			turns++
		}
	} else if _, spent := q.spent[owner]; spent {
		turns++
	}
	now, nowTokens := q.current.turns(owner, class, turns)
	then, thenTokens := q.later.turns(owner, class, turns-1)
	return tickets + now + then, tokens + nowTokens + thenTokens
}

// turns estimates how many tickets and tokens of owners other than owner are served until owner's new ticket gets its
// turn. Each of them has that many turns, and one more if its class is at least as urgent as class.
func (r *round) turns(owner string, class, turns int) (tickets, tokens int) {
	for i := range r {
		n := turns
		if i <= class {
			n++
		}
		for f := r[i].first; f != nil && n > 0; f = f.next { // a map of as many flows takes five times as long
			if f.owner == owner {
				continue
			}
			most := min(n, f.count)
			tickets += most
			tokens += f.tokens / f.count * most
		}
	}
	return tickets, tokens
}

// upTo yields the tickets of the flow that are served before a new one of the class.
func (f *flow) upTo(class int) func(func(*ticket) bool) {
	return func(yield func(*ticket) bool) {
		for i := range rankOf(class) + 1 {
			for t := f.ranks[i].first; t != nil; t = t.next {
				if !yield(t) {
					return
				}
			}
		}
	}
}

// excess returns the ticket that loses its place to a new ticket of the owner and class when
// the queue is full, or nil. It is the newest ticket of the owner that has most, if that
// owner has more than the new ticket's owner would have, or as many of a less urgent class.
// Else it is a less urgent ticket of the same owner.
func (q *queue) excess(owner string, class int) *ticket {
	own := 1
	if f := q.flows[owner]; f != nil {
		own += f.count
	}
	var most *flow
	for _, f := range q.flows {
		if f.owner == owner || f.count < own || f.count == own && f.worst() <= class {
			continue
		}
		if most == nil || f.count > most.count || f.count == most.count && f.worst() > most.worst() {
			most = f
		}
	}
	if most != nil {
		return most.newest(most.worst())
	}
	if f := q.flows[owner]; f != nil && f.worst() > class {
		return f.newest(f.worst())
	}
	return nil
}

// worst returns the class of the flow's least urgent ticket.
func (f *flow) worst() int {
	for class := classCount - 1; class > Interactive; class-- {
		if f.classes[class] > 0 {
			return class
		}
	}
	return Interactive
}

// newest returns the ticket of a class that arrived last.
func (f *flow) newest(class int) *ticket {
	if t := f.ranks[rankOf(class)].last; t != nil {
		return t
	}
	for t := f.ranks[rankAged].last; t != nil; t = t.prev {
		if t.class == class {
			return t
		}
	}
	return nil
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

// ageAfter is the wait after which a ticket without a deadline moves up in its owner's flow.
const ageAfter = 5 * time.Second

// schedule sets the rank and the due time of a new ticket, at which the queue looks at it again. An interactive ticket
// is due at its deadline. Any other ticket is due earlier, to be promoted. That is halfway to its deadline, or after
// ageAfter if it has none.
func (t *ticket) schedule() {
	t.index, t.rank, t.due = -1, rankOf(t.class), t.deadline
	if t.class == Interactive {
		return
	}
	if t.deadline.IsZero() {
		t.due = t.asked.Add(ageAfter)
		return
	}
	t.due = t.asked.Add(t.deadline.Sub(t.asked) / 2)
}
