package chat_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"github.com/tidwall/gjson"

	"stagedoor/providers/dialogue"
	"stagedoor/providers/dialogue/dialoguetest"
	"stagedoor/providers/shapes"
	"stagedoor/providers/shapes/chat"
)

func newEnv() *dialogue.Env { return dialoguetest.NewEnv(1_760_000_000, "id") }

// delta is a chunk of one choice.
func delta(d, finish string) string {
	return `{"id":"up","created":5,"model":"um","choices":[{"index":0,"delta":` + d + `,"finish_reason":` + finish +
		`}]}`
}

// parse runs a stream through the parser and checks that it is well formed.
func parse(t testing.TB, chunks []string, each func(*dialogue.Event)) *dialogue.ReplyBuilder {
	t.Helper()
	return drive(t, each, func(p shapes.Parser, emit func(*dialogue.Event)) {
		for _, c := range chunks {
			p.Event("", []byte(c), emit)
		}
		p.EOF(emit)
	})
}

func drive(t testing.TB, each func(*dialogue.Event),
	feed func(shapes.Parser, func(*dialogue.Event))) *dialogue.ReplyBuilder {
	t.Helper()
	p, f, check := chat.Shape.NewParser(1, newEnv()), new(dialogue.ReplyBuilder), order{t: t}
	feed(p, func(ev *dialogue.Event) {
		check.take(ev)
		copied := *ev
		if ev.Usage != nil {
			u := *ev.Usage
			copied.Usage = &u
		}
		f.Add(&copied)
		if each != nil {
			each(ev)
		}
	})
	if !p.Done() || check.ends != 1 {
		t.Errorf("done %v after %d ends", p.Done(), check.ends)
	}
	return f
}

// order checks the promises of dialogue.EventKind.
type order struct {
	t       testing.TB
	started bool
	ends    int
	open    map[[2]int]bool
	finish  map[int]bool
}

func (o *order) take(ev *dialogue.Event) {
	o.t.Helper()
	if o.open == nil {
		o.open, o.finish = map[[2]int]bool{}, map[int]bool{}
	}
	at := [2]int{ev.Choice, ev.Part}
	bad := o.ends > 0
	switch ev.Kind {
	case dialogue.EventStart:
		bad = bad || o.started
		o.started = true
	case dialogue.EventOpen:
		bad = bad || !o.started || o.open[at] || o.finish[ev.Choice]
		o.open[at] = true
	case dialogue.EventDelta:
		bad = bad || !o.open[at]
	case dialogue.EventClose:
		bad = bad || !o.open[at]
		delete(o.open, at)
	case dialogue.EventFinish:
		bad = bad || o.finish[ev.Choice] || len(o.open) > 0
		o.finish[ev.Choice] = true
	case dialogue.EventEnd:
		bad = bad || len(o.finish) == 0
		o.ends++
	case dialogue.EventError:
		o.ends++
	}
	if bad {
		o.t.Errorf("event %d of %v is out of order", ev.Kind, at)
	}
}

func TestParserUnderstandsSloppyStreams(t *testing.T) {
	const done = `[DONE]`
	rows := []struct {
		name   string
		chunks []string
		text   string // content, with thoughts in () and calls as [id name args]
		reason dialogue.Reason
	}{
		{"text", []string{delta(`{"role":"assistant","content":"a"}`, `null`), delta(`{"content":"b"}`, `""`),
			delta(`{}`, `"stop"`), done}, "ab", dialogue.ReasonStop},
		{"no done", []string{delta(`{"content":"a"}`, `"length"`)}, "a", dialogue.ReasonLength},
		{"done without finish", []string{delta(`{"content":"a"}`, `null`), done}, "a", dialogue.ReasonStop},
		{"empty first chunk", []string{`{"id":"","choices":[]}`, delta(`{"content":"a"}`, `"stop"`), done}, "a",
			dialogue.ReasonStop},
		{"reasoning then content in one chunk", []string{delta(`{"content":"c","reasoning_content":"r"}`, `"stop"`)},
			"(r)c", dialogue.ReasonStop},
		{"reasoning twice", []string{delta(`{"reasoning":"r","reasoning_content":"r"}`, `"stop"`)}, "(r)",
			dialogue.ReasonStop},
		{"reasoning by its short name", []string{delta(`{"reasoning":"r"}`, `"stop"`)}, "(r)", dialogue.ReasonStop},
		{"half a character", []string{delta(`{"content":"x\ud83d"}`, `null`), delta(`{"content":"\ude80y"}`, `"stop"`)},
			"x\U0001F680y", dialogue.ReasonStop},
		{"half a character alone", []string{delta(`{"content":"x\ud83d"}`, `null`), delta(`{}`, `"stop"`)}, "x\uFFFD",
			dialogue.ReasonStop},
		{"an escaped backslash is no half", []string{delta(`{"content":"x\\ud83d"}`, `null`),
			delta(`{"content":"y"}`, `"stop"`)}, `x\ud83dy`, dialogue.ReasonStop},
		{"interleaved calls", []string{
			delta(`{"tool_calls":[{"index":0,"id":"a","function":{"name":"f","arguments":""}}]}`, `null`),
			delta(`{"tool_calls":[{"index":1,"id":"b","function":{"name":"g","arguments":"{\"y\""}}]}`, `null`),
			delta(`{"tool_calls":[{"index":0,"function":{"arguments":"{\"x\":1}"}},{"index":1,"function":{"arguments":":2}"}}]}`, `"tool_calls"`)},
			`[a f {"x":1}][b g {"y":2}]`, dialogue.ReasonTool},
		{"calls without index", []string{
			delta(`{"tool_calls":[{"id":"a","function":{"name":"f","arguments":"{\"x\""}}]}`, `null`),
			delta(`{"tool_calls":[{"function":{"arguments":":1}"}}]}`, `null`),
			delta(`{"tool_calls":[{"id":"b","function":{"name":"g","arguments":"{}"}}]}`, `"stop"`)},
			`[a f {"x":1}][b g {}]`, dialogue.ReasonTool},
		{"every call is number 0", []string{
			delta(`{"tool_calls":[{"index":0,"id":"a","function":{"name":"f","arguments":"{}"}}]}`, `null`),
			delta(`{"tool_calls":[{"index":0,"id":"b","function":{"name":"g","arguments":"{}"}}]}`, `"tool_calls"`)},
			`[a f {}][b g {}]`, dialogue.ReasonTool},
		{"late id", []string{
			delta(`{"tool_calls":[{"index":0,"function":{"name":"f","arguments":"{\"x\""}}]}`, `null`),
			delta(`{"tool_calls":[{"index":0,"id":"a","function":{"name":"f","arguments":":1}"}}]}`, `"tool_calls"`)},
			`[a f {"x":1}]`, dialogue.ReasonTool},
		{"no id at all", []string{delta(`{"tool_calls":[{"index":0,"function":{"name":"f","arguments":"{}"}}]}`,
			`"tool_calls"`)},
			`[call_id1 f {}]`, dialogue.ReasonTool},
		{"index gap and broken arguments", []string{delta(`{"tool_calls":[{"index":7,"id":"a","function":{"name":"f","arguments":"{\"x"}}]}`, `"length"`)},
			`[a f {"x]`, dialogue.ReasonLength},
		{"no arguments", []string{delta(`{"tool_calls":[{"index":0,"id":"a","function":{"name":"f"}}]}`,
			`"tool_calls"`)}, `[a f {}]`, dialogue.ReasonTool},
		{"object arguments", []string{delta(`{"tool_calls":[{"index":0,"id":"a","function":{"name":"f","arguments":{"x":1}}}]}`, `"tool_calls"`)}, `[a f {"x":1}]`, dialogue.ReasonTool},
		{"nameless call", []string{delta(`{"content":"a","tool_calls":[{"index":0,"id":"a"}]}`, `"tool_calls"`)}, `a`,
			dialogue.ReasonStop},
		{"text after a call", []string{
			delta(`{"content":"One."}`, `null`),
			delta(`{"tool_calls":[{"index":0,"id":"a","function":{"name":"f","arguments":"{\"x\":1}"}}]}`, `null`),
			delta(`{"content":"Two."}`, `"tool_calls"`)}, `One.[a f {"x":1}]Two.`, dialogue.ReasonTool},
		{"function_call", []string{delta(`{"function_call":{"name":"f","arguments":"{"}}`, `null`),
			delta(`{"function_call":{"arguments":"}"}}`, `"function_call"`)}, `[call_id1 f {}]`, dialogue.ReasonTool},
		{"unknown reason", []string{delta(`{"content":"a"}`, `"cosmic_ray"`)}, "a", dialogue.ReasonOther},
		{"two finishes", []string{delta(`{"content":"a"}`, `"stop"`), delta(`{"content":"b"}`, `"length"`), done, done},
			"a", dialogue.ReasonStop},
		{"refusal", []string{delta(`{"refusal":"no"}`, `"stop"`)}, "!no", dialogue.ReasonStop},
		{"content parts", []string{delta(`{"content":[{"type":"thinking","thinking":[{"type":"text","text":"r"}]},{"type":"text","text":"c"}]}`, `"stop"`)}, "(r)c", dialogue.ReasonStop},
	}
	for _, row := range rows {
		t.Run(row.name, func(t *testing.T) {
			f := parse(t, row.chunks, nil)
			if f.Err != nil {
				t.Fatal(f.Err)
			}
			if got := show(f.Reply.Choices[0]); got != row.text {
				t.Errorf("got %q, want %q", got, row.text)
			}
			if got := f.Reply.Choices[0].Reason; got != row.reason {
				t.Errorf("got reason %d, want %d", got, row.reason)
			}
		})
	}
}

func show(c *dialogue.Choice) string {
	var b strings.Builder
	for _, p := range c.Parts {
		switch p.Kind {
		case dialogue.ThinkingPart:
			b.WriteString("(" + p.Text + ")")
		case dialogue.RefusalPart:
			b.WriteString("!" + p.Text)
		case dialogue.CallPart:
			fmt.Fprintf(&b, "[%s %s %s]", p.Call.ID, p.Call.Name, p.Call.Args)
		default:
			b.WriteString(p.Text)
		}
	}
	return b.String()
}

func TestParserNeverMakesASuccessOfAFailure(t *testing.T) {
	rows := []struct {
		name   string
		chunks []string
		status int
		code   any
	}{
		{"nothing", nil, 502, "upstream_incomplete"},
		{"early end", []string{delta(`{"content":"half"}`, `null`)}, 502, "upstream_incomplete"},
		{"done alone", []string{`[DONE]`}, 502, "upstream_incomplete"},
		{"error object", []string{delta(`{"content":"half"}`, `null`),
			`{"error":{"message":"slow down","type":"rate_limit_error","param":null,"code":null}}`}, 429, nil},
		{"error with a number", []string{`{"error":{"message":"gone","code":404}}`}, 404, json.RawMessage("404")},
		{"error text", []string{`{"error":"broke"}`}, 502, nil},
		{"no JSON", []string{`<html>`}, 502, "upstream_invalid_response"},
	}
	for _, row := range rows {
		t.Run(row.name, func(t *testing.T) {
			f := parse(t, row.chunks, nil)
			if f.Err == nil || f.Err.Status != row.status || fmt.Sprint(f.Err.Code) != fmt.Sprint(row.code) {
				t.Errorf("got %+v, want %d %v", f.Err, row.status, row.code)
			}
		})
	}
}

func TestUsageAfterTheFinishCounts(t *testing.T) {
	f := parse(t, []string{delta(`{"content":"a"}`, `"stop"`),
		`{"choices":[],"usage":{"prompt_tokens":100,"completion_tokens":70,"prompt_tokens_details":{"cached_tokens":80},"completion_tokens_details":{"reasoning_tokens":50}}}`, `[DONE]`}, nil)
	u := f.Reply.Usage
	if u.InputTotal != 100 || u.OutputTotal != 70 || u.CacheRead != 80 || u.Reasoning != 50 {
		t.Errorf("got %+v", u)
	}
}

// say plays a stream of this shape through parser and emitter.
func say(t testing.TB, req *dialogue.Request, mode shapes.Mode, chunks ...string) string {
	t.Helper()
	em := chat.Shape.NewEmitter(req, mode, newEnv())
	var out []byte
	parse(t, chunks, func(ev *dialogue.Event) { out = em.Emit(out, ev) })
	return string(out)
}

var talk = []string{
	delta(`{"role":"assistant","content":""}`, `null`),
	delta(`{"reasoning_content":"hm"}`, `null`),
	delta(`{"content":"caf\u00e9 "}`, `null`),
	delta(`{"tool_calls":[{"index":3,"id":"a","type":"function","function":{"name":"f","arguments":""}}]}`, `null`),
	delta(`{}`, `"tool_calls"`),
	`{"choices":[],"usage":{"prompt_tokens":1,"completion_tokens":2,"total_tokens":3}}`,
	`[DONE]`,
}

func TestStreamedAndWholeSayTheSame(t *testing.T) {
	whole := gjson.Parse(say(t, &dialogue.Request{Model: "m"}, shapes.Whole, talk...))
	for path, want := range map[string]string{
		"object": "chat.completion", "model": "m", "choices.0.message.role": "assistant",
		"choices.0.message.content":           "café ",
		"choices.0.message.reasoning_content": "hm", "choices.0.message.tool_calls.0.function.arguments": "{}",
		"choices.0.message.tool_calls.0.id": "a", "choices.0.finish_reason": "tool_calls", "usage.total_tokens": "3",
	} {
		if got := whole.Get(path).String(); got != want {
			t.Errorf("%s: got %q, want %q", path, got, want)
		}
	}
	events := strings.Split(strings.TrimSpace(say(t, &dialogue.Request{Model: "m", IncludeUsage: true}, shapes.Stream,
		talk...)), "\n\n")
	if last := events[len(events)-1]; last != "data: [DONE]" {
		t.Fatalf("ends with %q", last)
	}
	content, args, thought, role, finish, usage := "", "", "", 0, "", 0
	for _, e := range events[:len(events)-1] {
		v := gjson.Parse(strings.TrimPrefix(e, "data: "))
		if !gjson.Valid(v.Raw) || v.Get("object").String() != "chat.completion.chunk" || !v.Get("choices").IsArray() || v.Get("error").Exists() {
			t.Fatalf("chunk %s", e)
		}
		d := v.Get("choices.0.delta")
		content += d.Get("content").String()
		thought += d.Get("reasoning_content").String()
		args += d.Get("tool_calls.0.function.arguments").String()
		finish += v.Get("choices.0.finish_reason").String()
		if d.Get("role").Exists() {
			role++
		}
		if v.Get("usage").IsObject() {
			usage++
		}
		if i := d.Get("tool_calls.0.index"); i.Exists() && i.Int() != 0 {
			t.Errorf("tool index %d", i.Int())
		}
	}
	if content != "café " || thought != "hm" || args != "{}" || role != 1 || finish != "tool_calls" || usage != 1 {
		t.Errorf("got %q %q %q role %d %q usage %d", content, thought, args, role, finish, usage)
	}
}

func TestUsageIsNotSentUnasked(t *testing.T) {
	if out := say(t, &dialogue.Request{Model: "m"}, shapes.Stream, talk...); strings.Contains(out, "usage") {
		t.Errorf("got %s", out)
	}
}

func TestSourcesWithoutAddressHaveNoAnnotation(t *testing.T) {
	written := func(mode shapes.Mode, sources ...dialogue.Citation) (out []byte) {
		em := chat.Shape.NewEmitter(&dialogue.Request{Model: "m"}, mode, newEnv())
		for _, ev := range []dialogue.Event{
			{Kind: dialogue.EventStart, ID: "up", Model: "m"},
			{Kind: dialogue.EventOpen, PartKind: dialogue.TextPart},
			{Kind: dialogue.EventDelta, Text: "a", Citations: sources},
			{Kind: dialogue.EventClose},
			{Kind: dialogue.EventFinish},
			{Kind: dialogue.EventEnd},
		} {
			out = em.Emit(out, &ev)
		}
		return out
	}
	document := dialogue.Citation{Title: "a document of the client", CitedText: "t", Origin: dialoguetest.Messages}
	page := dialogue.Citation{Title: "a page", URL: "https://example.com"}
	for _, mode := range []shapes.Mode{shapes.Whole, shapes.Stream} {
		if out := written(mode, document); bytes.Contains(out, []byte("url_citation")) {
			t.Errorf("got %s", out)
		}
		if out := written(mode, document, page); bytes.Count(out, []byte(`"type":"url_citation"`)) != 1 {
			t.Errorf("got %s", out)
		}
	}
}

func TestFailedStreamHasNoDone(t *testing.T) {
	out := say(t, &dialogue.Request{Model: "m"}, shapes.Stream, talk[:3]...)
	if !strings.Contains(out, `data: {"error":{"message":`) || strings.Contains(out, "[DONE]") || strings.Contains(out, `"finish_reason":"`) {
		t.Errorf("got %s", out)
	}
}

func TestLegacyClientsGetFunctionCalls(t *testing.T) {
	req := &dialogue.Request{Model: "m", LegacyFunctions: true}
	whole := gjson.Parse(say(t, req, shapes.Whole, talk...))
	if got := whole.Get("choices.0.message.function_call.name").String(); got != "f" || whole.Get("choices.0.finish_reason").String() != "function_call" {
		t.Errorf("got %s", whole.Raw)
	}
	if out := say(t, req, shapes.Stream, talk...); strings.Contains(out, "tool_calls") || !strings.Contains(out, `"function_call":{"arguments":"{}"}`) {
		t.Errorf("got %s", out)
	}
}

func TestCustomToolsGetTheirInputUnwrapped(t *testing.T) {
	req := &dialogue.Request{Model: "m", Tools: []dialogue.Tool{{Kind: dialogue.CustomTool, Name: "f"}}}
	chunks := []string{delta(`{"tool_calls":[{"index":0,"id":"a","function":{"name":"f","arguments":"{\"input\":\"se"}}]}`, `null`),
		delta(`{"tool_calls":[{"index":0,"function":{"arguments":"lect\"}"}}]}`, `"tool_calls"`)}
	if got := gjson.Get(say(t, req, shapes.Whole, chunks...), "choices.0.message.tool_calls.0.custom.input").String(); got != "select" {
		t.Errorf("got %q", got)
	}
	if out := say(t, req, shapes.Stream, chunks...); !strings.Contains(out, `"custom":{"input":"select"}`) {
		t.Errorf("got %s", out)
	}
}

// Every streamed piece of a call has its function, which clients that check chunks against a schema require,
// also the piece with the signature alone.
func TestEveryPieceOfACallHasItsFunction(t *testing.T) {
	em := chat.Shape.NewEmitter(&dialogue.Request{Model: "m"}, shapes.Stream, newEnv())
	var out []byte
	for _, ev := range []*dialogue.Event{
		{Kind: dialogue.EventStart},
		{Kind: dialogue.EventOpen, PartKind: dialogue.CallPart, Call: &dialogue.Call{ID: "c", Name: "f"}},
		{Kind: dialogue.EventDelta, Text: `{"a":1}`}, {Kind: dialogue.EventClose, Signature: "g3"},
		{Kind: dialogue.EventFinish, Reason: dialogue.ReasonTool}, {Kind: dialogue.EventEnd},
	} {
		out = em.Emit(out, ev)
	}
	pieces, signed := 0, 0
	for line := range strings.Lines(string(out)) {
		call := gjson.Get(strings.TrimPrefix(line, "data: "), "choices.0.delta.tool_calls.0")
		if !call.Exists() {
			continue
		}
		pieces++
		if call.Get("extra_content").Exists() {
			signed++
		}
		if call.Get("function.arguments").Type != gjson.String {
			t.Errorf("a piece without its function: %s", call.Raw)
		}
	}
	if pieces < 2 || signed != 1 {
		t.Errorf("%d pieces, %d signed: %s", pieces, signed, out)
	}
}

func TestSealedThoughtsComeBack(t *testing.T) {
	env := newEnv()
	events := []*dialogue.Event{
		{Kind: dialogue.EventStart},
		{Kind: dialogue.EventOpen, PartKind: dialogue.ThinkingPart},
		{Kind: dialogue.EventDelta, Text: "secret "}, {Kind: dialogue.EventDelta, Text: "plan"},
		{Kind: dialogue.EventClose, Thinking: &dialogue.Thinking{Signature: "sig", Origin: dialoguetest.Messages}},
		{Kind: dialogue.EventOpen, Part: 1, PartKind: dialogue.CallPart, Call: &dialogue.Call{ID: "c", Name: "f"}},
		{Kind: dialogue.EventClose, Part: 1, Signature: "g3"},
		{Kind: dialogue.EventFinish, Reason: dialogue.ReasonTool}, {Kind: dialogue.EventEnd},
	}
	em := chat.Shape.NewEmitter(&dialogue.Request{Model: "m"}, shapes.Whole, env)
	var out []byte
	for _, ev := range events {
		out = em.Emit(out, ev)
	}
	message := gjson.GetBytes(out, "choices.0.message").Raw
	body := saying(`{"role":"user","content":"x"},` + message + `,{"role":"tool","tool_call_id":"c","content":"r"}`)
	if _, err := chat.Shape.Check([]byte(body), shapes.Params{}); err != nil {
		t.Fatal(err)
	}
	req, err := chat.Shape.Decode([]byte(body), shapes.Params{}, env)
	if err != nil {
		t.Fatal(err)
	}
	parts := req.Turns[1].Parts
	if th := parts[0].Thinking; th == nil || th.Text != "secret plan" || th.Signature != "sig" || th.Origin != dialoguetest.Messages {
		t.Errorf("got %+v", th)
	}
	if c := parts[len(parts)-1].Call; c == nil || c.Signature != "g3" {
		t.Errorf("got %+v", c)
	}
	// The carrier of another gateway is dropped, and said so.
	forged := strings.Replace(body, "sd1.", "sd1.x", 1)
	req, err = chat.Shape.Decode([]byte(forged), shapes.Params{}, env)
	if err != nil || len(req.Lost) != 1 || req.Turns[1].Parts[0].Thinking.Signature != "" {
		t.Errorf("got %+v, %v", req.Lost, err)
	}
	// And no upstream of this shape sees it.
	rep := new(dialogue.Report)
	call, _ := chat.Shape.Patch([]byte(body), shapes.Params{}, shapes.Head{Model: "m", N: 1},
		dialogue.Target{Model: "m"}, rep, env)
	if strings.Contains(string(call.Body), "sd1.") || !json.Valid(call.Body) || rep.Header() != "reasoning_details" {
		t.Errorf("got %s, %s", call.Body, rep.Header())
	}
}

// A vendor wants the proof of a text back on this text. The shape has it apart from the text.
func TestTheProofOfATextStandsBehindIt(t *testing.T) {
	for _, mode := range []shapes.Mode{shapes.Whole, shapes.Stream} {
		env := newEnv()
		em := chat.Shape.NewEmitter(&dialogue.Request{Model: "m"}, mode, env)
		var out []byte
		for _, ev := range []*dialogue.Event{
			{Kind: dialogue.EventStart},
			{Kind: dialogue.EventOpen, PartKind: dialogue.ThinkingPart},
			{Kind: dialogue.EventDelta, Text: "plan"},
			{Kind: dialogue.EventClose, Thinking: &dialogue.Thinking{Signature: "S", Origin: dialoguetest.Gemini}},
			{Kind: dialogue.EventOpen, Part: 1, PartKind: dialogue.TextPart},
			{Kind: dialogue.EventDelta, Part: 1, Text: "words"},
			{Kind: dialogue.EventClose, Part: 1, Signature: "T", Origin: dialoguetest.Gemini},
			{Kind: dialogue.EventFinish}, {Kind: dialogue.EventEnd},
		} {
			out = em.Emit(out, ev)
		}
		details := gjson.GetBytes(out, "choices.0.message.reasoning_details").Raw
		if mode == shapes.Stream {
			details = "["
			for _, chunk := range strings.Split(string(out), "data: ") {
				entries := gjson.Get(chunk, "choices.0.delta.reasoning_details").Raw
				details += strings.Trim(entries, "[]") + strings.Repeat(",", min(len(entries), 1))
			}
			details = strings.TrimSuffix(details, ",") + "]"
		}
		req, err := chat.Shape.Decode([]byte(saying(`{"role":"user","content":"x"},{"role":"assistant",`+
			`"reasoning_details":`+details+`,"content":"words"}`)), shapes.Params{}, env)
		if err != nil {
			t.Fatal(err)
		}
		parts := req.Turns[1].Parts
		if len(parts) != 3 || parts[0].Thinking == nil || parts[0].Thinking.Signature != "S" ||
			parts[1].Text != "words" || parts[2].Thinking == nil || parts[2].Thinking.Signature != "T" {
			t.Errorf("mode %d, %s: %+v", mode, details, parts)
		}
	}
}

// LangChain sends calls back without the reasoning that came with them. It is found by the id of the call, if
// what the client has kept of it is still the same.
func TestReasoningIsRecalledForClientsThatDropIt(t *testing.T) {
	proven := dialogue.Thinking{Text: "plan", Signature: "S", Origin: dialoguetest.Messages}
	for _, mode := range []shapes.Mode{shapes.Whole, shapes.Stream} {
		env := newEnv()
		em := chat.Shape.NewEmitter(&dialogue.Request{Model: "m"}, mode, env)
		for _, ev := range []*dialogue.Event{
			{Kind: dialogue.EventStart},
			{Kind: dialogue.EventOpen, PartKind: dialogue.ThinkingPart},
			{Kind: dialogue.EventDelta, Text: "plan"},
			{Kind: dialogue.EventClose, Thinking: &proven},
			{Kind: dialogue.EventOpen, Part: 1, PartKind: dialogue.CallPart, Call: &dialogue.Call{ID: "c", Name: "f"}},
			{Kind: dialogue.EventClose, Part: 1},
			{Kind: dialogue.EventFinish, Reason: dialogue.ReasonTool}, {Kind: dialogue.EventEnd},
		} {
			em.Emit(nil, ev)
		}
		for sent, want := range map[string]dialogue.Thinking{
			``:                             proven,
			`"reasoning_content":"plan",`:  proven,
			`"reasoning_content":"other",`: {Text: "other"},
		} {
			body := saying(`{"role":"user","content":"x"},{"role":"assistant",` + sent +
				`"tool_calls":[{"id":"c","type":"function","function":{"name":"f","arguments":"{}"}}]},` +
				`{"role":"tool","tool_call_id":"c","content":"r"}`)
			req, err := chat.Shape.Decode([]byte(body), shapes.Params{}, env)
			if err != nil {
				t.Fatal(err)
			}
			if parts := req.Turns[1].Parts; len(parts) != 2 || *parts[0].Thinking != want {
				t.Errorf("mode %d, %s: %+v", mode, sent, parts)
			}
			if req, _ := chat.Shape.Decode([]byte(body), shapes.Params{}, newEnv()); sent == "" && len(req.Turns[1].Parts) != 1 {
				t.Errorf("mode %d: another gateway knows %+v", mode, req.Turns[1].Parts)
			}
		}
	}
}

// A client may repeat the id of a call in one message and in many.
func TestThoughtsOfARepeatedCallAreRecalledOnce(t *testing.T) {
	env := newEnv()
	env.RememberThoughts("c", []dialogue.Thinking{{Text: "a"}, {Text: "b"}})
	env.RememberThoughts("d", []dialogue.Thinking{{Text: "c"}})
	const call = `{"id":"c","type":"function","function":{"name":"f","arguments":"{}"}}`
	other := strings.Replace(call, `"c"`, `"d"`, 1)
	for sent, want := range map[string]int{``: 3, `"reasoning":"abc",`: 3, `"reasoning":"ab",`: 1, `"reasoning":"abcd",`: 1} {
		message := `{"role":"assistant",` + sent + `"tool_calls":[` + call + `,` + call + `,` + other + `]}`
		body := saying(`{"role":"user","content":"x"},` + message + `,{"role":"user","content":"x"},` +
			strings.Replace(message, sent, "", 1))
		req, err := chat.Shape.Decode([]byte(body), shapes.Params{}, env)
		if err != nil {
			t.Fatal(err)
		}
		if first, second := len(req.Turns[1].Parts)-3, len(req.Turns[3].Parts)-3; first != want || second != 0 {
			t.Errorf("%s: %d thoughts in the first message and %d in the second", sent, first, second)
		}
	}
}

func TestPiecesOfReasoningDetailsGoBackAsOneEntry(t *testing.T) {
	piece := func(rest string) string {
		return delta(`{"reasoning_details":[{"type":"reasoning.text",`+rest+`,"format":"f","index":0}]}`, `null`)
	}
	f := parse(t, []string{piece(`"text":"Look 🚀\ud83d"`), piece(`"text":"\ude80 it up.","signature":null`),
		piece(`"signature":"S/1"`), piece(`"text":"Next.","signature":"S2"`),
		delta(`{"reasoning_details":[{"type":"reasoning.encrypted","data":"D"}],"content":"c"}`, `"stop"`)}, nil)
	th := f.Reply.Choices[0].Parts[0].Thinking
	const want = `[{"type":"reasoning.text","text":"Look 🚀🚀 it up.","format":"f","index":0,"signature":"S/1"},` +
		`{"type":"reasoning.text","text":"Next.","signature":"S2","format":"f","index":0},` +
		`{"type":"reasoning.encrypted","data":"D"}]`
	if th == nil || th.Encrypted != want || th.Text != "Look 🚀🚀 it up.Next." {
		t.Errorf("got  %+v\nwant %s", th, want)
	}
}

func TestDetailsOfAnUpstreamGoBackToIt(t *testing.T) {
	env := newEnv()
	const details = `{"type":"reasoning.encrypted","data":"opaque","index":0}`
	f := parse(t, []string{delta(`{"reasoning_details":[{"type":"reasoning.text","text":"hm","index":0},`+details+`]}`,
		`null`), delta(`{"content":"c"}`, `"stop"`)}, nil)
	th := f.Reply.Choices[0].Parts[0].Thinking
	if th.Text != "hm" || th.Origin != dialoguetest.Chat {
		t.Fatalf("got %+v", th)
	}
	req := &dialogue.Request{Inbound: dialoguetest.Messages,
		Turns: []dialogue.Turn{{Role: dialogue.User, Parts: []dialogue.Part{{Text: "q"}}},
			{Role: dialogue.Assistant, Parts: []dialogue.Part{{Kind: dialogue.ThinkingPart, Thinking: th},
				{Text: "c"}}}}}
	env.RememberProof(th.Encrypted, "other", "m")
	for name, row := range map[string]struct {
		takes     dialogue.ReasoningContent
		own, want bool
	}{
		"taken":                    {dialogue.ReasoningTaken, false, true},
		"reasoning_content is not": {dialogue.ReasoningRefused, false, true},
		"refused by this target":   {dialogue.ReasoningTaken, true, false},
	} {
		target := dialogue.Target{Provider: "p", Model: "m", OwnReasoning: row.own,
			Caps: dialogue.Capabilities{ReasoningContent: row.takes}}
		rep := new(dialogue.Report)
		call, err := chat.Shape.Encode(req, target, rep, env)
		if err != nil || strings.Contains(string(call.Body), details) != row.want || (rep.Header() == "") != row.want {
			t.Errorf("%s, translated: got %s, %v, losses %q", name, call.Body, err, rep.Header())
		}
		refused := row.takes == dialogue.ReasoningRefused
		if strings.Contains(string(call.Body), "reasoning_content") == refused {
			t.Errorf("%s, translated: got %s", name, call.Body)
		}
		body := saying(`{"role":"user","content":"q"},{"role":"assistant","content":"c","reasoning_content":"hm",` +
			`"reasoning_details":[` + details + `]}`)
		head, err := chat.Shape.Check([]byte(body), shapes.Params{})
		if err != nil {
			t.Fatal(err)
		}
		call, err = chat.Shape.Patch([]byte(body), shapes.Params{}, head, target, new(dialogue.Report), env)
		if err != nil || strings.Contains(string(call.Body), details) != row.want ||
			strings.Contains(string(call.Body), "reasoning_content") == refused {
			t.Errorf("%s, untouched: got %s, %v", name, call.Body, err)
		}
	}
}

func FuzzParser(f *testing.F) {
	for _, c := range talk {
		f.Add([]byte(c), []byte(talk[3]))
	}
	f.Add([]byte(`{"choices":[{"index":-1,"delta":{"tool_calls":[null,{"index":1e99}]}}]}`), []byte(`{"choices":{}}`))
	f.Fuzz(func(t *testing.T, a, b []byte) {
		for _, mode := range []shapes.Mode{shapes.Stream, shapes.Whole} {
			em := chat.Shape.NewEmitter(&dialogue.Request{Model: "m", IncludeUsage: true}, mode, newEnv())
			var out []byte
			f := drive(t, func(ev *dialogue.Event) { out = em.Emit(out, ev) },
				func(p shapes.Parser, emit func(*dialogue.Event)) {
					p.Event("", a, emit)
					p.Event("", b, emit)
					p.EOF(emit)
				})
			if mode == shapes.Whole && f.Err == nil && !json.Valid(out) {
				t.Fatalf("wrote %s", out)
			}
			for _, e := range strings.Split(string(out), "\n\n") {
				if data, ok := strings.CutPrefix(e, "data: "); ok && data != "[DONE]" && !json.Valid([]byte(data)) {
					t.Fatalf("wrote %s", e)
				}
			}
		}
		drive(t, nil, func(p shapes.Parser, emit func(*dialogue.Event)) { p.Body(a, emit); p.EOF(emit) })
	})
}

func BenchmarkDelta(b *testing.B) {
	env := newEnv()
	p, em := chat.Shape.NewParser(1, env), chat.Shape.NewEmitter(&dialogue.Request{Model: "m"}, shapes.Stream, env)
	data := []byte(`{"id":"chatcmpl-1","object":"chat.completion.chunk","created":1760000000,"model":"gpt-5.1","choices":[{"index":0,"delta":{"content":" the quick brown fox"},"logprobs":null,"finish_reason":null}],"usage":null}`)
	out := make([]byte, 0, 4096)
	emit := func(ev *dialogue.Event) { out = em.Emit(out[:0], ev) }
	b.ReportAllocs()
	for b.Loop() {
		p.Event("", data, emit)
	}
}
