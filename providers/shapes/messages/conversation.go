package messages

import (
	"slices"
	"strings"

	"stagedoor/providers/dialogue"
)

// The vendor's rules for a conversation: the sides
// alternate and the user begins; no text is blank; every tool_use is answered in
// the very next turn of the user, answers first, each once; nothing else is
// answered.

// block is a content block that will be sent. Text, calls and results stay apart until the last
// moment, because their place, their id or the white space at their end may still change.
// Everything else is JSON from the start.
type block struct {
	kind   dialogue.PartKind
	text   string // TextPart
	hint   []byte // cache_control of a TextPart
	json   []byte // everything that is ready
	call   *dialogue.Call
	result *dialogue.Result
	part   *dialogue.Part // of a call or result
	id     string         // of a call or result, as sent
}

// message is a message to be sent: the blocks of one role until the other role follows.
type message struct {
	role   dialogue.Role
	blocks []block
}

// nudge is the text of a turn of the user that the gateway has to invent: before a conversation
// that the assistant begins, and after one that it ends where the model takes no prefill.
const nudge = "Continue."

// textBlock returns a text block.
func textBlock(text string) block { return block{kind: dialogue.TextPart, text: text} }

// push appends blocks to the last message if that has the same role, and else as a new message. So
// the roles alternate whatever the client sent. Without blocks it returns msgs.
func push(msgs []message, role dialogue.Role, blocks ...block) []message {
	if len(blocks) == 0 {
		return msgs
	}
	if n := len(msgs); n > 0 && msgs[n-1].role == role {
		msgs[n-1].blocks = append(msgs[n-1].blocks, blocks...)
		return msgs
	}
	return append(msgs, message{role, slices.Clip(blocks)})
}

// conversation returns the turns of the request in the sequence that the vendor insists on, and
// records what had to be invented or dropped. It works in steps: sides makes blocks and gives each
// to its role, pair takes the results out and joins them with their calls, and then every message
// of the assistant is followed by the results of its calls, before anything else that the user
// says. For example:
//
//	chat: assistant calls a and b, user "wait", result of b, result of a
//	here: assistant [a, b], user [result of a, result of b, "wait"]
func (e *encoder) conversation() ([]message, error) {
	msgs, err := e.sides()
	if err != nil {
		return nil, err
	}
	answers := e.pair(msgs)
	var out []message
	for i, t := range msgs {
		if t.role == dialogue.User {
			out = push(out, dialogue.User, t.blocks...)
			continue
		}
		out = push(out, dialogue.Assistant, e.thinkingFirst(t.blocks)...)
		out = push(out, dialogue.User, answers[i]...)
	}
	if len(out) == 0 || out[0].role != dialogue.User {
		e.rep.Lose("messages:first_user")
		out = slices.Insert(out, 0, message{dialogue.User, []block{textBlock(nudge)}})
	}
	return e.prefill(out), nil
}

// sides turns all parts into blocks and gives each to the role that may have it. It fails for media
// that the model cannot read.
func (e *encoder) sides() ([]message, error) {
	var msgs []message
	for i := range e.req.Turns {
		turn := &e.req.Turns[i]
		e.rep.LoseIf(turn.Name != "", "name")
		for j := range turn.Parts {
			p := &turn.Parts[j]
			if p.Kind == dialogue.MediaPart && turn.Role == dialogue.Assistant && p.Origin != Name {
				e.rep.Lose("media:assistant") // only users can show something
				continue
			}
			b, ok, err := e.block(p)
			if err != nil {
				return nil, err
			}
			if ok {
				msgs = push(msgs, side(turn.Role, b.kind), b)
			}
		}
	}
	return msgs, nil
}

// side returns the role that must send a block: results are the user's, calls and thinking are the
// assistant's, and anything else stays with the role of its turn.
func side(role dialogue.Role, kind dialogue.PartKind) dialogue.Role {
	switch kind {
	case dialogue.ResultPart:
		return dialogue.User
	case dialogue.CallPart, dialogue.ThinkingPart:
		return dialogue.Assistant
	}
	return role
}

// thinkingFirst moves thinking to the front of a side that does not begin with
// it, and drops it where nothing follows: the vendor refuses both.
func (e *encoder) thinkingFirst(blocks []block) []block {
	thinking := func(b block) bool { return b.kind == dialogue.ThinkingPart }
	if !slices.ContainsFunc(blocks, func(b block) bool { return !thinking(b) }) {
		e.rep.Lose("thinking")
		return nil
	}
	if !slices.ContainsFunc(blocks, thinking) || thinking(blocks[0]) {
		return blocks
	}
	out := make([]block, 0, len(blocks))
	for _, b := range blocks {
		if thinking(b) {
			out = append(out, b)
		}
	}
	for _, b := range blocks {
		if !thinking(b) {
			out = append(out, b)
		}
	}
	return out
}

// prefill prepares a conversation that ends with the assistant, whose text the reply shall
// continue. The vendor refuses white space at the end of such a text. A model without prefill gets
// a last turn of the user instead, so that it at least answers.
func (e *encoder) prefill(msgs []message) []message {
	last := &msgs[len(msgs)-1]
	if last.role != dialogue.Assistant {
		return msgs
	}
	if end := &last.blocks[len(last.blocks)-1]; end.kind == dialogue.TextPart && end.json == nil {
		// Never blank: blank text makes no block.
		end.text = strings.TrimRight(end.text, " \t\r\n")
	}
	if e.target.Caps.Prefill {
		return msgs
	}
	e.rep.Lose("prefill")
	return append(msgs, message{dialogue.User, []block{textBlock(nudge)}})
}
