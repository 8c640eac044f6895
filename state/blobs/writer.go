package blobs

import (
	"fmt"
	"io"

	"stagedoor/state/share"
)

// writer has room reserved for every byte of a blob before it is written, so that many at once cannot fill more than
// the store may.
type writer struct {
	io.Writer
	room  *share.Pool
	owner string
	limit int64
	n     int64 // reserved
}

// Write implements io.Writer.
func (w *writer) Write(p []byte) (int, error) {
	more := int64(len(p))
	if w.n+more > w.limit {
		return 0, fmt.Errorf("%w: over %d bytes", ErrTooLarge, w.limit)
	}
	if err := w.room.Take(w.owner, more); err != nil {
		if w.n+more > w.room.Most() {
			return 0, ErrFull // it is more than any owner may have
		}
		return 0, refusal(err)
	}
	w.n += more
	return w.Writer.Write(p)
}
