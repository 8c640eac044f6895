package live

import "sync"

// buffer is a pooled buffer in which messages are assembled. A watcher that waits holds none.
type buffer struct{ bytes []byte }

var buffers = sync.Pool{New: func() any { return new(buffer) }}

// maxKept is the size of the largest buffer that returns to the pool.
const maxKept = 64 << 10

// borrow returns an empty buffer from the pool.
func borrow() *buffer {
	b := buffers.Get().(*buffer)
	b.bytes = b.bytes[:0]
	return b
}

// giveBack returns a buffer to the pool. One that has grown large is left to the garbage collector, because one long
// reply would otherwise keep its memory for good.
func (b *buffer) giveBack() {
	if cap(b.bytes) <= maxKept {
		buffers.Put(b)
	}
}
