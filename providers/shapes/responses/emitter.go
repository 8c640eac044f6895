package responses

import (
	"stagedoor/providers/dialogue"
	"stagedoor/providers/jsonw"
	"stagedoor/providers/shapes"
)

// emitter writes one reply. Whole and streamed replies go through the same
// steps and differ only in whether the steps are sent as they happen.
type emitter struct {
	req    *dialogue.Request
	env    *dialogue.Env
	stream bool

	w       jsonw.Writer
	object  object
	usage   dialogue.Usage
	reason  dialogue.Reason
	detail  string
	items   []*outputItem
	parts   []openPart
	seq     int64
	started bool
	ended   bool
}

// openPart says where the events of an open part are written.
type openPart struct {
	number  int
	item    *outputItem // nil: the shape has no place for this part
	content int         // of a message
	// text is set for a text or a refusal. It has no item before its first piece, because an empty one
	// has no place in the output.
	text    bool
	refusal bool
}

// newEmitter returns an emitter of a response in progress, with what the request says of it.
func newEmitter(req *dialogue.Request, mode shapes.Mode, env *dialogue.Env) *emitter {
	e := &emitter{req: req, env: env, stream: mode != shapes.Whole, usage: dialogue.NoUsage}
	e.object = newObject(req.Body)
	e.object.model = req.Model
	if req.PreviousResponseID != "" {
		e.object.previous = req.PreviousResponseID
	}
	e.object.status = statusInProgress
	return e
}

// Emit writes ev.
func (e *emitter) Emit(dst []byte, ev *dialogue.Event) []byte {
	if e.ended || ev.Choice != 0 {
		return dst
	}
	e.w.Buf = dst
	switch ev.Kind {
	case dialogue.EventStart:
		e.start(ev)
	case dialogue.EventOpen:
		e.open(ev)
	case dialogue.EventDelta:
		e.delta(ev)
	case dialogue.EventClose:
		e.close(ev)
	case dialogue.EventUsage:
		e.usage.Merge(*ev.Usage)
	case dialogue.EventFinish:
		e.reason, e.detail, e.object.tier = ev.Reason, ev.Detail, ev.ServiceTier
	case dialogue.EventPing:
		e.ping()
	case dialogue.EventEnd:
		e.end()
	case dialogue.EventError:
		e.fail(ev.Err)
	}
	dst, e.w.Buf = e.w.Buf, nil
	return dst
}

// event begins an event of a stream; done ends it. sequence_number counts
// events from 0.
func (e *emitter) event(kind string) {
	e.w.Buf = append(append(append(e.w.Buf, "event: "...), kind...), "\ndata: "...)
	e.w.Object()
	e.w.Key("type").String(kind)
	e.w.Key("sequence_number").Int(e.seq)
	e.seq++
}

// done ends an event.
func (e *emitter) done() {
	e.w.End()
	e.w.Buf = append(e.w.Buf, "\n\n"...)
}

// ping writes a comment that keeps the connection alive.
func (e *emitter) ping() {
	if e.stream {
		e.w.Buf = append(e.w.Buf, heartbeat...)
	}
}

// start writes the first events. The id may be fixed already, because the client got it for a
// background request or the store uses it as a key.
func (e *emitter) start(ev *dialogue.Event) {
	e.started = true
	e.object.id = e.req.ReplyID
	if e.object.id == "" {
		e.object.id = "resp_" + e.env.ID()
	}
	if e.object.created = ev.Created; e.object.created <= 0 {
		e.object.created = e.env.Now().Unix()
	}
	if e.object.model == "" {
		e.object.model = ev.Model
	}
	if e.object.echo.is("background", "true") {
		e.object.status = statusQueued
		e.snapshot("response.created")
		e.snapshot("response.queued")
		e.object.status = statusInProgress
	} else {
		e.snapshot("response.created")
	}
	e.snapshot("response.in_progress")
}

// is reports whether the request gave this parameter this JSON value.
func (e *echo) is(name, value string) bool {
	for i := range echoed {
		if echoed[i].name == name {
			return e[i] == value
		}
	}
	return false
}

// snapshot writes an event with the response object as it is now.
func (e *emitter) snapshot(kind string) {
	if !e.stream {
		return
	}
	e.event(kind)
	e.w.Key("response")
	e.object.append(&e.w, e.output)
	e.done()
}

// output writes all items so far.
func (e *emitter) output(w *jsonw.Writer) {
	for _, it := range e.items {
		it.append(w, false)
	}
}

// place begins an event about an item, with its id and its place in the output.
func (e *emitter) place(kind string, it *outputItem) {
	e.event(kind)
	e.w.Key("item_id").String(it.id)
	e.w.Key("output_index").Int(int64(it.index))
}

// contentEvent begins an event about a part of a message.
func (e *emitter) contentEvent(kind string, p openPart) {
	e.place(kind, p.item)
	e.w.Key("content_index").Int(int64(p.content))
}

// part returns the place of an open part in e.parts. It searches from the end, because parts are
// few and the last one is nearly always the one.
func (e *emitter) part(number int) (int, bool) {
	for i := len(e.parts) - 1; i >= 0; i-- {
		if e.parts[i].number == number {
			return i, true
		}
	}
	return 0, false
}

// incomplete are the reasons that leave a response incomplete, with the words
// of incomplete_details. All others complete it.
var incomplete = map[dialogue.Reason]string{
	dialogue.ReasonLength:        "max_output_tokens",
	dialogue.ReasonContextWindow: "max_output_tokens",
	dialogue.ReasonFilter:        "content_filter",
}

// end writes the end of a complete reply: the last event of a stream, which has the whole response
// once more, or the one object.
func (e *emitter) end() {
	e.explain()
	e.object.usage = &e.usage
	e.object.status = statusCompleted
	if e.object.reason = incomplete[e.reason]; e.object.reason != "" {
		e.object.status = statusIncomplete
	}
	e.finishMessage(e.object.status)
	if e.object.status == statusCompleted {
		e.object.completed = e.env.Now().Unix()
	}
	e.ended = true
	if e.stream {
		e.snapshot("response." + e.object.status)
		return
	}
	e.object.append(&e.w, e.output)
}

// explain writes the upstream's explanation of a refusal as a refusal part, unless the answer has
// one already.
func (e *emitter) explain() {
	if e.reason != dialogue.ReasonFilter || e.detail == "" {
		return
	}
	for _, it := range e.items {
		for i := range it.contents {
			if it.contents[i].refusal {
				return
			}
		}
	}
	const number = -1 // no parser gives this number to a part
	e.open(&dialogue.Event{Part: number, PartKind: dialogue.RefusalPart})
	e.delta(&dialogue.Event{Part: number, Text: e.detail})
	e.close(&dialogue.Event{Part: number})
}

// fail ends a stream whose reply failed. Items that are not finished are marked incomplete, so that
// the client can use the others. A whole reply is left to the caller, which sends the envelope.
func (e *emitter) fail(err *dialogue.Error) {
	e.ended = true
	if !e.stream {
		return
	}
	if !e.started {
		e.w.Buf = appendErrorEvent(e.w.Buf, err, e.seq)
		return
	}
	for _, it := range e.items {
		if it.status == statusInProgress {
			it.status = statusIncomplete
		}
	}
	e.object.status, e.object.err = statusFailed, err
	if e.usage != dialogue.NoUsage {
		e.object.usage = &e.usage
	}
	e.snapshot("response.failed")
}
