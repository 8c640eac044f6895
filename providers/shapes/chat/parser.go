package chat

import (
	"github.com/tidwall/gjson"

	"stagedoor/providers/chunks"
	"stagedoor/providers/dialogue"
)

// parser reads a chat reply, chunk by chunk or whole. A whole reply goes the
// same way as one large delta, so the two cannot differ.
type parser struct {
	chunks.Parser[*choice]
	env *dialogue.Env
}

// Event implements shapes.Parser.
func (p *parser) Event(name string, data []byte, emit func(*dialogue.Event)) {
	if chunk, ok := p.Next(name, data, emit); ok {
		p.chunk(chunk, "delta", emit)
	}
}

// Body implements shapes.Parser.
func (p *parser) Body(body []byte, emit func(*dialogue.Event)) {
	if reply, ok := p.Whole(body, emit); ok {
		p.chunk(reply, "message", emit)
		p.EndWhole(emit)
	}
}

// head holds the members of a chunk, or of a whole reply, that are read beside its choices.
type head struct {
	id, model      string
	created        int64
	choices, usage gjson.Result
}

// chunk reads one chunk, or a whole reply as if it were one large chunk. inside is the member of a
// choice that has its parts: "delta" or "message".
func (p *parser) chunk(v gjson.Result, inside string, emit func(*dialogue.Event)) {
	var h head
	failed := false
	chunks.OnlyObject(v).ForEach(func(name, v gjson.Result) bool {
		switch name.Str {
		case "id":
			h.id = v.Str
		case "model":
			h.model = v.Str
		case "created":
			h.created = v.Int()
		case "choices":
			h.choices = v
		case "usage":
			h.usage = v
		case "service_tier":
			if v.Str != p.Tier { // a stream repeats it in every chunk
				p.Tier = dialogue.TierName(v.Str)
			}
		case "error":
			failed = v.Type != gjson.Null
		}
		return !failed
	})
	if failed {
		p.Fail(emit, chunks.DecodeFailure(v))
		return
	}
	p.Learn(h.usage)
	p.Start(h.id, h.model, h.created, h.choices, emit)
	if !h.choices.IsArray() {
		return
	}
	position := 0
	chunks.OnlyArray(h.choices).ForEach(func(_, c gjson.Result) bool {
		if c.IsObject() {
			p.choice(c, position, inside, emit)
		}
		position++
		return true
	})
}

// choice reads one element of choices. position is its place in the list, which counts for servers
// that send no index. An index outside of any request's choices is ignored, because each would take
// memory.
func (p *parser) choice(v gjson.Result, position int, inside string, emit func(*dialogue.Event)) {
	index, word := position, ""
	var said, logprobs gjson.Result
	chunks.OnlyObject(v).ForEach(func(name, v gjson.Result) bool {
		switch name.Str {
		case "index":
			if v.Type == gjson.Number {
				index = int(v.Num)
			}
		case inside:
			said = v
		case "logprobs":
			logprobs = v
		case "finish_reason":
			if v.Type == gjson.String {
				word = v.Str
			}
		}
		return true
	})
	if index < 0 || index >= chunks.MaxChoices {
		return
	}
	c := p.at(index, inside)
	if c.word != "" { // fault U27: a choice ends once
		return
	}
	c.emit = emit
	c.delta(said, logprobs)
	if word != "" {
		c.word = word
		c.closeAll()
	}
}

// at returns the state of a choice and creates it at its first use.
func (p *parser) at(index int, inside string) *choice {
	if c, ok := p.Find(index); ok {
		return c
	}
	c := &choice{index: index, whole: inside == "message", ev: &p.Ev, env: p.env}
	p.Choices = append(p.Choices, c)
	return c
}

// Place implements chunks.Choice.
func (c *choice) Place() int { return c.index }

// Ended implements chunks.Choice.
func (c *choice) Ended() bool { return c.word != "" }

// Close implements chunks.Choice.
func (c *choice) Close(emit func(*dialogue.Event)) {
	c.emit = emit
	c.closeAll()
}

// Reason implements chunks.Choice.
func (c *choice) Reason() (dialogue.Reason, string) { return c.reason(), c.refusal }
