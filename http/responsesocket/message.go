package responsesocket

import (
	"bytes"
	"encoding/json"
	"io"
	"maps"
	"slices"
	"strconv"
	"strings"

	"github.com/tidwall/gjson"

	"stagedoor/http/envelope"
	"stagedoor/providers/dialogue"
	"stagedoor/providers/fields"
	"stagedoor/providers/jsonw"
	"stagedoor/providers/memory"
)

const (
	maxStreamID = 256 // bytes of the longest name of a lane
	maxTrace    = 64  // bytes of the longest traceparent
)

// create is a response.create message, or one that attaches to a request whose reply is kept. It is the body
// of its request, too. It is used by one goroutine at a time: that of read until the request begins, and that
// of the request afterwards.
type create struct {
	lane     *lane
	id       string // the request id
	body     []byte // of the request; nil when it was read
	previous string // the previous_response_id
	trace    string // the traceparent, or ""
	warmUp   bool
	key      string // the idempotency key, or ""
	// attach is the id of the request whose reply the client wants, or "", and last the sequence_number of the last
	// event that the client has, or -1.
	attach string
	last   int64
	claim  memory.Claim // for body
	read   int

	kept *remembered // the input and the output so far, or nil if the response cannot be remembered
}

// Read implements io.Reader. The memory is free when the handler has the body.
func (cr *create) Read(p []byte) (int, error) {
	n := copy(p, cr.body[cr.read:])
	if cr.read += n; cr.read == len(cr.body) {
		cr.free()
		return n, io.EOF
	}
	return n, nil
}

// free releases the message.
func (cr *create) free() {
	cr.body, cr.read = nil, 0
	cr.claim.End()
}

// handle handles a message of the client, which takes over the claim.
func (c *connection) handle(message []byte, claim *memory.Claim) {
	stream, err := c.dispatch(message, claim)
	if err != nil {
		claim.End()
		c.sendError(stream, err, nil)
	}
}

// dispatch handles a message by its type. An error is sent with the name of the lane that it returns. A
// message that is no valid JSON has no lane, so its error names none.
func (c *connection) dispatch(message []byte, claim *memory.Claim) (stream string, refusal *dialogue.Error) {
	if err := fields.CheckBody(message, nil); err != nil {
		return "", envelope.From(err)
	}
	members := fields.Members(message)
	valueOf := func(name string) gjson.Result {
		for _, m := range members {
			if m.Name == name {
				return fields.View(message[m.Value:m.End])
			}
		}
		return gjson.Result{}
	}
	if v := valueOf("stream_id"); v.Exists() {
		if v.Type != gjson.String || !isStreamID(v.Str) {
			return "", dialogue.BadField("stream_id", "invalid_stream_id",
				"must be a string of 1 to 256 letters, digits, underscores, points and hyphens")
		}
		stream = strings.Clone(v.Str)
	}
	switch kind := valueOf("type"); kind.Str {
	case "response.create":
		cr, err := newCreate(message, members)
		if err == nil {
			cr.claim = *claim
			err = c.accept(cr, stream)
		}
		return stream, err
	case attachType:
		cr, err := newAttach(valueOf("request_id"), valueOf("starting_after"))
		if err == nil {
			cr.claim = *claim
			err = c.accept(cr, stream)
		}
		return stream, err
	case "response.processed": // nothing waits for an answer
	case "response.steer":
		_ = c.send(steerFailed(stream, valueOf("previous_response_id"), valueOf("input")))
	default:
		return stream, dialogue.BadField("type", "unsupported_event_type", "must be response.create")
	}
	claim.End()
	return stream, nil
}

// attachType is the type of a message that attaches to a request.
const attachType = "stagedoor.attach"

// newAttach returns what attaches to a request. after is the sequence_number of the last event that the client has.
func newAttach(id, after gjson.Result) (*create, *dialogue.Error) {
	const most = 200 // bytes of an id, which the gateway makes from that of the upgrade
	if id.Type != gjson.String || id.Str == "" || len(id.Str) > most {
		return nil, dialogue.Invalid("request_id", "must be the id of a request")
	}
	cr := &create{attach: strings.Clone(id.Str), last: -1}
	if after.Exists() {
		n, err := strconv.ParseInt(after.Raw, 10, 32)
		if err != nil || n < 0 {
			return nil, dialogue.Invalid("starting_after", "must be a sequence number, 0 or more")
		}
		cr.last = n
	}
	return cr, nil
}

// isStreamID reports whether s may name a lane.
func isStreamID(s string) bool {
	return s != "" && len(s) <= maxStreamID && strings.IndexFunc(s, func(r rune) bool {
		return (r < 'a' || r > 'z') && (r < 'A' || r > 'Z') && (r < '0' || r > '9') && !strings.ContainsRune("_.-", r)
	}) < 0
}

// encrypted is the include that lets a response which is not stored be continued.
const encrypted = `"` + dialogue.IncludeEncrypted + `"`

// newCreate makes the body of the request from a message. It leaves out the members that belong to the transport, and
// asks for encrypted reasoning if the response is not stored.
//
// stream is always true, because the events are sent as messages. A response that is not stored cannot be
// continued by an id at the provider, so its reasoning is asked for in encrypted form and is sent with the
// next request. client_metadata, generate, idempotency_key and stream_id have no place in the body of a
// request over HTTP.
func newCreate(message []byte, members []fields.Member) (*create, *dialogue.Error) {
	cr := &create{}
	body := append(make([]byte, 0, len(message)+64), `{"stream":true`...)
	include, stored := []byte("[]"), true
	for _, m := range members {
		value := message[m.Value:m.End]
		v := fields.View(value)
		switch m.Name {
		case "type", "stream_id", "stream", "access_programs":
			continue
		case "client_metadata":
			if trace := v.Get("traceparent").Str; len(trace) <= maxTrace {
				cr.trace = strings.Clone(trace)
			}
			continue
		case "idempotency_key":
			if v.Type != gjson.String {
				return nil, dialogue.Invalid("idempotency_key", "must be a string")
			}
			cr.key = strings.Clone(v.String())
			continue
		case "generate":
			if !v.IsBool() {
				return nil, dialogue.Invalid("generate", "must be true or false")
			}
			cr.warmUp = !v.Bool()
			continue
		case "background":
			if v.Bool() {
				return nil, dialogue.Unsupported("background", "it is not available over a WebSocket")
			}
		case "stream_options":
			all := fields.Members(value)
			value = fields.Without(value, all, func(i int) bool { return all[i].Name == "reasoning_summary_delivery" })
			if len(all) == 1 && len(value) < m.End-m.Value {
				continue
			}
		case "include":
			if v.IsArray() {
				include = value
				continue
			}
		case "store":
			stored = v.Type != gjson.False
		case "previous_response_id":
			cr.previous = strings.Clone(v.Str)
		}
		body = append(append(append(body, ','), message[m.Start:m.Value]...), value...)
	}
	if !stored {
		include = withEncrypted(include)
	}
	if len(include) > len("[]") {
		body = append(append(body, `,"include":`...), include...)
	}
	cr.body = append(body, '}')
	return cr, nil
}

// withEncrypted returns include with reasoning.encrypted_content. It asks for it only once, because a client may have
// asked for it itself.
func withEncrypted(include []byte) []byte {
	names := fields.View(include).Array()
	if slices.ContainsFunc(names, func(v gjson.Result) bool { return v.Str == dialogue.IncludeEncrypted }) {
		return include
	}
	comma := ","
	if len(names) == 0 {
		comma = ""
	}
	return slices.Concat(bytes.TrimSuffix(include, []byte("]")), []byte(comma+encrypted+"]"))
}

// steerFailed returns the answer to a client that steers a running response. The client then sends the input with
// the next request.
func steerFailed(stream string, previous, input gjson.Result) []byte {
	var w jsonw.Writer
	w.Object().Key("type").String("response.steer.failed")
	if stream != "" {
		w.Key("stream_id").String(stream)
	}
	w.Key("error").Object().Key("type").String(dialogue.TypeInvalidRequest).Key("code").String("steering_not_supported")
	w.Key("message").String("a running response cannot be steered here, send the input with the next response.create")
	w.End()
	w.Key("steer").Object()
	for name, v := range map[string]gjson.Result{"previous_response_id": previous, "input": input} {
		if v.Exists() {
			w.Key(name).RawString(v.Raw)
		}
	}
	w.End().End()
	return w.Buf
}

// errorMessage returns the message for a reply with an error: its status, its error, and those of its headers
// that clients use. The headers stand in the message twice: inside the error and beside it.
func errorMessage(stream string, status int, header map[string][]string, body []byte) []byte {
	reported := gjson.GetBytes(body, "error")
	kind, code := reported.Get("type"), reported.Get("code")
	if reported.Get("param").Str == "previous_response_id" && status == 404 {
		// Over HTTP the status is 404. Clients of this transport look for 400 and this code.
		status = 400
		code, kind = gjson.Parse(`"previous_response_not_found"`), gjson.Parse(`"invalid_request_error"`)
	}
	var headers jsonw.Writer
	headers.Object()
	for _, name := range slices.Sorted(maps.Keys(header)) {
		if strings.HasPrefix(name, "X-") || strings.HasPrefix(name, "Retry-After") {
			headers.KeyOf(strings.ToLower(name)).String(header[name][0])
		}
	}
	headers.End()
	var w jsonw.Writer
	w.Object().Key("type").String("error").Key("status").Int(int64(status))
	if stream != "" {
		w.Key("stream_id").String(stream)
	}
	w.Key("error").Object()
	for _, m := range []struct {
		name  string
		value gjson.Result
	}{{"type", kind}, {"code", code}, {"message", reported.Get("message")}, {"param", reported.Get("param")}} {
		w.Key(m.name)
		if m.value.Exists() {
			w.RawString(m.value.Raw)
		} else {
			w.Null()
		}
	}
	w.Key("headers").Raw(json.RawMessage(headers.Buf)).End()
	w.Key("headers").Raw(json.RawMessage(headers.Buf)).End()
	return w.Buf
}
