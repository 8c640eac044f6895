package gemini

import (
	"cmp"
	"encoding/json"
	"slices"
	"strconv"

	"stagedoor/providers/dialogue"
	"stagedoor/providers/jsonw"
	"stagedoor/providers/shapes"
)

// NewEmitter implements shapes.Inbound. A stream is written as server-sent events, or as one JSON
// array for a client that did not ask for alt=sse.
func (shape) NewEmitter(req *dialogue.Request, mode shapes.Mode, env *dialogue.Env) shapes.Emitter {
	f := frame{env: env, model: req.Model, usage: dialogue.NoUsage, shown: req.Reasoning.Include}
	if mode == shapes.Whole {
		return &document{frame: f}
	}
	return &emitter{frame: f, array: mode == shapes.Array}
}

// frame holds the fields that every chunk and the whole document have beside the answer.
type frame struct {
	env   *dialogue.Env
	model string // as the client asked for it
	id    string
	usage dialogue.Usage
	shown bool // the client asked for thoughts
}

// start fixes the id of the reply, and its model unless the client asked for one by name.
func (f *frame) start(ev *dialogue.Event) {
	f.id = f.env.ID()
	f.model = cmp.Or(f.model, ev.Model)
}

// write writes the members that end every chunk.
func (f *frame) write(w *jsonw.Writer) {
	w.Key("modelVersion").String(f.model).Key("responseId").String(f.id)
}

// emitter writes a stream, or the elements of an array. Text is written as it comes. A call is
// written when its arguments are complete, because the shape has them as an object. Finish reasons
// wait for the usage, which belongs to the same chunk.
// A stream of this shape has no event that opens or closes a part. Each chunk is a whole
// GenerateContentResponse, and clients join the texts of successive chunks. So the emitter writes
// text at once, and everything that has a form only as a whole when its part is closed.
type emitter struct {
	frame
	array   bool
	written bool // array: an element has been written
	done    bool
	// tail is the end that all chunks share, written once.
	tail    []byte
	choices []*answer
	open    []*piece
}

// answer keeps the state of one candidate until its last chunk.
type answer struct {
	index   int
	text    []byte // visible text: citations count in it
	refs    []reference
	logs    []json.RawMessage
	refused bool
	reason  dialogue.Reason
	detail  string
	// carriers are thoughts whose thoughtSignatures wait for the next call or text to take them along.
	carriers []carrier
}

// piece is a part that is open.
type piece struct {
	choice, number int
	kind           dialogue.PartKind
	call           *dialogue.Call
	thinking       *dialogue.Thinking // known when the part was opened
	text           []byte             // arguments, or the text of a thought
	base           int                // where a text part begins in its answer's text
}

// Emit returns the bytes of one event. What the shape has only at the end, such as usage, is kept until then.
func (e *emitter) Emit(dst []byte, ev *dialogue.Event) []byte {
	if e.done {
		return dst
	}
	switch ev.Kind {
	case dialogue.EventStart:
		e.start(ev)
	case dialogue.EventOpen:
		return e.opened(dst, ev)
	case dialogue.EventDelta:
		return e.delta(dst, ev)
	case dialogue.EventClose:
		return e.closed(dst, ev)
	case dialogue.EventUsage:
		e.usage.Merge(*ev.Usage)
	case dialogue.EventFinish:
		a := e.answer(ev.Choice)
		a.reason, a.detail = ev.Reason, ev.Detail
	case dialogue.EventEnd:
		return e.end(dst)
	case dialogue.EventError:
		return e.failed(dst, ev.Err)
	}
	return dst
}

// answer returns the state of a candidate and creates it at its first use.
// The candidates are kept in the order of their indices, because the last chunks are written in it.
func (e *emitter) answer(index int) *answer {
	i, ok := slices.BinarySearchFunc(e.choices, index, func(a *answer, index int) int { return a.index - index })
	if !ok {
		e.choices = slices.Insert(e.choices, i, &answer{index: index})
	}
	return e.choices[i]
}

// find returns the open part that an event is about and its place, or nil.
// It searches from the end, since the newest part is nearly always meant.
func (e *emitter) find(ev *dialogue.Event) (int, *piece) {
	for i := len(e.open) - 1; i >= 0; i-- {
		if p := e.open[i]; p.number == ev.Part && p.choice == ev.Choice {
			return i, p
		}
	}
	return -1, nil
}

// opened begins a part. Media and the items of the vendor's own tools come whole and are written at
// once.
func (e *emitter) opened(dst []byte, ev *dialogue.Event) []byte {
	a := e.answer(ev.Choice)
	p := &piece{choice: ev.Choice, number: ev.Part, kind: ev.PartKind, thinking: ev.Thinking, base: len(a.text)}
	if ev.Call != nil {
		p.call = new(*ev.Call)
	}
	e.open = append(e.open, p)
	a.refused = a.refused || ev.PartKind == dialogue.RefusalPart
	switch {
	case ev.PartKind == dialogue.ThinkingPart && len(a.carriers) > 0 && a.carriers[0].at < len(a.text):
		// Behind the next thought, the text in between could not be distinguished from the text that follows it.
		return e.flushCarriers(dst, ev.Choice, a)
	case ev.PartKind == dialogue.MediaPart && ev.Media != nil && !blank(ev.Media):
		return e.chunk(dst, ev.Choice, func(w *jsonw.Writer) { writeMedia(w, ev.Media) })
	case ev.PartKind == dialogue.ServerPart && ev.Origin == Name && len(ev.Opaque) > 0:
		return e.chunk(dst, ev.Choice, func(w *jsonw.Writer) { w.Raw(ev.Opaque) })
	}
	return dst
}

// blank reports whether the media have nothing that a part of this shape can hold.
func blank(m *dialogue.Media) bool { return m.Base64 == "" && m.URL == "" && m.FileID == "" }

// delta writes a piece of text, or keeps a piece of a call or of a thought that the client did not
// ask for.
// Citations are noted with the place where their text began. The shape counts them in the text of
// the whole answer, so they can be written only in the last chunk.
func (e *emitter) delta(dst []byte, ev *dialogue.Event) []byte {
	_, p := e.find(ev)
	if p == nil {
		return dst
	}
	a := e.answer(ev.Choice)
	for _, c := range ev.Citations {
		a.refs = append(a.refs, reference{c, p.base})
	}
	if len(ev.LogProbs) > 0 {
		a.logs = append(a.logs, slices.Clone(ev.LogProbs))
	}
	if ev.Text == "" {
		return dst
	}
	switch p.kind {
	case dialogue.CallPart:
		p.text = append(p.text, ev.Text...)
		return dst
	case dialogue.ThinkingPart:
		p.text = append(p.text, ev.Text...)
		if !e.shown {
			return dst
		}
		return e.increment(dst, ev, true)
	}
	a.text = append(a.text, ev.Text...)
	return e.increment(dst, ev, false)
}

// increment appends a chunk of text. Every piece of a stream passes through it, so it is written
// without a Writer.
func (e *emitter) increment(dst []byte, ev *dialogue.Event, thought bool) []byte {
	dst = append(e.frameOpen(dst), `{"candidates":[{"content":{"role":"model","parts":[{"text":`...)
	dst = jsonw.AppendString(dst, ev.Text)
	if thought {
		dst = append(dst, `,"thought":true`...)
	}
	return e.chunkEnd(append(dst, '}'), ev.Choice)
}

// chunk appends a chunk with one part, which write writes.
func (e *emitter) chunk(dst []byte, choice int, write func(*jsonw.Writer)) []byte {
	w := jsonw.Writer{Buf: append(e.frameOpen(dst), `{"candidates":[{"content":{"role":"model","parts":[`...)}
	write(&w)
	return e.chunkEnd(w.Buf, choice)
}

// chunkEnd writes a chunk from the end of its parts on.
func (e *emitter) chunkEnd(dst []byte, choice int) []byte {
	if e.tail == nil {
		w := jsonw.Writer{}
		w.Object()
		e.write(&w)
		w.End()
		e.tail = append([]byte("}],"), w.Buf[1:]...)
	}
	dst = append(dst, `]},"index":`...)
	dst = strconv.AppendInt(dst, int64(choice), 10)
	return e.frameClose(append(dst, e.tail...))
}

// frameOpen begins an event, or an element of the array.
// Elements of an array are separated before the next one and not after each, because how many will
// follow is unknown and clients parse the array while it grows.
func (e *emitter) frameOpen(dst []byte) []byte {
	if !e.array {
		return append(dst, "data: "...)
	}
	if e.written {
		return append(dst, ",\r\n"...)
	}
	e.written = true
	return append(dst, '[')
}

// frameClose ends a frame: with an empty line in a stream of events, with nothing in an array.
func (e *emitter) frameClose(dst []byte) []byte {
	if e.array {
		return dst
	}
	return append(dst, "\n\n"...)
}

// closed writes what is complete only now: a call, or a signature. A signature of this vendor goes
// on an empty part of its kind. The thought of another vendor goes on the next call or text,
// because clients may drop parts with thoughts from their history, but know that this vendor has
// signatures on calls and text.
func (e *emitter) closed(dst []byte, ev *dialogue.Event) []byte {
	i, p := e.find(ev)
	if p == nil {
		return dst
	}
	e.open = slices.Delete(e.open, i, i+1)
	switch p.kind {
	case dialogue.CallPart:
		if p.call == nil {
			return dst
		}
		a := e.answer(ev.Choice)
		signature := e.take(a, ev.Signature)
		dst = e.flushCarriers(dst, ev.Choice, a)
		return e.chunk(dst, ev.Choice, func(w *jsonw.Writer) { writeCall(w, p.call, string(p.text), signature) })
	case dialogue.ThinkingPart:
		th := ev.Thinking
		if th == nil {
			th = p.thinking
		}
		a := e.answer(ev.Choice)
		switch c, ok := e.carrier(th, string(p.text), a); {
		case !ok:
		case e.shown && len(p.text) > 0 && c.thinking.Origin == Name:
			return e.chunk(dst, ev.Choice, func(w *jsonw.Writer) { writeText(w, "", true, c.thinking.Signature) })
		default:
			a.carriers = append(a.carriers, c)
		}
	case dialogue.TextPart:
		if ev.Signature != "" {
			a := e.answer(ev.Choice)
			own := dialogue.Thinking{Signature: ev.Signature, Origin: Name}
			a.carriers = append(a.carriers, carrier{thinking: own, at: len(a.text)})
			return e.flushCarriers(dst, ev.Choice, a)
		}
	}
	return dst
}

// take returns the signature for a call or text: its own, or that of the last thought that waits
// for a part.
// A part has room for one signature. Its own has priority, because without it the vendor refuses
// the call in the next turn. The thought then waits for a later part, and an empty part takes it at
// the end.
func (f *frame) take(a *answer, own string) string {
	if own == "" && len(a.carriers) > 0 {
		last := len(a.carriers) - 1
		own, a.carriers = f.signature(a.carriers[last], a), a.carriers[:last]
	}
	return own
}

// flushCarriers writes the thoughts that no part has taken along, on empty parts behind the text.
func (e *emitter) flushCarriers(dst []byte, choice int, a *answer) []byte {
	for _, c := range a.carriers {
		dst = e.chunk(dst, choice, func(w *jsonw.Writer) { writeText(w, "", false, e.signature(c, a)) })
	}
	a.carriers = nil
	return dst
}

// end writes the last chunk of every candidate. It has no content: an empty
// text part would make some SDKs drop the whole turn from their history.
// The usage is repeated in the last chunk of each candidate, as the vendor does it.
func (e *emitter) end(dst []byte) []byte {
	e.done = true
	for _, a := range e.choices {
		dst = e.flushCarriers(dst, a.index, a)
		w := jsonw.Writer{Buf: e.frameOpen(dst)}
		w.Object().Key("candidates").Array().Object()
		a.finish(&w)
		w.End().End()
		writeUsage(&w, e.usage)
		e.write(&w)
		w.End()
		dst = e.frameClose(w.Buf)
	}
	if !e.array {
		return dst
	}
	if !e.written {
		dst = append(dst, '[')
	}
	return append(dst, ']')
}

// finish writes the members of a candidate's last chunk. A refusal in words has no form here and
// ends with SAFETY.
func (a *answer) finish(w *jsonw.Writer) {
	reason := a.reason
	if a.refused && reason == dialogue.ReasonStop {
		reason = dialogue.ReasonFilter // there is no other way to say it here
	}
	w.Key("finishReason").String(finishWord(reason)).Key("index").Int(int64(a.index))
	if a.detail != "" {
		w.Key("finishMessage").String(a.detail)
	}
	writeGrounding(w, a.refs, a.text)
	writeLogProbs(w, a.logs)
}

// failed ends the stream with a chunk, or the array with an element, that holds the error, as the
// vendor does.
// The array is closed after the error, so that a client that parses the body as a whole still reads
// JSON.
func (e *emitter) failed(dst []byte, err *dialogue.Error) []byte {
	e.done = true
	dst = e.frameClose(appendEnvelope(e.frameOpen(dst), err))
	if e.array {
		dst = append(dst, ']')
	}
	return dst
}
