package responses_test

import (
	"fmt"
	"strings"
	"testing"

	"stagedoor/providers/dialogue"
	"stagedoor/providers/shapes"
	"stagedoor/providers/shapes/responses"
)

// wellFormed fails where a sequence breaks what dialogue.EventKind promises.
type wellFormed struct {
	t        testing.TB
	folder   dialogue.ReplyBuilder
	open     map[int]bool
	started  bool
	finished bool
	ended    bool
}

func (w *wellFormed) add(ev *dialogue.Event) {
	w.t.Helper()
	if w.ended {
		w.t.Errorf("event %d after the end", ev.Kind)
	}
	if !w.started && ev.Kind != dialogue.EventStart && ev.Kind != dialogue.EventError {
		w.t.Errorf("event %d before the start", ev.Kind)
	}
	switch ev.Kind {
	case dialogue.EventStart:
		if w.started {
			w.t.Error("two starts")
		}
		w.started = true
	case dialogue.EventOpen:
		if _, twice := w.open[ev.Part]; twice {
			w.t.Errorf("part %d opened twice", ev.Part)
		}
		w.open[ev.Part] = true
	case dialogue.EventDelta:
		if !w.open[ev.Part] {
			w.t.Errorf("delta of part %d, which is not open", ev.Part)
		}
	case dialogue.EventClose:
		if !w.open[ev.Part] {
			w.t.Errorf("close of part %d, which is not open", ev.Part)
		}
		w.open[ev.Part] = false
	case dialogue.EventFinish:
		for part, open := range w.open {
			if open {
				w.t.Errorf("part %d open at the finish", part)
			}
		}
		w.finished = true
	case dialogue.EventEnd:
		w.ended = true
		if !w.finished {
			w.t.Error("end without finish")
		}
	case dialogue.EventError:
		w.ended = true
	}
	w.folder.Add(ev)
}

// parse reads a stream, one event a line, and checks the sequence.
func parse(t testing.TB, lines string) *dialogue.ReplyBuilder {
	t.Helper()
	w := &wellFormed{t: t, open: map[int]bool{}}
	p := responses.Shape.NewParser(1, newEnv())
	for line := range strings.Lines(lines) {
		if line = strings.TrimSpace(line); line != "" {
			p.Event("", []byte(line), w.add)
		}
	}
	p.EOF(w.add)
	if !p.Done() || !w.ended {
		t.Error("the reply has no end")
	}
	return &w.folder
}

// summary writes a reply in short.
func summary(f *dialogue.ReplyBuilder) string {
	if f.Err != nil {
		return fmt.Sprintf("error %d %v", f.Err.Status, f.Err.Code)
	}
	var b strings.Builder
	for _, p := range f.Reply.Choices[0].Parts {
		switch p.Kind {
		case dialogue.CallPart:
			fmt.Fprintf(&b, "call(%s %s %s) ", p.Call.ID, p.Call.Name, p.Call.Args)
		case dialogue.ThinkingPart:
			fmt.Fprintf(&b, "think(%q %s %s) ", p.Thinking.Text, p.Thinking.ItemID, p.Thinking.Encrypted)
		case dialogue.RefusalPart:
			fmt.Fprintf(&b, "refusal(%s) ", p.Text)
		case dialogue.ServerPart:
			fmt.Fprintf(&b, "server(%d) ", len(p.Opaque))
		default:
			fmt.Fprintf(&b, "text(%s) ", p.Text)
		}
	}
	return b.String() + fmt.Sprint(f.Reply.Choices[0].Reason)
}

const (
	created   = `{"type":"response.created","response":{"id":"resp_up","model":"m","created_at":7}}` + "\n"
	completed = "\n" + `{"type":"response.completed","response":{"status":"completed","output":[],"usage":{"input_tokens":1,"output_tokens":2}}}`
)

func TestParserReadsEveryWayToTellAnAnswer(t *testing.T) {
	message := `{"type":"message","id":"m1","content":[{"type":"output_text","text":"Hi","annotations":[]}]}`
	call := `{"type":"function_call","id":"fc","call_id":"c","name":"f","arguments":"{\"a\":1}"}`
	thinking := `{"type":"reasoning","id":"rs","summary":[{"type":"summary_text","text":"a"},{"type":"summary_text","text":"b"}],"encrypted_content":"enc"}`
	for name, tt := range map[string]struct{ stream, want string }{
		"deltas": {`{"type":"response.output_item.added","output_index":0,"item":{"type":"message","id":"m1"}}
			{"type":"response.output_text.delta","output_index":0,"content_index":0,"item_id":"m1","delta":"H"}
			{"type":"response.output_text.delta","output_index":0,"content_index":0,"item_id":"other","delta":"i"}
			{"type":"response.output_item.done","output_index":0,"item":` + message + `}`, "text(Hi) 0"},
		"nothing announced":    {`{"type":"response.output_text.delta","item_id":"m1","delta":"Hi"}`, "text(Hi) 0"},
		"text only when done":  {`{"type":"response.output_text.done","output_index":0,"text":"Hi"}`, "text(Hi) 0"},
		"only the item":        {`{"type":"response.output_item.done","output_index":0,"item":` + message + `}`, "text(Hi) 0"},
		"only the final event": {`{"type":"response.completed","response":{"status":"completed","output":[` + thinking + `,` + message + `,` + call + `]}}`, `think("a\n\nb" rs enc) text(Hi) call(c f {"a":1}) 3`},
		"ids that change": {`{"type":"response.output_item.added","output_index":0,"item":{"type":"function_call","id":"x1","call_id":"c","name":"f","arguments":""}}
			{"type":"response.function_call_arguments.delta","output_index":0,"item_id":"x2","delta":"{\"a\":1}"}
			{"type":"response.output_item.done","output_index":0,"item":{"type":"function_call","id":"x3","call_id":"c","name":"f","arguments":"{\"a\":1}"}}
			{"type":"response.completed","response":{"status":"completed","output":[{"type":"function_call","id":"x4","call_id":"c","name":"f","arguments":"{\"a\":1}"}]}}`, `call(c f {"a":1}) 3`},
		"arguments only when done": {`{"type":"response.output_item.added","output_index":0,"item":{"type":"function_call","id":"x","call_id":"c","name":"f","arguments":""}}
			{"type":"response.function_call_arguments.done","output_index":0,"item_id":"x","arguments":"{\"a\":1}"}`, `call(c f {"a":1}) 3`},
		"arguments only in the end": {`{"type":"response.output_item.added","output_index":0,"item":{"type":"function_call","id":"x","call_id":"c","name":"f"}}
			{"type":"response.completed","response":{"status":"completed","output":[` + call + `]}}`, `call(c f {"a":1}) 3`},
		"no arguments": {`{"type":"response.output_item.added","output_index":0,"item":{"type":"function_call","call_id":"c","name":"f"}}`, `call(c f {}) 3`},
		"summary parts": {`{"type":"response.output_item.added","output_index":0,"item":{"type":"reasoning","id":"rs"}}
			{"type":"response.reasoning_summary_text.delta","output_index":0,"summary_index":0,"delta":"a"}
			{"type":"response.reasoning_summary_text.done","output_index":0,"summary_index":0,"text":"a"}
			{"type":"response.reasoning_summary_text.delta","output_index":0,"summary_index":1,"delta":"b"}
			{"type":"response.output_item.done","output_index":0,"item":` + thinking + `}`, `think("a\n\nb" rs enc) 0`},
		"interleaved": {`{"type":"response.output_item.added","output_index":0,"item":{"type":"function_call","call_id":"c","name":"f"}}
			{"type":"response.output_item.added","output_index":1,"item":{"type":"custom_tool_call","call_id":"d","name":"g"}}
			{"type":"response.custom_tool_call_input.delta","output_index":1,"delta":"raw"}
			{"type":"response.function_call_arguments.delta","output_index":0,"delta":"{}"}`, `call(c f {}) call(d g raw) 3`},
		"refusal":       {`{"type":"response.refusal.delta","output_index":0,"delta":"No"}`, "refusal(No) 0"},
		"server item":   {`{"type":"response.output_item.done","output_index":0,"item":{"type":"web_search_call"}}`, "server(26) 0"},
		"unknown event": {`{"type":"response.sparkle","delta":"x"}`, ""},
		"cut pair": {`{"type":"response.output_text.delta","output_index":0,"delta":"go \ud83d"}
			{"type":"response.output_text.delta","output_index":0,"delta":"\ude80!"}`, "text(go 🚀!) 0"},
		"half a pair":   {`{"type":"response.output_text.delta","output_index":0,"delta":"go \ud83d"}`, "text(go \uFFFD) 0"},
		"escaped slash": {`{"type":"response.output_text.delta","output_index":0,"delta":"\\ud83d"}`, `text(\ud83d) 0`},
		"incomplete": {`{"type":"response.output_text.delta","output_index":0,"delta":"cut"}
			{"type":"response.incomplete","response":{"status":"incomplete","incomplete_details":{"reason":"max_output_tokens"},"output":[]}}`, "text(cut) 2"},
		"after the end":     {completed + "\n" + `{"type":"response.output_text.delta","delta":"x"}` + completed, ""},
		"flat error":        {`{"type":"error","code":"rate_limit_exceeded","message":"too fast","param":null}`, "error 429 rate_limit_exceeded"},
		"nested error":      {`{"type":"error","error":{"type":"invalid_request_error","message":"bad"}}`, "error 400 <nil>"},
		"failed":            {`{"type":"response.failed","response":{"status":"failed","error":{"code":"server_error","message":"x"}}}`, "error 502 server_error"},
		"failed wordlessly": {`{"type":"response.failed","response":{"status":"failed","error":null}}`, "error 502 upstream_error"},
	} {
		t.Run(name, func(t *testing.T) {
			got := parse(t, created+tt.stream+completed)
			if tt.want == "" {
				if got.Err != nil {
					t.Fatal(got.Err)
				}
				return
			}
			want(t, "reply", summary(got), tt.want)
		})
	}
}

func TestStreamWithoutTerminalEventFails(t *testing.T) {
	got := parse(t, created+`{"type":"response.output_text.delta","output_index":0,"delta":"x"}`)
	want(t, "reply", summary(got), "error 502 upstream_incomplete")
}

func TestParserReadsUsageAndCitations(t *testing.T) {
	got := parse(t, created+`{"type":"response.output_item.done","output_index":0,"item":{"type":"message","content":[{"type":"output_text","text":"x","annotations":[{"type":"url_citation","url":"https://a","title":"A","start_index":0,"end_index":1}]}]}}
		{"type":"response.completed","response":{"status":"completed","output":[],"usage":{"input_tokens":10,"input_tokens_details":{"cached_tokens":4},"output_tokens":6,"output_tokens_details":{"reasoning_tokens":2}}}}`)
	u := got.Reply.Usage
	want(t, "usage", fmt.Sprint(u.InputTotal, u.CacheRead, u.OutputTotal, u.Reasoning, u.CacheWrite), "10 4 6 2 -1")
	cited := got.Reply.Choices[0].Parts[0].Citations
	if len(cited) != 1 || cited[0].URL != "https://a" || cited[0].End != 1 {
		t.Errorf("citations: got %+v", cited)
	}
}

func TestWholeBodiesThatAreNoAnswerFail(t *testing.T) {
	for body, wanted := range map[string]string{
		`<html>`:         "error 502 upstream_invalid_response",
		`{"choices":[]}`: "error 502 upstream_invalid_response",
		`{"object":"response","status":"queued","output":[]}`:                                                                                                  "error 502 upstream_invalid_response",
		`{"error":{"code":"rate_limit_exceeded","message":"x"}}`:                                                                                               "error 429 rate_limit_exceeded",
		`{"object":"response","status":"failed","error":{"code":"server_error"},"output":[]}`:                                                                  "error 502 server_error",
		`{"status":"incomplete","incomplete_details":{"reason":"content_filter"},"output":[{"type":"message","content":[{"type":"output_text","text":"a"}]}]}`: "text(a) 4",
	} {
		w := &wellFormed{t: t, open: map[int]bool{}}
		responses.Shape.NewParser(1, newEnv()).Body([]byte(body), w.add)
		want(t, body, summary(&w.folder), wanted)
	}
}

func FuzzParser(f *testing.F) {
	f.Add(created + completed)
	f.Add(created + `{"type":"response.output_item.added","output_index":0,"item":{"type":"function_call","call_id":"c","name":"f"}}` + completed)
	f.Add(`{"type":"response.reasoning_text.delta","output_index":-3,"delta":"\ud83d"}` + completed)
	f.Fuzz(func(t *testing.T, stream string) {
		parse(t, stream)
		w := &wellFormed{t: t, open: map[int]bool{}}
		p := responses.Shape.NewParser(1, newEnv())
		e := responses.Shape.NewEmitter(&dialogue.Request{Model: "m"}, shapes.Stream, newEnv())
		var out []byte
		p.Body([]byte(stream), func(ev *dialogue.Event) {
			w.add(ev)
			out = e.Emit(out, ev)
		})
		if !p.Done() {
			t.Error("a whole body has no end")
		}
	})
}
