package text

import (
	"errors"
	"io"
	"mime"
	"net"
	"net/http"
	"strings"
	"sync"
	"time"

	"stagedoor/http/overload"
	"stagedoor/providers/dialogue"
	"stagedoor/providers/fields"
	"stagedoor/providers/upstream"
)

// MaxBody is the size of the largest body of a request for text.
const MaxBody = maxBody

// Limits of a request body (faults.md 3).
const (
	maxBody   = 32 << 20
	bodyIdle  = 10 * time.Second // between two reads; the server sets the deadline of the first
	bodyGrace = 30 * time.Second // after which the average rate must be at least bodyRate
	bodyRate  = 1 << 10          // bytes a second
	firstBody = 1 << 20          // the most that is allocated for a Content-Length without permission
)

type body struct {
	b    []byte
	from *sync.Pool // nil: the buffer is not pooled
}

// Buffers of large bodies are pooled by size. There are four sizes for each power of two, so that at most a
// fifth of a buffer is unused. A new buffer of megabytes costs page faults and the clearing of its memory,
// which is as much time as to receive the body. Small bodies get a buffer of exactly their size, because a
// stream keeps the body of its request until it ends, and thousands of streams would keep thousands of
// half-empty buffers.
const (
	minPooledBody = 8 << 10
	bodySizes     = 4*12 + 1 // up to maxBody
)

var bodies [bodySizes]sync.Pool

// bodySize returns the bytes of the buffers of a pool. They have room beyond the round number, because a read
// that finds the end of a body needs a byte.
func bodySize(i int) int { return (4+i%4)<<(i/4)*(minPooledBody/4) + 64 }

// newBody returns an empty body with room for n bytes or more.
func newBody(n int) *body {
	if n <= minPooledBody {
		return &body{b: make([]byte, 0, n)}
	}
	i := 0
	for bodySize(i) < n {
		i++
	}
	if b, ok := bodies[i].Get().(*body); ok {
		return b
	}
	return &body{b: make([]byte, 0, bodySize(i)), from: &bodies[i]}
}

// free returns the buffer to its pool, unless an upstream client may still read it: it keeps bodies of
// up to upstream.MaxKept bytes.
func (b *body) free() {
	if b.from != nil && len(b.b) > upstream.MaxKept {
		b.b = b.b[:0]
		b.from.Put(b)
	}
}

// readBody reads a body after it has checked size, media type and encoding. It does not parse the
// JSON. The caller frees the body when nothing refers to its bytes.
func readBody(w http.ResponseWriter, r *http.Request) (*body, error) {
	if r.ContentLength > maxBody {
		w.Header().Set("Connection", "close")
		return nil, dialogue.RequestTooLarge(maxBody)
	}
	if err := checkMedia(r.Header); err != nil {
		return nil, err
	}
	return receiveBody(w, r)
}

// roomFor returns the bytes of the first buffer for the body of r: all of it if that is allowed before the
// body has arrived.
func roomFor(r *http.Request) int {
	switch length := r.ContentLength; {
	case length < 0:
		return minPooledBody
	case length > firstBody && !overload.AllowBuffer(r.Context(), length):
		return firstBody + 1
	default:
		return int(length) + 1
	}
}

// ReadObject returns a body that is one JSON object, by the rules for requests for text. It checks size, media type,
// encoding, speed and JSON, and the spelling of names.
func ReadObject(w http.ResponseWriter, r *http.Request, names *fields.Names) ([]byte, error) {
	b, err := readBody(w, r)
	if err != nil {
		return nil, err
	}
	return b.b, fields.CheckBody(b.b, names)
}

// checkMedia refuses bodies that are compressed or no JSON. Compressed ones are refused because their size is known
// only after they were unpacked.
func checkMedia(h http.Header) error {
	for _, enc := range h["Content-Encoding"] {
		if enc != "" && !strings.EqualFold(enc, "identity") {
			return dialogue.UnsupportedMedia("Content-Encoding must be identity: send the body uncompressed")
		}
	}
	if len(h["Content-Type"]) > 1 {
		return dialogue.UnsupportedMedia("Content-Type was sent more than once")
	}
	ct := h.Get("Content-Type")
	if ct == "application/json" || ct == "" {
		return nil
	}
	t, params, err := mime.ParseMediaType(ct)
	if err != nil || t != "application/json" && !strings.HasSuffix(t, "+json") {
		return dialogue.UnsupportedMedia("Content-Type must be application/json")
	}
	if cs := params["charset"]; cs != "" && !strings.EqualFold(cs, "utf-8") && !strings.EqualFold(cs, "us-ascii") {
		return dialogue.UnsupportedMedia("Content-Type charset must be utf-8")
	}
	return nil
}

// receiveBody reads the body of r. A client that pauses for bodyIdle or sends more slowly than bodyRate gets
// an error.
func receiveBody(w http.ResponseWriter, r *http.Request) (*body, error) {
	b := newBody(roomFor(r))
	rc := http.NewResponseController(w)
	for start := (time.Time{}); ; {
		if len(b.b) > maxBody {
			b.free()
			w.Header().Set("Connection", "close")
			return nil, dialogue.RequestTooLarge(maxBody)
		}
		if len(b.b) == cap(b.b) {
			b = b.grown()
		}
		n, err := r.Body.Read(b.b[len(b.b):min(cap(b.b), maxBody+1)])
		b.b = b.b[:len(b.b)+n]
		switch {
		case err == io.EOF:
			_ = rc.SetReadDeadline(time.Time{}) // fails only for a ResponseWriter without deadlines
			return b, nil
		case err != nil:
			b.free()
			w.Header().Set("Connection", "close")
			return nil, badBody(err)
		}
		now := time.Now()
		if start.IsZero() {
			start = now
		}
		_ = rc.SetReadDeadline(bodyDeadline(start, now, len(b.b)))
	}
}

// grown returns the body in a buffer of twice the size, and gives the old one back. The client has sent as
// much as the new room by then.
func (b *body) grown() *body {
	more := newBody(min(2*cap(b.b), maxBody+1))
	more.b = append(more.b, b.b...)
	b.free()
	return more
}

// bodyDeadline returns when the next piece of a body must have arrived, after n bytes of it.
func bodyDeadline(start, now time.Time, n int) time.Time {
	idle := now.Add(bodyIdle)
	if rate := start.Add(bodyGrace + time.Duration(n/bodyRate)*time.Second); rate.Before(idle) {
		return rate
	}
	return idle
}

// badBody returns the error for a body that could not be read. An error that is a *dialogue.Error is
// returned as it is.
func badBody(err error) *dialogue.Error {
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
