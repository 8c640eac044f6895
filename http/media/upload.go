package media

import (
	"errors"
	"io"
	"net"
	"net/http"
	"time"

	"stagedoor/providers/dialogue"
)

// A client that pauses while it sends a body, or sends it too slowly, gets an error.
const (
	uploadIdle  = 10 * time.Second
	uploadGrace = 30 * time.Second // after which the average rate must be at least uploadRate
	uploadRate  = 1 << 10          // bytes a second
)

// upload reads a body of at most limit bytes within these timeouts. Its errors are *dialogue.Error.
type upload struct {
	body  io.Reader
	rc    *http.ResponseController
	w     http.ResponseWriter
	limit int64
	n     int64
	start time.Time
}

// newUpload returns an error if the Content-Length of the body is above limit.
func newUpload(w http.ResponseWriter, r *http.Request, limit int64) (*upload, error) {
	u := &upload{body: r.Body, rc: http.NewResponseController(w), w: w, limit: limit, start: time.Now()}
	if r.ContentLength > limit {
		return nil, u.tooLarge()
	}
	return u, nil
}

// Read implements io.Reader.
func (u *upload) Read(p []byte) (int, error) {
	_ = u.rc.SetReadDeadline(u.deadline()) // fails only for a ResponseWriter without deadlines
	n, err := u.body.Read(p)
	u.n += int64(n)
	switch {
	case u.n > u.limit:
		return 0, u.tooLarge()
	case err == io.EOF:
		_ = u.rc.SetReadDeadline(time.Time{})
	case err != nil:
		return n, u.broken(err)
	}
	return n, err
}

// deadline returns the time until which the next bytes must arrive. An upload may pause for a while, and it must keep
// a least rate over all, so that many slow ones cannot hold their places for ever.
func (u *upload) deadline() time.Time {
	idle := time.Now().Add(uploadIdle)
	if rate := u.start.Add(uploadGrace + time.Duration(u.n/uploadRate)*time.Second); rate.Before(idle) {
		return rate
	}
	return idle
}

// tooLarge returns the error for a body above the limit. It has the connection closed after the reply, because the rest
// of the body is not read.
func (u *upload) tooLarge() *dialogue.Error {
	u.w.Header().Set("Connection", "close")
	return dialogue.RequestTooLarge(u.limit)
}

// broken returns the error for a body that could not be read. An error that is a *dialogue.Error is
// returned as it is.
func (u *upload) broken(err error) *dialogue.Error {
	u.w.Header().Set("Connection", "close")
	var e *dialogue.Error
	if errors.As(err, &e) {
		return e
	}
	var timeout net.Error
	if errors.As(err, &timeout) && timeout.Timeout() {
		return dialogue.BodyTimeout(err)
	}
	return dialogue.InvalidBody(err)
}

// drain reads a bounded rest of a body after the form has ended, so that the connection can be reused.
func (u *upload) drain() {
	const enough = 4 << 10
	_, _ = io.CopyN(io.Discard, u, enough)
}
