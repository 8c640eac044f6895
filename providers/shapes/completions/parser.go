package completions

import (
	"github.com/tidwall/gjson"

	"stagedoor/providers/chunks"
	"stagedoor/providers/dialogue"
	"stagedoor/providers/fields"
)

// parser reads a reply of this shape. Streamed and whole replies have the same
// form, so a whole one is a single large chunk.
type parser struct{ chunks.Parser[*choice] }

// choice is the state of one text.
type choice struct {
	parser *parser
	index  int
	open   bool
	join   fields.FragmentJoiner
	word   string // finish_reason
}

// Place implements chunks.Choice.
func (c *choice) Place() int { return c.index }

// Ended implements chunks.Choice.
func (c *choice) Ended() bool { return c.word != "" }

// Close implements chunks.Choice. Half a character that is left goes out before the end.
func (c *choice) Close(emit func(*dialogue.Event)) {
	if !c.open {
		return
	}
	c.open = false
	ev := &c.parser.Ev
	if rest := c.join.Rest(); rest != "" {
		*ev = dialogue.Event{Kind: dialogue.EventDelta, Choice: c.index, Text: rest}
		emit(ev)
	}
	*ev = dialogue.Event{Kind: dialogue.EventClose, Choice: c.index}
	emit(ev)
}

// Reason implements chunks.Choice. A choice that was cut off has no reason.
func (c *choice) Reason() (dialogue.Reason, string) {
	if c.word == "" {
		return 0, ""
	}
	return chunks.ParseFinishReason(c.word), ""
}

// Event implements shapes.Parser.
func (p *parser) Event(name string, data []byte, emit func(*dialogue.Event)) {
	if chunk, ok := p.Next(name, data, emit); ok {
		p.chunk(chunk, emit)
	}
}

// Body implements shapes.Parser.
func (p *parser) Body(body []byte, emit func(*dialogue.Event)) {
	if reply, ok := p.Whole(body, emit); ok {
		p.chunk(reply, emit)
		p.EndWhole(emit)
	}
}

// chunk reads one chunk, or a whole reply as if it were one.
func (p *parser) chunk(v gjson.Result, emit func(*dialogue.Event)) {
	if chunks.HasError(v) {
		p.Fail(emit, chunks.DecodeFailure(v))
		return
	}
	p.Learn(v.Get("usage"))
	choices := v.Get("choices")
	if !choices.IsArray() {
		return
	}
	p.Start(v.Get("id").String(), v.Get("model").String(), v.Get("created").Int(), choices, emit)
	position := 0
	chunks.OnlyArray(choices).ForEach(func(_, c gjson.Result) bool {
		p.piece(c, position, emit)
		position++
		return true
	})
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
		p.Ev = dialogue.Event{Kind: dialogue.EventDelta, Choice: index, Text: c.join.Add(text), LogProbs: logprobs}
		emit(&p.Ev)
	}
	if word := v.Get("finish_reason"); word.Type == gjson.String && word.Str != "" {
		c.word = word.Str
		c.Close(emit)
	}
}

// at returns the state of a choice and creates it at its first use.
func (p *parser) at(index int) *choice {
	if c, ok := p.Find(index); ok {
		return c
	}
	c := &choice{parser: p, index: index}
	p.Choices = append(p.Choices, c)
	return c
}

// open emits EventOpen for the one part of a choice.
func (p *parser) open(c *choice, emit func(*dialogue.Event)) {
	if c.open {
		return
	}
	c.open = true
	p.Ev = dialogue.Event{Kind: dialogue.EventOpen, Choice: c.index, PartKind: dialogue.TextPart}
	emit(&p.Ev)
}
