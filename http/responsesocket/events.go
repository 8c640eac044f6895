package responsesocket

import (
	"bytes"
	"encoding/json"
	"errors"
	"net/http"
	"slices"
	"strings"

	"github.com/tidwall/gjson"
	"github.com/tidwall/sjson"

	"stagedoor/providers/dialogue"
	"stagedoor/providers/jsonw"
	"stagedoor/providers/shapes/responses"
)

// maxErrorBody bounds the body of an error. The gateway's own errors are smaller.
const maxErrorBody = 64 << 10

// eventWriter is the ResponseWriter of one request. It sends the events of a stream as messages, and keeps the body of
// an error. A handler that writes faster than the client reads has to wait.
type eventWriter struct {
	connection *connection
	create     *create
	header     http.Header
	status     int
	body       []byte // of an error
	number     int64  // the sequence number of the last event, or -1
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

var blankLine, dataField = []byte("\n\n"), []byte("data: ")

// Write implements http.ResponseWriter. The handlers write whole events, whose lines end in a line feed, and comments
// that keep a connection alive over HTTP.
func (w *eventWriter) Write(p []byte) (int, error) {
	w.WriteHeader(http.StatusOK)
	if w.status != http.StatusOK {
		w.body = append(w.body, p[:min(len(p), maxErrorBody-len(w.body))]...)
		return len(p), nil
	}
	for rest := p; len(rest) > 0; {
		var event []byte
		event, rest, _ = bytes.Cut(rest, blankLine)
		var data []byte
		for line := range bytes.Lines(event) {
			if value, ok := bytes.CutPrefix(line, dataField); ok && data == nil {
				data = value
			} else if ok { // a second line of data is rare
				data = slices.Concat(data, value)
			}
		}
		data = bytes.TrimSpace(data)
		if w.ended || len(data) == 0 || data[0] != '{' {
			continue // nothing follows the end, and clients skip what is no object
		}
		if err := w.event(data); err != nil {
			return 0, err
		}
	}
	return len(p), w.connection.ctx.Err()
}

// errNoResponse ends the reading of a reply that is not a response.
var errNoResponse = errors.New("the reply is not a response")

// event sends one event. What it says about the response is noted before the client can read it, because the client
// may continue from the response at once.
func (w *eventWriter) event(data []byte) error {
	kind := gjson.GetBytes(data, "type").Str
	cr := w.create
	delta := strings.HasSuffix(kind, ".delta")
	if w.number++; !delta || cr.attach != "" {
		w.number = max(w.number, gjson.GetBytes(data, "sequence_number").Int())
	}
	if delta {
		return w.send(data)
	}
	if cr.attach != "" && kind != "error" && !strings.HasPrefix(kind, "response.") {
		w.refuse(dialogue.Invalid("request_id", "is not the id of a streamed response"))
		return errNoResponse
	}
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
			if w.created = []byte(response.Raw); len(w.created) > maxErrorBody {
				// It repeats the instructions and tools of the request, which need not be in memory twice.
				w.created, _ = sjson.SetBytes([]byte(`{"object":"response"}`), "id", response.Get("id").Str)
			}
		case "response.completed", "response.incomplete":
			w.ended = true
			if cr.attach == "" {
				w.connection.remember(cr, []byte(response.Raw))
			}
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

// had reports whether the client that attaches has the event already. It gets the last event in any case, because it
// waits for one. A reply that is kept is read from its beginning for this, because an upstream may number its events
// otherwise than by their places.
func (w *eventWriter) had() bool {
	return w.create.attach != "" && w.number <= w.create.last && !w.ended
}

// send sends an event with the name of its lane, unless the client has it.
func (w *eventWriter) send(data []byte) error {
	if w.had() {
		return nil
	}
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
	case w.status >= http.StatusBadRequest && gjson.GetBytes(w.body, "error").IsObject():
		w.connection.evict(w.create)
		_ = w.connection.send(errorMessage(w.create.lane.name, w.status, w.header, w.body))
	case w.create.attach != "" && w.header.Get("Content-Type") == "application/json":
		w.refuse(dialogue.Invalid("request_id", "is not the id of a streamed response"))
	default:
		w.fail(dialogue.Incomplete())
	}
}

// reportedError returns the error of an event of the type error, which has no status.
func reportedError(data []byte) *dialogue.Error {
	e := responses.Shape.DecodeError(http.StatusInternalServerError, nil, data)
	for status, names := range statuses {
		if code, _ := e.Code.(string); slices.Contains(names, e.Type) || slices.Contains(names, code) {
			e.Status = status
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
