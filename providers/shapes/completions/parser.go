package completions

import (
	"bytes"
	"slices"

	"github.com/tidwall/gjson"

	"stagedoor/providers/chunks"
	"stagedoor/providers/dialogue"
	"stagedoor/providers/fields"
)

// parser reads a reply of this shape. Streamed and whole replies have the same
// form, so a whole one is a single large chunk.
type parser struct {
	wanted  int            // choices
	ev      dialogue.Event // reused for every event
	choices []*choice
	usage   dialogue.Usage
	counted bool
	started bool
	done    bool
}

// choice is the state of one text.
type choice struct {
	index int
	open  bool
	join  fields.FragmentJoiner
	word  string // finish_reason
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
	switch {
	case p.Answered() && name != "error" && !chunks.HasError(chunk):
		p.learn(chunk.Get("usage"))
	case !chunk.IsObject():
		p.fail(emit, dialogue.BadUpstream("event is not a JSON object"))
	case name == "error":
		p.fail(emit, chunks.DecodeFailure(chunk))
	default:
		p.chunk(chunk, emit)
	}
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
	p.chunk(reply, emit)
	switch {
	case p.done:
	case len(p.choices) == 0:
		p.fail(emit, dialogue.BadUpstream("reply has no choices"))
	default:
		p.finish(emit)
	}
}

// EOF implements shapes.Parser. A stream whose choices all have a finish_reason is complete without
// [DONE], which several servers leave out.
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
	p.finish(emit)
}

// Answered implements shapes.Parser.
func (p *parser) Answered() bool {
	return len(p.choices) >= max(p.wanted, 1) &&
		!slices.ContainsFunc(p.choices, func(c *choice) bool { return c.word == "" })
}

// Done implements shapes.Parser.
func (p *parser) Done() bool { return p.done }

// chunk reads one chunk, or a whole reply as if it were one.
func (p *parser) chunk(v gjson.Result, emit func(*dialogue.Event)) {
	if chunks.HasError(v) {
		p.fail(emit, chunks.DecodeFailure(v))
		return
	}
	p.learn(v.Get("usage"))
	choices := v.Get("choices")
	if !choices.IsArray() {
		return
	}
	// A chunk that names nothing and has no choices comes before the reply, as results of filters do.
	id := v.Get("id").String()
	if !p.started && (id != "" || len(choices.Raw) > len("[]")) {
		p.started = true
		p.ev = dialogue.Event{Kind: dialogue.EventStart, ID: id, Model: v.Get("model").String(),
			Created: v.Get("created").Int()}
		emit(&p.ev)
	}
	position := 0
	chunks.OnlyArray(choices).ForEach(func(_, c gjson.Result) bool {
		p.piece(c, position, emit)
		position++
		return true
	})
}

// learn merges the counts of a chunk into the usage.
func (p *parser) learn(usage gjson.Result) {
	if !usage.IsObject() {
		return
	}
	if !p.counted {
		p.usage, p.counted = dialogue.NoUsage, true
	}
	p.usage.Merge(chunks.Usage(usage))
}

// piece reads one element of choices. position is its place in the list, for servers that send no
// index.
func (p *parser) piece(v gjson.Result, position int, emit func(*dialogue.Event)) {
	index := position
	if i := v.Get("index"); i.Type == gjson.Number {
		index = int(i.Num)
	}
	if !v.IsObject() || index < 0 || index >= chunks.MaxChoices {
		return
	}
	c := p.at(index)
	if c.word != "" {
		return
	}
	text, logprobs := v.Get("text"), tokenList(v.Get("logprobs"))
	if text.Type == gjson.String && (text.Str != "" || len(text.Raw) > len(`""`) || len(logprobs) > 0) {
		p.open(c, emit)
		p.ev = dialogue.Event{Kind: dialogue.EventDelta, Choice: index, Text: c.join.Add(text), LogProbs: logprobs}
		emit(&p.ev)
	}
	if word := v.Get("finish_reason"); word.Type == gjson.String && word.Str != "" {
		c.word = word.Str
		p.close(c, emit)
	}
}

// at returns the state of a choice and creates it at its first use.
func (p *parser) at(index int) *choice {
	for _, c := range p.choices {
		if c.index == index {
			return c
		}
	}
	c := &choice{index: index}
	p.choices = append(p.choices, c)
	return c
}

// open emits EventOpen for the one part of a choice.
func (p *parser) open(c *choice, emit func(*dialogue.Event)) {
	if c.open {
		return
	}
	c.open = true
	p.ev = dialogue.Event{Kind: dialogue.EventOpen, Choice: c.index, PartKind: dialogue.TextPart}
	emit(&p.ev)
}

// close emits EventClose for it, after half a character that may be left.
func (p *parser) close(c *choice, emit func(*dialogue.Event)) {
	if !c.open {
		return
	}
	c.open = false
	if rest := c.join.Rest(); rest != "" {
		p.ev = dialogue.Event{Kind: dialogue.EventDelta, Choice: c.index, Text: rest}
		emit(&p.ev)
	}
	p.ev = dialogue.Event{Kind: dialogue.EventClose, Choice: c.index}
	emit(&p.ev)
}

// finish emits the end of the reply. EventFinish waits until here, because usage may come in a
// chunk after the finish_reason.
func (p *parser) finish(emit func(*dialogue.Event)) {
	if len(p.choices) == 0 {
		p.fail(emit, dialogue.Incomplete())
		return
	}
	for _, c := range p.choices {
		p.close(c, emit)
	}
	if p.counted {
		p.ev = dialogue.Event{Kind: dialogue.EventUsage, Usage: &p.usage}
		emit(&p.ev)
	}
	for _, c := range p.choices {
		p.ev = dialogue.Event{Kind: dialogue.EventFinish, Choice: c.index}
		if c.word != "" {
			p.ev.Reason = chunks.ParseFinishReason(c.word)
		}
		emit(&p.ev)
	}
	p.done = true
	p.ev = dialogue.Event{Kind: dialogue.EventEnd}
	emit(&p.ev)
}

func (p *parser) fail(emit func(*dialogue.Event), err *dialogue.Error) {
	p.done = true
	p.ev = dialogue.Event{Kind: dialogue.EventError, Err: err}
	emit(&p.ev)
}
