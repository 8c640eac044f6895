package upstream

import (
	"bytes"
	"io"
	"net"
	"sync"
	"time"
)

// upload is the body of one call. The transport may continue to read it in another goroutine after RoundTrip has
// returned, while the caller wants to reuse the bytes. After revoke the transport reads nothing more.
type upload struct {
	mu      sync.Mutex
	body    []byte
	revoked bool
}

// MaxKept is the size up to which a body is not reused by its caller. net/http sends such a body in one write
// with the headers, but only if it knows the type of the reader, so the body cannot be revoked.
const MaxKept = 3 << 10

// open returns a reader from the beginning. The transport calls it again when it tries another connection.
func (u *upload) open() io.ReadCloser {
	if len(u.body) <= MaxKept {
		return io.NopCloser(bytes.NewReader(u.body))
	}
	return &uploadReader{upload: u}
}

// revoke waits for a read or write that is in progress. A write can only block on a connection that is still
// open, so the reply must be closed first.
func (u *upload) revoke() {
	u.mu.Lock()
	u.revoked = true
	u.mu.Unlock()
}

// uploadReader reads the body of one attempt.
type uploadReader struct {
	*upload
	at int
}

// Read copies the next part of the body, unless the body was revoked: its memory may then be in use for something
// else.
func (r *uploadReader) Read(p []byte) (int, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	switch {
	case r.revoked:
		return 0, io.ErrClosedPipe
	case r.at == len(r.body):
		return 0, io.EOF
	}
	n := copy(p, r.body[r.at:])
	r.at += n
	return n, nil
}

// writeTo writes at most limit of the remaining bytes in one piece.
func (r *uploadReader) writeTo(w io.Writer, limit int64) (int64, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.revoked {
		return 0, io.ErrClosedPipe
	}
	rest := r.body[r.at:]
	n, err := w.Write(rest[:min(int64(len(rest)), limit)])
	r.at += n
	return int64(n), err
}

// Close implements io.Closer. It does nothing, because the caller owns the bytes.
func (r *uploadReader) Close() error { return nil }

// wire is a connection that takes an upload in one write. Without it, net/http copies the upload through a
// buffer of 32 KiB that it allocates for each request.
type wire struct{ *net.TCPConn }

// lastLook delays the report of a failed upload. An upstream that refuses a request may
// answer and close the connection before it has the whole body. net/http then reports the first of its own
// failed write and the answer, and the answer is worth more.
const lastLook = 50 * time.Millisecond

// ReadFrom implements io.ReaderFrom, which net/http calls for a body that does not fit its write buffer.
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
