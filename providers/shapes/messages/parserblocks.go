package messages

import (
	"cmp"
	"encoding/json"
	"slices"
	"strings"

	"github.com/tidwall/gjson"
	"github.com/tidwall/sjson"

	"stagedoor/providers/dialogue"
	"stagedoor/providers/fields"
)

// openBlock is a block of the reply that is not closed yet.
type openBlock struct {
	index   int64 // the upstream's
	part    int   // ours
	kind    dialogue.PartKind
	join    fields.FragmentJoiner
	emitted bool // a Delta was emitted
	length  int  // characters of a TextPart

	whole     string // text or input that the block came with
	signature string
	redacted  string
	citations []dialogue.Citation
	opaque    string // of a ServerPart: the block as it came
	input     []byte // of a ServerPart: its input as it streams
}

// openBlock emits EventOpen for a block and, for text and thinking, the Delta of what the block
// came with. A block that is still open under the same index is closed first, because an imitating
// server forgot to.
func (p *parser) openBlock(index int64, block gjson.Result, emit func(*dialogue.Event)) {
	p.closeIndex(index, emit)
	b := openBlock{index: index, part: p.parts}
	p.parts++
	ev := dialogue.Event{Kind: dialogue.EventOpen, Part: b.part}
	kind, name := block.Get("type").String(), block.Get("name").String()
	if kind == "tool_use" && name == "" {
		kind = "" // a call without a name cannot be answered
	}
	switch kind {
	case "text":
		b.kind, b.whole = dialogue.TextPart, b.join.Add(block.Get("text"))
		block.Get("citations").ForEach(func(_, c gjson.Result) bool {
			if c.IsObject() {
				b.citations = append(b.citations, citation(c))
			}
			return true
		})
	case "thinking":
		b.kind, b.whole = dialogue.ThinkingPart, b.join.Add(block.Get("thinking"))
		b.signature = block.Get("signature").String()
	case "redacted_thinking":
		b.kind, b.redacted = dialogue.ThinkingPart, block.Get("data").String()
		ev.Thinking = b.thinking()
	case "tool_use":
		b.kind, p.called = dialogue.CallPart, true
		ev.Call = &dialogue.Call{ID: block.Get("id").String(), Name: name}
		b.whole = givenInput(block.Get("input"))
	default:
		b.kind, b.opaque = dialogue.ServerPart, strings.ToValidUTF8(block.Raw, "\uFFFD")
		ev.Origin, ev.Opaque = Name, json.RawMessage(b.opaque)
	}
	ev.PartKind = b.kind
	p.open = append(p.open, b)
	p.emit(emit, ev)
	if b.kind != dialogue.CallPart {
		// A call's input waits: deltas may follow that say it again.
		last := &p.open[len(p.open)-1]
		p.text(last, last.whole, emit)
	}
}

// givenInput returns the input that a call came with, or "" for null and for an empty object, after
// which deltas follow. Some servers write the input as a string with JSON in it.
func givenInput(v gjson.Result) string {
	switch v.Type {
	case gjson.String:
		return v.Str
	case gjson.Null:
		return ""
	}
	given := ""
	v.ForEach(func(_, _ gjson.Result) bool {
		given = v.Raw
		return false
	})
	return given
}

// implied opens the block of a delta that has none and returns its place in p.open, or -1. Some
// servers send no content_block_start. Only text and thinking can do without one: a call would have
// no name.
func (p *parser) implied(index int64, delta string, emit func(*dialogue.Event)) int {
	switch delta {
	case "text_delta":
		p.openBlock(index, gjson.Parse(`{"type":"text"}`), emit)
	case "thinking_delta":
		p.openBlock(index, gjson.Parse(`{"type":"thinking"}`), emit)
	default:
		return -1
	}
	return len(p.open) - 1
}

// closeIndex closes the block of an index, if it is open.
func (p *parser) closeIndex(index int64, emit func(*dialogue.Event)) {
	if at := p.find(index); at >= 0 {
		p.close(at, emit)
	}
}

// close emits what is still missing of a block, and EventClose. A call for which no delta came gets
// the input of its start, or {}.
func (p *parser) close(at int, emit func(*dialogue.Event)) {
	b := p.open[at]
	p.open = slices.Delete(p.open, at, at+1)
	p.text(&b, b.join.Rest(), emit)
	ev := dialogue.Event{Kind: dialogue.EventClose, Part: b.part}
	switch b.kind {
	case dialogue.CallPart:
		if !b.emitted {
			p.text(&b, cmp.Or(b.whole, "{}"), emit)
		}
	case dialogue.TextPart:
		p.cite(&b, emit)
	case dialogue.ThinkingPart:
		ev.Thinking = b.thinking()
	case dialogue.ServerPart:
		ev.Origin, ev.Opaque = Name, b.replay()
	}
	p.emit(emit, ev)
}

// cite emits the citations of a text block. The vendor's refer to the whole block, whose length is
// known only when it closes.
func (p *parser) cite(b *openBlock, emit func(*dialogue.Event)) {
	if len(b.citations) == 0 {
		return
	}
	for i := range b.citations {
		b.citations[i].End = b.length
	}
	p.emit(emit, dialogue.Event{Kind: dialogue.EventDelta, Part: b.part, Citations: b.citations})
}

// thinking returns the proof that must come back with a thinking block, or nil if the upstream gave
// none.
func (b *openBlock) thinking() *dialogue.Thinking {
	if b.signature == "" && b.redacted == "" {
		return nil
	}
	return &dialogue.Thinking{Signature: b.signature, Redacted: b.redacted, Origin: Name}
}

// replay returns a server tool's block as it must be sent back: with the input that streamed after
// its start put into it, if that is valid JSON.
func (b *openBlock) replay() json.RawMessage {
	if len(b.input) > 0 && fields.ValidLenient(b.input) {
		if whole, err := sjson.SetRaw(b.opaque, "input", strings.ToValidUTF8(string(b.input), "\uFFFD")); err == nil {
			return json.RawMessage(whole)
		}
	}
	return json.RawMessage(b.opaque)
}

// citation returns a citation in the neutral form, with the vendor's own JSON beside it.
func citation(v gjson.Result) dialogue.Citation {
	c := dialogue.Citation{
		URL:       v.Get("url").String(),
		Title:     cmp.Or(v.Get("title").String(), v.Get("document_title").String()),
		CitedText: v.Get("cited_text").String(),
		Origin:    Name,
		Opaque:    json.RawMessage(strings.ToValidUTF8(v.Raw, "\uFFFD")),
	}
	if source := v.Get("source").String(); c.URL == "" && strings.HasPrefix(source, "http") {
		c.URL = source
	}
	return c
}
