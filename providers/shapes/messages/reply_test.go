package messages

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"stagedoor/providers/dialogue"
	"stagedoor/providers/dialogue/dialoguetest"
	"stagedoor/providers/shapes"
)

// sse is an event with the name its data says.
func sse(data string) (name string, body []byte) {
	var v struct{ Type string }
	_ = json.Unmarshal([]byte(data), &v)
	return v.Type, []byte(data)
}

// parsed reads a stream and draws its events in one line.
func parsed(lines ...string) string {
	p := Shape.NewParser(1, newEnv())
	var out []string
	emit := func(ev *dialogue.Event) { out = append(out, draw(ev)) }
	for _, l := range lines {
		name, data := sse(l)
		p.Event(name, data, emit)
	}
	p.EOF(emit)
	return strings.Join(out, " ")
}

func draw(ev *dialogue.Event) string {
	switch ev.Kind {
	case dialogue.EventStart:
		return "start(" + ev.ID + ")"
	case dialogue.EventOpen:
		s := fmt.Sprintf("open%d", ev.Part)
		switch ev.PartKind {
		case dialogue.CallPart:
			return s + ":call(" + ev.Call.ID + "," + ev.Call.Name + ")"
		case dialogue.ThinkingPart:
			return s + ":thinking"
		case dialogue.ServerPart:
			return s + ":server"
		}
		return s + ":text"
	case dialogue.EventDelta:
		s := fmt.Sprintf("%d:%q", ev.Part, ev.Text)
		for _, c := range ev.Citations {
			s += fmt.Sprintf("[%s %d-%d]", c.URL, c.Start, c.End)
		}
		return s
	case dialogue.EventClose:
		s := fmt.Sprintf("close%d", ev.Part)
		if t := ev.Thinking; t != nil {
			s += "(" + t.Signature + t.Redacted + ")"
		}
		if len(ev.Opaque) > 0 {
			s += string(ev.Opaque)
		}
		return s
	case dialogue.EventUsage:
		return fmt.Sprintf("usage(%d,%d,%d)", ev.Usage.InputTotal, ev.Usage.CacheRead, ev.Usage.OutputTotal)
	case dialogue.EventFinish:
		return fmt.Sprintf("finish(%d%s%s)", ev.Reason, ev.StopSequence, ev.Detail)
	case dialogue.EventPing:
		return "ping"
	case dialogue.EventEnd:
		return "end"
	}
	return fmt.Sprintf("error(%d %s %s)", ev.Err.Status, ev.Err.Type, ev.Err.Message)
}

const (
	started  = `{"type":"message_start","message":{"id":"msg_1","model":"m","content":[],"usage":{"input_tokens":10,"cache_read_input_tokens":90,"output_tokens":1}}}`
	textOpen = `{"type":"content_block_start","index":0,"content_block":{"type":"text","text":""}}`
	stopped  = `{"type":"message_stop"}`
)

func delta(index int, d string) string {
	return fmt.Sprintf(`{"type":"content_block_delta","index":%d,"delta":%s}`, index, d)
}

func blockEnd(index int) string {
	return fmt.Sprintf(`{"type":"content_block_stop","index":%d}`, index)
}

func TestParserKeepsTheEventsWellFormed(t *testing.T) {
	ended := `{"type":"message_delta","delta":{"stop_reason":"end_turn"},"usage":{"output_tokens":7}}`
	tool := `{"type":"content_block_start","index":1,"content_block":{"type":"tool_use","id":"toolu_1","name":"f","input":{}}}`
	for _, c := range []struct {
		name  string
		lines []string
		want  string
	}{
		{"text", []string{started, `{"type":"ping"}`, textOpen, delta(0, `{"type":"text_delta","text":"a\n"}`),
			blockEnd(0), ended, stopped},
			`start(msg_1) usage(100,90,1) ping open0:text 0:"a\n" close0 usage(100,90,7) finish(0) end`},
		{"empty deltas are nothing", []string{started, textOpen, delta(0, `{"type":"text_delta","text":""}`),
			blockEnd(0), ended, stopped},
			`start(msg_1) usage(100,90,1) open0:text close0 usage(100,90,7) finish(0) end`},
		{"a call without arguments", []string{started, tool, delta(1, `{"type":"input_json_delta","partial_json":""}`),
			blockEnd(1), `{"type":"message_delta","delta":{"stop_reason":"tool_use"},"usage":{"output_tokens":7}}`,
			stopped},
			`start(msg_1) usage(100,90,1) open0:call(toolu_1,f) 0:"{}" close0 usage(100,90,7) finish(3) end`},
		{"a call makes end_turn a call", []string{started, tool, blockEnd(1), ended, stopped},
			`start(msg_1) usage(100,90,1) open0:call(toolu_1,f) 0:"{}" close0 usage(100,90,7) finish(3) end`},
		{"a call without input", []string{started, strings.Replace(tool, `"input":{}`, `"input":null`, 1),
			blockEnd(1), ended, stopped},
			`start(msg_1) usage(100,90,1) open0:call(toolu_1,f) 0:"{}" close0 usage(100,90,7) finish(3) end`},
		{"a call that came whole", []string{started, strings.Replace(tool, `"input":{}`, `"input":{"a":1}`, 1),
			blockEnd(1), ended, stopped},
			`start(msg_1) usage(100,90,1) open0:call(toolu_1,f) 0:"{\"a\":1}" close0 usage(100,90,7) finish(3) end`},
		{"a call that came twice", []string{started, strings.Replace(tool, `"input":{}`, `"input":{"a":1}`, 1),
			delta(1, `{"type":"input_json_delta","partial_json":"{\"a\":1}"}`), blockEnd(1), ended, stopped},
			`start(msg_1) usage(100,90,1) open0:call(toolu_1,f) 0:"{\"a\":1}" close0 usage(100,90,7) finish(3) end`},
		{"thinking", []string{started, `{"type":"content_block_start","index":0,"content_block":{"type":"thinking","thinking":"","signature":""}}`, delta(0, `{"type":"thinking_delta","thinking":"t"}`), delta(0, `{"type":"signature_delta","signature":"S"}`), delta(0, `{"type":"signature_delta","signature":"T"}`), blockEnd(0), ended, stopped},
			`start(msg_1) usage(100,90,1) open0:thinking 0:"t" close0(ST) usage(100,90,7) finish(0) end`},
		{"redacted thinking", []string{started, `{"type":"content_block_start","index":0,"content_block":{"type":"redacted_thinking","data":"D"}}`, blockEnd(0), ended, stopped},
			`start(msg_1) usage(100,90,1) open0:thinking close0(D) usage(100,90,7) finish(0) end`},
		{"a call without a name is the server's",
			[]string{started, `{"type":"content_block_start","index":0,"content_block":{"type":"tool_use","id":"t","input":{}}}`, blockEnd(0), `{"type":"message_delta","delta":{"stop_reason":"tool_use"},"usage":{"output_tokens":7}}`, stopped},
			`start(msg_1) usage(100,90,1) open0:server close0{"type":"tool_use","id":"t","input":{}} usage(100,90,7) finish(0) end`},
		{"server tools are the server's", []string{started,
			`{"type":"content_block_start","index":0,"content_block":{"type":"server_tool_use","id":"s","input":{}}}`,
			delta(0, `{"type":"input_json_delta","partial_json":"{\"q\":1}"}`), blockEnd(0), ended, stopped},
			`start(msg_1) usage(100,90,1) open0:server close0{"type":"server_tool_use","id":"s","input":{"q":1}} usage(100,90,7) finish(0) end`},
		{"citations are about the whole block", []string{started, textOpen,
			delta(0, `{"type":"citations_delta","citation":{"type":"web_search_result_location","url":"https://w"}}`),
			delta(0, `{"type":"text_delta","text":"åb"}`), blockEnd(0), ended, stopped},
			`start(msg_1) usage(100,90,1) open0:text 0:"åb" 0:""[https://w 0-2] close0 usage(100,90,7) finish(0) end`},
		{"a surrogate pair is joined", []string{started, textOpen, delta(0, `{"type":"text_delta","text":"go \ud83d"}`),
			delta(0, `{"type":"text_delta","text":"\ude80!"}`), blockEnd(0), ended, stopped},
			`start(msg_1) usage(100,90,1) open0:text 0:"go " 0:"🚀!" close0 usage(100,90,7) finish(0) end`},
		{"half a pair is replaced", []string{started, textOpen,
			delta(0, `{"type":"text_delta","text":"\\ud83d \ud83d"}`), blockEnd(0), ended, stopped},
			`start(msg_1) usage(100,90,1) open0:text 0:"\\ud83d " 0:"�" close0 usage(100,90,7) finish(0) end`},
		{"what is new is skipped", []string{started, `{"type":"future"}`, textOpen, delta(0,
			`{"type":"sparkle_delta"}`), delta(0, `{"type":"text_delta","text":"a"}`), blockEnd(0), ended, stopped},
			`start(msg_1) usage(100,90,1) open0:text 0:"a" close0 usage(100,90,7) finish(0) end`},
		{"a second message_delta erases nothing",
			[]string{started, `{"type":"message_delta","delta":{"stop_reason":"max_tokens"},"usage":{"output_tokens":30}}`, `{"type":"message_delta","delta":{},"usage":{}}`, stopped},
			`start(msg_1) usage(100,90,1) usage(100,90,30) finish(2) end`},
		{"null usage erases nothing", []string{started,
			`{"type":"message_delta","delta":{"stop_reason":"stop_sequence","stop_sequence":"X"},"usage":{"input_tokens":null,"output_tokens":-4}}`, stopped},
			`start(msg_1) usage(100,90,1) usage(100,90,1) finish(1X) end`},
		{"a refusal explains itself", []string{started,
			`{"type":"message_delta","delta":{"stop_reason":"refusal","stop_details":{"type":"refusal","explanation":"no"}}}`, stopped},
			`start(msg_1) usage(100,90,1) usage(100,90,1) finish(4no) end`},
		{"blocks left open are closed",
			[]string{started, textOpen, delta(0, `{"type":"text_delta","text":"a"}`), ended, stopped},
			`start(msg_1) usage(100,90,1) open0:text 0:"a" close0 usage(100,90,7) finish(0) end`},
		{"missing frames are made up", []string{delta(0, `{"type":"text_delta","text":"a"}`), stopped},
			`start() open0:text 0:"a" close0 finish(0) end`},
		{"nothing follows the end", []string{started, stopped, stopped, textOpen},
			`start(msg_1) usage(100,90,1) usage(100,90,1) finish(0) end`},
		{"an early end is a failure", []string{started, textOpen, delta(0, `{"type":"text_delta","text":"a"}`)},
			`start(msg_1) usage(100,90,1) open0:text 0:"a" error(502 api_error the upstream provider ended the reply before it was finished)`},
		{"an error event ends it", []string{started,
			`{"type":"error","error":{"type":"overloaded_error","message":"Overloaded"}}`, stopped},
			`start(msg_1) usage(100,90,1) error(529 overloaded_error Overloaded)`},
	} {
		t.Run(c.name, func(t *testing.T) {
			if got := parsed(c.lines...); got != c.want {
				t.Errorf("got  %s\nwant %s", got, c.want)
			}
		})
	}
}

func TestParserReadsWholeBodies(t *testing.T) {
	for body, want := range map[string]string{
		`{"id":"msg_1","type":"message","model":"m","content":[{"type":"text","text":"Both.","citations":[{"url":"https://w","type":"web_search_result_location"}]},{"type":"tool_use","id":"t","name":"f","input":{"id": 12345678901234567891}}],"stop_reason":"tool_use","usage":{"input_tokens":10,"output_tokens":5}}`: `start(msg_1) usage(10,-1,5) open0:text 0:"Both." 0:""[https://w 0-5] close0 open1:call(t,f) 1:"{\"id\": 12345678901234567891}" close1 usage(10,-1,5) finish(3) end`,
		`{"type":"error","error":{"type":"rate_limit_error","message":"slow"}}`: `error(429 rate_limit_error slow)`,
		`{"object":"list"}`: `error(502 api_error the upstream provider sent an invalid response)`,
		`<html>`:            `error(502 api_error the upstream provider sent an invalid response)`,
	} {
		var out []string
		p := Shape.NewParser(1, newEnv())
		p.Body([]byte(body), func(ev *dialogue.Event) { out = append(out, draw(ev)) })
		if got := strings.Join(out, " "); got != want || !p.Done() {
			t.Errorf("got  %s\nwant %s", got, want)
		}
	}
}

// emitted writes events in both modes.
func emitted(env *dialogue.Env, events []dialogue.Event) (stream, whole []byte) {
	req := &dialogue.Request{Model: "asked"}
	s, w := Shape.NewEmitter(req, shapes.Stream, env), Shape.NewEmitter(req, shapes.Whole, env)
	for i := range events {
		stream = s.Emit(stream, &events[i])
		whole = w.Emit(whole, &events[i])
	}
	return stream, whole
}

// script is a reply of parts that overlap, from another shape.
func script() []dialogue.Event {
	u := dialogue.NoUsage
	u.InputTotal, u.CacheRead, u.OutputTotal = 100, 40, 9
	return []dialogue.Event{
		{Kind: dialogue.EventStart, ID: "resp_1", Model: "up"},
		{Kind: dialogue.EventOpen, Part: 0, PartKind: dialogue.ThinkingPart},
		{Kind: dialogue.EventDelta, Part: 0, Text: "hm"},
		{Kind: dialogue.EventClose, Part: 0,
			Thinking: &dialogue.Thinking{Encrypted: "E", Origin: dialoguetest.Responses}},
		{Kind: dialogue.EventOpen, Part: 1, PartKind: dialogue.TextPart},
		{Kind: dialogue.EventClose, Part: 1},
		{Kind: dialogue.EventOpen, Part: 2, PartKind: dialogue.CallPart, Call: &dialogue.Call{ID: "a", Name: "f"}},
		{Kind: dialogue.EventOpen, Part: 3, PartKind: dialogue.CallPart, Call: &dialogue.Call{ID: "b", Name: "g"}},
		{Kind: dialogue.EventOpen, Part: 4, PartKind: dialogue.TextPart},
		{Kind: dialogue.EventDelta, Part: 3, Text: `{"z":`},
		{Kind: dialogue.EventDelta, Part: 2, Text: `{"c":`},
		{Kind: dialogue.EventPing},
		{Kind: dialogue.EventDelta, Part: 4, Text: "after",
			Citations: []dialogue.Citation{{URL: "https://w", Title: "W"}}},
		{Kind: dialogue.EventDelta, Part: 3, Text: `1}`},
		{Kind: dialogue.EventClose, Part: 4},
		{Kind: dialogue.EventClose, Part: 3, Signature: "SIG"},
		{Kind: dialogue.EventDelta, Part: 2, Text: `"Oslo"}`},
		{Kind: dialogue.EventClose, Part: 2},
		{Kind: dialogue.EventOpen, Part: 5, PartKind: dialogue.ServerPart, Origin: dialoguetest.Responses,
			Opaque: json.RawMessage(`{"type":"web_search_call"}`)},
		{Kind: dialogue.EventClose, Part: 5},
		{Kind: dialogue.EventOpen, Part: 6, PartKind: dialogue.ThinkingPart},
		{Kind: dialogue.EventClose, Part: 6,
			Thinking: &dialogue.Thinking{Redacted: "R", Origin: dialoguetest.Messages}},
		{Kind: dialogue.EventFinish, Reason: dialogue.ReasonStop},
		{Kind: dialogue.EventUsage, Usage: &u},
		{Kind: dialogue.EventEnd},
	}
}

func TestStreamAndWholeSayTheSame(t *testing.T) {
	stream, whole := emitted(newEnv(), script())
	folded := fold(t, string(stream))
	message := decoded(t, whole)
	for _, m := range []map[string]any{folded, message} {
		if id := m["id"].(string); !strings.HasPrefix(id, "msg_made") {
			t.Errorf("id %s", id)
		}
		delete(m, "id") // each emitter makes its own
	}
	if got, want := compact(t, folded), compact(t, message); got != want {
		t.Errorf("stream %s\nwhole  %s", got, want)
	}
	content := compact(t, folded["content"])
	seal := folded["content"].([]any)[0].(map[string]any)["signature"].(string)
	want := `[{"signature":"` + seal +
		`","thinking":"hm","type":"thinking"},{"id":"a","input":{"c":"Oslo"},"name":"f","type":"tool_use"},` +
		`{"id":"b","input":{"z":1},"name":"g","type":"tool_use"},{"citations":[{"cited_text":"","encrypted_index":"","title":"W","type":"web_search_result_location","url":"https://w"}],"text":"after","type":"text"},` +
		`{"data":"R","type":"redacted_thinking"}]`
	if content != want {
		t.Errorf("got  %s\nwant %s", content, want)
	}
	opened, ok := newEnv().Sealer.Open(seal)
	if !ok || opened.Encrypted != "E" || opened.Origin != dialoguetest.Responses {
		t.Errorf("seal holds %+v", opened)
	}
	if folded["stop_reason"] != "tool_use" || folded["model"] != "asked" {
		t.Errorf("got %v %v", folded["stop_reason"], folded["model"])
	}
	usage := folded["usage"].(map[string]any)
	if usage["input_tokens"] != 60.0 || usage["cache_read_input_tokens"] != 40.0 || usage["output_tokens"] != 9.0 {
		t.Errorf("usage %v", usage)
	}
}

// fold puts a stream together as the SDKs do, and checks the protocol.
func fold(t *testing.T, stream string) map[string]any {
	t.Helper()
	var message map[string]any
	var content []any
	open, input, ended := -1, "", false
	for _, event := range strings.Split(strings.TrimSuffix(stream, "\n\n"), "\n\n") {
		name, data, _ := strings.Cut(event, "\n")
		v := decoded(t, []byte(strings.TrimPrefix(data, "data: ")))
		if "event: "+v["type"].(string) != name || ended {
			t.Fatalf("out of place: %s", event)
		}
		index := -1
		if n, ok := v["index"].(float64); ok {
			index = int(n)
		}
		switch v["type"] {
		case "message_start":
			message = v["message"].(map[string]any)
		case "content_block_start":
			if open >= 0 || index != len(content) {
				t.Fatalf("block %d begins while %d is open, after %d", index, open, len(content))
			}
			open, input = index, ""
			content = append(content, v["content_block"])
		case "content_block_delta":
			if index != open {
				t.Fatalf("delta for %d while %d is open", index, open)
			}
			foldDelta(content[index].(map[string]any), v["delta"].(map[string]any), &input)
		case "content_block_stop":
			if block := content[index].(map[string]any); input != "" {
				block["input"] = decoded(t, []byte(input))
			}
			open = -1
		case "message_delta":
			for k, d := range v["delta"].(map[string]any) {
				message[k] = d
			}
			message["usage"] = v["usage"]
		case "message_stop":
			ended = true
		}
	}
	if !ended || open >= 0 {
		t.Fatalf("ended %v, open %d", ended, open)
	}
	message["content"] = content
	return message
}

func foldDelta(block, d map[string]any, input *string) {
	switch d["type"] {
	case "text_delta":
		block["text"] = block["text"].(string) + d["text"].(string)
	case "thinking_delta":
		block["thinking"] = block["thinking"].(string) + d["thinking"].(string)
	case "signature_delta":
		block["signature"] = d["signature"]
	case "input_json_delta":
		*input += d["partial_json"].(string)
	case "citations_delta":
		have, _ := block["citations"].([]any)
		block["citations"] = append(have, d["citation"])
	}
}

func TestThoughtSignaturesOfCallsAreRemembered(t *testing.T) {
	env := newEnv()
	emitted(env, script())
	if got, _ := env.RecallSignature("b"); got != "SIG" {
		t.Errorf("got %q", got)
	}
}

func TestWholeRepliesHaveEveryKey(t *testing.T) {
	_, whole := emitted(newEnv(), []dialogue.Event{{Kind: dialogue.EventStart},
		{Kind: dialogue.EventFinish, Reason: dialogue.ReasonLength}, {Kind: dialogue.EventEnd}})
	got := decoded(t, whole)
	for _, key := range []string{"id", "type", "role", "content", "model", "stop_reason", "stop_sequence", "stop_details", "usage", "container"} {
		if _, ok := got[key]; !ok {
			t.Errorf("%s is missing in %s", key, whole)
		}
	}
	if got["stop_reason"] != "max_tokens" || got["usage"].(map[string]any)["output_tokens"] != 1.0 {
		t.Errorf("got %s", whole)
	}
}

func TestRefusalsAreShownAndNamed(t *testing.T) {
	_, whole := emitted(newEnv(), []dialogue.Event{{Kind: dialogue.EventStart},
		{Kind: dialogue.EventOpen, PartKind: dialogue.RefusalPart},
		{Kind: dialogue.EventDelta, Text: "No."}, {Kind: dialogue.EventClose}, {Kind: dialogue.EventFinish},
		{Kind: dialogue.EventEnd}})
	got := decoded(t, whole)
	if got["stop_reason"] != "refusal" || compact(t, got["stop_details"]) != `{"explanation":"No.","type":"refusal"}` || !strings.Contains(string(whole), `"text":"No."`) {
		t.Errorf("got %s", whole)
	}
}

func TestAnErrorIsTheLastEvent(t *testing.T) {
	events := append(script()[:8], dialogue.Event{Kind: dialogue.EventError, Err: dialogue.Incomplete()},
		dialogue.Event{Kind: dialogue.EventEnd})
	stream, whole := emitted(newEnv(), events)
	last := string(stream[strings.LastIndex(string(stream), "event: "):])
	if !strings.HasPrefix(last, "event: error\ndata: {\"type\":\"error\",\"error\":{\"message\":") || strings.Contains(string(stream), "message_stop") {
		t.Errorf("got %s", stream)
	}
	if len(whole) > 0 {
		t.Errorf("whole mode wrote %s", whole)
	}
}

func TestFreeFormInputBecomesJSON(t *testing.T) {
	events := []dialogue.Event{{Kind: dialogue.EventStart},
		{Kind: dialogue.EventOpen, PartKind: dialogue.CallPart, Call: &dialogue.Call{ID: "a", Name: "p", Custom: true}},
		{Kind: dialogue.EventDelta, Text: "say \"x\"\n"}, {Kind: dialogue.EventDelta, Text: "+y"},
		{Kind: dialogue.EventClose}, {Kind: dialogue.EventFinish}, {Kind: dialogue.EventEnd}}
	stream, whole := emitted(newEnv(), events)
	want := `{"input":"say \"x\"\n+y"}`
	for _, got := range []map[string]any{fold(t, string(stream)), decoded(t, whole)} {
		if s := compact(t, got["content"].([]any)[0].(map[string]any)["input"]); s != want {
			t.Errorf("got %s, want %s", s, want)
		}
	}
}

func FuzzParser(f *testing.F) {
	for _, seed := range []string{started, textOpen, delta(0, `{"type":"text_delta","text":"\ud83d"}`), `{"type":"message_delta","delta":{"stop_reason":"x"}}`, stopped} {
		f.Add(started+"\n"+seed, seed)
	}
	f.Fuzz(func(t *testing.T, lines, body string) {
		env := newEnv()
		watch := &order{t: t}
		emitter := Shape.NewEmitter(&dialogue.Request{}, shapes.Stream, env)
		p := Shape.NewParser(1, env)
		var out []byte
		emit := func(ev *dialogue.Event) { watch.see(ev); out = emitter.Emit(out, ev) }
		for _, l := range strings.Split(lines, "\n") {
			name, data := sse(l)
			p.Event(name, data, emit)
		}
		p.EOF(emit)
		watch.end()
		for _, event := range strings.Split(string(out), "\n\n") {
			if _, data, ok := strings.Cut(event, "data: "); ok && !json.Valid([]byte(data)) {
				t.Errorf("wrote %q", event)
			}
		}
		p = Shape.NewParser(1, env)
		watch = &order{t: t}
		p.Body([]byte(body), watch.see)
		watch.end()
	})
}

// order checks that events are well formed in the sense of dialogue.EventKind.
type order struct {
	t                       *testing.T
	began, finished, closed bool
	open                    map[int]bool
}

func (o *order) see(ev *dialogue.Event) {
	if o.closed {
		o.t.Fatalf("%s after the end", draw(ev))
	}
	switch ev.Kind {
	case dialogue.EventStart:
		if o.began {
			o.t.Fatal("two starts")
		}
		o.began, o.open = true, map[int]bool{}
	case dialogue.EventOpen:
		if !o.began || o.finished || o.open[ev.Part] {
			o.t.Fatalf("%s out of place", draw(ev))
		}
		o.open[ev.Part] = true
	case dialogue.EventDelta:
		if !o.open[ev.Part] {
			o.t.Fatalf("%s out of place", draw(ev))
		}
	case dialogue.EventClose:
		if !o.open[ev.Part] {
			o.t.Fatalf("%s out of place", draw(ev))
		}
		delete(o.open, ev.Part)
	case dialogue.EventFinish:
		if len(o.open) > 0 || o.finished {
			o.t.Fatalf("%s out of place", draw(ev))
		}
		o.finished = true
	case dialogue.EventEnd, dialogue.EventError:
		o.closed = true
	}
}

func (o *order) end() {
	if !o.closed {
		o.t.Fatal("no end")
	}
}

// Strict clients refuse null, so text blocks without citations leave the member out.
func TestCitationsAreLeftOutWhereThereAreNone(t *testing.T) {
	for _, mode := range []shapes.Mode{shapes.Stream, shapes.Whole} {
		emitter := Shape.NewEmitter(&dialogue.Request{Inbound: Name}, mode, newEnv())
		var out []byte
		for _, ev := range []dialogue.Event{
			{Kind: dialogue.EventStart}, {Kind: dialogue.EventOpen, PartKind: dialogue.TextPart},
			{Kind: dialogue.EventDelta, Text: "a", Citations: []dialogue.Citation{{Title: "no address"}}},
			{Kind: dialogue.EventClose}, {Kind: dialogue.EventFinish}, {Kind: dialogue.EventEnd},
		} {
			out = emitter.Emit(out, &ev)
		}
		if text := string(out); strings.Contains(text, "citations") || !strings.Contains(text, `"text":"a"`) {
			t.Errorf("mode %d: %s", mode, text)
		}
	}
}
