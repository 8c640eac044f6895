package share

import "sync"

// Latest keeps the newest values that were added, up to a number of values in all. When it
// is full, a new value takes the place of the oldest value of the owner that has most, so
// an owner that adds many values pushes out its own. Of owners that have as many, the one
// gives up a value whose number has not changed for longest.
//
// Adding a value takes constant time however many owners there are, because
// owners are kept in lists by the number of their values. Any goroutine may use a Latest.
type Latest[T any] struct {
	mu     sync.Mutex
	nodes  []node[T]
	free   int32 // the first unused node
	owners map[string]*holder
	ranks  []holders // by the number of values
	top    int       // the largest number of values that an owner has
	used   int
}

// node is one value and its neighbours among those of its owner. Nodes are numbered from 1;
// 0 is none.
type node[T any] struct {
	value      T
	prev, next int32
	owner      *holder
}

// holder is an owner that has values.
type holder struct {
	name          string
	oldest        int32
	newest        int32
	count         int
	before, after *holder // in the list of holders that have as many
}

// holders is a list, in the order in which its members came to have as many values.
type holders struct{ first, last *holder }

// NewLatest returns a Latest of at most size values.
func NewLatest[T any](size int) *Latest[T] {
	return &Latest[T]{nodes: make([]node[T], 1, min(size, 1024)+1), owners: make(map[string]*holder), ranks: make([]holders, size+1)}
}

// Add keeps a value of an owner. If it takes the place of another one, that one is returned.
func (l *Latest[T]) Add(owner string, value T) (gone T, full bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if full = l.used == len(l.ranks)-1; full {
		gone = l.remove(l.ranks[l.top].first.oldest)
	}
	h := l.owners[owner]
	if h == nil {
		h = &holder{name: owner}
		l.owners[owner] = h
	}
	n := l.node()
	l.nodes[n] = node[T]{value: value, prev: h.newest, owner: h}
	if h.newest == 0 {
		h.oldest = n
	} else {
		l.nodes[h.newest].next = n
	}
	h.newest = n
	l.rank(h, 1)
	return gone, full
}

// All appends the values to buffer, in no order.
func (l *Latest[T]) All(buffer []T) []T {
	l.mu.Lock()
	defer l.mu.Unlock()
	for i := range l.nodes {
		if l.nodes[i].owner != nil {
			buffer = append(buffer, l.nodes[i].value)
		}
	}
	return buffer
}

// Len returns how many values there are.
func (l *Latest[T]) Len() int {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.used
}

// node returns an unused node.
func (l *Latest[T]) node() int32 {
	if n := l.free; n != 0 {
		l.free = l.nodes[n].next
		return n
	}
	l.nodes = append(l.nodes, node[T]{})
	return int32(len(l.nodes) - 1)
}

// remove takes node n out of its owner's list and puts it on the list of free ones.
func (l *Latest[T]) remove(n int32) T {
	gone := l.nodes[n]
	h := gone.owner
	if gone.prev == 0 {
		h.oldest = gone.next
	} else {
		l.nodes[gone.prev].next = gone.next
	}
	if gone.next == 0 {
		h.newest = gone.prev
	} else {
		l.nodes[gone.next].prev = gone.prev
	}
	l.nodes[n] = node[T]{next: l.free}
	l.free = n
	l.rank(h, -1)
	return gone.value
}

// rank moves an owner to the list of those that have as many values as it has now.
func (l *Latest[T]) rank(h *holder, change int) {
	if h.count > 0 {
		l.ranks[h.count].remove(h)
	}
	h.count += change
	l.used += change
	if h.count > 0 {
		l.ranks[h.count].append(h)
	} else {
		delete(l.owners, h.name)
	}
	l.top = max(l.top, h.count)
	for l.top > 0 && l.ranks[l.top].first == nil { // once, because numbers change by one
		l.top--
	}
}

// append puts an owner at the end of those with the same number of entries.
func (hs *holders) append(h *holder) {
	h.before, h.after = hs.last, nil
	if hs.last == nil {
		hs.first = h
	} else {
		hs.last.after = h
	}
	hs.last = h
}

// remove takes an owner out of the list.
func (hs *holders) remove(h *holder) {
	if h.before == nil {
		hs.first = h.after
	} else {
		h.before.after = h.after
	}
	if h.after == nil {
		hs.last = h.before
	} else {
		h.after.before = h.before
	}
}
