package text

import (
	"bytes"
	"errors"
	"io"
	"mime"
	"net"
	"net/http"
	"strconv"
	"strings"
	"sync"
	"time"

	"stagedoor/providers/dialogue"
	"stagedoor/providers/fields"
	"stagedoor/providers/upstream"
)

// Limits of a request body (faults.md 3).
const (
	maxBody       = 32 << 20
	bodyIdle      = 10 * time.Second // between two reads; the server sets the deadline of the first
	bodyGrace     = 30 * time.Second // after which the average rate must be at least bodyRate
	bodyRate      = 1 << 10          // bytes a second
	firstBody     = 1 << 20          // the most that is allocated for a Content-Length before data arrives
	minPooledBody = 8 << 10
	maxPooledBody = 256 << 10
	maxParam      = 256 // of a client's own name in an error
)

type body struct{ b []byte }

// bodies pools the buffers of large bodies. Small bodies get a buffer of exactly their size, because a
// stream keeps the body of its request until it ends, and thousands of streams would keep thousands
// of half-empty buffers.
var bodies = sync.Pool{New: func() any { return new(body) }}

func newBody(length int64) *body {
	if length >= 0 && length < minPooledBody {
		return &body{b: make([]byte, 0, length+1)}
	}
	return bodies.Get().(*body)
}

// free returns the buffer to the pool, unless an upstream client may still read it: it keeps bodies of
// up to upstream.MaxKept bytes.
func (b *body) free() {
	if len(b.b) > upstream.MaxKept && cap(b.b) >= minPooledBody && cap(b.b) <= maxPooledBody {
		b.b = b.b[:0]
		bodies.Put(b)
	}
}

// readBody reads a body after it has checked size, media type and encoding. It does not parse the
// JSON. The caller frees the body when nothing refers to its bytes.
func readBody(w http.ResponseWriter, r *http.Request) (*body, error) {
	if r.ContentLength > maxBody {
		w.Header().Set("Connection", "close")
		return nil, tooLarge()
	}
	if err := checkMedia(r.Header); err != nil {
		return nil, err
	}
	buf := newBody(r.ContentLength)
	if err := buf.read(w, r); err != nil {
		buf.free()
		return nil, err
	}
	return buf, nil
}

func tooLarge() *dialogue.Error {
	return dialogue.RequestTooLarge(maxBody)
}

func checkMedia(h http.Header) error {
	for _, enc := range h["Content-Encoding"] {
		if enc != "" && !strings.EqualFold(enc, "identity") {
			return unsupportedMedia("Content-Encoding must be identity: send the body uncompressed")
		}
	}
	if len(h["Content-Type"]) > 1 {
		return unsupportedMedia("Content-Type was sent more than once")
	}
	ct := h.Get("Content-Type")
	if ct == "application/json" || ct == "" {
		return nil
	}
	t, params, err := mime.ParseMediaType(ct)
	if err != nil || t != "application/json" && !strings.HasSuffix(t, "+json") {
		return unsupportedMedia("Content-Type must be application/json")
	}
	if cs := params["charset"]; cs != "" && !strings.EqualFold(cs, "utf-8") && !strings.EqualFold(cs, "us-ascii") {
		return unsupportedMedia("Content-Type charset must be utf-8")
	}
	return nil
}

func unsupportedMedia(message string) *dialogue.Error {
	return dialogue.UnsupportedMedia(message)
}

// read fills b with the body. A client that pauses for bodyIdle or sends more slowly than bodyRate gets
// an error.
func (b *body) read(w http.ResponseWriter, r *http.Request) error {
	rc := http.NewResponseController(w)
	room := int(min(r.ContentLength, firstBody)) + 1
	if room == 0 {
		room = minPooledBody // unknown length
	}
	if cap(b.b) < room {
		b.b = make([]byte, 0, room)
	}
	for start := (time.Time{}); ; {
		if len(b.b) > maxBody {
			w.Header().Set("Connection", "close")
			return tooLarge()
		}
		if len(b.b) == cap(b.b) {
			b.grow(r.ContentLength)
		}
		n, err := r.Body.Read(b.b[len(b.b):min(cap(b.b), maxBody+1)])
		b.b = b.b[:len(b.b)+n]
		switch {
		case err == io.EOF:
			_ = rc.SetReadDeadline(time.Time{}) // fails only for a ResponseWriter without deadlines
			return nil
		case err != nil:
			w.Header().Set("Connection", "close")
			return badBody(err)
		}
		now := time.Now()
		if start.IsZero() {
			start = now
		}
		_ = rc.SetReadDeadline(bodyDeadline(start, now, len(b.b)))
	}
}

// grow doubles the buffer, but not beyond the Content-Length. The client has sent enough of the body
// by now for the length to be credible.
func (b *body) grow(length int64) {
	room := 2 * cap(b.b)
	if length >= int64(len(b.b)) {
		room = min(room, int(min(length, maxBody))+1)
	}
	more := make([]byte, len(b.b), max(room, len(b.b)+1))
	copy(more, b.b)
	b.b = more
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

// checkJSON returns an error unless b is one JSON object without duplicate or misspelled names that is
// not nested too deeply.
func checkJSON(b []byte, names *fields.Names) error {
	if fields.ValidObject(b, names) {
		return nil
	}
	return explainJSON(b, names)
}

// explainJSON returns the error for b, which is not a valid object.
func explainJSON(b []byte, names *fields.Names) error {
	fault := fields.ExplainNames(b, names)
	switch {
	case len(bytes.TrimLeft(b, " \t\r\n")) == 0:
		return invalidJSON("the request body is empty, a JSON object is expected")
	case fault.Flaw == fields.Sound:
		return invalidJSON("the request body must be a JSON object")
	case fault.Flaw == fields.RepeatedName:
		e := dialogue.Invalid(shortParam(fault.Path), "must not occur twice in its object")
		e.Code = "duplicate_key"
		return e
	case fault.Flaw == fields.MisspelledName:
		return dialogue.MisspelledName(shortParam(fault.Path), fault.Name)
	case fault.Flaw.OverLimit():
		e := invalidJSON("the request body " + fault.Rule())
		e.Param = shortParam(fault.Path)
		return e
	case fault.Offset == len(b):
		return invalidJSON("the request body is not valid JSON: it ends too early")
	}
	return invalidJSON("the request body is not valid JSON, see byte " + strconv.Itoa(fault.Offset))
}

// shortParam cuts a path that consists of the client's own names.
func shortParam(path string) string {
	if len(path) <= maxParam {
		return path
	}
	return strings.ToValidUTF8(path[:maxParam], "") + "..."
}

func invalidJSON(message string) *dialogue.Error {
	return dialogue.BadRequest("invalid_json", message)
}
