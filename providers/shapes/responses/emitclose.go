package responses

import (
	"encoding/json"
	"strings"

	"stagedoor/providers/dialogue"
	"stagedoor/providers/fields"
)

// close ends a part, and with it the item that the part belongs to. A message may get further parts, so it stays open
// until another item begins. If that has happened already, it ends here with its last part.
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
		if p.item.kind == callItem && !fields.ValidLenient(p.item.text) {
			e.finish(p.item, statusIncomplete) // cut off; only the end says why
			return
		}
	case opaqueItem:
		if ev.Origin == Name && len(ev.Opaque) > 0 {
			p.item.opaque = append(json.RawMessage(nil), ev.Opaque...)
		}
	}
	e.finish(p.item, statusCompleted)
}

// closeText ends a text or a refusal. A signature of the text, which Gemini gives, is remembered
// under the id of the message, because the shape has no member for it.
func (e *emitter) closeText(p openPart, ev *dialogue.Event) {
	it := p.item
	c := &it.contents[p.content]
	c.closed = true
	if ev.Signature != "" {
		// The shape has no field for it, but the client sends the id back.
		e.env.RememberSignature(it.id, signedText(ev))
	}
	if e.stream {
		e.closeTextEvents(p, c)
	}
	if it != e.items[len(e.items)-1] { // something came after it already
		e.finishIfClosed(it)
	}
}

// closeTextEvents writes the events that repeat a whole text at its end.
func (e *emitter) closeTextEvents(p openPart, c *content) {
	if c.refusal {
		e.contentEvent("response.refusal.done", p)
		e.w.Key("refusal").Text(c.text)
	} else {
		e.contentEvent("response.output_text.done", p)
		e.w.Key("text").Text(c.text)
		e.w.Key("logprobs")
		appendLogProbs(&e.w, c.logprobs)
	}
	e.done()
	e.contentEvent("response.content_part.done", p)
	e.w.Key("part")
	c.append(&e.w)
	e.done()
}

// finishIfClosed ends a message if all of its parts are closed. It is called once another item has begun, after which
// the message gets no further part.
func (e *emitter) finishIfClosed(it *outputItem) {
	for i := range it.contents {
		if !it.contents[i].closed {
			return
		}
	}
	e.finish(it, statusCompleted)
}

// closeThought ends a reasoning item. Its proof goes into encrypted_content, the one member that
// clients which store nothing send back. A thought without a proof is sealed as well, because the
// seal shows Patch that no upstream of this shape knows the item.
func (e *emitter) closeThought(it *outputItem, t *dialogue.Thinking) {
	it.encrypted = e.carrier(it, t)
	if !e.stream || len(it.text) == 0 {
		return
	}
	e.summaryEvent("response.reasoning_summary_text.done", it)
	e.w.Key("text").Text(it.text)
	e.done()
	e.summaryEvent("response.reasoning_summary_part.done", it)
	e.w.Key("part")
	appendSummary(&e.w, it.text)
	e.done()
}

// carrier returns the encrypted_content of a thought: the vendor's own, or a seal for that of
// another vendor.
func (e *emitter) carrier(it *outputItem, t *dialogue.Thinking) string {
	if t == nil {
		t = new(dialogue.Thinking)
	}
	if t.Origin == Name {
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

// closeCall ends a call. Arguments that never came are written as {}, because "" is not JSON.
func (e *emitter) closeCall(it *outputItem, ev *dialogue.Event) {
	if ev.Signature != "" {
		e.env.RememberSignature(it.callID, ev.Signature)
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
		e.w.Key("input").Text(it.text)
	} else {
		e.place("response.function_call_arguments.done", it)
		e.w.Key("name").String(it.name)
		e.w.Key("arguments").Text(it.text)
	}
	e.done()
}

// signedText returns what is remembered of a text part that its upstream signed: the shape of
// the upstream, a space and the signature.
func signedText(ev *dialogue.Event) string { return string(ev.Origin) + " " + ev.Signature }

// signatureOfText returns the signature that signedText put into v.
func signatureOfText(v string) *dialogue.Thinking {
	origin, signature, _ := strings.Cut(v, " ")
	return &dialogue.Thinking{Signature: signature, Origin: dialogue.Shape(origin)}
}
