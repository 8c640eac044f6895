package responses

import (
	"encoding/json"

	"stagedoor/providers/dialogue"
)

// open begins a part, and a new item for it unless it continues a message. A part without a place
// in the shape is noted as well, so that its deltas are dropped.
func (e *emitter) open(ev *dialogue.Event) {
	if refusal := ev.PartKind == dialogue.RefusalPart; refusal || ev.PartKind == dialogue.TextPart {
		e.parts = append(e.parts, openPart{number: ev.Part, text: true, refusal: refusal})
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
		if ev.Origin == Name && len(ev.Opaque) > 0 {
			part.item = e.add(&outputItem{kind: opaqueItem, opaque: append(json.RawMessage(nil), ev.Opaque...)})
		}
	}
	e.parts = append(e.parts, part)
}

// nativeID returns the id that a reasoning item of this shape's own upstream must
// keep: it and the encrypted content belong together.
func nativeID(t *dialogue.Thinking) string {
	if t == nil || t.Origin != Name {
		return ""
	}
	return t.ItemID
}

// beginText adds a text or a refusal, whose first piece has come, to the last message, or begins a
// message. Texts that follow each other without another item between them are one message, as the
// vendor writes it.
func (e *emitter) beginText(p *openPart) {
	it := e.message()
	if it == nil {
		it = e.add(&outputItem{kind: messageItem})
	}
	p.item, p.content = it, len(it.contents)
	it.contents = append(it.contents, content{refusal: p.refusal})
	if !e.stream {
		return
	}
	e.contentEvent("response.content_part.added", *p)
	e.w.Key("part")
	it.contents[p.content].append(&e.w)
	e.done()
}

// message returns the message that is being written, if it is the last item.
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

// finishMessage ends the message that waited for more text. One with an open part stays open until
// that closes.
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

// openCall begins the item of a call. Upstreams of other shapes call a custom tool with JSON around
// its free text, which an unwrapper removes as it streams.
func (e *emitter) openCall(c *dialogue.Call) *outputItem {
	it := &outputItem{kind: callItem, callID: e.env.ClientCallID(c.ID), name: c.Name, namespace: c.Namespace}
	tool := e.tool(c.Name)
	if it.namespace == "" {
		it.namespace, it.name = unqualified(e.req.Body, c.Name)
	}
	if c.Custom || tool != nil && tool.Kind == dialogue.CustomTool {
		it.kind = customItem
		if !c.Custom {
			it.unwrap = new(unwrapper)
		}
	}
	return e.add(it)
}

// tool returns the client's tool of this name, or nil.
func (e *emitter) tool(name string) *dialogue.Tool {
	for i := range e.req.Tools {
		if e.req.Tools[i].Name == name {
			return &e.req.Tools[i]
		}
	}
	return nil
}

// openImage begins an image_generation_call, which is the only item of the shape that can hold a
// picture.
func (e *emitter) openImage(m *dialogue.Media) *outputItem {
	if m == nil || m.Kind != dialogue.Image || m.Base64 == "" {
		return nil
	}
	it := e.add(&outputItem{kind: imageItem})
	it.text = []byte(m.Base64)
	return it
}

// add appends a new item to the output and announces it. Its output_index is its place in the final
// output.
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

// itemEvent writes an event with the item itself.
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

// finish sets the final status of an item and writes the event with the whole of it.
func (e *emitter) finish(it *outputItem, status string) {
	it.status = status
	e.itemEvent("response.output_item.done", it, false)
}
