package chat

import (
	"slices"
	"strconv"
	"unicode/utf8"

	"stagedoor/providers/chunks"
	"stagedoor/providers/dialogue"
	"stagedoor/providers/jsonw"
)

// stream writes a reply as chunks. The beginning that all chunks share is written once, into head,
// so that a delta of text costs a few appends and no allocation:
//
//	data: {"id":"chatcmpl-7","object":"chat.completion.chunk","created":1700000000,"model":"m","choices":[
type stream struct {
	req     *dialogue.Request
	env     *dialogue.Env
	begun   bool
	ended   bool
	head    []byte // up to the choice's index
	created int64
	choices []*choiceState
	usage   dialogue.Usage
}

// choiceState is the state of one choice that is being written.
type choiceState struct {
	role    bool // the first delta, which names the role, was sent
	refused bool
	calls   int // tool indices given out
	// thought and images are the indices of the next reasoning_details and of the next image.
	thought int
	images  int
	chars   int // of content so far
	open    []*partState
	// thoughts are remembered with the next call, for clients that do not send them back.
	thoughts []dialogue.Thinking
}

// partState is the state of an open part.
type partState struct {
	number int
	kind   dialogue.PartKind
	index  int  // of a call, in tool_calls
	base   int  // chars of content before a text part
	hidden bool // not shown to this client
	custom bool
	unwrap bool // a custom tool's input inside a JSON object
	begun  bool // arguments were sent
	// held collects what can only be used whole: a thought, which goes into a seal, or an input to
	// unwrap.
	held []byte
}

// newStream returns the emitter of a stream. No token count is known yet.
func newStream(req *dialogue.Request, env *dialogue.Env) *stream {
	return &stream{req: req, env: env, usage: dialogue.NoUsage}
}

// Emit implements shapes.Emitter.
func (s *stream) Emit(dst []byte, ev *dialogue.Event) []byte {
	if s.ended {
		return dst
	}
	switch ev.Kind {
	case dialogue.EventStart:
		s.writeHead(ev)
	case dialogue.EventOpen:
		return s.openPart(dst, ev)
	case dialogue.EventDelta:
		return s.writeDelta(dst, ev)
	case dialogue.EventClose:
		return s.closePart(dst, ev)
	case dialogue.EventUsage:
		s.usage.Merge(*ev.Usage)
	case dialogue.EventFinish:
		return s.finishChoice(dst, ev)
	case dialogue.EventPing:
		return append(dst, chunks.Heartbeat...)
	case dialogue.EventEnd:
		s.ended = true
		return s.writeEnd(dst)
	case dialogue.EventError:
		s.ended = true
		return chunks.AppendFailure(dst, ev.Err)
	}
	return dst
}

// writeHead fixes the id, the time and the model of all chunks. The model is the name that the
// client used.
func (s *stream) writeHead(ev *dialogue.Event) {
	if s.begun {
		return
	}
	s.begun = true
	id, model, created := identify(s.req, s.env, ev)
	w := jsonw.Writer{Buf: append(make([]byte, 0, 192), "data: "...)}
	w.Object().Key("id").String(id)
	w.Key("object").String("chat.completion.chunk")
	w.Key("created").Int(created)
	w.Key("model").String(model)
	s.head, s.created = append(w.Buf, `,"choices":[`...), created
}

// identify returns the id that the gateway gives a reply, the model as the client named it, and the
// time of the reply.
func identify(req *dialogue.Request, env *dialogue.Env, ev *dialogue.Event) (id, model string, created int64) {
	model, created = chunks.ModelAndTime(req, env, ev)
	return "chatcmpl-" + env.ID(), model, created
}

// choice returns the state of a choice and creates it at its first use.
func (s *stream) choice(i int) *choiceState {
	for len(s.choices) <= i {
		s.choices = append(s.choices, new(choiceState))
	}
	return s.choices[i]
}

// beginChunk writes a chunk up to the first member of its delta. The first chunk of a choice names
// the role. endChunk writes the rest.
func (s *stream) beginChunk(dst []byte, choice int) []byte {
	if !s.begun {
		s.writeHead(&dialogue.Event{})
	}
	dst = append(dst, s.head...)
	dst = append(dst, `{"index":`...)
	dst = strconv.AppendInt(dst, int64(choice), 10)
	dst = append(dst, `,"delta":{`...)
	if v := s.choice(choice); !v.role {
		v.role = true
		dst = append(dst, `"role":"assistant",`...)
	}
	return dst
}

// endChunk writes a chunk from the end of its delta on.
func (s *stream) endChunk(dst, logprobs []byte, reason string) []byte {
	dst = append(dst, `},"logprobs":`...)
	if len(logprobs) > 0 {
		dst = append(dst, `{"content":`...)
		dst = append(dst, logprobs...)
		dst = append(dst, `,"refusal":null}`...)
	} else {
		dst = append(dst, "null"...)
	}
	return chunks.AppendEnd(dst, reason, s.req)
}

// writeString writes a chunk whose delta has one member, which is a string.
func (s *stream) writeString(dst []byte, choice int, member, text string, logprobs []byte) []byte {
	dst = s.beginChunk(dst, choice)
	dst = append(append(append(dst, '"'), member...), `":`...)
	return s.endChunk(jsonw.AppendString(dst, text), logprobs, "")
}

// openPart begins a part. Text needs no chunk for that. Calls get one with their id and name, and
// media, which come whole, are written at once.
func (s *stream) openPart(dst []byte, ev *dialogue.Event) []byte {
	v := s.choice(ev.Choice)
	p := &partState{number: ev.Part, kind: ev.PartKind, base: v.chars}
	v.open = append(v.open, p)
	switch ev.PartKind {
	case dialogue.CallPart:
		return s.openCall(dst, ev, v, p)
	case dialogue.MediaPart:
		if ev.Media != nil && ev.Media.Kind == dialogue.Audio && ev.Media.Base64 != "" {
			dst = s.beginChunk(dst, ev.Choice)
			w := jsonw.Writer{Buf: append(dst, `"audio":`...)}
			writeAudio(&w, ev.Media, s.created, s.env)
			return s.endChunk(w.Buf, nil, "")
		}
		if url := imageURL(ev.Media); url != "" {
			w := jsonw.Writer{Buf: append(s.beginChunk(dst, ev.Choice), `"images":`...)}
			w.Array()
			writeImage(&w, v.images, url)
			w.End()
			v.images++
			return s.endChunk(w.Buf, nil, "")
		}
	}
	return dst
}

// openCall writes the first chunk of a call: id, type, name and empty arguments. Clients append
// what follows under the same index.
func (s *stream) openCall(dst []byte, ev *dialogue.Event, v *choiceState, p *partState) []byte {
	p.index = v.calls
	v.calls++
	p.custom, p.unwrap = customCall(s.req, ev.Call)
	if s.req.LegacyFunctions {
		if p.hidden = p.index > 0; p.hidden {
			return dst // the deprecated field holds one call
		}
		w := jsonw.Writer{Buf: append(s.beginChunk(dst, ev.Choice), `"function_call":`...)}
		w.Object().Key("name").String(ev.Call.Name).Key("arguments").String("").End()
		return s.endChunk(w.Buf, nil, "")
	}
	w := jsonw.Writer{Buf: append(s.beginChunk(dst, ev.Choice), `"content":null,"tool_calls":`...)}
	id := s.env.ClientCallID(ev.Call.ID)
	s.env.RememberThoughts(id, v.thoughts)
	v.thoughts = nil
	w.Array().Object().Key("index").Int(int64(p.index))
	w.Key("id").String(id)
	kind, input := callWords(p.custom)
	w.Key("type").String(kind)
	w.Key(kind).Object().Key("name").String(ev.Call.Name).Key(input).String("").End()
	w.End().End()
	return s.endChunk(w.Buf, nil, "")
}

// callWords returns the type of a call and the name of the member that has its input.
func callWords(custom bool) (kind, input string) {
	if custom {
		return "custom", "input"
	}
	return "function", "arguments"
}

// writeDelta writes a piece of a part. Thinking is written at once and kept as well, for the seal
// at its end.
func (s *stream) writeDelta(dst []byte, ev *dialogue.Event) []byte {
	v := s.choice(ev.Choice)
	p := v.find(ev.Part)
	if p == nil || p.hidden {
		return dst
	}
	switch p.kind {
	case dialogue.TextPart:
		return s.writeText(dst, ev, v, p)
	case dialogue.ThinkingPart:
		if ev.Text == "" {
			return dst
		}
		p.held = append(p.held, ev.Text...)
		return s.writeString(dst, ev.Choice, "reasoning_content", ev.Text, nil)
	case dialogue.RefusalPart:
		v.refused = v.refused || ev.Text != ""
		return s.writeString(dst, ev.Choice, "refusal", ev.Text, nil)
	case dialogue.CallPart:
		if p.unwrap {
			p.held = append(p.held, ev.Text...)
			return dst
		}
		if ev.Text == "" {
			return dst
		}
		return s.writeInput(dst, ev.Choice, p, ev.Text)
	}
	return dst
}

// writeText writes a piece of text with its logprobs, and then the citations that came with it.
func (s *stream) writeText(dst []byte, ev *dialogue.Event, v *choiceState, p *partState) []byte {
	if ev.Text != "" || len(ev.LogProbs) > 0 {
		dst = s.writeString(dst, ev.Choice, "content", ev.Text, ev.LogProbs)
		v.chars += utf8.RuneCountInString(ev.Text)
	}
	if !slices.ContainsFunc(ev.Citations, citable) {
		return dst
	}
	w := jsonw.Writer{Buf: append(s.beginChunk(dst, ev.Choice), `"annotations":`...)}
	w.Array()
	for i := range ev.Citations {
		writeAnnotation(&w, &ev.Citations[i], p.base, v.chars)
	}
	w.End()
	return s.endChunk(w.Buf, nil, "")
}

// writeInput writes a piece of a call's arguments.
func (s *stream) writeInput(dst []byte, choice int, p *partState, text string) []byte {
	p.begun = true
	dst = s.beginChunk(dst, choice)
	if s.req.LegacyFunctions {
		dst = append(dst, `"function_call":{"arguments":`...)
		return s.endChunk(append(jsonw.AppendString(dst, text), '}'), nil, "")
	}
	kind, input := callWords(p.custom)
	dst = append(dst, `"tool_calls":[{"index":`...)
	dst = strconv.AppendInt(dst, int64(p.index), 10)
	dst = append(append(append(dst, `,"`...), kind...), `":{"`...)
	dst = append(append(dst, input...), `":`...)
	return s.endChunk(append(jsonw.AppendString(dst, text), "}}]"...), nil, "")
}

// closePart writes what is known only at the end of a part: the proof of a thought, the signature
// of a call, an input that had to be whole.
func (s *stream) closePart(dst []byte, ev *dialogue.Event) []byte {
	v := s.choice(ev.Choice)
	p := v.remove(ev.Part)
	if p == nil || p.hidden {
		return dst
	}
	switch p.kind {
	case dialogue.CallPart:
		return s.closeCall(dst, ev, p)
	case dialogue.ThinkingPart:
		if carries(ev.Thinking) {
			t := *ev.Thinking
			t.Text = string(p.held)
			return s.writeThought(dst, ev.Choice, v, t)
		}
	case dialogue.TextPart:
		if ev.Signature != "" {
			return s.writeThought(dst, ev.Choice, v,
				dialogue.Thinking{Signature: ev.Signature, Origin: ev.Origin, OfText: true})
		}
	}
	return dst
}

// closeCall writes the rest of a call. Arguments that never came are written as {}, because an
// empty string is not JSON and upstreams refuse it when the call comes back as history.
func (s *stream) closeCall(dst []byte, ev *dialogue.Event, p *partState) []byte {
	switch {
	case p.unwrap:
		dst = s.writeInput(dst, ev.Choice, p, unwrapped(string(p.held)))
	case !p.begun && !p.custom:
		dst = s.writeInput(dst, ev.Choice, p, "{}") // "" would poison the history
	}
	if ev.Signature == "" || s.req.LegacyFunctions {
		return dst
	}
	w := jsonw.Writer{Buf: append(s.beginChunk(dst, ev.Choice), `"tool_calls":`...)}
	w.Array().Object().Key("index").Int(int64(p.index))
	// Clients that check each chunk against a schema require the function in every piece of a call.
	kind, input := callWords(p.custom)
	w.Key(kind).Object().Key(input).String("").End()
	writeSignature(&w, ev.Signature)
	w.End().End()
	return s.endChunk(w.Buf, nil, "")
}

// writeThought writes the proof of a thought as reasoning_details, which the client has to send
// back, and keeps the thought for clients that do not (choiceState.thoughts).
func (s *stream) writeThought(dst []byte, choice int, v *choiceState, t dialogue.Thinking) []byte {
	w := jsonw.Writer{Buf: append(s.beginChunk(dst, choice), `"reasoning_details":`...)}
	writeDetails(&w, t, v.thought, s.env)
	v.thought++
	v.thoughts = append(v.thoughts, t)
	return s.endChunk(w.Buf, nil, "")
}

// finishChoice writes the chunk with finish_reason. A refusal that came only as an explanation is
// written before it.
func (s *stream) finishChoice(dst []byte, ev *dialogue.Event) []byte {
	v := s.choice(ev.Choice)
	if ev.Reason == dialogue.ReasonFilter && ev.Detail != "" && !v.refused {
		dst = s.writeString(dst, ev.Choice, "refusal", ev.Detail, nil)
	}
	if !v.role { // a role must come before the end, even of an empty answer
		dst = s.writeString(dst, ev.Choice, "content", "", nil)
	}
	dst = s.endChunk(s.beginChunk(dst, ev.Choice), nil, chunks.FinishReason(ev.Reason, callFinishReason(s.req)))
	if ev.ServiceTier != "" { // a further member of the same object
		dst = append(dst[:len(dst)-len("}\n\n")], `,"service_tier":`...)
		dst = append(jsonw.AppendString(dst, ev.ServiceTier), "}\n\n"...)
	}
	return dst
}

// callFinishReason returns the finish_reason of a choice that ends with a call.
func callFinishReason(req *dialogue.Request) string {
	if req.LegacyFunctions {
		return "function_call"
	}
	return "tool_calls"
}

// writeEnd writes the usage in a chunk without choices, and [DONE]. The usage is sent once and only
// if the client asked for it, because clients add up what they get.
func (s *stream) writeEnd(dst []byte) []byte {
	if s.req.IncludeUsage {
		if !s.begun {
			s.writeHead(&dialogue.Event{})
		}
		dst = append(append(dst, s.head...), `],"usage":`...)
		w := jsonw.Writer{Buf: dst}
		chunks.WriteUsage(&w, s.usage)
		dst = append(w.Buf, "}\n\n"...)
	}
	return append(dst, chunks.Done...)
}

// find returns the open part with this number, or nil.
func (v *choiceState) find(number int) *partState {
	for i := len(v.open) - 1; i >= 0; i-- {
		if v.open[i].number == number {
			return v.open[i]
		}
	}
	return nil
}

// remove takes the part with this number out of the open ones and returns it, or nil.
func (v *choiceState) remove(number int) *partState {
	p := v.find(number)
	v.open = slices.DeleteFunc(v.open, func(q *partState) bool { return q == p })
	return p
}
