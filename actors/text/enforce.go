package text

import (
	"bytes"
	"context"
	"encoding/json"
	"slices"
	"strings"

	"github.com/tidwall/gjson"

	"stagedoor/providers/dialogue"
	"stagedoor/providers/tokens"
	"stagedoor/providers/upstream"
)

// enforcer does to the events of one call what its upstream could not be asked for: it ends a choice before a stop
// sequence, and withholds an answer that the client did not want. It is made for such calls only, so other calls pay
// nothing for it. One goroutine uses it.
type enforcer struct {
	dialogue.Enforced
	emit emitFunc
	// stream is set if the reply arrives piece by piece, so that the call can end when all of its choices have.
	stream  bool
	choices int // of the call
	prompt  int // bytes of the request, for an estimate of its tokens

	open     []place           // of the parts that the client knows
	texts    []place           // of the text parts that are open at the upstream, if there are stop sequences
	patterns []pattern         // of the stop sequences, made for the first text part
	held     map[int]*heldText // by choice
	stopped  []int             // choices that met a stop sequence
	finished int               // choices that have ended
	usage    dialogue.Usage
	counted  counter
	ended    bool // the end was emitted before the upstream's
}

// event emits what the client gets of an event: nothing after a stop sequence, nothing of an answer
// that was not wanted, and text only once it can no longer be the beginning of a stop sequence.
func (e *enforcer) event(ev *dialogue.Event) {
	switch ev.Kind {
	case dialogue.EventUsage:
		e.usage.Merge(*ev.Usage)
	case dialogue.EventOpen, dialogue.EventDelta, dialogue.EventClose, dialogue.EventFinish:
		if e.ended || slices.Contains(e.stopped, ev.Choice) || e.NoAnswer && ev.Kind != dialogue.EventFinish {
			return
		}
	default:
		if e.ended {
			return
		}
	}
	if len(e.Stop) > 0 && e.textEvent(ev) {
		return
	}
	switch ev.Kind {
	case dialogue.EventDelta:
		e.counted.text(ev.Text)
	case dialogue.EventFinish:
		e.finished++
		if e.NoAnswer {
			short := *ev
			short.Reason = dialogue.ReasonLength
			ev = &short
		}
	}
	e.pass(ev)
}

// textEvent handles an event of a text part. The text parts of a choice are one text, because the model wrote them
// without anything in between, and a chat client gets them as one. What stands between two texts, such as a call, ends
// the first one: for such events textEvent releases the text and returns false.
func (e *enforcer) textEvent(ev *dialogue.Event) bool {
	at := place{ev.Choice, ev.Part}
	switch ev.Kind {
	case dialogue.EventOpen:
		if ev.PartKind == dialogue.TextPart {
			e.texts = append(e.texts, at)
			e.textOf(ev.Choice).keep(ev, e.pass)
			return true
		}
		e.release(ev.Choice)
	case dialogue.EventDelta:
		if slices.Contains(e.texts, at) {
			e.counted.text(ev.Text)
			if stop := e.textOf(ev.Choice).add(ev, e.pass); stop != "" {
				e.stop(ev.Choice, stop)
			}
			return true
		}
	case dialogue.EventClose:
		if i := slices.Index(e.texts, at); i >= 0 {
			e.texts = slices.Delete(e.texts, i, i+1)
			e.textOf(ev.Choice).keep(ev, e.pass)
			return true
		}
	case dialogue.EventFinish:
		e.release(ev.Choice)
	case dialogue.EventError:
		for choice := range e.held {
			e.release(choice)
		}
	}
	return false
}

// textOf returns the held text of a choice.
func (e *enforcer) textOf(choice int) *heldText {
	if e.held[choice] == nil {
		e.held[choice] = e.holdText()
	}
	return e.held[choice]
}

// release emits the held text of a choice.
func (e *enforcer) release(choice int) {
	if held := e.held[choice]; held != nil {
		held.releaseAll(e.pass)
	}
}

// pass emits an event, and remembers which parts the client knows.
func (e *enforcer) pass(ev *dialogue.Event) {
	at := place{ev.Choice, ev.Part}
	switch ev.Kind {
	case dialogue.EventOpen:
		e.open = append(e.open, at)
	case dialogue.EventClose:
		e.open = slices.DeleteFunc(e.open, func(p place) bool { return p == at })
	}
	e.emit(ev)
}

// holdText returns a text of which nothing has arrived.
func (e *enforcer) holdText() *heldText {
	if e.patterns == nil {
		for _, s := range e.Stop {
			e.patterns = append(e.patterns, newPattern(s))
		}
	}
	return &heldText{patterns: e.patterns, matched: make([]int32, len(e.patterns))}
}

// stop ends a choice at a stop sequence, and the stream if it was the last choice. A stream is not read to its
// end then, so the usage that the client gets is an estimate.
func (e *enforcer) stop(choice int, sequence string) {
	for _, at := range slices.Clone(e.open) {
		if at.choice == choice {
			e.pass(&dialogue.Event{Kind: dialogue.EventClose, Choice: choice, Part: at.part})
		}
	}
	delete(e.held, choice)
	e.emit(&dialogue.Event{Kind: dialogue.EventFinish, Choice: choice, Reason: dialogue.ReasonStopSequence,
		StopSequence: sequence})
	e.stopped = append(e.stopped, choice)
	if e.finished++; !e.stream || e.finished < e.choices {
		return // a reply that has arrived whole has its usage, and its end
	}
	usage := e.counted.fill(e.usage, e.prompt)
	e.emit(&dialogue.Event{Kind: dialogue.EventUsage, Usage: &usage})
	e.emit(&dialogue.Event{Kind: dialogue.EventEnd})
	e.ended = true
}

// enforced returns a producer whose events are those of p as en wants them.
func (a *attempt) enforced(en dialogue.Enforced, stream bool, choices, prompt int, p producer) producer {
	if en.Empty() {
		return p
	}
	return func(ctx context.Context, emit emitFunc, flush flushFunc) *upstream.Failure {
		e := &enforcer{Enforced: en, emit: emit, stream: stream, choices: choices, prompt: prompt,
			held: make(map[int]*heldText), usage: dialogue.NoUsage}
		f := p(ctx, e.event, func() *upstream.Failure {
			if f := flush(); f != nil {
				return f
			}
			if e.ended {
				return stopped
			}
			return nil
		})
		if e.ended && f == stopped {
			return nil
		}
		return f
	}
}

// heldText is the end of a text that may be the beginning of a stop sequence, as the events that brought it. Whole
// events are kept and not only their text, because log probabilities belong to them. Among them are those that open and
// close text parts, which must not overtake the text.
type heldText struct {
	patterns []pattern
	matched  []int32 // how many bytes of each sequence the text ends with
	events   []dialogue.Event
	length   int // bytes of the text of the events
}

// maxHeld bounds the events that wait. A text that an upstream divides into more parts is searched in pieces.
const maxHeld = 1024

// add takes a delta and emits what cannot be a part of a stop sequence. It returns the sequence that the text
// has reached, or "". Text is held no longer than needed: only an end that is the beginning of a stop
// sequence waits.
func (h *heldText) add(ev *dialogue.Event, emit emitFunc) string {
	if len(ev.Citations) > 0 { // they name their places themselves
		sources := *ev
		sources.Text, sources.LogProbs = "", nil
		h.keep(&sources, emit)
	}
	kept := *ev // which outlives the call
	kept.Text, kept.LogProbs, kept.Citations = strings.Clone(ev.Text), bytes.Clone(ev.LogProbs), nil
	before := h.length
	h.events, h.length = append(h.events, kept), before+len(kept.Text)
	// The sequence that begins first ends the text, and of two that begin in the same place the shorter one, because
	// the model has finished that one first.
	at, stop, longest := 0, "", 0
	for i := range h.patterns {
		p := &h.patterns[i]
		n, end := p.read(h.matched[i], kept.Text)
		begin := before + end - len(p.stop)
		if end > 0 && (stop == "" || begin < at || begin == at && len(p.stop) < len(stop)) {
			at, stop = begin, p.stop
		}
		h.matched[i], longest = n, max(longest, int(n))
	}
	if stop != "" {
		h.release(at, emit)
		return stop
	}
	h.release(h.length-longest, emit)
	return ""
}

// keep emits an event without text as soon as the text before it is emitted, which may be at once.
func (h *heldText) keep(ev *dialogue.Event, emit emitFunc) {
	if len(h.events) >= maxHeld {
		h.releaseAll(emit)
	}
	if len(h.events) == 0 {
		emit(ev)
		return
	}
	kept := *ev
	kept.Signature, kept.Opaque = strings.Clone(ev.Signature), bytes.Clone(ev.Opaque)
	h.events = append(h.events, kept)
}

// releaseAll emits the whole text. A stop sequence cannot begin in it any more.
func (h *heldText) releaseAll(emit emitFunc) {
	h.release(h.length, emit)
	clear(h.matched)
}

// release emits the first n bytes of the text. An event that is cut is emitted with the log probabilities of the
// tokens before the cut.
func (h *heldText) release(n int, emit emitFunc) {
	for len(h.events) > 0 && (n > 0 || h.events[0].Text == "") {
		ev := &h.events[0]
		if len(ev.Text) > n {
			first := *ev
			first.Text = ev.Text[:n]
			first.LogProbs, ev.LogProbs = splitLogProbs(ev.LogProbs, n)
			ev.Text, h.length = ev.Text[n:], h.length-n
			emit(&first)
			return
		}
		n, h.length = n-len(ev.Text), h.length-len(ev.Text)
		emit(ev)
		h.events = h.events[1:]
	}
}

// splitLogProbs divides chat's list of tokens after the first n bytes of their text. A token across the cut belongs to
// the second part.
func splitLogProbs(list json.RawMessage, n int) (before, after json.RawMessage) {
	if len(list) == 0 {
		return nil, nil
	}
	parts := [2][]string{}
	which := 0
	for _, token := range gjson.ParseBytes(list).Array() {
		if n -= len(token.Get("token").Str); n < 0 {
			which = 1
		}
		parts[which] = append(parts[which], token.Raw)
	}
	join := func(tokens []string) json.RawMessage {
		if len(tokens) == 0 {
			return nil
		}
		return json.RawMessage("[" + strings.Join(tokens, ",") + "]")
	}
	return join(parts[0]), join(parts[1])
}

// pattern finds a stop sequence in a text that arrives in pieces, by the algorithm of Knuth, Morris and Pratt, which
// reads each byte once, however often text and sequence repeat themselves.
type pattern struct {
	stop string
	// falls has, for each beginning of stop, the length of the longest shorter beginning that it ends with.
	falls []int32
}

// newPattern returns the pattern of a sequence, which must not be empty.
func newPattern(stop string) pattern {
	p := pattern{stop, make([]int32, len(stop))}
	n := int32(0)
	for i := 1; i < len(stop); i++ {
		n = p.next(n, stop[i])
		p.falls[i] = n
	}
	return p
}

// next returns how many bytes of the sequence are matched after one more byte, if n were matched before it.
func (p *pattern) next(n int32, b byte) int32 {
	for n > 0 && p.stop[n] != b {
		n = p.falls[n-1]
	}
	if p.stop[n] == b {
		n++
	}
	return n
}

// read reads a piece of text, if n bytes of the sequence were matched before it. It returns how many are matched at the
// end of the piece and 0, or the place behind the sequence if the piece completes it.
func (p *pattern) read(n int32, text string) (matched int32, end int) {
	for i := range len(text) {
		if n = p.next(n, text[i]); int(n) == len(p.stop) {
			return 0, i + 1
		}
	}
	return n, 0
}

// fill returns usage with what the upstream did not report, estimated. prompt is the size of the request in bytes.
func (c *counter) fill(usage dialogue.Usage, prompt int) dialogue.Usage {
	if usage.InputTotal < 0 {
		usage.InputTotal, usage.Estimated = tokens.Estimate(prompt), true
	}
	if usage.OutputTotal < c.output {
		usage.OutputTotal, usage.Estimated = c.output, true
	}
	return usage
}
