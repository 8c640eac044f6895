package cases

import (
	"bytes"
	"compress/gzip"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"regexp"
	"strings"
	"sync"
	"time"
)

// An Upstream is a scripted provider of one shape on loopback. It records what it
// is asked and answers as the running exchange says.
//
// It is safe for concurrent calls, all of which get the answer of the exchange that runs.
type Upstream struct {
	shape  Shape
	server *http.Server
	addr   string
	done   chan struct{} // closed when the server has returned

	mu     sync.Mutex
	script *Exchange
	calls  []call
}

// A call is one request as the upstream received it.
type call struct {
	path    string // with the query
	body    object
	problem string // why the body could not be read
}

// NewUpstream starts a provider of a shape; Close ends it.
func NewUpstream(shape Shape) (*Upstream, error) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return nil, fmt.Errorf("upstream of shape %s: %w", shape, err)
	}
	u := &Upstream{shape: shape, addr: l.Addr().String(), done: make(chan struct{})}
	u.server = &http.Server{Handler: http.HandlerFunc(u.answer), ReadHeaderTimeout: 5 * time.Second}
	go func() {
		defer close(u.done)
		_ = u.server.Serve(l) // ends with ErrServerClosed
	}()
	return u, nil
}

// Close stops the server and waits for it.
func (u *Upstream) Close() {
	_ = u.server.Close()
	<-u.done
}

// BaseURL returns the address as a gateway's configuration wants it for the shape.
func (u *Upstream) BaseURL() string { return BaseURL(u.shape, u.addr) }

// BaseURL returns the address of an upstream as a gateway's configuration has it. It ends with /v1 for the shapes whose
// SDKs count the version to the address.
func BaseURL(shape Shape, addr string) string {
	switch shape {
	case Chat, Responses, Completions:
		return "http://" + addr + "/v1"
	}
	return "http://" + addr
}

// play sets the script for the next calls and forgets earlier ones.
func (u *Upstream) play(x *Exchange) {
	u.mu.Lock()
	defer u.mu.Unlock()
	u.script, u.calls = x, nil
}

// seen returns the calls that have arrived.
func (u *Upstream) seen() []call {
	u.mu.Lock()
	defer u.mu.Unlock()
	return append([]call(nil), u.calls...)
}

// answer records a call and replies as the script of the exchange says.
func (u *Upstream) answer(w http.ResponseWriter, r *http.Request) {
	raw, body, err := readRequest(r)
	c := call{path: r.RequestURI, body: body}
	if err != nil {
		c.problem = err.Error()
	}
	if u.shape == Gemini {
		c.body = asObject(camelize(body))
	}
	u.mu.Lock()
	u.calls = append(u.calls, c)
	script := u.script
	u.mu.Unlock()
	if err != nil || script == nil {
		http.Error(w, `{"error":{"message":"the scripted upstream cannot read this"}}`, http.StatusBadRequest)
		return
	}
	a := script.answer(u.shape, raw, body)
	if a.gzip && strings.Contains(r.Header.Get("Accept-Encoding"), "gzip") {
		a.pieces = [][]byte{compress(bytes.Join(a.pieces, nil))}
		a.headers["Content-Encoding"] = "gzip"
	}
	a.write(w)
}

// readRequest returns the body of a call as bytes and as an object. It also reads compressed bodies.
func readRequest(r *http.Request) (json.RawMessage, object, error) {
	var in io.Reader = r.Body
	if r.Header.Get("Content-Encoding") == "gzip" {
		z, err := gzip.NewReader(r.Body)
		if err != nil {
			return nil, nil, err
		}
		in = z
	}
	raw, err := io.ReadAll(in)
	if err != nil {
		return nil, nil, err
	}
	v, err := parse(raw)
	if err != nil {
		return nil, nil, err
	}
	body, ok := v.(object)
	if !ok {
		return nil, nil, fmt.Errorf("the body is not an object: %.80s", raw)
	}
	return raw, body, nil
}

// compress returns b compressed with gzip.
func compress(b []byte) []byte {
	var out bytes.Buffer
	z := gzip.NewWriter(&out)
	_, _ = z.Write(b) // a Buffer takes everything
	_ = z.Close()
	return out.Bytes()
}

// An answer is a reply ready to be written piece by piece. Each piece is written and flushed on its own. gzip
// compresses the whole reply for a client that accepts it.
type answer struct {
	status  int
	headers map[string]string
	pieces  [][]byte
	gzip    bool
}

// write sends the pieces of a reply apart in time, because a gateway must not depend on where packets are cut.
func (a *answer) write(w http.ResponseWriter) {
	for k, v := range a.headers {
		w.Header().Set(k, v)
	}
	w.WriteHeader(a.status)
	flush := http.NewResponseController(w)
	_ = flush.Flush() // before the body, so that it is chunked whatever its length
	for i, p := range a.pieces {
		if i > 0 {
			// Apart in time, so that they are apart on the wire too.
			time.Sleep(500 * time.Microsecond)
		}
		if _, err := w.Write(p); err != nil {
			return
		}
		_ = flush.Flush()
	}
}

var eventEnd = regexp.MustCompile(`\r\n\r\n|\n\n`)

// answer prepares the reply to a request. A stream is cut after each event unless the case says where
// (UpstreamWrite.Chunk), such as in the middle of a character. Usage is sent only to a client that asked for
// it.
func (x *Exchange) answer(shape Shape, raw json.RawMessage, request object) answer {
	a := answer{status: http.StatusOK, headers: map[string]string{}}
	if x.UpstreamStatus != 0 {
		a.status = x.UpstreamStatus
	}
	text, contentType, isStream := x.content(raw)
	for k, v := range x.UpstreamHeaders {
		if strings.EqualFold(k, "Content-Encoding") {
			a.gzip = v == "gzip"
			continue
		}
		if strings.EqualFold(k, "Content-Type") {
			contentType = v
			continue
		}
		a.headers[k] = v
	}
	a.headers["Content-Type"] = contentType
	asked := !isEmpty(asObject(request["stream_options"])["include_usage"])
	if isStream && (shape == Chat || shape == Completions) && !asked {
		text = withoutUsage(text)
	}
	switch n, sized := asInt(x.UpstreamWrite.Chunk); {
	case sized && n > 0:
		for len(text) > n {
			a.pieces = append(a.pieces, text[:n])
			text = text[n:]
		}
		a.pieces = append(a.pieces, text)
	case isStream:
		a.pieces = splitEvents(text)
	default:
		a.pieces = [][]byte{text}
	}
	return a
}

// content returns the body of the answer to a request, with the request's values in place of placeholders. A
// plain text has none, since cases use it for bodies that are broken on purpose. The three forms of
// UpstreamResponse are a list of texts, which together are a stream; an object with $text, which is sent as
// it is; and any other value, which is the document.
func (x *Exchange) content(request json.RawMessage) (text []byte, contentType string, isStream bool) {
	var pieces []string
	if json.Unmarshal(x.UpstreamResponse, &pieces) == nil {
		return quote(generate([]byte(strings.Join(pieces, ""))), request), "text/event-stream", true
	}
	var plain struct {
		Text        *string `json:"$text"`
		ContentType string  `json:"$content_type"`
	}
	if json.Unmarshal(x.UpstreamResponse, &plain) == nil && plain.Text != nil {
		if plain.ContentType == "" {
			plain.ContentType = "text/plain"
		}
		return []byte(*plain.Text), plain.ContentType, false
	}
	return quote(generate(x.UpstreamResponse), request), "application/json", false
}

// splitEvents cuts a stream after each blank line.
func splitEvents(text []byte) [][]byte {
	var out [][]byte
	for len(text) > 0 {
		end := eventEnd.FindIndex(text)
		if end == nil {
			return append(out, text)
		}
		out = append(out, text[:end[1]])
		text = text[end[1]:]
	}
	return out
}

// withoutUsage leaves out the chunk with only usage, as the real upstream does for
// a client that did not ask for it.
func withoutUsage(text []byte) []byte {
	var out []byte
	for _, event := range splitEvents(text) {
		if data, ok := bytes.CutPrefix(event, []byte("data:")); ok {
			v, err := parse(bytes.TrimSpace(data))
			choices, isList := asObject(v)["choices"].(array)
			if err == nil && !isEmpty(asObject(v)["usage"]) && isList && len(choices) == 0 {
				continue
			}
		}
		out = append(out, event...)
	}
	return out
}
