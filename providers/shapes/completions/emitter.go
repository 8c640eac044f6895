package completions

import (
	"encoding/json"
	"slices"
	"strconv"
	"unicode/utf8"

	"stagedoor/providers/chunks"
	"stagedoor/providers/dialogue"
	"stagedoor/providers/jsonw"
)

// writer holds the state that both forms of a reply share. Only text and refusals are shown, because thoughts
// and calls have no place in this shape. A refusal is text here, because the shape has no other place for it.
type writer struct {
	req     *dialogue.Request
	env     *dialogue.Env
	head    []byte // up to the first choice
	usage   dialogue.Usage
	ended   bool
	choices []*text
}

// text is the state of one choice.
type text struct {
	begun   bool
	shown   []int // numbers of the parts that are shown
	refused bool
	// offset is the number of characters so far, at which the next token of the logprobs begins.
	offset   int
	body     []byte
	logprobs []json.RawMessage
	word     string
}

// begin makes the beginning that every chunk, or the document, has.
func (w *writer) begin(ev *dialogue.Event) {
	if w.head != nil {
		return
	}
	model, created := chunks.ModelAndTime(w.req, w.env, ev)
	j := jsonw.Writer{Buf: make([]byte, 0, 192)}
	j.Object().Key("id").String("cmpl-" + w.env.ID())
	j.Key("object").String("text_completion")
	j.Key("created").Int(created)
	j.Key("model").String(model)
	w.head = append(j.Buf, `,"choices":[`...)
}

// at returns the state of a choice and creates it at its first use.
func (w *writer) at(i int) *text {
	for len(w.choices) <= i {
		w.choices = append(w.choices, new(text))
	}
	return w.choices[i]
}

// opened notes whether the deltas of a part will be shown.
func (w *writer) opened(ev *dialogue.Event) {
	t := w.at(ev.Choice)
	switch ev.PartKind {
	case dialogue.TextPart:
		t.shown = append(t.shown, ev.Part)
	case dialogue.RefusalPart:
		t.refused = true
		t.shown = append(t.shown, ev.Part)
	}
}

// silent reports whether the upstream has sent nothing for a choice.
func (t *text) silent() bool { return t.word == "" && len(t.shown) == 0 }

// shows reports whether the text of a part is shown.
func (t *text) shows(part int) bool {
	return slices.Contains(t.shown, part)
}

// prompt returns the text that the parameter echo puts before a choice, or "". Choices are numbered
// prompt by prompt: with n = 2 the second prompt has the choices 2 and 3.
func (w *writer) prompt(choice int) string {
	if !w.req.Echo || len(w.req.Prompts) == 0 {
		return ""
	}
	i := min(choice/max(w.req.N, 1), len(w.req.Prompts)-1)
	prompt, _ := dialogue.PromptText(w.req.Prompts[i])
	return prompt
}

// word returns the finish_reason. A refusal counts as a filtered answer.
func word(t *text, r dialogue.Reason) string {
	if t.refused && r == dialogue.ReasonStop {
		return "content_filter"
	}
	return chunks.FinishReason(r, "stop")
}

// stream writes a reply as events.
type stream struct{ writer }

// Emit implements shapes.Emitter.
func (s *stream) Emit(dst []byte, ev *dialogue.Event) []byte {
	if s.ended {
		return dst
	}
	switch ev.Kind {
	case dialogue.EventStart:
		s.begin(ev)
	case dialogue.EventOpen:
		s.opened(ev)
	case dialogue.EventDelta:
		return s.delta(dst, ev)
	case dialogue.EventUsage:
		s.usage.Merge(*ev.Usage)
	case dialogue.EventFinish:
		dst = s.echo(dst, ev.Choice)
		return s.chunk(dst, ev.Choice, "", nil, word(s.at(ev.Choice), ev.Reason))
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

// delta writes a piece of text.
func (s *stream) delta(dst []byte, ev *dialogue.Event) []byte {
	if t := s.at(ev.Choice); !t.shows(ev.Part) || ev.Text == "" && len(ev.LogProbs) == 0 {
		return dst
	}
	dst = s.echo(dst, ev.Choice)
	return s.chunk(dst, ev.Choice, ev.Text, ev.LogProbs, "")
}

// echo writes the prompt before the first piece of a choice, if the client asked for it.
func (s *stream) echo(dst []byte, choice int) []byte {
	t := s.at(choice)
	if t.begun {
		return dst
	}
	t.begun = true
	prompt := s.prompt(choice)
	if prompt == "" {
		return dst
	}
	t.offset = utf8.RuneCountInString(prompt)
	return s.chunk(dst, choice, prompt, nil, "")
}

// chunk writes one chunk. word is the finish_reason, or "" before the end.
func (s *stream) chunk(dst []byte, choice int, text string, logprobs json.RawMessage, word string) []byte {
	s.begin(&dialogue.Event{})
	dst = append(append(dst, "data: "...), s.head...)
	dst = append(dst, `{"index":`...)
	dst = strconv.AppendInt(dst, int64(choice), 10)
	dst = append(dst, `,"text":`...)
	dst = append(jsonw.AppendString(dst, text), `,"logprobs":`...)
	if len(logprobs) > 0 && s.req.LogProbs {
		t := s.at(choice)
		w := jsonw.Writer{Buf: dst}
		t.offset = writeLogProbs(&w, []json.RawMessage{logprobs}, t.offset)
		dst = w.Buf
	} else {
		dst = append(dst, "null"...)
	}
	return chunks.AppendEnd(dst, word, s.req)
}

// end writes the usage, once and only if the client asked for it, and [DONE].
func (s *stream) end(dst []byte) []byte {
	if s.req.IncludeUsage {
		s.begin(&dialogue.Event{})
		dst = append(append(dst, "data: "...), s.head...)
		w := jsonw.Writer{Buf: append(dst, `],"usage":`...)}
		chunks.WriteUsage(&w, s.usage)
		dst = append(w.Buf, "}\n\n"...)
	}
	return append(dst, chunks.Done...)
}

// document writes a reply as one JSON object, at its end.
type document struct{ writer }

// Emit implements shapes.Emitter.
func (d *document) Emit(dst []byte, ev *dialogue.Event) []byte {
	if d.ended {
		return dst
	}
	switch ev.Kind {
	case dialogue.EventStart:
		d.begin(ev)
	case dialogue.EventOpen:
		d.opened(ev)
	case dialogue.EventDelta:
		if t := d.at(ev.Choice); t.shows(ev.Part) {
			t.body = append(t.body, ev.Text...)
			if len(ev.LogProbs) > 0 {
				t.logprobs = append(t.logprobs, ev.LogProbs)
			}
		}
	case dialogue.EventUsage:
		d.usage.Merge(*ev.Usage)
	case dialogue.EventFinish:
		t := d.at(ev.Choice)
		t.word = word(t, ev.Reason)
	case dialogue.EventEnd:
		d.ended = true
		return d.write(dst)
	case dialogue.EventError:
		d.ended = true
	}
	return dst
}

// write appends the whole reply.
func (d *document) write(dst []byte) []byte {
	d.begin(&dialogue.Event{})
	dst = append(dst, d.head...)
	first := true
	for i, t := range d.choices {
		if t.silent() {
			continue // an upstream that gives fewer choices than it was asked for
		}
		if !first {
			dst = append(dst, ',')
		}
		first = false
		prompt := d.prompt(i)
		w := jsonw.Writer{Buf: dst}
		w.Object().Key("index").Int(int64(i))
		w.Key("text").String(prompt + string(t.body))
		w.Key("logprobs")
		if len(t.logprobs) > 0 && d.req.LogProbs {
			writeLogProbs(&w, t.logprobs, utf8.RuneCountInString(prompt))
		} else {
			w.Null()
		}
		if t.word == "" {
			t.word = "stop"
		}
		w.Key("finish_reason").String(t.word)
		w.End()
		dst = w.Buf
	}
	w := jsonw.Writer{Buf: append(dst, `],"usage":`...)}
	chunks.WriteUsage(&w, d.usage)
	return append(w.Buf, '}')
}
