package responses

import (
	"encoding/json"

	"github.com/tidwall/gjson"

	"stagedoor/providers/dialogue"
	"stagedoor/providers/fields"
)

// parser turns one reply into events. It relies on little, so that servers which imitate the API
// incompletely are understood: events may be missing, ids may change from one event to the next,
// arguments may come only at the end, and items only in the final object.
type parser struct {
	env     *dialogue.Env
	emit    func(*dialogue.Event)
	ev      dialogue.Event
	items   []*inputItem
	parts   int // numbers given out
	calls   bool
	started bool
	done    bool
}

// inputItem is an output item of the upstream.
type inputItem struct {
	index int
	id    string
	kind  string
	part  int
	open  bool // its part is open
	// closed is set once the final form of the item was read.
	closed bool // nothing more will come
	seen   bool // some of its arguments or thoughts came

	piece    fields.FragmentJoiner
	thought  thought      // of reasoning: where the last delta belonged
	contents []*inputText // of a message
	callID   string
}

// thought is a summary part or a content part of a reasoning item.
type thought struct {
	kind  string
	index int
}

// inputText is a content part of a message.
type inputText struct {
	index  int
	part   int
	closed bool
	seen   bool // some of its text came
	cited  bool
	piece  fields.FragmentJoiner
}

// handlers read the events by type. Events of other types repeat what these bring, or are new and
// skipped.
var handlers = map[string]func(*parser, *frame){
	"response.created":                       (*parser).created,
	"response.queued":                        (*parser).created,
	"response.in_progress":                   (*parser).created,
	"response.output_item.added":             (*parser).itemAdded,
	"response.output_item.done":              (*parser).itemDone,
	"response.content_part.done":             (*parser).contentDone,
	"response.output_text.delta":             (*parser).textDelta,
	"response.output_text.done":              (*parser).textDone,
	"response.output_text.annotation.added":  (*parser).annotated,
	"response.refusal.delta":                 (*parser).refusalDelta,
	"response.refusal.done":                  (*parser).refusalDone,
	"response.reasoning_summary_text.delta":  (*parser).summaryDelta,
	"response.reasoning_summary_text.done":   (*parser).summaryDone,
	"response.reasoning_text.delta":          (*parser).reasoningDelta,
	"response.reasoning_text.done":           (*parser).reasoningDone,
	"response.function_call_arguments.delta": (*parser).argumentsDelta,
	"response.function_call_arguments.done":  (*parser).argumentsDone,
	"response.custom_tool_call_input.delta":  (*parser).argumentsDelta,
	"response.custom_tool_call_input.done":   (*parser).argumentsDone,
	"response.completed":                     (*parser).finished,
	"response.incomplete":                    (*parser).finished,
	"response.failed":                        (*parser).failed,
	"response.cancelled":                     (*parser).failed,
	"keepalive":                              (*parser).alive,
}

// Event takes one event of the stream.
// emit is kept only for the length of the call, because the caller may pass a different function to
// the next one. An error is recognised before anything else, with a type and without one, because
// it can come in the middle of any item.
func (p *parser) Event(name string, data []byte, emit func(*dialogue.Event)) {
	if p.done || string(data) == "[DONE]" {
		return
	}
	p.emit = emit
	defer func() { p.emit = nil }()
	root := gjson.ParseBytes(data)
	f := readFrame(name, root)
	if f.kind == "error" || f.kind == "" && given(root.Get("error")) {
		p.fail(inBandError(root))
		return
	}
	if handle, ok := handlers[f.kind]; ok {
		handle(p, &f)
	}
}

// Body takes a whole reply: a response object.
func (p *parser) Body(body []byte, emit func(*dialogue.Event)) {
	if p.done {
		return
	}
	p.emit = emit
	defer func() { p.emit = nil }()
	if bad := fields.CheckReply("reply", body); bad != nil {
		p.fail(bad)
		return
	}
	root := fields.View(body)
	if err := notAResponse(root); err != nil {
		p.fail(err)
		return
	}
	p.start(root)
	p.finish(root)
}

// notAResponse returns the failure of a body that is no finished response, nil if
// it is one.
func notAResponse(root gjson.Result) *dialogue.Error {
	status := root.Get("status").Str
	switch {
	case status == statusFailed || status == statusCancelled || given(root.Get("error")):
		return inBandError(root)
	case !root.Get("output").IsArray():
		return dialogue.BadUpstream("body is not a response object")
	case status == statusQueued || status == statusInProgress:
		return dialogue.BadUpstream("response is not finished")
	}
	return nil
}

// Answered is the same as Done, because the terminal event contains everything.
func (p *parser) Answered() bool { return p.done }

// EOF says that the stream ended. Without a terminal event the reply is cut.
func (p *parser) EOF(emit func(*dialogue.Event)) {
	if p.done {
		return
	}
	p.emit = emit
	p.fail(dialogue.Incomplete())
	p.emit = nil
}

// Done reports whether the reply has ended.
func (p *parser) Done() bool { return p.done }

// send emits an event, in memory that is reused.
func (p *parser) send(ev dialogue.Event) {
	p.ev = ev
	p.emit(&p.ev)
}

// fail ends a reply that failed.
func (p *parser) fail(err *dialogue.Error) {
	p.done = true
	p.send(dialogue.Event{Kind: dialogue.EventError, Err: err})
}

// start emits EventStart once. response may be the zero Result, if the upstream sent no
// response.created.
func (p *parser) start(response gjson.Result) {
	if p.started {
		return
	}
	p.started = true
	p.send(dialogue.Event{
		Kind:    dialogue.EventStart,
		ID:      response.Get("id").Str,
		Model:   response.Get("model").Str,
		Created: response.Get("created_at").Int(),
	})
}

func (p *parser) created(f *frame) { p.start(f.value) }

// alive passes a sign of life on, once the reply has begun.
func (p *parser) alive(*frame) {
	if p.started {
		p.send(dialogue.Event{Kind: dialogue.EventPing})
	}
}

// item returns the item that an event is about, or nil. The index counts more than the id, which
// some servers change with every event. If neither is known, the last item that is not closed is
// meant.
// The last rule serves servers that send neither an index nor an id with a delta. They write one
// item at a time, so the open one is meant.
func (p *parser) item(f *frame) *inputItem {
	if it := p.announced(f.output, f.itemID); it != nil || f.output >= 0 {
		return it
	}
	for i := len(p.items) - 1; i >= 0; i-- {
		if !p.items[i].closed {
			return p.items[i]
		}
	}
	return nil
}

// announced returns the item with this index, or with this id if index is -1, or nil.
func (p *parser) announced(index int, id string) *inputItem {
	for i := len(p.items) - 1; i >= 0; i-- {
		it := p.items[i]
		if index >= 0 && it.index == index || index < 0 && id != "" && it.id == id {
			return it
		}
	}
	return nil
}

// itemFor returns the item that an event is about, or a new one of this kind if it was never
// announced.
func (p *parser) itemFor(f *frame, kind string) *inputItem {
	if it := p.item(f); it != nil {
		return it
	}
	return p.newItem(f.output, f.itemID, kind)
}

// newItem adds an item of the output.
func (p *parser) newItem(index int, id, kind string) *inputItem {
	p.start(gjson.Result{})
	it := &inputItem{index: index, id: id, kind: kind}
	p.items = append(p.items, it)
	return it
}

// itemAdded handles response.output_item.added, which some servers send twice.
func (p *parser) itemAdded(f *frame) {
	it := p.announced(f.output, f.value.Get("id").Str)
	if it != nil && !it.closed && it.kind == f.value.Get("type").Str {
		return // twice
	}
	p.announce(f.output, f.value)
}

// announce adds an item and opens the part of reasoning or of a call. Messages open a part with
// each content.
func (p *parser) announce(index int, v gjson.Result) *inputItem {
	it := p.newItem(index, v.Get("id").Str, v.Get("type").Str)
	it.callID = v.Get("call_id").Str
	switch it.kind {
	case "reasoning":
		p.openThinking(it)
	case "function_call", "custom_tool_call":
		p.openCall(it, v)
	}
	return it
}

// number returns the number of the next part.
func (p *parser) number() int {
	p.parts++
	return p.parts - 1
}

// openThinking begins a part of reasoning.
func (p *parser) openThinking(it *inputItem) {
	it.part, it.open = p.number(), true
	p.send(dialogue.Event{Kind: dialogue.EventOpen, Part: it.part, PartKind: dialogue.ThinkingPart,
		Thinking: &dialogue.Thinking{Origin: Name, ItemID: it.id}})
}

// openCall emits EventOpen for a call, once its name is known. A call without an id gets that of
// its item, or a new one.
// Before the name is known nothing is sent, because other shapes open a call with its name and
// cannot change it later.
func (p *parser) openCall(it *inputItem, v gjson.Result) {
	name := v.Get("name").Str
	if it.open || name == "" {
		return
	}
	call := &dialogue.Call{ID: v.Get("call_id").Str, Name: name, Custom: it.kind == "custom_tool_call"}
	call.Namespace = v.Get("namespace").Str
	if call.ID == "" {
		call.ID = it.id
	}
	if call.ID == "" {
		call.ID = p.env.CallID()
	}
	it.part, it.open, p.calls = p.number(), true, true
	p.send(dialogue.Event{Kind: dialogue.EventOpen, Part: it.part, PartKind: dialogue.CallPart, Call: call})
}

// text returns a content part of a message, and opens it if it is new.
func (p *parser) text(it *inputItem, index int, kind dialogue.PartKind) *inputText {
	for _, t := range it.contents {
		if t.index == index {
			return t
		}
	}
	t := &inputText{index: index, part: p.number()}
	it.contents = append(it.contents, t)
	p.send(dialogue.Event{Kind: dialogue.EventOpen, Part: t.part, PartKind: kind})
	return t
}

// textDelta handles response.output_text.delta, and refusalDelta response.refusal.delta.

func (p *parser) textDelta(f *frame)    { p.emitPiece(f, dialogue.TextPart) }
func (p *parser) refusalDelta(f *frame) { p.emitPiece(f, dialogue.RefusalPart) }

// emitPiece emits a piece of a text or a refusal.
// A delta may be empty because a character was cut in two between deltas (FragmentJoiner). Such a
// delta still marks the text as seen, so that the final text is not sent a second time.
func (p *parser) emitPiece(f *frame, kind dialogue.PartKind) {
	it := p.itemFor(f, "message")
	if it.closed {
		return
	}
	t := p.text(it, f.content, kind)
	if t.closed {
		return
	}
	said := t.piece.Add(f.value)
	if said == "" && !t.piece.Waits() {
		return
	}
	t.seen = true
	p.send(dialogue.Event{Kind: dialogue.EventDelta, Part: t.part, Text: said, LogProbs: logProbs(f.logs)})
}

// logProbs returns the logprobs of a piece, or nil for an empty list.
func logProbs(v gjson.Result) json.RawMessage {
	if !v.IsArray() || len(v.Raw) <= len("[]") {
		return nil
	}
	return fields.Raw(v)
}

// textDone handles response.output_text.done, and refusalDone response.refusal.done.

func (p *parser) textDone(f *frame)    { p.said(f, dialogue.TextPart) }
func (p *parser) refusalDone(f *frame) { p.said(f, dialogue.RefusalPart) }

// said handles the event with a whole text. It matters only if no delta has come.
func (p *parser) said(f *frame, kind dialogue.PartKind) {
	it := p.itemFor(f, "message")
	if it.closed {
		return
	}
	p.wholeText(p.text(it, f.content, kind), f.value.Str, f.logs)
}

// wholeText emits a whole text, unless deltas have brought it.
func (p *parser) wholeText(t *inputText, text string, logs gjson.Result) {
	if t.closed || t.seen || text == "" {
		return
	}
	t.seen = true
	p.send(dialogue.Event{Kind: dialogue.EventDelta, Part: t.part, Text: text, LogProbs: logProbs(logs)})
}

// annotated handles a citation.
// The text is opened if it is not open yet, because a citation may come before the first delta.
func (p *parser) annotated(f *frame) {
	it := p.itemFor(f, "message")
	if it.closed {
		return
	}
	if t := p.text(it, f.content, dialogue.TextPart); !t.closed {
		p.cite(t, []dialogue.Citation{citation(f.value)})
	}
}

// cite sends citations of a text.
func (p *parser) cite(t *inputText, citations []dialogue.Citation) {
	if len(citations) == 0 {
		return
	}
	t.cited = true
	p.send(dialogue.Event{Kind: dialogue.EventDelta, Part: t.part, Citations: citations})
}

func citation(v gjson.Result) dialogue.Citation {
	return dialogue.Citation{
		URL:    v.Get("url").Str,
		Title:  v.Get("title").Str,
		Start:  int(v.Get("start_index").Int()),
		End:    int(v.Get("end_index").Int()),
		Opaque: raw(v),
		Origin: Name,
	}
}

// contentDone handles response.content_part.done.
func (p *parser) contentDone(f *frame) {
	if it := p.item(f); it != nil && it.kind == "message" && !it.closed {
		p.wholeContent(it, f.content, f.value)
	}
}

// wholeContent reads a content part in its final form, emits what no delta brought, and closes it.
// Citations are taken from the final form only if none was streamed, since clients add up what they
// get.
func (p *parser) wholeContent(it *inputItem, index int, v gjson.Result) {
	kind, text := dialogue.TextPart, v.Get("text").Str
	switch v.Get("type").Str {
	case "output_text":
	case "refusal":
		kind, text = dialogue.RefusalPart, v.Get("refusal").Str
	default:
		return
	}
	t := p.text(it, index, kind)
	if t.closed {
		return
	}
	p.wholeText(t, text, v.Get("logprobs"))
	if !t.cited {
		var all []dialogue.Citation
		v.Get("annotations").ForEach(func(_, a gjson.Result) bool {
			all = append(all, citation(a))
			return true
		})
		p.cite(t, all)
	}
	p.closeText(t)
}

// closeText ends a part of text once. The bytes of a character that was cut in two go out first.
func (p *parser) closeText(t *inputText) {
	if t.closed {
		return
	}
	t.closed = true
	if rest := t.piece.Rest(); rest != "" {
		p.send(dialogue.Event{Kind: dialogue.EventDelta, Part: t.part, Text: rest})
	}
	p.send(dialogue.Event{Kind: dialogue.EventClose, Part: t.part})
}

// The events of reasoning come for summaries and for the reasoning itself, and both in pieces and whole. The neutral
// form has one text for them.

func (p *parser) summaryDelta(f *frame)   { p.think(f, thought{"summary", f.summary}, false) }
func (p *parser) summaryDone(f *frame)    { p.think(f, thought{"summary", f.summary}, true) }
func (p *parser) reasoningDelta(f *frame) { p.think(f, thought{"content", f.content}, false) }
func (p *parser) reasoningDone(f *frame)  { p.think(f, thought{"content", f.content}, true) }

// think emits a piece of a thought, or a whole one of which no piece came. Parts of a summary are
// separated by a blank line, because the neutral form has one text for them.
func (p *parser) think(f *frame, at thought, whole bool) {
	it := p.itemFor(f, "reasoning")
	if it.kind != "reasoning" || it.closed || whole && it.seen && it.thought == at {
		return
	}
	if !it.open {
		p.openThinking(it)
	}
	text := it.piece.Add(f.value)
	if it.seen && it.thought != at && text != "" {
		text = it.piece.Rest() + "\n\n" + text
	}
	if text == "" {
		return
	}
	it.seen, it.thought = true, at
	p.send(dialogue.Event{Kind: dialogue.EventDelta, Part: it.part, Text: text})
}

// argumentsDelta emits a piece of a call's arguments. Before the call is open they are dropped: the
// final form of the item repeats them.
func (p *parser) argumentsDelta(f *frame) {
	it := p.item(f)
	if it == nil || !it.open || it.closed {
		return // the whole of it comes with the item
	}
	if args := it.piece.Add(f.value); args != "" {
		it.seen = true
		p.send(dialogue.Event{Kind: dialogue.EventDelta, Part: it.part, Text: args})
	}
}

// argumentsDone handles the event with the whole arguments. They are emitted only if no piece of them came.
func (p *parser) argumentsDone(f *frame) {
	if it := p.item(f); it != nil && it.open && !it.closed {
		p.wholeArguments(it, f.value.Str)
	}
}

// wholeArguments emits the arguments of a call, unless deltas have brought them.
func (p *parser) wholeArguments(it *inputItem, args string) {
	if it.seen || args == "" {
		return
	}
	it.seen = true
	p.send(dialogue.Event{Kind: dialogue.EventDelta, Part: it.part, Text: args})
}

// itemDone handles response.output_item.done. The item may never have been announced.
func (p *parser) itemDone(f *frame) {
	f.itemID = f.value.Get("id").Str
	it := p.item(f)
	if it == nil || it.kind != f.value.Get("type").Str {
		it = p.announce(f.output, f.value)
	}
	p.complete(it, f.value)
}
