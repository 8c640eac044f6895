package upstream

import (
	"bytes"
	"io"
	"net"
	"sync"
	"time"
)

// upload is the body of one call. The transport may go on reading it after
// RoundTrip has returned, in another goroutine, while the caller wants to use
// the bytes for something else: revoke takes them away from it.
type upload struct {
	mu   sync.Mutex
	body []byte
	gone bool
}

// MaxKept is up to where a body is kept instead of lent: it must not be written
// to again. net/http puts it behind the headers and sends both in one write,
// but only if it knows the type of its reader.
const MaxKept = 3 << 10

// open begins at the front, as it must again when the transport tries another
// connection.
func (u *upload) open() io.ReadCloser {
	if len(u.body) <= MaxKept {
		return io.NopCloser(bytes.NewReader(u.body))
	}
	return &uploadReader{upload: u}
}

// revoke waits for a read or write under way. A write can only be held up by a
// connection that is still open, so the reply must be closed before.
func (u *upload) revoke() {
	u.mu.Lock()
	u.gone = true
	u.mu.Unlock()
}

type uploadReader struct {
	*upload
	at int
}

func (r *uploadReader) Read(p []byte) (int, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	switch {
	case r.gone:
		return 0, io.ErrClosedPipe
	case r.at == len(r.body):
		return 0, io.EOF
	}
	n := copy(p, r.body[r.at:])
	r.at += n
	return n, nil
}

// writeTo writes what is left, but at most limit bytes, in one piece.
func (r *uploadReader) writeTo(w io.Writer, limit int64) (int64, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.gone {
		return 0, io.ErrClosedPipe
	}
	rest := r.body[r.at:]
	n, err := w.Write(rest[:min(int64(len(rest)), limit)])
	r.at += n
	return int64(n), err
}

// Close implements io.Closer. The bytes are the caller's.
func (r *uploadReader) Close() error { return nil }

// wire is a connection that takes an upload in one write. By itself net/http
// copies it through a buffer of 32 KiB, which it makes anew for each request.
type wire struct{ *net.TCPConn }

// lastLook is how long a failed upload waits before it is one. An upstream that
// refuses a request may answer and close before it has all of it; net/http takes
// whichever it hears of first, its own failing write or that answer.
const lastLook = 50 * time.Millisecond

// ReadFrom implements io.ReaderFrom, which net/http uses for what does not fit
// its write buffer.
func (w wire) ReadFrom(r io.Reader) (int64, error) {
	if limited, ok := r.(*io.LimitedReader); ok {
		if up, ok := limited.R.(*uploadReader); ok {
			n, err := up.writeTo(w.TCPConn, limited.N)
			limited.N -= n
			if err != nil {
				time.Sleep(lastLook)
			}
			return n, err
		}
	}
	return w.TCPConn.ReadFrom(r)
}
