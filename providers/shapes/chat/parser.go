package chat

import (
	"bytes"
	"slices"

	"github.com/tidwall/gjson"

	"stagedoor/providers/chunks"
	"stagedoor/providers/dialogue"
	"stagedoor/providers/fields"
)

// parser reads a chat reply, chunk by chunk or whole. A whole reply goes the
// same way as one large delta, so the two cannot differ.
type parser struct {
	env     *dialogue.Env
	wanted  int            // choices
	ev      dialogue.Event // reused for every event
	choices []*choice
	usage   dialogue.Usage
	// counted is set once the upstream has reported any usage.
	counted bool
	started bool
	done    bool
}

// Event implements shapes.Parser.
func (p *parser) Event(name string, data []byte, emit func(*dialogue.Event)) {
	if p.done {
		return
	}
	if bytes.Equal(bytes.TrimSpace(data), []byte("[DONE]")) {
		p.finish(emit)
		return
	}
	chunk := gjson.ParseBytes(data)
	if p.Answered() && name != "error" && !chunks.HasError(chunk) {
		p.learn(chunk.Get("usage"))
		return
	}
	if !chunk.IsObject() {
		p.fail(emit, dialogue.BadUpstream("event is not a JSON object"))
		return
	}
	if name == "error" {
		p.fail(emit, chunks.DecodeFailure(chunk))
		return
	}
	p.chunk(chunk, "delta", emit)
}

// Body implements shapes.Parser.
func (p *parser) Body(body []byte, emit func(*dialogue.Event)) {
	if p.done {
		return
	}
	reply := fields.View(body)
	if !reply.IsObject() {
		p.fail(emit, dialogue.BadUpstream("reply is not a JSON object"))
		return
	}
	if bad := fields.CheckReply("reply", body); bad != nil {
		p.fail(emit, bad)
		return
	}
	p.chunk(reply, "message", emit)
	if p.done {
		return
	}
	if len(p.choices) == 0 {
		p.fail(emit, dialogue.BadUpstream("reply has no choices"))
		return
	}
	p.finish(emit)
}

// EOF implements shapes.Parser. A stream that finished is whole without [DONE],
// which several servers leave out; one that did not is not.
func (p *parser) EOF(emit func(*dialogue.Event)) {
	if p.done {
		return
	}
	for _, c := range p.choices {
		if c.word == "" {
			p.fail(emit, dialogue.Incomplete())
			return
		}
	}
	p.finish(emit) // fails if nothing came at all
}

// Answered implements shapes.Parser. It needs to know how many choices were asked for, because the
// first choice may be finished before the second has begun.
func (p *parser) Answered() bool {
	return len(p.choices) >= max(p.wanted, 1) &&
		!slices.ContainsFunc(p.choices, func(c *choice) bool { return c.word == "" })
}

// Done implements shapes.Parser.
func (p *parser) Done() bool { return p.done }

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
		case "error":
			failed = v.Type != gjson.Null
		}
		return !failed
	})
	if failed {
		p.fail(emit, chunks.DecodeFailure(v))
		return
	}
	p.learn(h.usage)
	if !p.started && (h.id != "" || h.choices.IsArray() && len(h.choices.Raw) > len("[]")) {
		p.start(h, emit)
	}
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

// learn merges the counts of a chunk into the usage. Some servers repeat them in every chunk.
func (p *parser) learn(usage gjson.Result) {
	if !usage.IsObject() {
		return
	}
	if !p.counted {
		p.usage, p.counted = dialogue.NoUsage, true
	}
	p.usage.Merge(chunks.Usage(usage))
}

// start emits EventStart with the id and the model of the first chunk that says something.
func (p *parser) start(h head, emit func(*dialogue.Event)) {
	p.started = true
	p.ev = dialogue.Event{Kind: dialogue.EventStart, ID: h.id, Model: h.model, Created: h.created}
	emit(&p.ev)
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

// at returns the state of a choice and creates it at its first use. A list is searched, because
// there is nearly always one choice.
func (p *parser) at(index int, inside string) *choice {
	for _, c := range p.choices {
		if c.index == index {
			return c
		}
	}
	c := &choice{index: index, whole: inside == "message", ev: &p.ev, env: p.env}
	p.choices = append(p.choices, c)
	return c
}

// finish closes all parts and emits the end of the reply. EventFinish waits until here, because
// usage may come in a chunk after the finish_reason.
func (p *parser) finish(emit func(*dialogue.Event)) {
	if len(p.choices) == 0 {
		p.fail(emit, dialogue.Incomplete())
		return
	}
	for _, c := range p.choices {
		c.emit = emit
		c.closeAll()
	}
	if p.counted {
		p.ev = dialogue.Event{Kind: dialogue.EventUsage, Usage: &p.usage}
		emit(&p.ev)
	}
	for _, c := range p.choices {
		p.ev = dialogue.Event{Kind: dialogue.EventFinish, Choice: c.index, Reason: c.reason(), Detail: c.refusal}
		emit(&p.ev)
	}
	p.done = true
	p.ev = dialogue.Event{Kind: dialogue.EventEnd}
	emit(&p.ev)
}

// fail emits the end of a reply that failed.
func (p *parser) fail(emit func(*dialogue.Event), err *dialogue.Error) {
	p.done = true
	p.ev = dialogue.Event{Kind: dialogue.EventError, Err: err}
	emit(&p.ev)
}
