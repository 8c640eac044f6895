package gemini

import (
	"stagedoor/providers/dialogue"
	"stagedoor/providers/jsonw"
)

// document collects the events of a reply and writes it whole at its end.
type document struct {
	frame
	fold dialogue.ReplyBuilder
	done bool
}

// Emit collects events and returns the document with the last of them.
func (d *document) Emit(dst []byte, ev *dialogue.Event) []byte {
	if d.done {
		return dst
	}
	d.fold.Add(ev)
	switch ev.Kind {
	case dialogue.EventStart:
		d.start(ev)
	case dialogue.EventError:
		d.done = true
	case dialogue.EventEnd:
		d.done = true
		return d.write(dst)
	}
	return dst
}

// write appends the whole reply.
func (d *document) write(dst []byte) []byte {
	w := jsonw.Writer{Buf: dst}
	w.Object().Key("candidates").Array()
	for i, c := range d.fold.Reply.Choices {
		if c.Finished {
			d.candidate(&w, i, c)
		}
	}
	w.End()
	writeUsage(&w, d.fold.Reply.Usage)
	d.frame.write(&w)
	w.End()
	return w.Buf
}

// candidate writes one answer.
func (d *document) candidate(w *jsonw.Writer, index int, c *dialogue.Choice) {
	a := answer{index: index, logs: c.LogProbs, reason: c.Reason, detail: c.Detail}
	var parts jsonw.Writer
	parts.Array()
	for i := range c.Parts {
		d.part(&parts, &c.Parts[i], &a)
	}
	d.writeCarriers(&parts, &a)
	parts.End()
	w.Object().Key("content").Object()
	if len(parts.Buf) > len("[]") {
		w.Key("parts").Raw(parts.Buf)
	}
	w.Key("role").String("model").End()
	a.finish(w)
	w.End()
}

// writeCarriers writes the thoughts that no part has taken along, on empty parts.
func (f *frame) writeCarriers(w *jsonw.Writer, a *answer) {
	for _, c := range a.carriers {
		writeText(w, "", false, f.signature(c, a))
	}
	a.carriers = nil
}

// part writes one part. A thought of another vendor waits for the next text or call, which takes
// its seal along.
func (d *document) part(w *jsonw.Writer, p *dialogue.ReplyPart, a *answer) {
	switch p.Kind {
	case dialogue.TextPart, dialogue.RefusalPart:
		for _, c := range p.Citations {
			a.refs = append(a.refs, reference{c, len(a.text)})
		}
		signature := d.take(a, p.Signature)
		d.writeCarriers(w, a)
		a.text = append(a.text, p.Text...)
		a.refused = a.refused || p.Kind == dialogue.RefusalPart
		if p.Text != "" || signature != "" {
			writeText(w, p.Text, false, signature)
		}
	case dialogue.ThinkingPart:
		c, ok := d.carrier(p.Thinking, p.Text, a)
		switch {
		case d.shown && p.Text != "" && ok && c.thinking.Origin == Name:
			writeText(w, p.Text, true, c.thinking.Signature)
			return
		case d.shown && p.Text != "":
			writeText(w, p.Text, true, "") // the next part takes the signature along, as in a stream
		}
		if ok {
			a.carriers = append(a.carriers, c)
		}
	case dialogue.CallPart:
		if p.Call != nil {
			signature := d.take(a, p.Signature)
			d.writeCarriers(w, a)
			writeCall(w, p.Call, p.Call.Args, signature)
		}
	case dialogue.MediaPart:
		if p.Media != nil && !blank(p.Media) {
			writeMedia(w, p.Media)
		}
	case dialogue.ServerPart:
		if p.Origin == Name && len(p.Opaque) > 0 {
			w.Raw(p.Opaque)
		}
	}
}
