package responses

import (
	"encoding/json"

	"github.com/tidwall/gjson"

	"stagedoor/providers/dialogue"
	"stagedoor/providers/jsonw"
	"stagedoor/providers/shapes"
)

// emitter writes one reply. Whole and streamed replies go through the same
// steps and differ only in whether the steps are told as they happen.
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

// openPart leads from a part of the event sequence to where it is written.
type openPart struct {
	number  int
	item    *outputItem // nil: the shape has no place for this part
	content int         // of a message
}

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
		e.reason, e.detail = ev.Reason, ev.Detail
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

func (e *emitter) done() {
	e.w.End()
	e.w.Buf = append(e.w.Buf, "\n\n"...)
}

func (e *emitter) ping() {
	if e.stream {
		e.w.Buf = append(e.w.Buf, heartbeat...)
	}
}

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

func (e *echo) is(name, value string) bool {
	for i := range echoed {
		if echoed[i].name == name {
			return e[i] == value
		}
	}
	return false
}

// snapshot tells the response object as it stands.
func (e *emitter) snapshot(kind string) {
	if !e.stream {
		return
	}
	e.event(kind)
	e.w.Key("response")
	e.object.append(&e.w, e.output)
	e.done()
}

func (e *emitter) output(w *jsonw.Writer) {
	for _, it := range e.items {
		it.append(w, false)
	}
}

func (e *emitter) open(ev *dialogue.Event) {
	if ev.PartKind == dialogue.TextPart || ev.PartKind == dialogue.RefusalPart {
		e.openText(ev)
		return
	}
	e.finishMessage(statusCompleted)
	part := openPart{number: ev.Part}
	switch ev.PartKind {
	case dialogue.ThinkingPart:
		part.item = e.add(&outputItem{kind: reasoningItem, id: nativeID(ev.Thinking)})
	case dialogue.CallPart:
		part.item = e.openCall(ev.Call)
	case dialogue.MediaPart:
		part.item = e.openImage(ev.Media)
	case dialogue.ServerPart:
		if ev.Origin == dialogue.Responses && len(ev.Opaque) > 0 {
			part.item = e.add(&outputItem{kind: opaqueItem, opaque: append(json.RawMessage(nil), ev.Opaque...)})
		}
	}
	e.parts = append(e.parts, part)
}

// nativeID is the id that a reasoning item of this shape's own upstream must
// keep: it and the encrypted content belong together.
func nativeID(t *dialogue.Thinking) string {
	if t == nil || t.Origin != dialogue.Responses {
		return ""
	}
	return t.ItemID
}

// openText adds a part to the message under way, or begins one. Text parts that
// follow each other are one message, as vendors write it.
func (e *emitter) openText(ev *dialogue.Event) {
	it := e.message()
	if it == nil {
		it = e.add(&outputItem{kind: messageItem})
	}
	part := openPart{number: ev.Part, item: it, content: len(it.contents)}
	it.contents = append(it.contents, content{refusal: ev.PartKind == dialogue.RefusalPart})
	e.parts = append(e.parts, part)
	if !e.stream {
		return
	}
	e.contentEvent("response.content_part.added", part)
	e.w.Key("part")
	it.contents[part.content].append(&e.w)
	e.done()
}

// message is the message that is being written, if it is the last item.
func (e *emitter) message() *outputItem {
	if len(e.items) == 0 {
		return nil
	}
	it := e.items[len(e.items)-1]
	if it.kind != messageItem || it.status != statusInProgress {
		return nil
	}
	return it
}

// finishMessage ends the message that waited for more text. A part that is
// still open keeps it open until it closes.
func (e *emitter) finishMessage(status string) {
	it := e.message()
	if it == nil {
		return
	}
	for i := range it.contents {
		if !it.contents[i].closed {
			return
		}
	}
	e.finish(it, status)
}

func (e *emitter) openCall(c *dialogue.Call) *outputItem {
	it := &outputItem{kind: callItem, callID: c.ID, name: c.Name, namespace: c.Namespace}
	tool := e.tool(c.Name)
	if it.namespace == "" {
		it.namespace, it.name = unqualified(e.req.Body, c.Name)
	}
	if it.callID == "" {
		it.callID = "call_" + e.env.ID()
	}
	if c.Custom || tool != nil && tool.Kind == dialogue.CustomTool {
		it.kind = customItem
		if !c.Custom {
			it.unwrap = new(unwrapper)
		}
	}
	return e.add(it)
}

func (e *emitter) tool(name string) *dialogue.Tool {
	for i := range e.req.Tools {
		if e.req.Tools[i].Name == name {
			return &e.req.Tools[i]
		}
	}
	return nil
}

// openImage writes an image by value as the item of the vendor's own image
// tool, which is the only place for one.
func (e *emitter) openImage(m *dialogue.Media) *outputItem {
	if m == nil || m.Kind != dialogue.Image || m.Base64 == "" {
		return nil
	}
	it := e.add(&outputItem{kind: imageItem})
	it.text = []byte(m.Base64)
	return it
}

// add announces a new item. output_index is its place in the final output.
func (e *emitter) add(it *outputItem) *outputItem {
	it.index = len(e.items)
	it.status = statusInProgress
	if it.id == "" && it.kind != opaqueItem {
		it.id = prefixes[it.kind] + e.env.ID()
	}
	e.items = append(e.items, it)
	e.itemEvent("response.output_item.added", it, true)
	return it
}

func (e *emitter) itemEvent(kind string, it *outputItem, fresh bool) {
	if !e.stream {
		return
	}
	e.event(kind)
	e.w.Key("output_index").Int(int64(it.index))
	e.w.Key("item")
	it.append(&e.w, fresh)
	e.done()
}

func (e *emitter) finish(it *outputItem, status string) {
	it.status = status
	e.itemEvent("response.output_item.done", it, false)
}

// place begins an event about an item.
func (e *emitter) place(kind string, it *outputItem) {
	e.event(kind)
	e.w.Key("item_id").String(it.id)
	e.w.Key("output_index").Int(int64(it.index))
}

func (e *emitter) contentEvent(kind string, p openPart) {
	e.place(kind, p.item)
	e.w.Key("content_index").Int(int64(p.content))
}

// part finds an open part; parts are few and the last one is nearly always it.
func (e *emitter) part(number int) (int, bool) {
	for i := len(e.parts) - 1; i >= 0; i-- {
		if e.parts[i].number == number {
			return i, true
		}
	}
	return 0, false
}

func (e *emitter) delta(ev *dialogue.Event) {
	i, ok := e.part(ev.Part)
	if !ok || e.parts[i].item == nil {
		return
	}
	p := e.parts[i]
	switch p.item.kind {
	case messageItem:
		e.textDelta(p, ev)
	case reasoningItem:
		e.thought(p.item, ev.Text)
	case callItem, customItem:
		e.arguments(p.item, ev.Text)
	}
}

func (e *emitter) textDelta(p openPart, ev *dialogue.Event) {
	c := &p.item.contents[p.content]
	if ev.Text != "" || len(ev.LogProbs) > 0 {
		c.text = append(c.text, ev.Text...)
		if len(ev.LogProbs) > 0 {
			c.logprobs = append(c.logprobs, append(json.RawMessage(nil), ev.LogProbs...))
		}
		e.textEvent(p, c, ev)
	}
	for i := range ev.Citations {
		e.cite(p, c, &ev.Citations[i])
	}
}

func (e *emitter) textEvent(p openPart, c *content, ev *dialogue.Event) {
	if !e.stream {
		return
	}
	if c.refusal {
		e.contentEvent("response.refusal.delta", p)
		e.w.Key("delta").String(ev.Text)
		e.done()
		return
	}
	e.contentEvent("response.output_text.delta", p)
	e.w.Key("delta").String(ev.Text)
	e.w.Key("logprobs")
	if len(ev.LogProbs) > 0 {
		e.w.Raw(ev.LogProbs)
	} else {
		e.w.Array().End()
	}
	e.done()
}

func (e *emitter) cite(p openPart, c *content, citation *dialogue.Citation) {
	a := annotation(citation)
	if a == nil || c.refusal {
		return
	}
	c.annotations = append(c.annotations, a)
	if !e.stream {
		return
	}
	e.contentEvent("response.output_text.annotation.added", p)
	e.w.Key("annotation_index").Int(int64(len(c.annotations) - 1))
	e.w.Key("annotation").Raw(a)
	e.done()
}

// thought adds to the one summary part that a reasoning item gets.
func (e *emitter) thought(it *outputItem, text string) {
	if text == "" {
		return
	}
	first := len(it.text) == 0
	it.text = append(it.text, text...)
	if !e.stream {
		return
	}
	if first {
		e.summaryEvent("response.reasoning_summary_part.added", it)
		e.w.Key("part")
		appendSummary(&e.w, nil)
		e.done()
	}
	e.summaryEvent("response.reasoning_summary_text.delta", it)
	e.w.Key("delta").String(text)
	e.done()
}

func (e *emitter) summaryEvent(kind string, it *outputItem) {
	e.place(kind, it)
	e.w.Key("summary_index").Int(0)
}

func (e *emitter) arguments(it *outputItem, piece string) {
	if it.unwrap == nil {
		it.text = append(it.text, piece...)
		e.argumentsEvent(it, piece)
		return
	}
	known := len(it.text)
	it.text = it.unwrap.feed(it.text, piece)
	e.argumentsEvent(it, string(it.text[known:]))
}

func (e *emitter) argumentsEvent(it *outputItem, piece string) {
	if !e.stream || piece == "" {
		return
	}
	if it.kind == customItem {
		e.place("response.custom_tool_call_input.delta", it)
	} else {
		e.place("response.function_call_arguments.delta", it)
	}
	e.w.Key("delta").String(piece)
	e.done()
}

func (e *emitter) close(ev *dialogue.Event) {
	i, ok := e.part(ev.Part)
	if !ok {
		return
	}
	p := e.parts[i]
	e.parts = append(e.parts[:i], e.parts[i+1:]...)
	if p.item == nil {
		return
	}
	switch p.item.kind {
	case messageItem:
		e.closeText(p, ev)
		return
	case reasoningItem:
		e.closeThought(p.item, ev.Thinking)
	case callItem, customItem:
		e.closeCall(p.item, ev)
		if p.item.kind == callItem && !gjson.ValidBytes(p.item.text) {
			e.finish(p.item, statusIncomplete) // cut off: why, only the end tells
			return
		}
	case opaqueItem:
		if ev.Origin == dialogue.Responses && len(ev.Opaque) > 0 {
			p.item.opaque = append(json.RawMessage(nil), ev.Opaque...)
		}
	}
	e.finish(p.item, statusCompleted)
}

func (e *emitter) closeText(p openPart, ev *dialogue.Event) {
	it := p.item
	c := &it.contents[p.content]
	c.closed = true
	if ev.Signature != "" {
		// The shape has no field for it; the client brings the id back.
		e.env.Vault.Remember(it.id, ev.Signature)
	}
	if e.stream {
		e.closeTextEvents(p, c)
	}
	if it != e.items[len(e.items)-1] { // something came after it already
		e.finishIfClosed(it)
	}
}

func (e *emitter) closeTextEvents(p openPart, c *content) {
	if c.refusal {
		e.contentEvent("response.refusal.done", p)
		e.w.Key("refusal").String(string(c.text))
	} else {
		e.contentEvent("response.output_text.done", p)
		e.w.Key("text").String(string(c.text))
		e.w.Key("logprobs")
		appendLogProbs(&e.w, c.logprobs)
	}
	e.done()
	e.contentEvent("response.content_part.done", p)
	e.w.Key("part")
	c.append(&e.w)
	e.done()
}

func (e *emitter) finishIfClosed(it *outputItem) {
	for i := range it.contents {
		if !it.contents[i].closed {
			return
		}
	}
	e.finish(it, statusCompleted)
}

// closeThought seals what the next turn must bring back into
// encrypted_content, the one field that stateless clients return
// (translation.md 9). It is sealed even if there is nothing to prove: the seal
// tells Patch that no upstream of this shape knows the item.
func (e *emitter) closeThought(it *outputItem, t *dialogue.Thinking) {
	it.encrypted = e.carrier(it, t)
	if !e.stream || len(it.text) == 0 {
		return
	}
	e.summaryEvent("response.reasoning_summary_text.done", it)
	e.w.Key("text").String(string(it.text))
	e.done()
	e.summaryEvent("response.reasoning_summary_part.done", it)
	e.w.Key("part")
	appendSummary(&e.w, it.text)
	e.done()
}

func (e *emitter) carrier(it *outputItem, t *dialogue.Thinking) string {
	if t == nil {
		t = new(dialogue.Thinking)
	}
	if t.Origin == dialogue.Responses {
		return t.Encrypted
	}
	if e.env.Sealer == nil {
		return ""
	}
	sealed := *t
	if sealed.Signature != "" {
		sealed.Text = string(it.text) // the proof is for these very bytes
	}
	return e.env.Sealer.Seal(&sealed)
}

func (e *emitter) closeCall(it *outputItem, ev *dialogue.Event) {
	if ev.Signature != "" {
		e.env.Vault.Remember(it.callID, ev.Signature)
	}
	switch {
	case it.unwrap != nil:
		known := len(it.text)
		it.text = it.unwrap.rest(it.text)
		e.argumentsEvent(it, string(it.text[known:]))
		it.unwrap = nil
	case it.kind == callItem && len(it.text) == 0:
		e.arguments(it, "{}")
	}
	if !e.stream {
		return
	}
	if it.kind == customItem {
		e.place("response.custom_tool_call_input.done", it)
		e.w.Key("input").String(string(it.text))
	} else {
		e.place("response.function_call_arguments.done", it)
		e.w.Key("name").String(it.name)
		e.w.Key("arguments").String(string(it.text))
	}
	e.done()
}

// incomplete are the reasons that leave a response incomplete, with the words
// of incomplete_details (translation.md 8.2). All others complete it.
var incomplete = map[dialogue.Reason]string{
	dialogue.ReasonLength:        "max_output_tokens",
	dialogue.ReasonContextWindow: "max_output_tokens",
	dialogue.ReasonFilter:        "content_filter",
}

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

// explain writes the upstream's explanation of a refusal as the refusal part
// that this shape has for it, unless the answer holds one already.
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
	const number = -1 // no parser numbers a part so
	e.open(&dialogue.Event{Part: number, PartKind: dialogue.RefusalPart})
	e.delta(&dialogue.Event{Part: number, Text: e.detail})
	e.close(&dialogue.Event{Part: number})
}

// fail ends a stream whose reply broke off. What the client has stays, marked
// incomplete; a whole reply is answered with the envelope by the caller.
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
