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

	"github.com/go-json-experiment/json/jsontext"

	"stagedoor/providers/dialogue"
)

// Limits of a request body (faults.md 3).
const (
	maxBody       = 32 << 20
	maxDepth      = 128
	bodyIdle      = 10 * time.Second // between two reads
	maxPooledBody = 256 << 10
)

type body struct{ b []byte }

var bodies = sync.Pool{New: func() any { return &body{b: make([]byte, 0, 8<<10)} }}

func (b *body) free() {
	if cap(b.b) <= maxPooledBody {
		b.b = b.b[:0]
		bodies.Put(b)
	}
}

// readBody reads and checks a JSON body: size, type, encoding, syntax, depth,
// duplicate names. The caller frees it when nothing refers to its bytes.
func readBody(w http.ResponseWriter, r *http.Request) (*body, error) {
	if r.ContentLength > maxBody {
		w.Header().Set("Connection", "close")
		return nil, tooLarge()
	}
	if err := checkMedia(r.Header); err != nil {
		return nil, err
	}
	buf := bodies.Get().(*body)
	if err := buf.read(w, r); err != nil {
		buf.free()
		return nil, err
	}
	if err := checkJSON(buf.b); err != nil {
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
	if enc := h.Get("Content-Encoding"); enc != "" && enc != "identity" {
		return unsupportedMedia("Content-Encoding must be identity: send the body uncompressed")
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

// read fills b with the body. A client may be slow, but not silent.
func (b *body) read(w http.ResponseWriter, r *http.Request) error {
	rc := http.NewResponseController(w)
	if n := int(r.ContentLength); n >= 0 && cap(b.b) < n+1 {
		b.b = make([]byte, 0, n+1)
	}
	var deadline time.Time
	for {
		if len(b.b) > maxBody {
			w.Header().Set("Connection", "close")
			return tooLarge()
		}
		if len(b.b) == cap(b.b) {
			b.b = append(b.b, 0)[:len(b.b)]
		}
		// What has arrived with the headers needs no deadline; a body of one
		// read never sets one.
		if len(b.b) > 0 || r.ContentLength < 0 {
			deadline = time.Now().Add(bodyIdle)
			_ = rc.SetReadDeadline(deadline)
		}
		n, err := r.Body.Read(b.b[len(b.b):cap(b.b)])
		b.b = b.b[:len(b.b)+n]
		switch {
		case err == io.EOF:
			if !deadline.IsZero() {
				_ = rc.SetReadDeadline(time.Time{})
			}
			return nil
		case err != nil:
			w.Header().Set("Connection", "close")
			return badBody(err)
		}
	}
}

func badBody(err error) *dialogue.Error {
	var timeout net.Error
	if errors.As(err, &timeout) && timeout.Timeout() {
		return &dialogue.Error{Status: 408, Type: dialogue.TypeInvalidRequest, Code: "request_timeout",
			Message: "the request body did not arrive in time", Cause: err}
	}
	return &dialogue.Error{Status: 400, Type: dialogue.TypeInvalidRequest, Code: "invalid_body",
		Message: "the request body could not be read to its end", Cause: err}
}

// checkJSON wants one JSON object without duplicate names, not too deep.
func checkJSON(b []byte) error {
	if len(bytes.TrimLeft(b, " \t\r\n")) == 0 {
		return invalidJSON("the request body is empty, a JSON object is expected")
	}
	// Nesting is looked at first: cheap, and it bounds what follows.
	if bytes.Count(b, []byte{'{'})+bytes.Count(b, []byte{'['}) > maxDepth && depth(b) > maxDepth {
		return invalidJSON("the request body is nested deeper than " + strconv.Itoa(maxDepth) + " levels")
	}
	v := jsontext.Value(b)
	if !v.IsValid() {
		return explainJSON(b)
	}
	if v.Kind() != '{' {
		return invalidJSON("the request body must be a JSON object")
	}
	return nil
}

// depth is the deepest nesting of b, counted without regard to syntax.
func depth(b []byte) int {
	level, deepest := 0, 0
	for i := 0; i < len(b); i++ {
		switch b[i] {
		case '"':
			i = stringEnd(b, i)
		case '{', '[':
			level++
			deepest = max(deepest, level)
		case '}', ']':
			level--
		}
	}
	return deepest
}

// stringEnd is the index of the quote that ends the string begun at i.
func stringEnd(b []byte, i int) int {
	for i++; i < len(b); i++ {
		n := bytes.IndexAny(b[i:], `"\`)
		if n < 0 {
			return len(b)
		}
		if i += n; b[i] == '"' {
			return i
		}
		i++ // whatever is escaped
	}
	return len(b)
}

// explainJSON says what is wrong with b, which is not valid.
func explainJSON(b []byte) error {
	dec := jsontext.NewDecoder(bytes.NewReader(b))
	_, err := dec.ReadValue()
	if err == nil {
		_, err = dec.ReadToken()
		if err == nil {
			return invalidJSON("the request body has something after its JSON object")
		}
	}
	var syntax *jsontext.SyntacticError
	if errors.As(err, &syntax) && errors.Is(err, jsontext.ErrDuplicateName) {
		e := invalidJSON("a name occurs twice in the object " + strconv.Quote(string(syntax.JSONPointer.Parent())))
		e.Code = "duplicate_key"
		e.Param = strings.ReplaceAll(strings.TrimPrefix(string(syntax.JSONPointer), "/"), "/", ".")
		return e
	}
	if errors.As(err, &syntax) {
		return invalidJSON("the request body is not valid JSON, see byte " + strconv.FormatInt(syntax.ByteOffset, 10))
	}
	return invalidJSON("the request body is not valid JSON: it ends too early")
}

func invalidJSON(message string) *dialogue.Error {
	return &dialogue.Error{Status: 400, Type: dialogue.TypeInvalidRequest, Code: "invalid_json", Message: message}
}
