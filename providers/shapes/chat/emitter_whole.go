package chat

import (
	"unicode/utf8"

	"stagedoor/providers/chunks"
	"stagedoor/providers/dialogue"
	"stagedoor/providers/jsonw"
)

// document collects the events of a reply and writes it as one JSON object at its end. The same events that a
// stream shows one by one are collected here, so a whole reply and a streamed one cannot differ.
type document struct {
	req    *dialogue.Request
	env    *dialogue.Env
	folder dialogue.ReplyBuilder
	start  dialogue.Event
}

// Emit implements shapes.Emitter.
func (d *document) Emit(dst []byte, ev *dialogue.Event) []byte {
	if d.folder.Done || d.folder.Err != nil {
		return dst
	}
	d.folder.Add(ev)
	switch ev.Kind {
	case dialogue.EventStart:
		d.start = dialogue.Event{Model: ev.Model, Created: ev.Created}
	case dialogue.EventEnd:
		return d.write(dst)
	}
	return dst
}

// write appends the whole reply.
func (d *document) write(dst []byte) []byte {
	id, model, created := identify(d.req, d.env, &d.start)
	w := jsonw.Writer{Buf: dst}
	w.Object().Key("id").String(id)
	w.Key("object").String("chat.completion")
	w.Key("created").Int(created)
	w.Key("model").String(model)
	if tier := d.folder.Reply.ServiceTier; tier != "" {
		w.Key("service_tier").String(tier)
	}
	w.Key("choices").Array()
	for i, c := range d.folder.Reply.Choices {
		if c.Finished { // the call for another one failed
			d.choice(&w, i, c, created)
		}
	}
	w.End()
	w.Key("usage")
	chunks.WriteUsage(&w, d.folder.Reply.Usage)
	w.End()
	return w.Buf
}

// choice writes one element of choices.
func (d *document) choice(w *jsonw.Writer, index int, c *dialogue.Choice, created int64) {
	w.Object().Key("index").Int(int64(index))
	w.Key("message")
	d.message(w, c, created)
	w.Key("logprobs")
	if len(c.LogProbs) > 0 {
		w.Object().Key("content").Raw(joined(c.LogProbs)).Key("refusal").Null().End()
	} else {
		w.Null()
	}
	w.Key("finish_reason").String(chunks.FinishReason(c.Reason, callFinishReason(d.req)))
	w.End()
}

// messageParts holds the parts of a choice, sorted as a message has them.
type messageParts struct {
	content, refusal, thinking string
	calls                      []*dialogue.ReplyPart
	texts                      []*dialogue.ReplyPart
	bases                      []int // characters of content before each text
	sealed                     []dialogue.Thinking
	audio                      *dialogue.Media
	images                     []string // addresses
}

// sortParts collects the parts of a choice by kind. A message has one content, so all texts become
// one. Their starts are kept for the positions of citations.
func sortParts(c *dialogue.Choice) messageParts {
	var s messageParts
	for i := range c.Parts {
		p := &c.Parts[i]
		switch p.Kind {
		case dialogue.TextPart:
			s.bases = append(s.bases, utf8.RuneCountInString(s.content))
			s.content += p.Text
			s.texts = append(s.texts, p)
			if p.Signature != "" {
				s.sealed = append(s.sealed, dialogue.Thinking{Signature: p.Signature, Origin: p.Origin, OfText: true})
			}
		case dialogue.RefusalPart:
			s.refusal += p.Text
		case dialogue.ThinkingPart:
			s.thinking += p.Text
			if carries(p.Thinking) {
				s.sealed = append(s.sealed, *p.Thinking)
			}
		case dialogue.CallPart:
			s.calls = append(s.calls, p)
		case dialogue.MediaPart:
			if p.Media != nil && p.Media.Kind == dialogue.Audio && p.Media.Base64 != "" {
				s.audio = p.Media
			} else if url := imageURL(p.Media); url != "" {
				s.images = append(s.images, url)
			}
		}
	}
	if s.refusal == "" && c.Reason == dialogue.ReasonFilter {
		s.refusal = c.Detail
	}
	return s
}

// message writes the message of a choice. content is null, and not "", beside calls, a refusal or
// audio: SDKs distinguish the two.
func (d *document) message(w *jsonw.Writer, c *dialogue.Choice, created int64) {
	s := sortParts(c)
	w.Object().Key("role").String("assistant")
	w.Key("content")
	if s.content == "" && (len(s.calls) > 0 || s.refusal != "" || s.audio != nil) {
		w.Null()
	} else {
		w.String(s.content)
	}
	w.Key("refusal").StringOrNull(s.refusal)
	d.annotations(w, s)
	if s.thinking != "" {
		w.Key("reasoning_content").String(s.thinking)
	}
	if len(s.sealed) > 0 {
		w.Key("reasoning_details").Array()
		for i, t := range s.sealed {
			writeDetail(w, t, i, d.env)
		}
		w.End()
	}
	if len(s.images) > 0 {
		w.Key("images").Array()
		for i, url := range s.images {
			writeImage(w, i, url)
		}
		w.End()
	}
	d.calls(w, s)
	if s.audio != nil {
		w.Key("audio")
		writeAudio(w, s.audio, created, d.env)
	}
	w.End()
}

// annotations writes the citations of all texts, with positions in the one content.
func (d *document) annotations(w *jsonw.Writer, s messageParts) {
	w.Key("annotations").Array()
	for i, p := range s.texts {
		end := s.bases[i] + utf8.RuneCountInString(p.Text)
		for j := range p.Citations {
			writeAnnotation(w, &p.Citations[j], s.bases[i], end)
		}
	}
	w.End()
}

// calls writes tool_calls, or function_call for a client that used the deprecated functions. The
// thoughts are remembered under the id of the first call, because a client that drops them still
// sends the calls back.
func (d *document) calls(w *jsonw.Writer, s messageParts) {
	calls := s.calls
	if len(calls) == 0 {
		return
	}
	if d.req.LegacyFunctions {
		w.Key("function_call").Object()
		w.Key("name").String(calls[0].Call.Name).Key("arguments").String(calls[0].Call.Args)
		w.End()
		return
	}
	w.Key("tool_calls").Array()
	for i, p := range calls {
		custom, unwrap := customCall(d.req, p.Call)
		args := p.Call.Args
		if unwrap {
			args = unwrapped(args)
		}
		kind, input := callWords(custom)
		id := d.env.ClientCallID(p.Call.ID)
		if i == 0 {
			d.env.RememberThoughts(id, s.sealed)
		}
		w.Object().Key("id").String(id)
		w.Key("type").String(kind)
		w.Key(kind).Object().Key("name").String(p.Call.Name).Key(input).String(args).End()
		if p.Signature != "" {
			writeSignature(w, p.Signature)
		}
		w.End()
	}
	w.End()
}
