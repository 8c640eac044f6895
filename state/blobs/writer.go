package blobs

import (
	"errors"
	"fmt"
	"io"
	"os"

	"stagedoor/state/share"
)

// halfPattern names files that are being written.
const halfPattern = "half-*"

// writer fills one file, and has room reserved for every byte of it before it is
// written, so that many at once cannot fill more than the store may.
type writer struct {
	room  *share.Pool
	files *share.Pool
	owner string
	file  *os.File
	limit int64
	n     int64 // written, and reserved
}

func (w *writer) fill(r io.Reader) error {
	if _, err := io.Copy(w, r); err != nil {
		return err
	}
	if err := w.file.Sync(); err != nil {
		return err
	}
	return w.file.Close()
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
	return w.file.Write(p)
}

// discard takes everything back, because of err.
func (w *writer) discard(err error) error {
	w.room.Give(w.owner, w.n)
	w.files.Give(w.owner, 1)
	if closed := w.file.Close(); closed != nil && !errors.Is(closed, os.ErrClosed) {
		err = errors.Join(err, closed)
	}
	return errors.Join(err, os.Remove(w.file.Name()))
}
