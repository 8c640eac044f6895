package live

import "sync"

// buffer is what messages are put together in. Between two looks a watcher has
// none.
type buffer struct{ bytes []byte }

var buffers = sync.Pool{New: func() any { return new(buffer) }}

// maxKept is how large a buffer may be that is used again.
const maxKept = 64 << 10

func borrow() *buffer {
	b := buffers.Get().(*buffer)
	b.bytes = b.bytes[:0]
	return b
}

func (b *buffer) giveBack() {
	if cap(b.bytes) <= maxKept {
		buffers.Put(b)
	}
}
