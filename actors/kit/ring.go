package kit

// ring is a FIFO that returns memory. It doubles when it is full and halves when three quarters are empty, so that one
// burst does not keep its memory for ever.
type ring struct {
	items []any
	head  int
	count int
}

const ringMin = 2 // most mailboxes never hold more

// push adds an item at the end. The length of items is a power of two, so that an index wraps
// around with a mask.
func (r *ring) push(item any) {
	if r.count == len(r.items) {
		r.resize(max(ringMin, 2*len(r.items)))
	}
	r.items[(r.head+r.count)&(len(r.items)-1)] = item
	r.count++
}

// pop removes the first item, or returns nil. The slot is cleared, so that the item can be
// collected. A ring that was long for a while is halved, but not below a length at which this would
// happen all the time.
func (r *ring) pop() any {
	if r.count == 0 {
		return nil
	}
	item := r.items[r.head]
	r.items[r.head] = nil
	r.head = (r.head + 1) & (len(r.items) - 1)
	r.count--
	if len(r.items) > 8*ringMin && r.count <= len(r.items)/4 {
		r.resize(len(r.items) / 2)
	}
	return item
}

// resize keeps the length a power of two, because push and pop mask indexes with it.
func (r *ring) resize(size int) {
	items := make([]any, size)
	for i := range r.count {
		items[i] = r.items[(r.head+i)&(len(r.items)-1)]
	}
	r.items, r.head = items, 0
}
