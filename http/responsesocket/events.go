package responsesocket

import (
	"bytes"
	"encoding/json"
	"net/http"
	"slices"
	"strings"

	"github.com/tidwall/gjson"
	"github.com/tidwall/sjson"

	"stagedoor/http/envelope"
	"stagedoor/providers/dialogue"
	"stagedoor/providers/jsonw"
	"stagedoor/providers/shapes/responses"
	"stagedoor/providers/upstream"
)

// maxErrorBody bounds the body of an error. The gateway's own errors are smaller.
const maxErrorBody = 64 << 10

// maxLine bounds a line of the stream, which has one event at most.
const maxLine = upstream.MaxEvent + 1024

// eventWriter is the ResponseWriter of one request. It sends the events of a stream as messages, and an error as
// a message of the type error. A handler that writes faster than the client reads has to wait.
type eventWriter struct {
	connection *connection
	create     *create
	header     http.Header
	status     int
	line       []byte // of the stream, as long as it has not ended; or the body of an error
	data       []byte // of the event that has not ended
	number     int64  // the sequence number of the last event
	created    []byte // the response of response.created, or nil
	ended      bool   // the last message was sent
}

// Header implements http.ResponseWriter.
func (w *eventWriter) Header() http.Header { return w.header }

// WriteHeader implements http.ResponseWriter.
func (w *eventWriter) WriteHeader(status int) {
	if w.status == 0 && status >= http.StatusOK {
		w.status = status
	}
}

// Flush implements http.Flusher. Nothing is held back.
func (w *eventWriter) Flush() {}

// Write implements http.ResponseWriter.
func (w *eventWriter) Write(p []byte) (int, error) {
	w.WriteHeader(http.StatusOK)
	if err := w.connection.ctx.Err(); err != nil {
		return 0, err
	}
	if w.status != http.StatusOK {
		w.line = append(w.line, p[:min(len(p), maxErrorBody-len(w.line))]...)
		return len(p), nil
	}
	n := len(p)
	for len(p) > 0 {
		part, rest, whole := bytes.Cut(p, []byte{'\n'})
		if len(w.line)+len(part) > maxLine {
			return 0, dialogue.ResponseTooLarge()
		}
		if w.line, p = append(w.line, part...), rest; !whole {
			break
		}
		if err := w.endLine(bytes.TrimSuffix(w.line, []byte{'\r'})); err != nil {
			return 0, err
		}
		w.line = w.line[:0]
	}
	return n, nil
}

// endLine takes a line of the stream. Comments keep a connection alive over HTTP and are not needed here.
func (w *eventWriter) endLine(line []byte) error {
	if data, ok := bytes.CutPrefix(line, []byte("data:")); ok {
		if len(w.data) > 0 {
			w.data = append(w.data, '\n')
		}
		w.data = append(w.data, bytes.TrimPrefix(data, []byte{' '})...)
		return nil
	}
	if len(line) > 0 || len(w.data) == 0 {
		return nil
	}
	data := bytes.ToValidUTF8(bytes.TrimSpace(w.data), []byte("\uFFFD"))
	w.data = w.data[:0]
	if w.ended || len(data) < 2 || data[0] != '{' {
		return nil // nothing follows the end, and clients skip what is no object
	}
	return w.event(data)
}

// event sends one event. What it says about the response is noted before the client can read it, because the client
// may continue from the response at once.
func (w *eventWriter) event(data []byte) error {
	kind := gjson.GetBytes(data, "type").Str
	if strings.HasSuffix(kind, ".delta") {
		w.number++
		return w.send(data)
	}
	w.number = max(w.number, gjson.GetBytes(data, "sequence_number").Int())
	cr := w.create
	switch kind {
	case "response.output_item.done":
		w.connection.keepOutput(cr, gjson.GetBytes(data, "item").Raw)
	case "error":
		w.fail(reportedError(data))
		return nil
	case "response.created", "response.in_progress", "response.completed", "response.incomplete", "response.failed":
		data = w.echo(data)
		response := gjson.GetBytes(data, "response")
		switch kind {
		case "response.created":
			w.created = []byte(response.Raw)
		case "response.completed", "response.incomplete":
			w.ended = true
			w.connection.remember(cr, []byte(response.Raw))
		case "response.failed":
			w.ended = true
			w.connection.evict(cr)
		}
	}
	return w.send(data)
}

// echo returns an event whose response names the previous response. The handler does not know the id if the
// connection has put the history into the request.
func (w *eventWriter) echo(data []byte) []byte {
	const path = "response.previous_response_id"
	if w.create.previous == "" || gjson.GetBytes(data, path).Str != "" {
		return data
	}
	if named, err := sjson.SetBytes(data, path, w.create.previous); err == nil {
		return named
	}
	return data
}

// send sends an event with the name of its lane.
func (w *eventWriter) send(data []byte) error {
	if name := w.create.lane.name; name != "" {
		data = slices.Concat(data[:len(data)-1], []byte(`,"stream_id":`), jsonw.AppendString(nil, name), []byte("}"))
	}
	return w.connection.send(data)
}

// refuse ends the request with an error that the handler did not see.
func (w *eventWriter) refuse(err *dialogue.Error) {
	w.ended = true
	w.connection.evict(w.create)
	w.connection.sendError(w.create.lane.name, err, w.header)
}

// fail ends a stream in which an error was reported: with the failed response if it has begun, because clients wait for
// the end of each response that they know of.
func (w *eventWriter) fail(err *dialogue.Error) {
	if w.created == nil {
		w.refuse(err)
		return
	}
	w.ended = true
	w.connection.evict(w.create)
	var e jsonw.Writer
	e.Object().Key("type").String("response.failed").Key("sequence_number").Int(w.number + 1)
	e.Key("response").Raw(json.RawMessage(responses.Failed(w.created, err))).End()
	_ = w.send(e.Buf) // the request has ended either way
}

// end sends the last message of a request whose handler has returned, unless it was sent or the client has left.
func (w *eventWriter) end() {
	switch {
	case w.ended || w.connection.ctx.Err() != nil:
	case w.status >= http.StatusBadRequest && gjson.GetBytes(w.line, "error").IsObject():
		w.connection.evict(w.create)
		_ = w.connection.send(errorMessage(w.create.lane.name, w.status, w.header, w.line))
	default:
		w.fail(dialogue.Incomplete())
	}
}

// reportedError returns the error of an event of the type error, which has no status.
func reportedError(data []byte) *dialogue.Error {
	inner := gjson.GetBytes(data, "error")
	if !inner.IsObject() {
		inner = gjson.ParseBytes(data)
	}
	e := envelope.From(nil)
	e.Message, e.Param = inner.Get("message").Str, inner.Get("param").Str
	if code := inner.Get("code").Str; code != "" {
		e.Code = code
	}
	kind := inner.Get("type").Str
	for status, names := range statuses {
		if slices.Contains(names, kind) || slices.Contains(names, inner.Get("code").Str) {
			e.Status, e.Type = status, kind
		}
	}
	return e
}

// statuses has the types and codes of errors by the status that they have over HTTP. All others have 500.
var statuses = map[int][]string{
	http.StatusBadRequest: {dialogue.TypeInvalidRequest, "context_length_exceeded", "invalid_prompt",
		"content_policy_violation"},
	http.StatusUnauthorized:          {dialogue.TypeAuthentication},
	http.StatusForbidden:             {dialogue.TypePermission},
	http.StatusNotFound:              {dialogue.TypeNotFound},
	http.StatusRequestEntityTooLarge: {dialogue.TypeTooLarge},
	http.StatusTooManyRequests:       {dialogue.TypeRateLimit, dialogue.TypeQuota, "rate_limit_exceeded"},
	http.StatusServiceUnavailable:    {dialogue.TypeOverloaded, "server_is_overloaded", "slow_down"},
}
