package kept

import (
	"net/http"
	"slices"
	"sync"
	"time"
)

// Blocks of a record grow from the first size to the second, so that short replies cost little and long ones few
// allocations. Go allocates powers of two up to mostBlock, and whole pages beyond, as they are. All other sizes are
// rounded up to more than what is counted.
const (
	firstBlock = 1 << 10
	mostBlock  = 32 << 10
	page       = 8 << 10
)

// The sizes of a record's lists, in bytes or in entries.
const (
	endBytes   = 8  // the place at which an event ends
	leastEnds  = 8  // places of the first list, which doubles
	blockBytes = 48 // a block, in a list that may be half empty
)

// Record is the reply of one request, from its beginning or from the oldest part that is still kept.
type Record struct {
	registry *Registry
	request  Request

	// Under registry.mu.
	clients int // that read the reply, with the one that the request came from
	over    bool
	expires time.Time

	mu      sync.Mutex
	changed chan struct{} // closed at the next change; nil while no client waits for it
	status  int           // 0 before Start
	header  http.Header
	blocks  [][]byte
	base    int64 // the offset at which blocks begins
	size    int64 // the offset at which the reply ends so far
	// ends has the offsets at which events end, from the event after number dropped on. That one ended at droppedEnd.
	ends                []int64
	dropped, droppedEnd int64
	held                int64 // bytes of the pool
	closed, broken      bool
}

// ID returns the id of the request that makes the reply.
func (r *Record) ID() string { return r.request.ID }

// Needs returns the scope and the model that must be permitted to a key with which the reply is read.
func (r *Record) Needs() (scope, model string) { return r.request.Scope, r.request.Model }

// Start sets the status and the headers of the reply. The first call counts. The record keeps header.
func (r *Record) Start(status int, header http.Header) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.status == 0 {
		r.status, r.header = status, header
		r.wakeClients()
	}
}

// Append adds a copy of a piece of the reply. ends are the offsets within the piece at which events end. A piece is not
// divided between blocks, so that a client reads whole events if they were written whole: over a WebSocket each is one
// message.
func (r *Record) Append(piece []byte, ends []int) {
	if len(piece) == 0 {
		return
	}
	room := r.reserve(len(piece), len(ends))
	r.mu.Lock()
	defer r.mu.Unlock()
	defer r.wakeClients()
	start := r.size
	r.size += int64(len(piece))
	if !room {
		r.base = r.size
		if n := len(ends); n > 0 {
			r.dropped, r.droppedEnd = r.dropped+int64(n), start+int64(ends[n-1])
		}
		return
	}
	last := len(r.blocks) - 1
	r.blocks[last] = append(r.blocks[last], piece...)
	for _, end := range ends {
		r.ends = append(r.ends, start+int64(end))
	}
}

// reserve makes room for so many bytes in the last block or in a new one, and for so many ends. If the registry has no
// room, or if the record would hold more than MaxReply, the record drops its oldest blocks. If no room is found even
// then, it has dropped all blocks, and reserve returns false.
func (r *Record) reserve(bytes, ends int) bool {
	g := r.registry
	g.mu.Lock()
	defer g.mu.Unlock()
	r.mu.Lock()
	defer r.mu.Unlock()
	for {
		places, size := r.endsCapacity(ends), r.nextBlock(bytes)
		need := (places - cap(r.ends)) * endBytes
		if size > 0 {
			need += size + blockBytes
		}
		if r.size-r.base+int64(bytes) <= MaxReply && r.take(int64(need)) {
			if places > cap(r.ends) {
				r.ends = append(make([]int64, 0, places), r.ends...)
			}
			if size > 0 {
				r.blocks = append(r.blocks, make([]byte, 0, size))
			}
			return true
		}
		if len(r.blocks) == 0 {
			return false
		}
		r.drop()
	}
}

// endsCapacity returns the capacity that r.ends must have for so many more ends. r.mu must be held.
func (r *Record) endsCapacity(more int) int {
	places := cap(r.ends)
	for places < len(r.ends)+more {
		places = max(2*places, leastEnds)
	}
	return places
}

// nextBlock returns the size of the block that is added for a piece, or 0 if the last block has room for it.
func (r *Record) nextBlock(piece int) int {
	size := firstBlock
	if n := len(r.blocks); n > 0 {
		last := r.blocks[n-1]
		if cap(last)-len(last) >= piece {
			return 0
		}
		size = min(2*cap(last), mostBlock)
	}
	for size < min(piece, mostBlock) {
		size *= 2
	}
	if size < piece {
		size = (piece + page - 1) / page * page
	}
	return size
}

// take claims bytes for the record. registry.mu and r.mu must be held. Records that have ended may be locked to make
// room, and r is none of them.
func (r *Record) take(n int64) bool {
	if r.registry.take(r.request.Owner, n) != nil {
		return false
	}
	r.held += n
	return true
}

// drop removes the oldest block. registry.mu and r.mu must be held.
func (r *Record) drop() {
	freed := int64(cap(r.blocks[0])) + blockBytes
	r.base += int64(len(r.blocks[0]))
	r.blocks[0] = nil
	r.blocks = r.blocks[1:]
	gone := 0
	for gone < len(r.ends) && r.ends[gone] <= r.base {
		gone++
	}
	if gone > 0 {
		r.dropped, r.droppedEnd = r.dropped+int64(gone), r.ends[gone-1]
		r.ends = slices.Delete(r.ends, 0, gone) // the list keeps its places, which stay counted
	}
	if len(r.blocks) == 0 {
		freed += int64(cap(r.ends)) * endBytes
		r.blocks, r.ends = nil, nil
	}
	r.held -= freed
	r.registry.pool.Give(string(r.request.Owner), freed)
}

// Close ends the reply for its readers. broken says that it is cut off, so that their connections must be, too. The
// record still answers to its key, until Release.
func (r *Record) Close(broken bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if !r.closed {
		r.closed, r.broken = true, broken
		r.wakeClients()
	}
}

// Release lets the record be forgotten, Keep later or when its memory is needed. Unless repeat is true, a further
// request with its key is made anew from now on. It follows Close.
func (r *Record) Release(repeat bool) {
	g := r.registry
	g.mu.Lock()
	defer g.mu.Unlock()
	if r.over {
		return
	}
	r.over, r.expires = true, g.now().Add(Keep)
	r.request.Cancel = nil // it would keep the request's context
	g.ended[r.request.Owner] = append(g.ended[r.request.Owner], r)
	if !repeat {
		g.release(r)
	}
}

// Leave ends a client's part in the record. With the policy Cancel, the last client ends the request, and a further
// request with the same key is made anew.
func (r *Record) Leave() {
	g := r.registry
	g.mu.Lock()
	r.clients--
	var cancel func()
	if r.clients == 0 && !r.over && r.request.Policy == Cancel {
		g.release(r)
		cancel = r.request.Cancel
	}
	g.mu.Unlock()
	if cancel != nil {
		cancel()
	}
}

// wakeClients wakes the clients that wait. r.mu must be held.
func (r *Record) wakeClients() {
	if r.changed != nil {
		close(r.changed)
		r.changed = nil
	}
}

// Part has the bytes that a client reads of a record at a time.
type Part struct {
	// Status is 0 before the reply has begun. Header must not be changed.
	Status int
	Header http.Header
	// Bytes follow the offset that was asked for. They must not be changed.
	Bytes []byte
	// Dropped reports that the bytes at the offset are no longer kept.
	Dropped bool
	// Ended reports that no bytes follow. Broken says that the reply was cut off.
	Ended, Broken bool
	// Changed is closed when there is more. It is nil if there is something to do now.
	Changed <-chan struct{}
}

// Read returns what follows an offset of the reply.
func (r *Record) Read(offset int64) Part {
	r.mu.Lock()
	defer r.mu.Unlock()
	p := Part{Status: r.status, Header: r.header, Dropped: offset < r.base}
	if p.Dropped {
		return p
	}
	at := r.base
	for _, b := range r.blocks {
		if skip := offset - at; skip < int64(len(b)) {
			p.Bytes = b[skip:len(b):len(b)]
			return p
		}
		at += int64(len(b))
	}
	if p.Ended, p.Broken = r.closed, r.broken; p.Ended {
		return p
	}
	if r.changed == nil {
		r.changed = make(chan struct{})
	}
	p.Changed = r.changed
	return p
}

// Place says whether a client that has the events up to a number can go on.
type Place uint8

// The places.
const (
	// At means that the client goes on at the offset.
	At Place = iota
	// Ahead means that the reply has no such event, or not yet.
	Ahead
	// Gone means that the bytes that follow the event are no longer kept.
	Gone
)

// After returns the offset at which event number n ends. The first event is number 1, and 0 is the beginning.
func (r *Record) After(n int64) (offset int64, place Place) {
	r.mu.Lock()
	defer r.mu.Unlock()
	switch {
	case n < 0 || n > r.dropped+int64(len(r.ends)):
		return 0, Ahead
	case n == 0:
	case n < r.dropped:
		return 0, Gone
	case n == r.dropped:
		offset = r.droppedEnd
	default:
		offset = r.ends[n-r.dropped-1]
	}
	if offset < r.base {
		return 0, Gone
	}
	return offset, At
}

// Whole returns the reply once it has been closed. ok is false if it is cut off or its beginning is no longer kept.
func (r *Record) Whole() (status int, header http.Header, body []byte, ok bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if !r.closed || r.broken || r.base > 0 || r.status == 0 {
		return r.status, r.header, nil, false
	}
	body = make([]byte, 0, r.size)
	for _, b := range r.blocks {
		body = append(body, b...)
	}
	return r.status, r.header, body, true
}
