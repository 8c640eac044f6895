package responses

import (
	"encoding/json"

	"github.com/tidwall/gjson"

	"stagedoor/providers/dialogue"
	"stagedoor/providers/fields"
)

// complete reads an item in its final form: it emits whatever no delta brought, and closes its
// parts. It is called for output_item.done and for every item of the final response, so a stream
// from which events are missing still gives the whole answer.
// It is safe to call it twice for one item: the first call closes the item, and a closed item takes
// nothing more.
func (p *parser) complete(it *inputItem, v gjson.Result) {
	if it.closed {
		return
	}
	switch it.kind {
	case "message":
		i := 0
		v.Get("content").ForEach(func(_, c gjson.Result) bool {
			p.wholeContent(it, i, c)
			i++
			return true
		})
	case "reasoning":
		p.completeThinking(it, v)
	case "function_call":
		p.openCall(it, v)
		p.completeCall(it, v.Get("arguments").Str)
	case "custom_tool_call":
		p.openCall(it, v)
		p.completeCall(it, v.Get("input").Str)
	default:
		p.server(v)
	}
	p.closeItem(it)
}

// completeThinking closes a reasoning item with the id and the encrypted content, which are only
// known now.
func (p *parser) completeThinking(it *inputItem, v gjson.Result) {
	if !it.open {
		p.openThinking(it)
	}
	if text := summaryText(v); !it.seen && text != "" {
		it.seen = true
		p.send(dialogue.Event{Kind: dialogue.EventDelta, Part: it.part, Text: text})
	}
	id := v.Get("id").Str
	if id == "" {
		id = it.id
	}
	p.closePart(it, &dialogue.Thinking{Origin: Name, ItemID: id, Encrypted: v.Get("encrypted_content").Str})
}

// completeCall emits the arguments of a call if no delta brought them.
func (p *parser) completeCall(it *inputItem, args string) {
	if it.open {
		p.wholeArguments(it, args)
	}
}

// server emits an item of a tool that the upstream ran itself, whole and unchanged. Clients of this
// shape get it as it is. Clients of other shapes get its picture, if it has one.
func (p *parser) server(v gjson.Result) {
	part := p.number()
	opaque := json.RawMessage(v.Raw)
	p.send(dialogue.Event{Kind: dialogue.EventOpen, Part: part, PartKind: dialogue.ServerPart,
		Origin: Name, Opaque: opaque, Media: picture(v)})
	p.send(dialogue.Event{Kind: dialogue.EventClose, Part: part, Origin: Name, Opaque: opaque})
}

// picture returns the picture that the upstream's image tool made, for clients of other shapes, or nil for any other
// item.
// The item itself is passed on as opaque JSON in any case. The picture is beside it, so that a
// client of a shape without that item does not lose the image for which it paid.
func picture(v gjson.Result) *dialogue.Media {
	if v.Get("type").Str != "image_generation_call" || v.Get("result").Str == "" {
		return nil
	}
	format := "png"
	if f := v.Get("output_format").Str; f == "webp" || f == "jpeg" {
		format = f
	}
	return &dialogue.Media{Kind: dialogue.Image, MIME: "image/" + format, Base64: v.Get("result").Str}
}

// closeItem closes the open parts of an item.
func (p *parser) closeItem(it *inputItem) {
	if it.closed {
		return
	}
	it.closed = true
	for _, t := range it.contents {
		p.closeText(t)
	}
	switch {
	case !it.open:
	case it.kind == "reasoning":
		p.closePart(it, &dialogue.Thinking{Origin: Name, ItemID: it.id})
	default:
		p.closePart(it, nil)
	}
}

// closePart closes the one part of a reasoning item or of a call.
func (p *parser) closePart(it *inputItem, t *dialogue.Thinking) {
	it.open = false
	if rest := it.piece.Rest(); rest != "" {
		p.send(dialogue.Event{Kind: dialogue.EventDelta, Part: it.part, Text: rest})
	}
	p.send(dialogue.Event{Kind: dialogue.EventClose, Part: it.part, Thinking: t})
}

// finished handles response.completed and response.incomplete.
func (p *parser) finished(f *frame) {
	if !f.value.IsObject() {
		p.fail(dialogue.BadUpstream("terminal event without a response"))
		return
	}
	p.start(f.value)
	p.finish(f.value)
}

// failed handles response.failed and response.cancelled. A response that gives no error gets a
// fixed one.
func (p *parser) failed(f *frame) {
	err := inBandError(f.value)
	if !given(f.value.Get("error")) {
		err.Message, err.Code = "the upstream provider did not finish the reply", "upstream_error"
	}
	p.fail(err)
}

// finish ends the reply with the response object: items that were never
// streamed, usage, and why it ended.
// The items are bounded by fields.MaxParts, because a reply is hostile text as well and each item
// costs a part with its state.
func (p *parser) finish(response gjson.Result) {
	i := 0
	streamed := len(p.items)
	response.Get("output").ForEach(func(_, v gjson.Result) bool {
		if i == fields.MaxParts {
			p.fail(fields.TooManyParts())
			return false
		}
		it := p.match(i, streamed, v)
		if it == nil {
			it = p.announce(i, v)
		}
		p.complete(it, v)
		i++
		return true
	})
	if p.done {
		return
	}
	for _, it := range p.items {
		p.closeItem(it)
	}
	usage := readUsage(response.Get("usage"))
	if usage != dialogue.NoUsage {
		p.send(dialogue.Event{Kind: dialogue.EventUsage, Usage: &usage})
	}
	p.send(dialogue.Event{Kind: dialogue.EventFinish, Reason: reasonOf(response, p.calls),
		ServiceTier: dialogue.TierName(response.Get("service_tier").Str)})
	p.done = true
	p.send(dialogue.Event{Kind: dialogue.EventEnd})
}

// match returns the streamed item that is the i-th of the final output, or nil: the one with its id
// or call, else the one with its index, else the one at its place, if the type fits. Some servers
// make new ids for the final object. streamed is the number of items that were streamed.
// The sequence of the attempts matters. The id is the best evidence, the index is what the protocol
// promises, and the place is a guess that is only right if the type agrees. A wrong match would
// close an item that has another text, so nil, which repeats the item, is the safer failure.
func (p *parser) match(i, streamed int, v gjson.Result) *inputItem {
	id, call, kind := v.Get("id").Str, v.Get("call_id").Str, v.Get("type").Str
	for _, it := range p.items[:streamed] {
		if it.kind == kind && (id != "" && it.id == id || call != "" && it.callID == call) {
			return it
		}
	}
	for _, it := range p.items[:streamed] {
		if it.kind == kind && it.index == i {
			return it
		}
	}
	if i < streamed && p.items[i].kind == kind {
		return p.items[i]
	}
	return nil
}

// reasonOf returns why a response ended. The shape has no reason for calls, so a complete response
// with calls gives ReasonTool. An incomplete one with an unknown reason counts as cut off.
func reasonOf(response gjson.Result, calls bool) dialogue.Reason {
	if response.Get("status").Str == statusIncomplete {
		if response.Get("incomplete_details.reason").Str == "content_filter" {
			return dialogue.ReasonFilter
		}
		return dialogue.ReasonLength
	}
	if calls {
		return dialogue.ReasonTool
	}
	return dialogue.ReasonStop
}

// readUsage returns the counts in a usage object. As in the neutral form, input_tokens includes
// cached tokens and output_tokens includes reasoning.
// A count that is missing stays unknown and is not 0, because an unknown count is estimated and a
// count of 0 is charged as such. A negative one counts as unknown too, but it is kept apart, so
// that the caller that charges for the reply can report that it saw one.
func readUsage(v gjson.Result) dialogue.Usage {
	u := dialogue.NoUsage
	if !v.IsObject() {
		return u
	}
	take := func(n *int64, path string) {
		switch m := v.Get(path); {
		case m.Type != gjson.Number:
		case m.Num >= 0:
			*n = m.Int()
		default:
			*n = dialogue.NegativeCount
		}
	}
	take(&u.InputTotal, "input_tokens")
	take(&u.CacheRead, "input_tokens_details.cached_tokens")
	take(&u.CacheWrite, "input_tokens_details.cache_write_tokens")
	take(&u.OutputTotal, "output_tokens")
	take(&u.Reasoning, "output_tokens_details.reasoning_tokens")
	return u
}
