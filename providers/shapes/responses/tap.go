package responses

import (
	"bytes"
	"strconv"
	"strings"

	"github.com/tidwall/gjson"
	"github.com/tidwall/sjson"

	"stagedoor/providers/dialogue"
	"stagedoor/providers/fields"
	"stagedoor/providers/shapes"
)

// tap implements shapes.Tap. Most events of a stream are deltas, which it recognises by name and
// does not parse.
type tap struct {
	options  shapes.TapOptions
	response []byte // the object of response.created: what Fail ends with
	seq      int64  // the last sequence_number seen, -1: none
	usage    dialogue.Usage
	reason   dialogue.Reason
	calls    bool
	// compacted is set when an item with the compacted conversation has come.
	compacted bool
	done      bool
	err       *dialogue.Error
}

// Event implements shapes.Watcher. Of deltas, the bulk of all events, it reads only the sequence
// number. An event that the client does not get has no number, so that Fail gives its own event the
// next one.
func (t *tap) Event(name string, data []byte) ([]byte, shapes.Verdict, bool) {
	if t.done {
		return nil, shapes.Drop, false
	}
	replaced, verdict, content := t.event(name, data)
	if verdict == shapes.Forward || verdict == shapes.Replace {
		t.count(data)
	}
	return replaced, verdict, content
}

// event decides about one event.
func (t *tap) event(name string, data []byte) ([]byte, shapes.Verdict, bool) {
	if name == "" || name == "message" {
		name = gjson.GetBytes(data, "type").String()
	}
	switch name {
	case "response.created", "response.queued", "response.in_progress":
		return t.progress(data)
	case "response.completed", "response.incomplete":
		return t.terminal(data)
	case "response.failed", "error":
		return t.fail(name, data)
	case "response.output_item.added", "response.output_item.done":
		item := gjson.GetBytes(data, "item")
		t.see(item)
		if kind := item.Get("type").Str; t.waits() && (isCall(kind) || kind == "message" &&
			item.Get("role").Str == "assistant") {
			return t.notCompacted()
		}
		return nil, shapes.Forward, name == "response.output_item.done" && !t.waits()
	case "":
		return t.nameless(data)
	}
	return nil, shapes.Forward, (strings.HasSuffix(name, ".delta") || strings.HasSuffix(name, ".done")) && !t.waits()
}

// see notes an item of the output.
func (t *tap) see(item gjson.Result) {
	kind := item.Get("type").Str
	t.calls = t.calls || isCall(kind)
	t.compacted = t.compacted || isCompaction(kind)
}

// waits reports whether the reply must still bring a compacted conversation. Nothing else in it counts.
func (t *tap) waits() bool { return t.options.Compaction != dialogue.NoCompaction && !t.compacted }

// notCompacted fails a reply in which the model goes on with the conversation, as if it had not been asked to compact
// it. Clients take such a reply for an error that they cannot mend.
func (t *tap) notCompacted() ([]byte, shapes.Verdict, bool) {
	t.err = dialogue.BadUpstream("the reply has no compacted conversation")
	return nil, shapes.Failed, false
}

// isCall reports whether items of a type are calls of the client's tools.
func isCall(kind string) bool { return kind == "function_call" || kind == "custom_tool_call" }

// sequence is the name of the member that numbers events, as the vendor writes it.
var sequence = []byte(`"sequence_number":`)

// count notes the sequence number, which Fail continues. It searches for bytes instead of parsing:
// the member stands near the front, and its quoted name cannot occur inside a string without
// escapes.
func (t *tap) count(data []byte) {
	n := t.seq + 1
	if at := bytes.Index(data, sequence); at >= 0 {
		if seq, ok := leadingInt(data[at+len(sequence):]); ok {
			n = max(n, seq)
		}
	}
	t.seq = n
}

// leadingInt returns the number that b begins with.
func leadingInt(b []byte) (int64, bool) {
	b = bytes.TrimLeft(b, " ")
	end := 0
	for end < len(b) && b[end] >= '0' && b[end] <= '9' {
		end++
	}
	n, err := strconv.ParseInt(string(b[:end]), 10, 64)
	return n, err == nil
}

// progress handles the events that come before any content. The first has the response object,
// which Fail needs to end the stream with.
func (t *tap) progress(data []byte) ([]byte, shapes.Verdict, bool) {
	data, v := t.rename(data, "response.model")
	if t.response == nil {
		if response := gjson.GetBytes(data, "response"); response.IsObject() {
			t.response = []byte(response.Raw)
		}
	}
	return data, v, false
}

// rename replaces the model by the alias that the client used, if it used one.
func (t *tap) rename(data []byte, path string) ([]byte, shapes.Verdict) {
	if t.options.Model == "" || gjson.GetBytes(data, path).Str == t.options.Model {
		return data, shapes.Forward
	}
	renamed, err := sjson.SetBytes(data, path, t.options.Model)
	if err != nil {
		return data, shapes.Forward
	}
	return renamed, shapes.Replace
}

// terminal handles the last event of a reply that did not fail.
func (t *tap) terminal(data []byte) ([]byte, shapes.Verdict, bool) {
	t.learn(gjson.GetBytes(data, "response"))
	if t.waits() {
		return t.notCompacted()
	}
	t.done = true
	data, v := t.rename(data, "response.model")
	return data, v, true
}

// learn reads the usage and the reason from a final response.
func (t *tap) learn(response gjson.Result) {
	t.usage.Merge(readUsage(response.Get("usage")))
	response.Get("output").ForEach(func(_, item gjson.Result) bool {
		t.see(item)
		return true
	})
	t.reason = reasonOf(response, t.calls)
}

// fail handles an event that reports a failure.
func (t *tap) fail(name string, data []byte) ([]byte, shapes.Verdict, bool) {
	failure := gjson.ParseBytes(data)
	if name == "response.failed" {
		failure = failure.Get("response")
		t.usage.Merge(readUsage(failure.Get("usage")))
	}
	t.err = inBandError(failure)
	return nil, shapes.Failed, false
}

// nameless handles data without a type: [DONE], which this shape does not have, an error object, or
// an extension of some server.
func (t *tap) nameless(data []byte) ([]byte, shapes.Verdict, bool) {
	switch {
	case string(data) == "[DONE]":
		return nil, shapes.Drop, false
	case given(gjson.GetBytes(data, "error")):
		return t.fail("error", data)
	}
	return nil, shapes.Forward, false
}

// Body implements shapes.Watcher. A response in the background is not finished when it is returned,
// so its status may be queued or in_progress.
func (t *tap) Body(body []byte) ([]byte, *dialogue.Error) {
	if bad := fields.CheckReply("reply", body); bad != nil {
		return nil, bad
	}
	root := gjson.ParseBytes(body)
	status := root.Get("status").Str
	if status != statusQueued && status != statusInProgress { // a background response passes
		if err := notAResponse(root); err != nil {
			t.err = err
			return nil, err
		}
	}
	t.learn(root)
	if t.waits() {
		t.notCompacted()
		return nil, t.err
	}
	t.done = true
	body, _ = t.rename(body, "model")
	return body, nil
}

func (t *tap) Err() *dialogue.Error    { return t.err }
func (t *tap) Done() bool              { return t.done }
func (t *tap) Answered() bool          { return t.done }
func (t *tap) Usage() dialogue.Usage   { return t.usage }
func (t *tap) Reason() dialogue.Reason { return t.reason }

// EOF implements shapes.Watcher. The shape has a terminal event, so an end without it is a cut
// reply.
func (t *tap) EOF() ([]byte, *dialogue.Error) {
	if t.done {
		return nil, nil
	}
	return nil, dialogue.Incomplete()
}

// Fail implements shapes.Watcher. It ends the stream with the response that the client knows, now
// failed, or with an error event if the client knows none yet.
func (t *tap) Fail(dst []byte, err *dialogue.Error) []byte {
	if t.done {
		return dst
	}
	t.done = true
	t.seq++
	if t.response == nil {
		return appendErrorEvent(dst, err, t.seq)
	}
	dst = append(dst, "event: response.failed\ndata: {\"type\":\"response.failed\",\"sequence_number\":"...)
	dst = strconv.AppendInt(dst, t.seq, 10)
	dst = append(dst, `,"response":`...)
	dst = append(dst, Failed(t.response, err)...)
	return append(dst, "}\n\n"...)
}
