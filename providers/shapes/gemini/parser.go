package gemini

import (
	"bytes"
	"encoding/json"
	"slices"

	"github.com/tidwall/gjson"

	"stagedoor/providers/dialogue"
	"stagedoor/providers/fields"
	"stagedoor/providers/shapes"
)

// NewParser implements shapes.Outbound.
func (shape) NewParser(choices int, env *dialogue.Env) shapes.Parser {
	return &parser{env: env, wanted: choices, counts: noCounts}
}

// maxIndex is the largest index of a candidate that is accepted, because each candidate takes
// memory.
const maxIndex = 127

// parser reads one reply of a gemini upstream. The stream has no terminal event: it ends with the
// body, and the reply is complete if every candidate has a finish reason.
//
// A chunk is a whole GenerateContentResponse with the next pieces, so the parser decides where a part begins
// and ends: a piece of another kind, a call or the finish reason closes the part that is open. emit is set
// for the duration of a call only.
type parser struct {
	env        *dialogue.Env
	wanted     int                   // candidates
	emit       func(*dialogue.Event) // of the call in progress
	ev         dialogue.Event        // reused for every event
	started    bool
	done       bool
	candidates []*candidate // by index
	counts     counts
	usage      dialogue.Usage
	blocked    string // promptFeedback.blockReason
	lenient    bool   // a whole document: a finishReason left out is not a cut
}

func (p *parser) Done() bool { return p.done }

// Answered implements shapes.Parser. A blocked prompt has no candidates.
// It compares with the number of candidates that were asked for, because the vendor may send the
// finish reason of the first while the second has not begun.
func (p *parser) Answered() bool {
	if p.blocked != "" && len(p.candidates) == 0 {
		return true
	}
	return len(p.candidates) >= max(p.wanted, 1) &&
		!slices.ContainsFunc(p.candidates, func(c *candidate) bool { return !c.finished })
}

// Event implements shapes.Parser. Some relays end the stream with [DONE], which counts as the end
// of the body.
// Once all candidates have ended, only errors and the usage are read, because a further chunk must
// not reopen the reply.
func (p *parser) Event(_ string, data []byte, emit func(*dialogue.Event)) {
	if p.done || len(bytes.TrimSpace(data)) == 0 {
		return
	}
	if string(bytes.TrimSpace(data)) == "[DONE]" {
		p.EOF(emit)
		return
	}
	p.emit = emit
	doc := gjson.ParseBytes(data)
	if p.Answered() && !field(doc, "error").Exists() {
		p.learn(field(doc, "usageMetadata"))
		return
	}
	p.document(doc)
}

// Body implements shapes.Parser. It also reads an array of chunks, the form of a stream without
// alt=sse.
// A finish reason that is missing from a whole document is not a cut, because the document arrived
// completely. In an array of chunks it is one.
func (p *parser) Body(body []byte, emit func(*dialogue.Event)) {
	if p.done {
		return
	}
	p.emit = emit
	p.lenient = len(bytes.TrimSpace(body)) > 0 && bytes.TrimSpace(body)[0] == '{'
	if bad := fields.CheckReply("reply", body); bad != nil {
		p.fail(bad)
		return
	}
	p.document(fields.View(body))
	if p.done {
		return
	}
	if len(p.candidates) == 0 && p.blocked == "" {
		p.fail(dialogue.BadUpstream("reply without candidates and promptFeedback"))
		return
	}
	p.EOF(emit)
}

// document reads one chunk or an array of them.
func (p *parser) document(doc gjson.Result) {
	if !doc.IsObject() && !doc.IsArray() {
		p.fail(dialogue.BadUpstream("reply is neither object nor array"))
		return
	}
	each(doc, func(_ int, v gjson.Result) bool {
		p.chunk(v)
		return !p.done
	})
}

// chunk reads one GenerateContentResponse.
func (p *parser) chunk(doc gjson.Result) {
	var id, model, candidates, usage, feedback, failure gjson.Result
	eachMember(doc, func(name string, v gjson.Result) bool {
		switch name {
		case "candidates":
			candidates = v
		case "usageMetadata":
			usage = v
		case "responseId":
			id = v
		case "modelVersion":
			model = v
		case "promptFeedback":
			feedback = v
		case "error":
			failure = v
		}
		return true
	})
	if failure.Exists() {
		p.fail(readError(0, doc))
		return
	}
	p.start(str(id), str(model))
	p.learn(usage)
	if reason := str(field(feedback, "blockReason")); reason != "" && reason != "BLOCK_REASON_UNSPECIFIED" {
		p.blocked = reason
	}
	if candidates.IsArray() {
		each(candidates, func(i int, v gjson.Result) bool {
			p.candidate(i, v)
			return !p.done
		})
	}
}

// learn emits the counts of a chunk if any has changed. Most chunks repeat them.
func (p *parser) learn(usage gjson.Result) {
	if usage.Exists() && p.counts.read(usage) {
		p.usage = p.counts.usage()
		p.send(dialogue.Event{Kind: dialogue.EventUsage, Usage: &p.usage})
	}
}

// start emits EventStart at the first chunk.
func (p *parser) start(id, model string) {
	if !p.started {
		p.started = true
		p.send(dialogue.Event{Kind: dialogue.EventStart, ID: id, Model: model})
	}
}

// send emits an event, in memory that is reused.
func (p *parser) send(ev dialogue.Event) {
	p.ev = ev
	p.emit(&p.ev)
}

// fail ends the stream with an error event.
func (p *parser) fail(err *dialogue.Error) {
	p.done = true
	p.send(dialogue.Event{Kind: dialogue.EventError, Err: err})
}

// candidate is the state of one answer. A signature may arrive with a later, empty piece, and citations with
// the last chunk, so both wait until the part is closed.
type candidate struct {
	index    int
	next     int  // number of the next part
	open     bool // the part before next is open; only text and thoughts stay open
	kind     dialogue.PartKind
	sig      string                // of the open part
	join     fields.FragmentJoiner // of the open part
	text     []byte                // visible text of the open part: citations count in it
	fresh    int                   // bytes of the open part that came with the current chunk
	logs     json.RawMessage       // logprobs of the current chunk that no text has taken yet
	sources  string                // groundingMetadata and citationMetadata of the open part
	cited    string
	pending  *partialCall
	calls    []string // ids
	finished bool
	reason   dialogue.Reason
	detail   string
}

// at returns the state of a candidate, or nil after it has failed the reply. The vendor leaves out
// index 0, so candidates without an index count by their position.
func (p *parser) at(position int, v gjson.Result) *candidate {
	index := int64(position)
	if v.Exists() {
		index, _ = integer(v)
	}
	if index < 0 || index > maxIndex {
		p.fail(dialogue.BadUpstream("candidate index out of range"))
		return nil
	}
	i, ok := slices.BinarySearchFunc(p.candidates, int(index),
		func(c *candidate, index int) int { return c.index - index })
	if !ok {
		p.candidates = slices.Insert(p.candidates, i, &candidate{index: int(index)})
	}
	return p.candidates[i]
}

// candidate reads the piece of one candidate in a chunk. Anything behind its finish reason is
// ignored.
// What is said about the text is read before the parts, because a call behind the text closes it. The
// finish reason is applied after the parts, because both can be in one chunk.
func (p *parser) candidate(position int, v gjson.Result) {
	var index, content, finish, message, grounding, citations, logprobs gjson.Result
	eachMember(v, func(name string, v gjson.Result) bool {
		switch name {
		case "index":
			index = v
		case "content":
			content = v
		case "finishReason":
			finish = v
		case "finishMessage":
			message = v
		case "groundingMetadata":
			grounding = v
		case "citationMetadata":
			citations = v
		case "logprobsResult":
			logprobs = v
		}
		return true
	})
	c := p.at(position, index)
	if c == nil || c.finished {
		return
	}
	c.fresh, c.logs = 0, readLogProbs(logprobs)
	if grounding.Exists() {
		c.sources = grounding.Raw
	}
	if citations.Exists() {
		c.cited = citations.Raw
	}
	if parts := field(content, "parts"); parts.Exists() {
		each(parts, func(_ int, v gjson.Result) bool {
			p.part(c, readPart(v))
			return !p.done
		})
	}
	if p.done {
		return
	}
	p.logprobs(c, c.logs)
	c.logs = nil
	if reason, ok := reasonOf(str(finish)); ok {
		c.finished, c.reason, c.detail = true, reason, str(message)
	}
}

// part emits one part. Only text and thoughts come in pieces, and anything else is opened and
// closed at once.
func (p *parser) part(c *candidate, part wirePart) {
	switch part.data {
	case "functionCall":
		p.call(c, part)
	case "inlineData", "fileData":
		p.close(c)
		p.send(dialogue.Event{Kind: dialogue.EventOpen, Choice: c.index, Part: c.next, PartKind: dialogue.MediaPart,
			Media: readMedia(part.data, part.value), Origin: Name})
		p.closePart(c, "")
	case "text", "":
		p.text(c, part)
	case "functionResponse": // models do not answer themselves
	default:
		p.close(c)
		p.send(dialogue.Event{Kind: dialogue.EventOpen, Choice: c.index, Part: c.next, PartKind: dialogue.ServerPart,
			Opaque: raw(part.whole), Origin: Name})
		p.closePart(c, "")
	}
}

// closePart closes a part that came whole.
func (p *parser) closePart(c *candidate, signature string) {
	p.send(dialogue.Event{Kind: dialogue.EventClose, Choice: c.index, Part: c.next, Signature: signature})
	c.next++
}

// text emits a piece of text or of a thought. A part without text only brings the signature of the
// open part, and opens none.
// The signature is assigned after the text was sent, in the deferred function: a text that begins a
// new part closes the open one first, which must leave with its own signature and not with the new
// one.
func (p *parser) text(c *candidate, part wirePart) {
	if part.signature != "" && (c.open || part.value.Str != "") {
		defer func() { c.sig = part.signature }()
	}
	if part.value.Type != gjson.String || part.value.Str == "" {
		return
	}
	kind := dialogue.TextPart
	if part.thought {
		kind = dialogue.ThinkingPart
	}
	if c.open && c.kind != kind {
		p.close(c)
	}
	if !c.open {
		c.open, c.kind, c.fresh = true, kind, 0
		p.send(dialogue.Event{Kind: dialogue.EventOpen, Choice: c.index, Part: c.next, PartKind: kind, Origin: Name})
	}
	text := c.join.Add(part.value)
	if text == "" {
		return
	}
	if kind == dialogue.TextPart {
		c.text, c.fresh = append(c.text, text...), c.fresh+len(text)
	}
	p.send(dialogue.Event{Kind: dialogue.EventDelta, Choice: c.index, Part: c.next, Text: text})
}

// close closes the open part, with its citations and its signature.
// Bytes that wait for the rest of a character go out first, because nothing can follow them.
func (p *parser) close(c *candidate) {
	if !c.open {
		return
	}
	if rest := c.join.Rest(); rest != "" {
		p.send(dialogue.Event{Kind: dialogue.EventDelta, Choice: c.index, Part: c.next, Text: rest})
	}
	ev := dialogue.Event{Kind: dialogue.EventClose, Choice: c.index, Part: c.next, Origin: Name}
	if c.kind == dialogue.ThinkingPart {
		ev.Thinking = &dialogue.Thinking{Signature: c.sig, Origin: Name}
	} else {
		ev.Signature = c.sig
		p.cite(c)
		var own json.RawMessage
		own, c.logs = splitLogProbs(c.logs, c.fresh)
		p.logprobs(c, own)
	}
	p.send(ev)
	c.next++
	c.open, c.sig, c.text = false, "", nil
}

// cite emits the citations of a text, whose positions can be computed only when the text is whole.
func (p *parser) cite(c *candidate) {
	found := append(grounded(c.sources, c.text), cited(c.cited, c.text)...)
	c.sources, c.cited = "", ""
	if len(found) > 0 {
		p.send(dialogue.Event{Kind: dialogue.EventDelta, Choice: c.index, Part: c.next, Citations: found})
	}
}

// logprobs emits logprobs of the open text. Those of thoughts and calls have no place in other shapes.
func (p *parser) logprobs(c *candidate, list json.RawMessage) {
	if list != nil && c.open && c.kind == dialogue.TextPart {
		p.send(dialogue.Event{Kind: dialogue.EventDelta, Choice: c.index, Part: c.next, LogProbs: list})
	}
}

// call reads a functionCall. It comes whole, or in pieces if the upstream streams arguments
// (partialArgs, willContinue).
func (p *parser) call(c *candidate, part wirePart) {
	var id, name, args, pieces gjson.Result
	more := false
	eachMember(part.value, func(field string, v gjson.Result) bool {
		switch field {
		case "id":
			id = v
		case "name":
			name = v
		case "args":
			args = v
		case "partialArgs":
			pieces = v
		case "willContinue":
			more = boolean(v)
		}
		return true
	})
	p.close(c)
	if c.pending == nil || str(name) != "" {
		p.complete(c)
		c.pending = &partialCall{id: str(id), name: str(name), args: args}
	}
	c.pending.take(pieces, part.signature)
	if !more {
		p.complete(c)
	}
}

// complete emits a call that has all its arguments. It fails the reply for a call without a name.
// A call without an id, or with one that was given before, gets an id of its own, under which the
// client will return the result.
func (p *parser) complete(c *candidate) {
	call := c.pending
	if call == nil {
		return
	}
	c.pending = nil
	if call.name == "" {
		p.fail(dialogue.BadUpstream("functionCall without name"))
		return
	}
	if call.id == "" || slices.Contains(c.calls, call.id) {
		call.id = p.env.CallID()
	}
	call.id = p.env.ClientCallID(call.id) // the id under which its signature is remembered
	c.calls = append(c.calls, call.id)
	if call.signature != "" {
		p.env.RememberSignature(call.id, call.signature)
	}
	p.send(dialogue.Event{Kind: dialogue.EventOpen, Choice: c.index, Part: c.next, PartKind: dialogue.CallPart,
		Call: &dialogue.Call{ID: call.id, Name: call.name}, Origin: Name})
	p.send(dialogue.Event{Kind: dialogue.EventDelta, Choice: c.index, Part: c.next, Text: call.arguments()})
	p.closePart(c, call.signature)
}

// EOF implements shapes.Parser. The reply is complete if every candidate has a finish reason. A
// blocked prompt gives one choice without parts that ends with ReasonFilter.
func (p *parser) EOF(emit func(*dialogue.Event)) {
	if p.done {
		return
	}
	p.emit = emit
	if p.blocked != "" && len(p.candidates) == 0 {
		p.candidates = []*candidate{{finished: true, reason: dialogue.ReasonFilter,
			detail: "the prompt was blocked: " + p.blocked}}
	}
	for _, c := range p.candidates {
		c.finished = c.finished || p.lenient
	}
	if len(p.candidates) == 0 || slices.ContainsFunc(p.candidates, func(c *candidate) bool { return !c.finished }) {
		p.fail(dialogue.Incomplete())
		return
	}
	for _, c := range p.candidates {
		p.complete(c)
		if p.done {
			return
		}
		p.close(c)
	}
	for _, c := range p.candidates {
		p.finish(c)
	}
	p.done = true
	p.send(dialogue.Event{Kind: dialogue.EventEnd})
}

// finish emits why a candidate ended. The vendor has no reason for calls: STOP with calls gives
// ReasonTool.
func (p *parser) finish(c *candidate) {
	if c.reason == dialogue.ReasonStop && len(c.calls) > 0 {
		c.reason = dialogue.ReasonTool
	}
	ev := dialogue.Event{Kind: dialogue.EventFinish, Choice: c.index, Reason: c.reason}
	if c.reason == dialogue.ReasonFilter {
		ev.Detail = c.detail
	}
	p.send(ev)
}
