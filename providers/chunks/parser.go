package chunks

import (
	"bytes"
	"slices"

	"github.com/tidwall/gjson"

	"stagedoor/providers/dialogue"
	"stagedoor/providers/fields"
)

// Choice is the state of one choice while a reply is read. Each shape has its own, because the content differs.
type Choice interface {
	// Place returns the index of the choice.
	Place() int
	// Ended reports whether the choice has got its finish_reason.
	Ended() bool
	// Close emits the ends of the parts that are open. It does nothing the second time.
	Close(emit func(*dialogue.Event))
	// Reason returns why the choice ended, and the words of a refusal.
	Reason() (dialogue.Reason, string)
}

// Parser has what both shapes do alike to read a reply: the frame of a stream or of a whole reply, its beginning and
// its end, and usage. A shape embeds it and reads the choices itself:
//
//	Event  Next, then the shape's reading of a chunk
//	Body   Whole, then the same reading, then EndWhole
//
// The shape's reading calls Learn and Start, and adds to Choices. A Parser belongs to one reply.
type Parser[C Choice] struct {
	// Wanted is the number of choices that the request asks for.
	Wanted int
	// Choices are those that have begun, in the order in which they came.
	Choices []C
	// Tier is the service tier of the reply, or "".
	Tier string
	// Ev is used again for every event, so that a stream makes no garbage.
	Ev dialogue.Event

	usage   dialogue.Usage
	counted bool // the upstream has reported usage
	started bool
	done    bool
}

// Next returns the chunk in the data of an event, and false if there is nothing to read in it: the stream has ended, or
// failed, or only usage comes behind its choices.
func (p *Parser[C]) Next(name string, data []byte, emit func(*dialogue.Event)) (chunk gjson.Result, ok bool) {
	if p.done {
		return chunk, false
	}
	if bytes.Equal(bytes.TrimSpace(data), []byte("[DONE]")) {
		p.finish(emit)
		return chunk, false
	}
	chunk = gjson.ParseBytes(data)
	switch {
	case p.Answered() && name != "error" && !HasError(chunk):
		p.Learn(chunk.Get("usage"))
	case !chunk.IsObject():
		p.Fail(emit, dialogue.BadUpstream("event is not a JSON object"))
	case name == "error":
		p.Fail(emit, DecodeFailure(chunk))
	default:
		return chunk, true
	}
	return chunk, false
}

// Whole returns a whole reply, and false if it cannot be read.
func (p *Parser[C]) Whole(body []byte, emit func(*dialogue.Event)) (reply gjson.Result, ok bool) {
	if p.done {
		return reply, false
	}
	reply = fields.View(body)
	if !reply.IsObject() {
		p.Fail(emit, dialogue.BadUpstream("reply is not a JSON object"))
		return reply, false
	}
	if bad := fields.CheckReply("reply", body); bad != nil {
		p.Fail(emit, bad)
		return reply, false
	}
	return reply, true
}

// EndWhole emits the end of a whole reply after its choices were read.
func (p *Parser[C]) EndWhole(emit func(*dialogue.Event)) {
	switch {
	case p.done:
	case len(p.Choices) == 0:
		p.Fail(emit, dialogue.BadUpstream("reply has no choices"))
	default:
		p.finish(emit)
	}
}

// EOF implements shapes.Parser. A stream whose choices have all ended is complete without [DONE], which several servers
// leave out. Any other one is not.
func (p *Parser[C]) EOF(emit func(*dialogue.Event)) {
	switch {
	case p.done:
	case slices.ContainsFunc(p.Choices, func(c C) bool { return !c.Ended() }):
		p.Fail(emit, dialogue.Incomplete())
	default:
		p.finish(emit) // fails if nothing came at all
	}
}

// Answered implements shapes.Parser. It needs to know how many choices were asked for, because the first choice may
// have ended before the second one begins.
func (p *Parser[C]) Answered() bool {
	return len(p.Choices) >= max(p.Wanted, 1) &&
		!slices.ContainsFunc(p.Choices, func(c C) bool { return !c.Ended() })
}

// Done implements shapes.Parser.
func (p *Parser[C]) Done() bool { return p.done }

// Learn merges the counts of a chunk into the usage. Some servers repeat them in every chunk.
func (p *Parser[C]) Learn(usage gjson.Result) {
	if !usage.IsObject() {
		return
	}
	if !p.counted {
		p.usage, p.counted = dialogue.NoUsage, true
	}
	p.usage.Merge(Usage(usage))
}

// Start emits the beginning of the reply with the first chunk that says something. A chunk that names nothing and has
// no choices comes before the reply, as results of filters do.
func (p *Parser[C]) Start(id, model string, created int64, choices gjson.Result, emit func(*dialogue.Event)) {
	if p.started || id == "" && !(choices.IsArray() && len(choices.Raw) > len("[]")) {
		return
	}
	p.started = true
	p.Ev = dialogue.Event{Kind: dialogue.EventStart, ID: id, Model: model, Created: created}
	emit(&p.Ev)
}

// Find returns the choice of an index, and false if it has not begun. A list is searched, because there is nearly
// always one choice.
func (p *Parser[C]) Find(index int) (c C, ok bool) {
	for _, c := range p.Choices {
		if c.Place() == index {
			return c, true
		}
	}
	return c, false
}

// finish closes all parts and emits the end of the reply. EventFinish waits until here, because usage may come in a
// chunk behind the finish_reason.
func (p *Parser[C]) finish(emit func(*dialogue.Event)) {
	if len(p.Choices) == 0 {
		p.Fail(emit, dialogue.Incomplete())
		return
	}
	for _, c := range p.Choices {
		c.Close(emit)
	}
	if p.counted {
		p.Ev = dialogue.Event{Kind: dialogue.EventUsage, Usage: &p.usage}
		emit(&p.Ev)
	}
	for _, c := range p.Choices {
		reason, detail := c.Reason()
		p.Ev = dialogue.Event{Kind: dialogue.EventFinish, Choice: c.Place(), Reason: reason, Detail: detail,
			ServiceTier: p.Tier}
		emit(&p.Ev)
	}
	p.done = true
	p.Ev = dialogue.Event{Kind: dialogue.EventEnd}
	emit(&p.Ev)
}

// Fail ends the reply with an error.
func (p *Parser[C]) Fail(emit func(*dialogue.Event), err *dialogue.Error) {
	p.done = true
	p.Ev = dialogue.Event{Kind: dialogue.EventError, Err: err}
	emit(&p.Ev)
}
