package messages

import (
	"slices"

	"stagedoor/providers/dialogue"
	"stagedoor/providers/jsonw"
)

// wholeEmitter collects the events of a reply and writes them as one message at the end.
type wholeEmitter struct {
	head
	folder dialogue.ReplyBuilder
	over   bool
}

// Emit collects events and returns the message with the last of them.
func (e *wholeEmitter) Emit(dst []byte, ev *dialogue.Event) []byte {
	if e.over {
		return dst
	}
	e.folder.Add(ev)
	switch ev.Kind {
	case dialogue.EventStart:
		e.begin(ev)
	case dialogue.EventError:
		e.over = true
	case dialogue.EventEnd:
		e.over = true
		return e.message(dst)
	}
	return dst
}

// message appends the whole message. Only the first choice has a place in it.
func (e *wholeEmitter) message(dst []byte) []byte {
	w := &jsonw.Writer{Buf: dst}
	var end ending
	e.open(w)
	w.Key("content").Array()
	if choices := e.folder.Reply.Choices; len(choices) > 0 {
		c := choices[0]
		end.reason, end.stopSequence, end.detail = c.Reason, c.StopSequence, c.Detail
		for i := range c.Parts {
			e.part(w, &c.Parts[i], &end)
		}
	}
	w.End()
	end.close()
	end.write(w)
	w.Key("container").Null()
	w.Key("usage")
	writeUsage(w, &e.folder.Reply.Usage)
	e.writeAppliedEdits(w)
	return w.End().Buf
}

// part writes the block of one part, and counts in end what decides the stop reason.
func (e *wholeEmitter) part(w *jsonw.Writer, p *dialogue.ReplyPart, end *ending) {
	switch p.Kind {
	case dialogue.TextPart:
		writeAnswer(w, p)
	case dialogue.RefusalPart:
		end.refusal += p.Text
		writeAnswer(w, p)
	case dialogue.ThinkingPart:
		e.thinking(w, p)
	case dialogue.CallPart:
		end.calls++
		id := e.env.ClientCallID(p.Call.ID)
		e.remember(id, p.Call.Signature)
		input, _ := arguments(p.Call)
		w.Object()
		w.Key("type").String("tool_use")
		w.Key("id").String(id)
		w.Key("name").String(p.Call.Name)
		w.Key("input").Raw(input)
		w.End()
	case dialogue.ServerPart:
		if p.Origin == Name && len(p.Opaque) > 0 {
			w.Raw(p.Opaque)
		}
	}
}

// writeAnswer writes a text block with its citations. A part without text gets no block, because
// clients send blocks back and the vendor refuses empty ones.
func writeAnswer(w *jsonw.Writer, p *dialogue.ReplyPart) {
	if p.Text == "" {
		return
	}
	w.Object()
	w.Key("type").String("text")
	w.Key("text").String(p.Text)
	if slices.ContainsFunc(p.Citations, citable) { // strict clients refuse null
		w.Key("citations").Array()
		for i := range p.Citations {
			if citable(p.Citations[i]) {
				writeCitation(w, &p.Citations[i])
			}
		}
		w.End()
	}
	w.End()
}

// thinking writes a thinking or redacted_thinking block, or only remembers the thought if the
// client did not ask for thinking.
func (e *wholeEmitter) thinking(w *jsonw.Writer, p *dialogue.ReplyPart) {
	if e.hides() {
		e.hide(p.Thinking, p.Text)
		return
	}
	signature, redacted := e.carrier(provable(p.Thinking), p.Text != "")
	if redacted != "" {
		w.Object().Key("type").String("redacted_thinking").Key("data").String(redacted).End()
		return
	}
	if p.Text == "" && signature == "" {
		return
	}
	w.Object()
	w.Key("type").String("thinking")
	w.Key("thinking").String(p.Text)
	w.Key("signature").String(signature)
	w.End()
}

// provable returns t, or nil for a thought of which nothing but its text is known. The events of a
// stream have nil there too, so both emitters treat such a thought alike.
func provable(t *dialogue.Thinking) *dialogue.Thinking {
	if t == nil || *t == (dialogue.Thinking{Text: t.Text}) {
		return nil
	}
	return t
}
