package messages

import (
	"slices"
	"strings"

	"stagedoor/providers/dialogue"
)

// use is a tool call in the history, together with the block that answers it.
type use struct {
	// msg is the index of the assistant's message that made the call.
	msg    int
	call   *dialogue.Call
	id     string // as sent
	answer *block
}

// pairing joins the calls of a history with their results.
type pairing struct {
	*encoder
	uses []*use
	// open are the calls without an answer by the client's id, those of one turn
	// together. An id whose calls are all answered stays, with none.
	open map[string][][]*use
}

// pair gives every call its id, takes the results out of msgs and returns, for each message, the
// results of its calls in the sequence of the calls. The vendor answers 400 to anything else. A
// second result for a call is dropped, a result without a call becomes text, and a call without a
// result gets one that says that none was recorded. Each of these is recorded as a loss.
func (e *encoder) pair(msgs []message) [][]block {
	p := pairing{encoder: e, open: map[string][][]*use{}}
	for i := range msgs {
		if msgs[i].role == dialogue.User {
			msgs[i].blocks = p.results(msgs[i].blocks)
			continue
		}
		for j := range msgs[i].blocks {
			if b := &msgs[i].blocks[j]; b.kind == dialogue.CallPart {
				p.add(b, i)
			}
		}
	}
	answers := make([][]block, len(msgs))
	for _, u := range p.uses {
		if u.answer == nil {
			e.rep.Lose("tool_result:missing")
			u.answer = &block{kind: dialogue.ResultPart, part: &dialogue.Part{},
				json: []byte(`"No result was recorded."`), result: &dialogue.Result{IsError: true}}
		}
		u.answer.id = u.id
		answers[u.msg] = append(answers[u.msg], *u.answer)
	}
	return answers
}

// add registers a call of message msg as open. Calls with the same id in one message form a group,
// which is answered before older groups of that id.
func (p *pairing) add(b *block, msg int) {
	b.id = p.names.call(b.call.ID)
	u := &use{msg: msg, call: b.call, id: b.id}
	p.uses = append(p.uses, u)
	turns := p.open[b.call.ID]
	if n := len(turns); n > 0 && turns[n-1][0].msg == msg {
		turns[n-1] = append(turns[n-1], u)
		return
	}
	p.open[b.call.ID] = append(turns, []*use{u})
}

// results attaches every result in blocks to its call and returns the other blocks, with text in
// the place of results that answer nothing.
func (p *pairing) results(blocks []block) []block {
	if !slices.ContainsFunc(blocks, func(b block) bool { return b.kind == dialogue.ResultPart }) {
		return blocks
	}
	var rest []block
	for i := range blocks {
		b := &blocks[i]
		if b.kind != dialogue.ResultPart {
			rest = append(rest, *b)
			continue
		}
		if u := p.awaiting(b.result); u != nil {
			u.answer = b
			continue
		}
		if _, known := p.open[b.result.CallID]; known {
			p.rep.Lose("tool_result:duplicate")
			continue
		}
		p.rep.Lose("tool_result:orphan")
		rest = append(rest, p.orphan(b.result)...)
	}
	return rest
}

// awaiting returns the call that a result answers, or nil: the first unanswered one with its id in
// the latest message that has one. A result without an id, as Gemini's clients send, is matched by
// name.
func (p *pairing) awaiting(r *dialogue.Result) *use {
	if r.CallID == "" {
		return p.named(r.Name)
	}
	turns := p.open[r.CallID]
	if len(turns) == 0 {
		return nil
	}
	last := len(turns) - 1
	u := turns[last][0]
	if turns[last] = turns[last][1:]; len(turns[last]) == 0 {
		p.open[r.CallID] = turns[:last]
	}
	return u
}

// named returns the first unanswered call of this name in the latest message that has one, or nil.
// An empty name matches every call.
func (p *pairing) named(name string) *use {
	var found *use
	for _, u := range slices.Backward(p.uses) {
		if found != nil && found.msg != u.msg {
			break
		}
		if u.answer == nil && (name == "" || name == u.call.Name) {
			found = u
		}
	}
	return found
}

// orphan returns blocks that say in words what a result without a call contained. Its media follow
// as blocks of their own.
func (p *pairing) orphan(r *dialogue.Result) []block {
	intro := "Result of an earlier tool call"
	if r.Name != "" {
		intro += " (" + r.Name + ")"
	}
	var lines []string
	var rest []block
	for i := range r.Parts {
		if r.Parts[i].Kind == dialogue.TextPart {
			lines = append(lines, r.Parts[i].Text)
			continue
		}
		// What cannot be sent was refused when the result was read.
		if b, ok, err := p.block(&r.Parts[i]); ok && err == nil {
			rest = append(rest, b)
		}
	}
	if len(lines) == 0 && len(r.Object) > 0 {
		lines = append(lines, objectText(r.Object))
	}
	return append([]block{textBlock(intro + ":\n" + strings.Join(lines, "\n"))}, rest...)
}
