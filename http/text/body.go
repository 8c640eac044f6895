package text

import (
	"bytes"
	"errors"
	"fmt"
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
	bodyIdle      = 10 * time.Second // between two reads; the server sets it for the first
	bodyGrace     = 30 * time.Second // after which it must have come at bodyRate
	bodyRate      = 1 << 10          // bytes a second
	firstBody     = 1 << 20          // what a client's word for its length is worth
	minPooledBody = 8 << 10
	maxPooledBody = 256 << 10
	maxParam      = 256 // of a client's own name in an error
)

type body struct{ b []byte }

// bodies holds the buffers of large bodies. A small one is made to measure: a
// stream keeps its request's body to its end, and thousands of streams would
// keep thousands of half-empty buffers.
var bodies = sync.Pool{New: func() any { return new(body) }}

func newBody(length int64) *body {
	if length >= 0 && length < minPooledBody {
		return &body{b: make([]byte, 0, length+1)}
	}
	return bodies.Get().(*body)
}

// free gives the buffer to another request, unless an upstream client may still
// read it: of a short one it keeps the bytes.
func (b *body) free() {
	if len(b.b) > upstream.MaxKept && cap(b.b) >= minPooledBody && cap(b.b) <= maxPooledBody {
		b.b = b.b[:0]
		bodies.Put(b)
	}
}

// readBody reads a body that says it is JSON: size, type, encoding. The caller
// frees it when nothing refers to its bytes.
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
	return &dialogue.Error{Status: 413, Type: dialogue.TypeTooLarge, Code: "request_too_large",
		Message: fmt.Sprintf("the request body is larger than %d MiB", maxBody>>20)}
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
	return &dialogue.Error{Status: 415, Type: dialogue.TypeInvalidRequest, Code: "unsupported_media_type", Message: message}
}

// read fills b with the body. A client may be slow, but neither silent nor
// slower than anybody's line.
func (b *body) read(w http.ResponseWriter, r *http.Request) error {
	rc := http.NewResponseController(w)
	room := int(min(r.ContentLength, firstBody)) + 1
	if room == 0 {
		room = minPooledBody // its length is not known
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
			_ = rc.SetReadDeadline(time.Time{}) // a ResponseWriter without deadlines does without
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

// grow doubles the buffer, but not beyond a length that the client has announced: by now
// it has sent enough of the body for its word to count.
func (b *body) grow(length int64) {
	room := 2 * cap(b.b)
	if length >= int64(len(b.b)) {
		room = min(room, int(min(length, maxBody))+1)
	}
	more := make([]byte, len(b.b), max(room, len(b.b)+1))
	copy(more, b.b)
	b.b = more
}

// bodyDeadline is when the next piece of a body must have come, n bytes of which
// are there.
func bodyDeadline(start, now time.Time, n int) time.Time {
	idle := now.Add(bodyIdle)
	if rate := start.Add(bodyGrace + time.Duration(n/bodyRate)*time.Second); rate.Before(idle) {
		return rate
	}
	return idle
}

// badBody is what a client is told of a body that could not be read. A reader
// may say that itself.
func badBody(err error) *dialogue.Error {
	var told *dialogue.Error
	if errors.As(err, &told) {
		return told
	}
	var timeout net.Error
	if errors.As(err, &timeout) && timeout.Timeout() {
		return &dialogue.Error{Status: 408, Type: dialogue.TypeInvalidRequest, Code: "request_timeout",
			Message: "the request body did not arrive in time", Cause: err}
	}
	return &dialogue.Error{Status: 400, Type: dialogue.TypeInvalidRequest, Code: "invalid_body",
		Message: "the request body could not be read to its end", Cause: err}
}

// checkJSON wants one JSON object without duplicate names, not too deep, with names
// of the shape spelled as they are read.
func checkJSON(b []byte, names *fields.Names) error {
	if fields.ValidObject(b, names) {
		return nil
	}
	return explainJSON(b, names)
}

// explainJSON says what is wrong with b, which is not a valid object.
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

// shortParam cuts a path that is made of the client's own names.
func shortParam(path string) string {
	if len(path) <= maxParam {
		return path
	}
	return strings.ToValidUTF8(path[:maxParam], "") + "..."
}

func invalidJSON(message string) *dialogue.Error {
	return &dialogue.Error{Status: 400, Type: dialogue.TypeInvalidRequest, Code: "invalid_json", Message: message}
}
