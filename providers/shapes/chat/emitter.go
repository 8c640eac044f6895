package chat

import (
	"slices"
	"strconv"
	"unicode/utf8"

	"stagedoor/providers/chunks"
	"stagedoor/providers/dialogue"
	"stagedoor/providers/jsonw"
)

// stream writes a reply as chunks. What is the same in every chunk is written
// once, into head and tail, so that a text delta costs a few appends.
type stream struct {
	req     *dialogue.Request
	env     *dialogue.Env
	begun   bool
	ended   bool
	head    []byte // up to the choice's index
	created int64
	choices []*voice
	usage   dialogue.Usage
}

// voice is the state of one choice.
type voice struct {
	role    bool // the first delta, which names the role, was sent
	refused bool
	calls   int // tool indices given out
	thought int // reasoning_details given out
	chars   int // of content so far
	open    []*strand
}

// strand is an open part.
type strand struct {
	number int
	kind   dialogue.PartKind
	index  int  // of a call, in tool_calls
	base   int  // chars of content before a text part
	muted  bool // not shown to this client
	custom bool
	unwrap bool   // a custom tool's input inside a JSON object
	begun  bool   // arguments were sent
	held   []byte // thinking, or a wrapped input: needed whole
}

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
		s.begin(ev)
	case dialogue.EventOpen:
		return s.open(dst, ev)
	case dialogue.EventDelta:
		return s.delta(dst, ev)
	case dialogue.EventClose:
		return s.close(dst, ev)
	case dialogue.EventUsage:
		s.usage.Merge(*ev.Usage)
	case dialogue.EventFinish:
		return s.finish(dst, ev)
	case dialogue.EventPing:
		return append(dst, chunks.Heartbeat...)
	case dialogue.EventEnd:
		s.ended = true
		return s.end(dst)
	case dialogue.EventError:
		s.ended = true
		return chunks.AppendFailure(dst, ev.Err)
	}
	return dst
}

func (s *stream) begin(ev *dialogue.Event) {
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

// identify makes what a reply is known by: an id of our own, the model as the
// client asked for it, and a time.
func identify(req *dialogue.Request, env *dialogue.Env, ev *dialogue.Event) (id, model string, created int64) {
	model, created = chunks.ModelAndTime(req, env, ev)
	return "chatcmpl-" + env.ID(), model, created
}

func (s *stream) voice(i int) *voice {
	for len(s.choices) <= i {
		s.choices = append(s.choices, new(voice))
	}
	return s.choices[i]
}

// chunk begins a chunk up to the delta's first member; the first one of a choice
// names the role. done ends it.
func (s *stream) chunk(dst []byte, choice int) []byte {
	if !s.begun {
		s.begin(&dialogue.Event{})
	}
	dst = append(dst, s.head...)
	dst = append(dst, `{"index":`...)
	dst = strconv.AppendInt(dst, int64(choice), 10)
	dst = append(dst, `,"delta":{`...)
	if v := s.voice(choice); !v.role {
		v.role = true
		dst = append(dst, `"role":"assistant",`...)
	}
	return dst
}

// done ends a chunk behind the delta's last member.
func (s *stream) done(dst, logprobs []byte, reason string) []byte {
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

// piece is a chunk whose delta has one string member.
func (s *stream) piece(dst []byte, choice int, member, text string, logprobs []byte) []byte {
	dst = s.chunk(dst, choice)
	dst = append(append(append(dst, '"'), member...), `":`...)
	return s.done(jsonw.AppendString(dst, text), logprobs, "")
}

func (s *stream) open(dst []byte, ev *dialogue.Event) []byte {
	v := s.voice(ev.Choice)
	p := &strand{number: ev.Part, kind: ev.PartKind, base: v.chars}
	v.open = append(v.open, p)
	switch ev.PartKind {
	case dialogue.CallPart:
		return s.openCall(dst, ev, v, p)
	case dialogue.MediaPart:
		if ev.Media != nil && ev.Media.Kind == dialogue.Audio && ev.Media.Base64 != "" {
			dst = s.chunk(dst, ev.Choice)
			w := jsonw.Writer{Buf: append(dst, `"audio":`...)}
			writeAudio(&w, ev.Media, s.created, s.env)
			return s.done(w.Buf, nil, "")
		}
	}
	return dst
}

func (s *stream) openCall(dst []byte, ev *dialogue.Event, v *voice, p *strand) []byte {
	p.index = v.calls
	v.calls++
	p.custom, p.unwrap = customCall(s.req, ev.Call)
	if s.req.LegacyFunctions {
		if p.muted = p.index > 0; p.muted {
			return dst // the deprecated field holds one call
		}
		w := jsonw.Writer{Buf: append(s.chunk(dst, ev.Choice), `"function_call":`...)}
		w.Object().Key("name").String(ev.Call.Name).Key("arguments").String("").End()
		return s.done(w.Buf, nil, "")
	}
	w := jsonw.Writer{Buf: append(s.chunk(dst, ev.Choice), `"content":null,"tool_calls":`...)}
	w.Array().Object().Key("index").Int(int64(p.index))
	w.Key("id").String(ev.Call.ID)
	kind, input := callWords(p.custom)
	w.Key("type").String(kind)
	w.Key(kind).Object().Key("name").String(ev.Call.Name).Key(input).String("").End()
	w.End().End()
	return s.done(w.Buf, nil, "")
}

// callWords are the type of a call and the member its input stands in.
func callWords(custom bool) (kind, input string) {
	if custom {
		return "custom", "input"
	}
	return "function", "arguments"
}

func (s *stream) delta(dst []byte, ev *dialogue.Event) []byte {
	v := s.voice(ev.Choice)
	p := v.part(ev.Part)
	if p == nil || p.muted {
		return dst
	}
	switch p.kind {
	case dialogue.TextPart:
		return s.text(dst, ev, v, p)
	case dialogue.ThinkingPart:
		if ev.Text == "" {
			return dst
		}
		p.held = append(p.held, ev.Text...)
		return s.piece(dst, ev.Choice, "reasoning_content", ev.Text, nil)
	case dialogue.RefusalPart:
		v.refused = v.refused || ev.Text != ""
		return s.piece(dst, ev.Choice, "refusal", ev.Text, nil)
	case dialogue.CallPart:
		if p.unwrap {
			p.held = append(p.held, ev.Text...)
			return dst
		}
		if ev.Text == "" {
			return dst
		}
		return s.input(dst, ev.Choice, p, ev.Text)
	}
	return dst
}

func (s *stream) text(dst []byte, ev *dialogue.Event, v *voice, p *strand) []byte {
	if ev.Text != "" || len(ev.LogProbs) > 0 {
		dst = s.piece(dst, ev.Choice, "content", ev.Text, ev.LogProbs)
		v.chars += utf8.RuneCountInString(ev.Text)
	}
	if !slices.ContainsFunc(ev.Citations, citable) {
		return dst
	}
	w := jsonw.Writer{Buf: append(s.chunk(dst, ev.Choice), `"annotations":`...)}
	w.Array()
	for i := range ev.Citations {
		writeAnnotation(&w, &ev.Citations[i], p.base, v.chars)
	}
	w.End()
	return s.done(w.Buf, nil, "")
}

// input sends a piece of a call's arguments.
func (s *stream) input(dst []byte, choice int, p *strand, text string) []byte {
	p.begun = true
	dst = s.chunk(dst, choice)
	if s.req.LegacyFunctions {
		dst = append(dst, `"function_call":{"arguments":`...)
		return s.done(append(jsonw.AppendString(dst, text), '}'), nil, "")
	}
	kind, input := callWords(p.custom)
	dst = append(dst, `"tool_calls":[{"index":`...)
	dst = strconv.AppendInt(dst, int64(p.index), 10)
	dst = append(append(append(dst, `,"`...), kind...), `":{"`...)
	dst = append(append(dst, input...), `":`...)
	return s.done(append(jsonw.AppendString(dst, text), "}}]"...), nil, "")
}

func (s *stream) close(dst []byte, ev *dialogue.Event) []byte {
	v := s.voice(ev.Choice)
	p := v.take(ev.Part)
	if p == nil || p.muted {
		return dst
	}
	switch p.kind {
	case dialogue.CallPart:
		return s.closeCall(dst, ev, p)
	case dialogue.ThinkingPart:
		if carries(ev.Thinking) {
			t := *ev.Thinking
			t.Text = string(p.held)
			return s.details(dst, ev.Choice, v, t)
		}
	case dialogue.TextPart:
		if ev.Signature != "" {
			return s.details(dst, ev.Choice, v, dialogue.Thinking{Signature: ev.Signature, Origin: ev.Origin})
		}
	}
	return dst
}

func (s *stream) closeCall(dst []byte, ev *dialogue.Event, p *strand) []byte {
	switch {
	case p.unwrap:
		dst = s.input(dst, ev.Choice, p, unwrapped(string(p.held)))
	case !p.begun && !p.custom:
		dst = s.input(dst, ev.Choice, p, "{}") // "" would poison the history
	}
	if ev.Signature == "" || s.req.LegacyFunctions {
		return dst
	}
	w := jsonw.Writer{Buf: append(s.chunk(dst, ev.Choice), `"tool_calls":`...)}
	w.Array().Object().Key("index").Int(int64(p.index))
	writeSignature(&w, ev.Signature)
	w.End().End()
	return s.done(w.Buf, nil, "")
}

// details sends what the client has to bring back.
func (s *stream) details(dst []byte, choice int, v *voice, t dialogue.Thinking) []byte {
	w := jsonw.Writer{Buf: append(s.chunk(dst, choice), `"reasoning_details":`...)}
	writeDetails(&w, t, v.thought, s.env)
	v.thought++
	return s.done(w.Buf, nil, "")
}

func (s *stream) finish(dst []byte, ev *dialogue.Event) []byte {
	v := s.voice(ev.Choice)
	if ev.Reason == dialogue.ReasonFilter && ev.Detail != "" && !v.refused {
		dst = s.piece(dst, ev.Choice, "refusal", ev.Detail, nil)
	}
	if !v.role { // a role must come before the end, even of an empty answer
		dst = s.piece(dst, ev.Choice, "content", "", nil)
	}
	return s.done(s.chunk(dst, ev.Choice), nil, chunks.FinishReason(ev.Reason, toolWord(s.req)))
}

// toolWord is the finish_reason of a call.
func toolWord(req *dialogue.Request) string {
	if req.LegacyFunctions {
		return "function_call"
	}
	return "tool_calls"
}

// end writes usage, once and only if it was asked for: clients add up.
func (s *stream) end(dst []byte) []byte {
	if s.req.IncludeUsage {
		if !s.begun {
			s.begin(&dialogue.Event{})
		}
		dst = append(append(dst, s.head...), `],"usage":`...)
		w := jsonw.Writer{Buf: dst}
		chunks.WriteUsage(&w, s.usage)
		dst = append(w.Buf, "}\n\n"...)
	}
	return append(dst, chunks.Done...)
}

func (v *voice) part(number int) *strand {
	for i := len(v.open) - 1; i >= 0; i-- {
		if v.open[i].number == number {
			return v.open[i]
		}
	}
	return nil
}

func (v *voice) take(number int) *strand {
	for i, p := range v.open {
		if p.number == number {
			v.open = append(v.open[:i], v.open[i+1:]...)
			return p
		}
	}
	return nil
}
