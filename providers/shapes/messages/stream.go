package messages

import (
	"strconv"

	"stagedoor/providers/dialogue"
	"stagedoor/providers/jsonw"
	"stagedoor/providers/shapes"
)

// streamEmitter writes a reply as server-sent events. The protocol has one block open at a time,
// and the neutral form may have several. So the first open part is written as it arrives, and
// events of the others are kept until it closes. A client sees parallel calls one after the other.
type streamEmitter struct {
	head
	started bool
	over    bool
	usage   dialogue.Usage
	counted bool // usage is set
	index   int  // of the next block
	// parts are those that are not written to their end, in the sequence in which they were opened.
	// The first is being written.
	parts []*outPart
	end   ending
}

// outPart is a part of the reply that is not written to its end. The first of
// them is the one being written.
type outPart struct {
	number    int
	kind      dialogue.PartKind
	call      *dialogue.Call
	callID    string
	origin    dialogue.Shape
	opaque    []byte
	thinking  *dialogue.Thinking
	signature string // thought signature of a call
	shown     bool   // its content_block_start is written
	closed    bool
	// waiting is the text that arrived before the part's turn.
	waiting   []byte
	hidden    []byte              // of a thought that the client does not see
	citations []dialogue.Citation // waiting
}

// Emit implements shapes.Emitter. Choices other than the first have no place in the shape and are
// ignored.
func (e *streamEmitter) Emit(dst []byte, ev *dialogue.Event) []byte {
	if e.over || ev.Choice != 0 {
		return dst
	}
	switch ev.Kind {
	case dialogue.EventStart:
		e.head.begin(ev)
	case dialogue.EventUsage:
		e.count(ev.Usage)
	case dialogue.EventError:
		e.over = true
		return shapes.AppendEvent(dst, errorEvent, appendEnvelope(nil, ev.Err))
	case dialogue.EventPing:
		return append(e.start(dst), ping...)
	case dialogue.EventOpen:
		return e.openPart(e.start(dst), ev)
	case dialogue.EventDelta:
		return e.delta(dst, ev)
	case dialogue.EventClose:
		return e.closePart(dst, ev)
	case dialogue.EventFinish:
		e.end.reason, e.end.stopSequence, e.end.detail = ev.Reason, ev.StopSequence, ev.Detail
	case dialogue.EventEnd:
		e.over = true
		return e.finish(e.start(dst))
	}
	return dst
}

// count takes over newer counts, each of which replaces the one that was known.
func (e *streamEmitter) count(u *dialogue.Usage) {
	if !e.counted {
		e.usage, e.counted = dialogue.NoUsage, true
	}
	e.usage.Merge(*u)
}

// start writes message_start. It waits for the first event after the start, as
// that may report the input's usage.
func (e *streamEmitter) start(dst []byte) []byte {
	if e.started {
		return dst
	}
	e.started = true
	if !e.counted {
		e.count(&dialogue.NoUsage)
	}
	w := event(dst, messageStart)
	w.Key("message")
	e.open(w)
	w.Key("content").Array().End()
	w.Key("stop_reason").Null()
	w.Key("stop_sequence").Null()
	w.Key("stop_details").Null()
	w.Key("container").Null()
	w.Key("usage")
	writeUsage(w, &e.usage)
	w.End()
	return send(w)
}

// event begins an event: its name, and its type in the data.
func event(dst []byte, name string) *jsonw.Writer {
	dst = append(append(append(dst, "event: "...), name...), "\ndata: "...)
	w := &jsonw.Writer{Buf: dst}
	w.Object().Key("type").String(name)
	return w
}

// send ends an event that event began and returns the buffer.
func send(w *jsonw.Writer) []byte { return append(w.End().Buf, "\n\n"...) }

// openPart queues a part, and begins to write it if no other is open.
// Calls are counted when they open, because the stop reason depends on whether there was one and
// not on whether it was complete.
func (e *streamEmitter) openPart(dst []byte, ev *dialogue.Event) []byte {
	p := &outPart{number: ev.Part, kind: ev.PartKind, call: ev.Call, origin: ev.Origin, opaque: ev.Opaque,
		thinking: ev.Thinking}
	if p.call != nil {
		p.callID = e.env.ClientCallID(p.call.ID)
		e.end.calls++
	}
	e.parts = append(e.parts, p)
	if len(e.parts) > 1 {
		return dst
	}
	return e.turn(dst, p)
}

// find returns the open part with this number, or nil.
func (e *streamEmitter) find(number int) *outPart {
	for _, p := range e.parts {
		if p.number == number && !p.closed {
			return p
		}
	}
	return nil
}

// delta writes a piece of the part that is being written, and keeps a piece of any other.
func (e *streamEmitter) delta(dst []byte, ev *dialogue.Event) []byte {
	p := e.find(ev.Part)
	if p == nil {
		return dst
	}
	if p.kind == dialogue.RefusalPart {
		e.end.refusal += ev.Text
	}
	if p != e.parts[0] {
		p.waiting = append(p.waiting, ev.Text...)
		p.citations = append(p.citations, ev.Citations...)
		return dst
	}
	return e.cite(e.write(dst, p, ev.Text), p, ev.Citations)
}

// turn writes what has waited for a part's turn.
// A call shows itself even before its first argument, so that a client learns early which tool will
// be called. Text does not, since it may turn out to be empty.
func (e *streamEmitter) turn(dst []byte, p *outPart) []byte {
	if p.kind == dialogue.CallPart {
		dst = e.show(dst, p)
	}
	dst = e.write(dst, p, string(p.waiting))
	dst = e.cite(dst, p, p.citations)
	p.waiting, p.citations = nil, nil
	return dst
}

// closePart notes that a part is complete, with the proof that came at its end, and writes what can
// be written now.
func (e *streamEmitter) closePart(dst []byte, ev *dialogue.Event) []byte {
	p := e.find(ev.Part)
	if p == nil {
		return dst
	}
	p.closed, p.signature = true, ev.Signature
	if ev.Thinking != nil {
		p.thinking = ev.Thinking
	}
	if len(ev.Opaque) > 0 {
		p.origin, p.opaque = ev.Origin, ev.Opaque
	}
	return e.advance(dst)
}

// advance ends the parts that are complete and gives the next its turn.
// It is a loop because several parts may have closed while the first one was still open.
func (e *streamEmitter) advance(dst []byte) []byte {
	for len(e.parts) > 0 && e.parts[0].closed {
		dst = e.endPart(dst, e.parts[0])
		e.parts[0] = nil
		e.parts = e.parts[1:]
		if len(e.parts) > 0 {
			dst = e.turn(dst, e.parts[0])
		}
	}
	return dst
}

// endPart writes the rest of a complete part and its content_block_stop.
func (e *streamEmitter) endPart(dst []byte, p *outPart) []byte {
	switch p.kind {
	case dialogue.CallPart:
		e.remember(p.callID, p.signature)
		if p.call.Custom {
			dst = e.piece(dst, "input_json_delta", "partial_json", `"}`)
		}
	case dialogue.ThinkingPart:
		return e.endThinking(dst, p)
	case dialogue.ServerPart:
		return e.replay(dst, p)
	}
	return e.stop(dst, p)
}

// maxHidden bounds the text of a thought that is kept for the next turn, because an upstream may think without an end.
const maxHidden = 1 << 20

// endThinking writes the end of a thought: its proof as a signature_delta, or the thought as one
// redacted_thinking block if it had no text. A thought that the client did not ask for is only
// remembered.
func (e *streamEmitter) endThinking(dst []byte, p *outPart) []byte {
	if e.hides() {
		if len(p.hidden) <= maxHidden { // a part of a thought would be refused
			e.hide(p.thinking, string(p.hidden))
		}
		return dst
	}
	signature, redacted := e.carrier(p.thinking, p.shown)
	if redacted != "" && !p.shown {
		w := e.block(dst)
		w.Object().Key("type").String("redacted_thinking").Key("data").String(redacted).End()
		p.shown = true
		return e.stop(send(w), p)
	}
	if signature != "" {
		dst = e.show(dst, p)
		// The whole of it in one delta: SDKs replace or append, as they like.
		dst = e.piece(dst, "signature_delta", "signature", signature)
	}
	return e.stop(dst, p)
}

// replay writes a block of one of the vendor's own tools as it came. Blocks of other vendors' tools
// have no form here and are left out.
func (e *streamEmitter) replay(dst []byte, p *outPart) []byte {
	if p.origin != Name || len(p.opaque) == 0 {
		return dst
	}
	w := e.block(dst)
	w.Raw(p.opaque)
	p.shown = true
	return e.stop(send(w), p)
}

// block begins a content_block_start up to the block.
func (e *streamEmitter) block(dst []byte) *jsonw.Writer {
	w := event(dst, blockStart)
	return w.Key("index").Int(int64(e.index)).Key("content_block")
}

// show writes a part's content_block_start, if it is not written. Text and
// thinking wait for something to show, so that no block is empty.
// The input of a custom tool is text, which the shape cannot express. It is wrapped into a JSON
// string here, whose end endPart writes.
func (e *streamEmitter) show(dst []byte, p *outPart) []byte {
	if p.shown {
		return dst
	}
	p.shown = true
	w := e.block(dst)
	w.Object()
	switch p.kind {
	case dialogue.CallPart:
		w.Key("type").String("tool_use")
		w.Key("id").String(p.callID)
		w.Key("name").String(p.call.Name)
		w.Key("input").RawString("{}")
	case dialogue.ThinkingPart:
		w.Key("type").String("thinking")
		w.Key("thinking").String("")
		w.Key("signature").String("")
	default:
		w.Key("type").String("text")
		w.Key("text").String("")
	}
	w.End()
	dst = send(w)
	if p.kind == dialogue.CallPart && p.call.Custom {
		dst = e.piece(dst, "input_json_delta", "partial_json", `{"`+customInput+`":"`)
	}
	return dst
}

// stop writes content_block_stop for a part that was shown, and moves on to the next index.
func (e *streamEmitter) stop(dst []byte, p *outPart) []byte {
	if !p.shown {
		return dst
	}
	w := event(dst, blockStop)
	w.Key("index").Int(int64(e.index))
	e.index++
	return send(w)
}

// write writes a piece of a part's text.
func (e *streamEmitter) write(dst []byte, p *outPart, text string) []byte {
	if text == "" {
		return dst
	}
	switch p.kind {
	case dialogue.TextPart, dialogue.RefusalPart:
		return e.piece(e.show(dst, p), "text_delta", "text", text)
	case dialogue.ThinkingPart:
		if e.hides() {
			if len(p.hidden) <= maxHidden {
				p.hidden = append(p.hidden, text...)
			}
			return dst
		}
		return e.piece(e.show(dst, p), "thinking_delta", "thinking", text)
	case dialogue.CallPart:
		if p.call.Custom { // free text, within the JSON string that show began
			text = quoted(text)
			text = text[1 : len(text)-1]
		}
		return e.piece(dst, "input_json_delta", "partial_json", text)
	}
	return dst
}

// piece appends a delta of one member. Every piece of a stream passes through it, so it is written
// without a Writer.
func (e *streamEmitter) piece(dst []byte, kind, member, text string) []byte {
	dst = append(dst, "event: content_block_delta\ndata: {\"type\":\"content_block_delta\",\"index\":"...)
	dst = strconv.AppendInt(dst, int64(e.index), 10)
	dst = append(append(append(dst, `,"delta":{"type":"`...), kind...), `","`...)
	dst = append(append(dst, member...), `":`...)
	dst = jsonw.AppendString(dst, text)
	return append(dst, "}}\n\n"...)
}

// cite writes citations of a text block that has begun. One before the text has nothing to stand
// beside.
func (e *streamEmitter) cite(dst []byte, p *outPart, citations []dialogue.Citation) []byte {
	if p.kind != dialogue.TextPart || !p.shown {
		return dst
	}
	for i := range citations {
		if !citable(citations[i]) {
			continue
		}
		w := event(dst, blockDelta)
		w.Key("index").Int(int64(e.index))
		w.Key("delta").Object().Key("type").String("citations_delta").Key("citation")
		writeCitation(w, &citations[i])
		w.End()
		dst = send(w)
	}
	return dst
}

// finish writes the end of a complete reply: what is still queued, message_delta with the reason
// and the final usage, and message_stop. The usage is why it waits for EventEnd and not for
// EventFinish.
func (e *streamEmitter) finish(dst []byte) []byte {
	for _, p := range e.parts {
		p.closed = true
	}
	dst = e.advance(dst)
	e.end.close()
	w := event(dst, messageDelta)
	w.Key("delta").Object()
	e.end.write(w)
	w.Key("container").Null()
	w.End()
	w.Key("usage")
	writeUsage(w, &e.usage)
	e.writeAppliedEdits(w)
	return send(event(send(w), messageStop))
}
