package messages

import (
	"bytes"
	"unicode/utf8"

	"github.com/tidwall/gjson"

	"stagedoor/providers/dialogue"
	"stagedoor/providers/fields"
)

// parser turns one reply of a messages upstream into events. It forgives what servers that imitate
// the API get wrong: a missing message_start or content_block_start, an index that is used twice, a
// stop reason that contradicts the calls.
type parser struct {
	event dialogue.Event // reused
	usage usage
	// open has the blocks without content_block_stop. It is a list because there is nearly always
	// one.
	open []openBlock
	// parts counts the parts opened so far. The next part gets this number.
	parts   int
	started bool
	called  bool // a call for the client was opened
	done    bool

	// reason, stopSequence and detail are the last ones given, in the vendor's words. finish emits
	// them.
	reason       string
	stopSequence string
	detail       string
}

// Kinds of events in the stream. Others are skipped, because the vendor announces that new ones may
// come.
const (
	messageStart = "message_start"
	blockStart   = "content_block_start"
	blockDelta   = "content_block_delta"
	blockStop    = "content_block_stop"
	messageDelta = "message_delta"
	messageStop  = "message_stop"
	pingEvent    = "ping"
	errorEvent   = "error"
)

func (p *parser) Done() bool { return p.done }

// Answered is Done: the shape has a terminal event, and nothing comes after the
// reason but that.
func (p *parser) Answered() bool { return p.done }

// Event implements shapes.Parser. A whole answer looks like this on the wire, and the comments give
// the events that are emitted for it:
//
//	message_start        Start, Usage
//	content_block_start  Open
//	content_block_delta  Delta
//	content_block_stop   Close
//	message_delta        nothing yet: the stop reason and the usage are kept
//	message_stop         Usage, Finish, End
func (p *parser) Event(name string, data []byte, emit func(*dialogue.Event)) {
	if p.done || bytes.Equal(bytes.TrimSpace(data), []byte("[DONE]")) {
		return
	}
	doc := gjson.ParseBytes(data)
	kind := kindOf(name, doc)
	switch kind {
	case blockDelta:
		p.delta(doc, emit)
	case messageStart:
		p.start(doc.Get("message"), emit)
	case blockStart:
		p.begin(emit)
		p.openBlock(doc.Get("index").Int(), doc.Get("content_block"), emit)
	case blockStop:
		p.closeIndex(doc.Get("index").Int(), emit)
	case messageDelta:
		p.begin(emit)
		p.usage.merge(doc.Get("usage"))
		p.stop(doc.Get("delta"))
	case messageStop:
		p.finish(emit)
	case pingEvent:
		p.emit(emit, dialogue.Event{Kind: dialogue.EventPing})
	case errorEvent:
		p.fail(streamed(doc), emit)
	}
}

// kindOf returns the kind of an event from its data, or from its name if the data has no type: some
// servers leave out one or the other. An object with an error and without a type is an error event.
func kindOf(name string, doc gjson.Result) string {
	if name == errorEvent {
		return name
	}
	if kind := doc.Get("type"); kind.Type == gjson.String && kind.Str != "" {
		return kind.Str
	}
	if name == "" && doc.Get("error").Exists() {
		return errorEvent
	}
	return name
}

// Body implements shapes.Parser. It opens and closes every block of the message in turn, so that a
// whole reply gives the same events as a stream of it.
func (p *parser) Body(body []byte, emit func(*dialogue.Event)) {
	if p.done {
		return
	}
	if bad := fields.CheckReply("reply", body); bad != nil {
		p.fail(bad, emit)
		return
	}
	doc := fields.View(body)
	if err := notAMessage(doc); err != nil {
		p.fail(err, emit)
		return
	}
	p.start(doc, emit)
	index := int64(0)
	doc.Get("content").ForEach(func(_, block gjson.Result) bool {
		if index == fields.MaxParts {
			p.fail(fields.TooManyParts(), emit)
			return false
		}
		p.openBlock(index, block, emit)
		p.closeIndex(index, emit)
		index++
		return true
	})
	if p.done {
		return
	}
	p.stop(doc)
	p.finish(emit)
}

// notAMessage returns the failure of a body with status 200 that is no reply.
func notAMessage(doc gjson.Result) *dialogue.Error {
	if e := doc.Get("error"); e.Exists() && e.Type != gjson.Null {
		return streamed(doc)
	}
	if !doc.IsObject() || !doc.Get("content").IsArray() {
		return dialogue.BadUpstream("body is not a message")
	}
	return nil
}

// EOF fails the stream unless it has ended.
func (p *parser) EOF(emit func(*dialogue.Event)) {
	if !p.done {
		p.fail(dialogue.Incomplete(), emit)
	}
}

// emit sends an event in the parser's own memory, which its receiver must not keep.
func (p *parser) emit(emit func(*dialogue.Event), ev dialogue.Event) {
	p.event = ev
	emit(&p.event)
}

// fail ends the stream with an error event.
func (p *parser) fail(err *dialogue.Error, emit func(*dialogue.Event)) {
	p.done = true
	p.emit(emit, dialogue.Event{Kind: dialogue.EventError, Err: err})
}

// begin emits the start of the reply if the upstream has not sent one.
func (p *parser) begin(emit func(*dialogue.Event)) {
	if !p.started {
		p.start(gjson.Result{}, emit)
	}
}

// start emits EventStart and the usage of the input, which the vendor reports at the beginning.
func (p *parser) start(message gjson.Result, emit func(*dialogue.Event)) {
	if p.started {
		return
	}
	p.started = true
	p.emit(emit,
		dialogue.Event{Kind: dialogue.EventStart, ID: message.Get("id").String(), Model: message.Get("model").String()})
	p.usage.merge(message.Get("usage"))
	p.emitUsage(emit)
}

// emitUsage emits the counts so far, or nothing if no count is known.
func (p *parser) emitUsage(emit func(*dialogue.Event)) {
	u := p.usage.neutral()
	if u != dialogue.NoUsage {
		p.emit(emit, dialogue.Event{Kind: dialogue.EventUsage, Usage: &u})
	}
}

// stop keeps the members of v that say why the reply ended. A later value replaces an earlier one,
// but an empty one does not: some servers send a second message_delta without them.
func (p *parser) stop(v gjson.Result) {
	for _, f := range []struct {
		have  *string
		given gjson.Result
	}{
		{&p.reason, v.Get("stop_reason")},
		{&p.stopSequence, v.Get("stop_sequence")},
		{&p.detail, v.Get("stop_details.explanation")},
	} {
		if f.given.Type == gjson.String && f.given.Str != "" {
			*f.have = f.given.Str
		}
	}
}

// finish closes what is open and emits the end of a complete reply.
func (p *parser) finish(emit func(*dialogue.Event)) {
	if !p.started {
		p.fail(dialogue.BadUpstream("message_stop before message_start"), emit)
		return
	}
	for len(p.open) > 0 {
		p.close(0, emit)
	}
	p.emitUsage(emit)
	// Imitating servers say end_turn after calls, or tool_use without one. Clients act on the
	// reason, so the calls decide.
	reason := reasonOf(p.reason)
	switch {
	case reason == dialogue.ReasonStop && p.called:
		reason = dialogue.ReasonTool
	case reason == dialogue.ReasonTool && !p.called:
		reason = dialogue.ReasonStop
	}
	p.emit(emit,
		dialogue.Event{Kind: dialogue.EventFinish, Reason: reason, StopSequence: p.stopSequence, Detail: p.detail})
	p.done = true
	p.emit(emit, dialogue.Event{Kind: dialogue.EventEnd})
}

// delta emits the piece of text that a delta brings. It runs for nearly every event of a stream, so
// it looks up each member once and builds nothing else. A delta that does not fit its block is
// skipped.
func (p *parser) delta(doc gjson.Result, emit func(*dialogue.Event)) {
	p.begin(emit)
	delta, index := doc.Get("delta"), doc.Get("index").Int()
	kind := delta.Get("type").Str
	at := p.find(index)
	if at < 0 {
		if at = p.implied(index, kind, emit); at < 0 {
			return
		}
	}
	b := &p.open[at]
	switch {
	case kind == "text_delta" && b.kind == dialogue.TextPart:
		p.text(b, b.join.Add(delta.Get("text")), emit)
	case kind == "thinking_delta" && b.kind == dialogue.ThinkingPart:
		p.text(b, b.join.Add(delta.Get("thinking")), emit)
	case kind == "input_json_delta" && b.kind == dialogue.CallPart:
		p.text(b, b.join.Add(delta.Get("partial_json")), emit)
	// Input, signatures and citations are collected, and go out when their block closes.
	case kind == "input_json_delta" && b.kind == dialogue.ServerPart:
		b.input = append(b.input, delta.Get("partial_json").String()...)
	case kind == "signature_delta" && b.kind == dialogue.ThinkingPart:
		b.signature += delta.Get("signature").String()
	case kind == "citations_delta" && b.kind == dialogue.TextPart:
		b.citations = append(b.citations, citation(delta.Get("citation")))
	}
}

// text emits a piece of a block's text; an empty one is nothing.
func (p *parser) text(b *openBlock, s string, emit func(*dialogue.Event)) {
	if s == "" {
		return
	}
	b.emitted = true
	if b.kind == dialogue.TextPart {
		b.length += utf8.RuneCountInString(s)
	}
	p.emit(emit, dialogue.Event{Kind: dialogue.EventDelta, Part: b.part, Text: s})
}

// find returns where the block of an index is among the open ones, or -1.
func (p *parser) find(index int64) int {
	for i := range p.open {
		if p.open[i].index == index {
			return i
		}
	}
	return -1
}
