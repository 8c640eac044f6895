package responses

import (
	"encoding/json"

	"stagedoor/providers/dialogue"
)

// delta adds a piece to an open part. Everything is kept as well as sent, because the shape repeats
// it at the end of the part, of the item and of the response.
func (e *emitter) delta(ev *dialogue.Event) {
	i, ok := e.part(ev.Part)
	if !ok {
		return
	}
	if first := &e.parts[i]; first.text && first.item == nil && !isEmpty(ev) {
		e.beginText(first)
	}
	p := e.parts[i]
	if p.item == nil {
		return
	}
	switch p.item.kind {
	case messageItem:
		e.textDelta(p, ev)
	case reasoningItem:
		e.thought(p.item, ev.Text)
	case callItem, customItem:
		e.arguments(p.item, ev.Text)
	}
}

// isEmpty reports whether a piece of a text brings nothing.
func isEmpty(ev *dialogue.Event) bool {
	return ev.Text == "" && len(ev.LogProbs) == 0 && len(ev.Citations) == 0
}

// textDelta adds a piece of text or of a refusal, with its logprobs and citations.
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

// textEvent writes the delta event of a piece. SDKs require the member logprobs even if it is
// empty.
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

// cite adds a citation, if the shape has a form for it.
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

// thought adds to the summary of a reasoning item, which always has one part.
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

// summaryEvent begins an event about the one part of the summary of a reasoning item.
func (e *emitter) summaryEvent(kind string, it *outputItem) {
	e.place(kind, it)
	e.w.Key("summary_index").Int(0)
}

// arguments adds a piece of a call's arguments, or of the free text of a custom tool.
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

// argumentsEvent writes the delta event of such a piece.
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
