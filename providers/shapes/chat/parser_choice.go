package chat

import (
	"unicode/utf8"

	"github.com/tidwall/gjson"

	"stagedoor/providers/chunks"
	"stagedoor/providers/dialogue"
	"stagedoor/providers/fields"
)

// choice is the state of one choice of a reply. At most one text-like part is
// open at a time; calls stay open beside it, as servers interleave them.
type choice struct {
	index int
	whole bool // a message, not deltas: every entry of tool_calls is a call
	env   *dialogue.Env
	ev    *dialogue.Event
	emit  func(*dialogue.Event)

	// parts counts the parts opened so far. The next part gets this number.
	parts int // numbers given out
	open  bool
	kind  dialogue.PartKind // of the open text-like part
	part  int
	join  fields.FragmentJoiner
	chars int // characters of visible text so far
	base  int // chars when the open text part began
	// details are the entries of reasoning_details since the last proof, and proven is set once one of
	// them is a proof.
	details []*detail
	proven  bool
	sources []dialogue.Citation // citations that came before any text

	calls   []*call
	refusal string
	word    string // finish_reason
	called  bool   // a call was opened
}

// delta reads the delta of one chunk, or the whole message. Thoughts are emitted before text and
// text before calls, whatever the sequence of the members: that is how the model made them.
// The members are looked up in one pass, because this runs for every chunk of every stream.
func (c *choice) delta(said, logprobs gjson.Result) {
	var content, thought, other, refusal, details, calls, function, annotations, audio, images gjson.Result
	chunks.OnlyObject(said).ForEach(func(name, v gjson.Result) bool {
		switch name.Str {
		case "content":
			content = v
		case "reasoning_content":
			thought = v
		case "reasoning":
			other = v
		case "reasoning_details":
			details = v
		case "refusal":
			refusal = v
		case "tool_calls":
			calls = v
		case "function_call":
			function = v
		case "annotations":
			annotations = v
		case "audio":
			audio = v
		case "images":
			images = v
		}
		return true
	})
	if thought.Str == "" {
		thought = other // some servers use the short name, some send both
	}
	c.think(thought, details)
	c.content(content, logprobs.Get("content"))
	if audio.IsObject() {
		c.emitPiece(dialogue.TextPart, audio.Get("transcript"), gjson.Result{})
	}
	chunks.OnlyArray(images).ForEach(func(_, v gjson.Result) bool {
		c.picture(v.Get("image_url.url").String())
		return true
	})
	if refusal.Type == gjson.String && refusal.Str != "" {
		c.refusal += refusal.Str
		c.emitPiece(dialogue.RefusalPart, refusal, gjson.Result{})
	}
	c.cite(annotations)
	chunks.OnlyArray(calls).ForEach(func(_, v gjson.Result) bool {
		c.call(v)
		return true
	})
	if function.IsObject() { // deprecated: the only call there is
		c.legacy(function)
	}
}

// content reads the text. Mistral's reasoning models send a list of parts, with thinking among
// them, instead of a string.
func (c *choice) content(v, logprobs gjson.Result) {
	if !v.IsArray() {
		c.emitPiece(dialogue.TextPart, v, logprobs)
		return
	}
	chunks.OnlyArray(v).ForEach(func(_, p gjson.Result) bool {
		switch p.Get("type").Str {
		case "text", "output_text":
			c.emitPiece(dialogue.TextPart, p.Get("text"), gjson.Result{})
		case "thinking":
			chunks.OnlyArray(p.Get("thinking")).ForEach(func(_, t gjson.Result) bool {
				c.emitPiece(dialogue.ThinkingPart, t.Get("text"), gjson.Result{})
				return true
			})
		}
		return true
	})
}

// think reads thoughts. text is their readable form. details is reasoning_details, which is kept
// for the next turn if its maker wants it back. Its own text counts only where no other member has
// it.
func (c *choice) think(text, details gjson.Result) {
	c.emitPiece(dialogue.ThinkingPart, text, gjson.Result{})
	if !details.IsArray() {
		return
	}
	if text.Str == "" {
		chunks.OnlyArray(details).ForEach(func(_, v gjson.Result) bool {
			c.emitPiece(dialogue.ThinkingPart, v.Get("text"), gjson.Result{})
			c.emitPiece(dialogue.ThinkingPart, v.Get("summary"), gjson.Result{})
			return true
		})
	}
	if sealed(details) {
		c.proven = true
		if !c.open || c.kind != dialogue.ThinkingPart {
			c.begin(dialogue.ThinkingPart)
		}
	}
	chunks.OnlyArray(details).ForEach(func(_, v gjson.Result) bool {
		if last := len(c.details) - 1; c.whole || last < 0 || !c.details[last].join(v) {
			c.details = append(c.details, newDetail(v))
		}
		return true
	})
}

// emitPiece emits a piece of the open part of that kind, and opens one if there is none. An empty string
// emits nothing: servers send "" beside every call.
func (c *choice) emitPiece(kind dialogue.PartKind, v, logprobs gjson.Result) {
	if v.Type != gjson.String || v.Str == "" && len(v.Raw) <= len(`""`) {
		return
	}
	if !c.open || c.kind != kind {
		c.begin(kind)
	}
	text := c.join.Add(v)
	if kind == dialogue.TextPart {
		c.chars += utf8.RuneCountInString(text)
	}
	if text != "" || logprobs.IsArray() {
		*c.ev = dialogue.Event{Kind: dialogue.EventDelta, Choice: c.index, Part: c.part, Text: text}
		if logprobs.IsArray() {
			c.ev.LogProbs = fields.Raw(logprobs)
		}
		c.emit(c.ev)
	}
}

// begin opens a text-like part. The open one ends, and so do calls that are complete, so that
// clients which show one block at a time need not wait for them.
// Citations that came before any text are sent with the first one, because the neutral form has
// them on a part.
func (c *choice) begin(kind dialogue.PartKind) {
	c.end()
	c.closeComplete()
	c.open, c.kind, c.part, c.base = true, kind, c.parts, c.chars
	c.parts++
	*c.ev = dialogue.Event{Kind: dialogue.EventOpen, Choice: c.index, Part: c.part, PartKind: kind}
	c.emit(c.ev)
	if kind == dialogue.TextPart && len(c.sources) > 0 {
		c.source(c.sources)
		c.sources = nil
	}
}

// picture emits a picture, which comes whole.
func (c *choice) picture(url string) {
	if url == "" {
		return
	}
	c.end()
	media := &dialogue.Media{Kind: dialogue.Image}
	media.SetURL(url)
	*c.ev = dialogue.Event{Kind: dialogue.EventOpen, Choice: c.index, Part: c.parts, PartKind: dialogue.MediaPart,
		Media: media, Origin: Name}
	c.emit(c.ev)
	*c.ev = dialogue.Event{Kind: dialogue.EventClose, Choice: c.index, Part: c.parts}
	c.parts++
	c.emit(c.ev)
}

// end closes the open text-like part.
// The details of a thought are joined into one proof. They came in pieces, and the vendor wants all
// of them back.
func (c *choice) end() {
	if !c.open {
		return
	}
	c.open = false
	if rest := c.join.Rest(); rest != "" {
		*c.ev = dialogue.Event{Kind: dialogue.EventDelta, Choice: c.index, Part: c.part, Text: rest}
		c.emit(c.ev)
	}
	*c.ev = dialogue.Event{Kind: dialogue.EventClose, Choice: c.index, Part: c.part}
	if c.kind == dialogue.ThinkingPart && c.proven {
		c.ev.Thinking = &dialogue.Thinking{Origin: Name, Encrypted: joinedDetails(c.details)}
		c.details, c.proven = nil, false
	}
	c.emit(c.ev)
}

// closeAll closes all open parts at the end of the choice.
func (c *choice) closeAll() {
	c.end()
	for _, k := range c.calls {
		c.settle(k)
	}
}

// cite emits the citations of the open text, or keeps them for the next text if none is open.
func (c *choice) cite(annotations gjson.Result) {
	var found []dialogue.Citation
	chunks.OnlyArray(annotations).ForEach(func(_, v gjson.Result) bool {
		if v.Get("type").Str == "url_citation" {
			found = append(found, c.citation(v))
		}
		return true
	})
	switch {
	case len(found) == 0:
	case c.open && c.kind == dialogue.TextPart:
		c.source(found)
	default:
		c.sources = append(c.sources, found...)
	}
}

// citation returns a url_citation. Its positions count in the whole content, and those of the
// neutral form from the beginning of the part.
func (c *choice) citation(v gjson.Result) dialogue.Citation {
	u := v.Get("url_citation")
	return dialogue.Citation{URL: u.Get("url").String(), Title: u.Get("title").String(),
		Start: max(int(u.Get("start_index").Int())-c.base, 0), End: max(int(u.Get("end_index").Int())-c.base, 0),
		Opaque: fields.Raw(v), Origin: Name}
}

// source emits citations.
func (c *choice) source(list []dialogue.Citation) {
	*c.ev = dialogue.Event{Kind: dialogue.EventDelta, Choice: c.index, Part: c.part, Citations: list}
	c.emit(c.ev)
}

// reason returns how the choice ended. Some servers say stop after a call, and others tool_calls without one, so the
// calls that came decide. A choice without a reason ([DONE] alone) counts as finished.
func (c *choice) reason() dialogue.Reason {
	r := dialogue.ReasonStop
	if c.word != "" {
		r = chunks.ParseFinishReason(c.word)
	}
	switch {
	case c.called && (r == dialogue.ReasonStop || r == dialogue.ReasonOther):
		return dialogue.ReasonTool
	case r == dialogue.ReasonTool && !c.called:
		return dialogue.ReasonStop
	}
	return r
}
