package chat_test

import (
	"bytes"
	"encoding/json"
	"errors"
	"reflect"
	"strings"
	"testing"

	"github.com/go-json-experiment/json/jsontext"
	"github.com/tidwall/gjson"

	"stagedoor/providers/dialogue"
	"stagedoor/providers/dialogue/dialoguetest"
	"stagedoor/providers/shapes"
	"stagedoor/providers/shapes/chat"
	"stagedoor/providers/shapes/registry"
)

var able = dialogue.Target{Model: "up", Shape: dialoguetest.Chat,
	Caps: dialogue.Capabilities{StructuredOutputs: true, Thinking: dialogue.ThinkingImplicit}}

func encoded(t *testing.T, req *dialogue.Request) (gjson.Result, *dialogue.Report) {
	t.Helper()
	return encodedFor(t, req, able)
}

func encodedFor(t *testing.T, req *dialogue.Request, target dialogue.Target) (gjson.Result, *dialogue.Report) {
	t.Helper()
	rep := new(dialogue.Report)
	if d := registry.Describe(req.Inbound); d != nil {
		req.Traits = d.Traits
	}
	call, err := chat.Shape.Encode(req, target, rep, newEnv())
	if err != nil {
		t.Fatal(err)
	}
	if !json.Valid(call.Body) {
		t.Fatalf("wrote %s", call.Body)
	}
	return gjson.ParseBytes(call.Body), rep
}

func user(parts ...dialogue.Part) dialogue.Turn {
	return dialogue.Turn{Role: dialogue.User, Parts: parts}
}

func assistant(parts ...dialogue.Part) dialogue.Turn {
	return dialogue.Turn{Role: dialogue.Assistant, Parts: parts}
}

func call(id, name string) dialogue.Part {
	return dialogue.Part{Kind: dialogue.CallPart, Call: &dialogue.Call{ID: id, Name: name}}
}

func result(id string, parts ...dialogue.Part) dialogue.Part {
	return dialogue.Part{Kind: dialogue.ResultPart, Result: &dialogue.Result{CallID: id, Parts: parts}}
}

func text(s string) dialogue.Part { return dialogue.Part{Text: s} }

var picture = dialogue.Part{Kind: dialogue.MediaPart,
	Media: &dialogue.Media{Kind: dialogue.Image, MIME: "image/png", Base64: "AAAA"}}

// brief writes messages as role:text lines, ids of calls in [].
func brief(messages gjson.Result) string {
	var lines []string
	messages.ForEach(func(_, m gjson.Result) bool {
		line := m.Get("role").String() + ":"
		if c := m.Get("content"); c.IsArray() {
			c.ForEach(func(_, p gjson.Result) bool {
				line += "<" + p.Get("type").String() + ">"
				return true
			})
		} else {
			line += c.String()
		}
		m.Get("tool_calls").ForEach(func(_, v gjson.Result) bool {
			line += "[" + v.Get("id").String() + "]"
			return true
		})
		if id := m.Get("tool_call_id"); id.Exists() {
			line += "=" + id.String()
		}
		lines = append(lines, line)
		return true
	})
	return strings.Join(lines, " | ")
}

func TestAnswersFollowTheirCalls(t *testing.T) {
	rows := []struct {
		name  string
		turns []dialogue.Turn
		want  string
	}{
		{"text before results", []dialogue.Turn{assistant(call("a", "f"), call("b", "g")),
			user(text("and?"), result("b", text("B")), result("a", text("A")))},
			"assistant:[a][b] | tool:A=a | tool:B=b | user:and?"},
		{"adjacent items merge", []dialogue.Turn{assistant(text("on it")), assistant(call("a", "f")),
			assistant(call("b", "g")), user(result("a", text("A"))), user(result("b", text("B")))},
			"assistant:on it[a][b] | tool:A=a | tool:B=b"},
		{"a message in between", []dialogue.Turn{assistant(call("a", "f")), user(text("wait")),
			user(result("a", text("A")))},
			"assistant:[a] | tool:A=a | user:wait"},
		{"no answer", []dialogue.Turn{assistant(call("a", "f")), user(text("never mind"))},
			"assistant:[a] | tool:(no result)=a | user:never mind"},
		{"no call", []dialogue.Turn{user(result("x", text("X")))}, "user:Result of tool call x: X"},
		{"ids used again", []dialogue.Turn{assistant(call("a", "f")), user(result("a", text("1"))),
			assistant(call("a", "f")), user(result("a", text("2")))},
			"assistant:[a] | tool:1=a | assistant:[call_ebc2f2f469c4d08147d8c8839df4a8eb] | " +
				"tool:2=call_ebc2f2f469c4d08147d8c8839df4a8eb"},
		{"ids twice in a turn", []dialogue.Turn{assistant(call("a", "f"), call("a", "f")),
			user(result("a", text("1")), result("a", text("2")))},
			"assistant:[a][call_ebc2f2f469c4d08147d8c8839df4a8eb] | tool:1=a | " +
				"tool:2=call_ebc2f2f469c4d08147d8c8839df4a8eb"},
		{"pictures go out of results", []dialogue.Turn{assistant(call("a", "f"), call("b", "g")),
			user(result("a", text("taken"), picture), result("b", text("B")))},
			"assistant:[a][b] | tool:taken=a | tool:B=b | user:<text><image_url>"},
		{"empty result", []dialogue.Turn{assistant(call("a", "f")), user(result("a"))}, "assistant:[a] | tool:=a"},
		{"calls at the end", []dialogue.Turn{user(text("q")), assistant(call("a", "f"))}, "user:q | assistant:[a]"},
		{"nothing said", []dialogue.Turn{user(text("q")), assistant(text("")), user(text("r"))}, "user:q | user:r"},
		{"late system", []dialogue.Turn{user(text("q")), user(dialogue.Part{Kind: dialogue.SystemPart, Text: "rule"}),
			user(text("r"))}, "user:q | system:rule | user:r"},
		{"nothing at all", nil, "user:"},
	}
	for _, row := range rows {
		t.Run(row.name, func(t *testing.T) {
			body, _ := encoded(t, &dialogue.Request{Inbound: dialoguetest.Messages, Turns: row.turns})
			if got := brief(body.Get("messages")); got != row.want {
				t.Errorf("got  %s\nwant %s", got, row.want)
			}
		})
	}
}

func TestErrorsOfToolsCanBeRead(t *testing.T) {
	bad := result("a", text("no such file"))
	bad.Result.IsError = true
	body, _ := encoded(t, &dialogue.Request{Turns: []dialogue.Turn{assistant(call("a", "f")), user(bad)}})
	if got := body.Get("messages.1.content").String(); got != "Error: no such file" {
		t.Errorf("got %q", got)
	}
}

func TestNamesAreCutAndRemembered(t *testing.T) {
	long := strings.Repeat("n", 70)
	req := &dialogue.Request{Inbound: dialoguetest.Messages,
		Turns: []dialogue.Turn{user(text("q")), assistant(call("a", long+"1"))},
		Tools: []dialogue.Tool{{Kind: dialogue.FunctionTool, Name: long + "1"},
			{Kind: dialogue.FunctionTool, Name: long + "2"}, {Kind: dialogue.FunctionTool, Name: "a.b"},
			{Kind: dialogue.FunctionTool, Name: "plain"}},
		ToolChoice: &dialogue.ToolChoice{Mode: dialogue.ToolNamed, Names: []string{long + "2"}}}
	body, _ := encoded(t, req)
	var sent []string
	for _, v := range body.Get("tools.#.function.name").Array() {
		sent = append(sent, v.String())
		if len(v.String()) > 64 || strings.Contains(v.String(), ".") {
			t.Errorf("sent %q", v.String())
		}
	}
	if sent[0] == sent[1] || sent[3] != "plain" || req.Renamed[sent[0]] != long+"1" || req.Renamed[sent[2]] != "a.b" || len(req.Renamed) != 3 {
		t.Errorf("sent %v, renamed %v", sent, req.Renamed)
	}
	if got := body.Get("tool_choice.function.name").String(); got != sent[1] {
		t.Errorf("chose %q", got)
	}
	if got := body.Get("messages.1.tool_calls.0.function.name").String(); got != sent[0] {
		t.Errorf("called %q", got)
	}
}

func TestWhatChatCannotSayIsNamed(t *testing.T) {
	k, budget := int64(5), int64(2000)
	body, rep := encoded(t, &dialogue.Request{Inbound: dialoguetest.Messages, Turns: []dialogue.Turn{user(text("q"))},
		TopK: &k, Stop: []string{"a", "b", "c", "d", "e"},
		ServiceTier: "premium", Reasoning: dialogue.Reasoning{Budget: &budget},
		Extra: []dialogue.Field{{Name: "container", Value: json.RawMessage(`"c"`)}},
		Tools: []dialogue.Tool{{Kind: dialogue.OpaqueTool, Type: "bash_20250124", Name: "bash",
			Origin: dialoguetest.Messages}}})
	if got := rep.Header(); got != "tools:bash_20250124,top_k,service_tier,container" {
		t.Errorf("lost %s", got)
	}
	if body.Get("tools").Exists() || body.Get("stop.#").Int() != 4 || body.Get("reasoning_effort").String() != "low" || body.Get("container").Exists() {
		t.Errorf("got %s", body.Raw)
	}
}

func TestWhatWouldChangeTheAnswerIsRefused(t *testing.T) {
	media := func(m dialogue.Media, origin dialogue.Shape) *dialogue.Request {
		return &dialogue.Request{Inbound: dialoguetest.Gemini,
			Turns: []dialogue.Turn{user(dialogue.Part{Kind: dialogue.MediaPart, Media: &m, Origin: origin})}}
	}
	for name, req := range map[string]*dialogue.Request{
		"video":       media(dialogue.Media{Kind: dialogue.Video, Base64: "AA"}, ""),
		"foreign id":  media(dialogue.Media{Kind: dialogue.File, FileID: "f"}, dialoguetest.Messages),
		"remote file": media(dialogue.Media{Kind: dialogue.File, URL: "https://h/x.pdf"}, ""),
		"forced tool": {ToolChoice: &dialogue.ToolChoice{Mode: dialogue.ToolNamed, Names: []string{"bash"}}, Tools: []dialogue.Tool{{Kind: dialogue.OpaqueTool, Name: "bash"}}},
		"audio":       {Inbound: dialoguetest.Gemini, Modalities: []string{"AUDIO"}},
	} {
		_, err := chat.Shape.Encode(req, able, new(dialogue.Report), newEnv())
		if e := new(dialogue.Error); !errors.As(err, &e) || e.Status != 400 {
			t.Errorf("%s: got %v", name, err)
		}
	}
}

func TestDecodeKeepsWhatWasAsked(t *testing.T) {
	body := `{"model":"m","messages":[{"role":"system","content":"A"},{"role":"developer","content":[{"type":"text","text":"B"}]},
		{"role":"user","name":"ada","content":[{"type":"text","text":"hi"},{"type":"image_url","image_url":{"url":"DATA:image/PNG;charset=x;BASE64,AAAA","detail":"low"}},
		 {"type":"input_audio","input_audio":{"data":"AA","format":"wav"}},{"type":"file","file":{"filename":"a.txt","file_data":"data:text/plain;base64,aGk="}}]},
		{"role":"assistant","content":null,"function_call":{"name":"f","arguments":"{}"}},{"role":"function","name":"f","content":"r"},
		{"role":"system","content":"late"}],
		"temperature":0,"seed":9007199254740993,"max_tokens":5,"n":1.0,"stop":"x","tool_choice":{"type":"allowed_tools","allowed_tools":{"mode":"required","tools":[{"type":"function","function":{"name":"f"}}]}},
		"tools":[{"type":"custom","custom":{"name":"c","format":{"type":"grammar","grammar":{"syntax":"lark","definition":"d"}}}}],"mystery":{"x":1}}`
	req, err := chat.Shape.Decode([]byte(body), shapes.Params{}, newEnv())
	if err != nil {
		t.Fatal(err)
	}
	if len(req.System) != 2 || len(req.Turns) != 4 || req.Turns[0].Name != "ada" || req.Turns[3].Parts[0].Kind != dialogue.SystemPart {
		t.Errorf("system %+v, turns %+v", req.System, req.Turns)
	}
	parts := req.Turns[0].Parts
	if m := parts[1].Media; m.MIME != "image/png" || m.Base64 != "AAAA" || m.Detail != "low" {
		t.Errorf("image %+v", m)
	}
	if parts[2].Media.MIME != "audio/wav" || parts[3].Media.Text != "hi" {
		t.Errorf("audio %+v, file %+v", parts[2].Media, parts[3].Media)
	}
	if c, r := req.Turns[1].Parts[0].Call, req.Turns[2].Parts[0].Result; c.ID == "" || c.ID != r.CallID {
		t.Errorf("call %+v, result %+v", c, r)
	}
	if req.Temperature != "0" || req.Seed != "9007199254740993" || *req.MaxTokens != 5 || req.Stop[0] != "x" || req.N != 1 {
		t.Errorf("limits of %+v", req)
	}
	if c := req.ToolChoice; c.Mode != dialogue.ToolAllowed || !c.Required || c.Names[0] != "f" {
		t.Errorf("choice %+v", c)
	}
	if got := string(req.Tools[0].Format); got != `{"type":"grammar","syntax":"lark","definition":"d"}` {
		t.Errorf("format %s", got)
	}
	if len(req.Extra) != 1 || req.Extra[0].Name != "mystery" {
		t.Errorf("extra %+v", req.Extra)
	}
}

// function_call holds one call, so the model may make only one, unless the client says otherwise.
func TestTheDeprecatedFunctionsAreCalledOneAtATime(t *testing.T) {
	for members, want := range map[string]string{
		`"functions":[{"name":"f"}]`:                             "false",
		`"functions":[{"name":"f"}],"parallel_tool_calls":true`:  "true",
		`"tools":[{"type":"function","function":{"name":"f"}}]`:  "",
		`"functions":[{"name":"f"}],"parallel_tool_calls":null`:  "false",
		`"functions":[{"name":"f"}],"parallel_tool_calls":false`: "false",
	} {
		body := `{"model":"m","messages":[{"role":"user","content":"hi"}],` + members + `}`
		req, err := chat.Shape.Decode([]byte(body), shapes.Params{}, newEnv())
		if err != nil {
			t.Fatal(err)
		}
		if sent, _ := encoded(t, req); sent.Get("parallel_tool_calls").Raw != want {
			t.Errorf("%s: parallel_tool_calls is %q, want %q", members, sent.Get("parallel_tool_calls").Raw, want)
		}
	}
}

func image(bytes int) string {
	return `{"type":"image_url","image_url":{"url":"data:image/png;base64,` + strings.Repeat("A", bytes/3*4) + `"}}`
}

func TestLargeImagesAreDroppedOnBothLanes(t *testing.T) {
	const limit = 8 << 20
	small, large := image(300), image(limit+3)
	bare := strings.NewReplacer(`{"url":`, ``, `"}}`, `"}`) // the address without the object around it
	for name, row := range map[string]struct{ content, want string }{
		"beside others": {`[` + large + `,{"type":"text","text":"look"},` + small + `]`, `[{"type":"text","text":"look"},` + small + `]`},
		"alone":         {`[` + large + `]`, `[{"type":"text","text":""}]`},
		"bare": {`[` + bare.Replace(large) + `,` + bare.Replace(small) + `]`,
			`[` + bare.Replace(small) + `]`},
		"at the limit": {`[` + image(limit-limit%3) + `]`, `[` + image(limit-limit%3) + `]`},
	} {
		body := []byte(saying(`{"role":"user","content":` + row.content + `}`))
		rep := new(dialogue.Report)
		c, err := chat.Shape.Patch(body, shapes.Params{}, shapes.Head{Model: "m", N: 1}, dialogue.Target{Model: "m"},
			rep, newEnv())
		if want := saying(`{"role":"user","content":` + row.want + `}`); err != nil || string(c.Body) != want {
			t.Errorf("%s: got %d bytes, want %d", name, len(c.Body), len(want))
		}
		req, err := chat.Shape.Decode(body, shapes.Params{}, newEnv())
		if err != nil || len(req.Turns[0].Parts) != len(gjson.Parse(row.want).Array()) {
			t.Errorf("%s: decoded %d parts, %v", name, len(req.Turns[0].Parts), err)
		}
		m := req.Turns[0].Parts[0].Media
		if name == "bare" && (m == nil || m.MIME != "image/png" || len(m.Base64) != 400) {
			t.Errorf("%s: decoded %+v", name, m)
		}
		if lost := strings.Join(req.Lost, ","); lost != rep.Header() || (lost != "") != (row.content != row.want) {
			t.Errorf("%s: lost %q and %q", name, lost, rep.Header())
		}
	}
}

// Some servers refuse a message with calls and without reasoning_content, others any message that has
// it. The catalogue says which, for requests that pass through and for those that are translated.
func TestReasoningContentIsWhatTheModelTakes(t *testing.T) {
	const calls = `"tool_calls":[{"id":"a","type":"function","function":{"name":"f","arguments":"{}"}}]`
	const thought, empty = `"reasoning_content":"why",`, `"reasoning_content":"",`
	message := func(reasoning, calls string) string {
		return `{"model":"up","messages":[{"role":"assistant",` + reasoning + `"content":"x"` + calls + `}]}`
	}
	with, bare, words := message(thought, ","+calls), message("", ","+calls), message("", "")
	part := dialogue.Part{Kind: dialogue.ThinkingPart, Thinking: &dialogue.Thinking{Text: "why"}}
	for _, row := range []struct {
		name       string
		takes      dialogue.ReasoningContent
		body, want string
	}{
		{"taken", dialogue.ReasoningTaken, with, with},
		{"not needed", dialogue.ReasoningTaken, bare, bare},
		{"required and there", dialogue.ReasoningRequired, with, with},
		{"required", dialogue.ReasoningRequired, bare,
			strings.Replace(bare, calls, empty+calls, 1)},
		{"required with calls only", dialogue.ReasoningRequired, words, words},
		{"refused", dialogue.ReasoningRefused, with, bare},
		{"refused and not there", dialogue.ReasoningRefused, bare, bare},
	} {
		t.Run(row.name, func(t *testing.T) {
			target := dialogue.Target{Model: "up", Caps: dialogue.Capabilities{ReasoningContent: row.takes}}
			head, err := chat.Shape.Check([]byte(row.body), shapes.Params{})
			if err != nil {
				t.Fatal(err)
			}
			sent, err := chat.Shape.Patch([]byte(row.body), shapes.Params{}, head, target,
				new(dialogue.Report), newEnv())
			if err != nil || string(sent.Body) != row.want {
				t.Errorf("%v\ngot  %s\nwant %s", err, sent.Body, row.want)
			}
			said := []dialogue.Part{text("x")}
			if strings.Contains(row.body, thought) {
				said = append(said, part)
			}
			if strings.Contains(row.body, calls) {
				said = append(said, call("a", "f"))
			}
			req := &dialogue.Request{Inbound: dialoguetest.Messages, Turns: []dialogue.Turn{assistant(said...)}}
			encoded, err := chat.Shape.Encode(req, target, new(dialogue.Report), newEnv())
			const path = "messages.0.reasoning_content"
			got, want := gjson.GetBytes(encoded.Body, path), gjson.Get(row.want, path)
			if err != nil || got.Raw != want.Raw {
				t.Errorf("translated: %v, got %s, want %s", err, got.Raw, want.Raw)
			}
		})
	}
}

// The key of a prompt's cache changes no reply, so a model that refuses it is not sent it, translated or not.
func TestACacheKeyIsSentToModelsThatTakeIt(t *testing.T) {
	const key = `,"prompt_cache_key":"k","prompt_cache_retention":"24h"`
	const body = `{"model":"up","messages":[{"role":"user","content":"a"}]` + key + `}`
	for refused, want := range map[bool]string{false: body, true: strings.Replace(body, key, "", 1)} {
		target := dialogue.Target{Model: "up", Caps: dialogue.Capabilities{Sampling: true, NoCacheKey: refused,
			Thinking: dialogue.ThinkingImplicit}}
		head, err := chat.Shape.Check([]byte(body), shapes.Params{})
		if err != nil {
			t.Fatal(err)
		}
		patched, translated := new(dialogue.Report), new(dialogue.Report)
		sent, err := chat.Shape.Patch([]byte(body), shapes.Params{}, head, target, patched, newEnv())
		if err != nil || string(sent.Body) != want || (patched.Header() != "") != refused {
			t.Errorf("refused %t: %v, sent %s with the losses %s", refused, err, sent.Body, patched.Header())
		}
		req := &dialogue.Request{Inbound: dialoguetest.Responses, CacheKey: "k", CacheRetention: "24h",
			Turns: []dialogue.Turn{{Role: dialogue.User, Parts: []dialogue.Part{text("a")}}}}
		call, err := chat.Shape.Encode(req, target, translated, newEnv())
		if has := strings.Contains(string(call.Body), "prompt_cache"); err != nil || has == refused ||
			(translated.Header() == "prompt_cache_key") != refused {
			t.Errorf("refused %t: %v, sent %s with the losses %s", refused, err, call.Body, translated.Header())
		}
	}
}

// A client that changes its model sends parameters that the new one may refuse.
func TestPatchRemovesParametersThatTheModelRefuses(t *testing.T) {
	const messages = `"messages":[{"role":"user","content":"a"}]`
	body := `{"model":"up","temperature":0.5,"reasoning_effort":"low",` + messages + `,"top_p":1}`
	for want, caps := range map[string]dialogue.Capabilities{
		body: {Sampling: true, Thinking: dialogue.ThinkingImplicit},
		`{"model":"up","temperature":0.5,` + messages + `,"top_p":1}`:        {Sampling: true},
		`{"model":"up","reasoning_effort":"low",` + messages + `,"top_p":1}`: {Thinking: dialogue.ThinkingImplicit},
	} {
		head, err := chat.Shape.Check([]byte(body), shapes.Params{})
		if err != nil {
			t.Fatal(err)
		}
		rep := new(dialogue.Report)
		target := dialogue.Target{Model: "up", Caps: caps}
		call, err := chat.Shape.Patch([]byte(body), shapes.Params{}, head, target, rep, newEnv())
		if err != nil || string(call.Body) != want || (rep.Header() == "") != (want == body) {
			t.Errorf("%v, losses %q\ngot  %s\nwant %s", err, rep.Header(), call.Body, want)
		}
	}
}

// Models of OpenAI from GPT-5.1 on take parameters of sampling while they do not reason, which they do when asked.
func TestPatchKeepsSamplingOfAModelAtRest(t *testing.T) {
	target := dialogue.Target{Model: "up",
		Caps: dialogue.Capabilities{SamplingAtRest: true, Thinking: dialogue.ThinkingImplicit}}
	const rest = `"messages":[{"role":"user","content":"a"}],"top_p":0.5}`
	for effort, kept := range map[string]bool{
		"": true, `"reasoning_effort":"none",`: true, `"reasoning_effort":null,`: true,
		`"reasoning_effort":"low",`: false,
	} {
		body := `{"model":"up",` + effort + rest
		head, err := chat.Shape.Check([]byte(body), shapes.Params{})
		if err != nil {
			t.Fatal(err)
		}
		rep := new(dialogue.Report)
		call, err := chat.Shape.Patch([]byte(body), shapes.Params{}, head, target, rep, newEnv())
		has := strings.Contains(string(call.Body), "top_p")
		if err != nil || has != kept || (rep.Header() == "") != kept {
			t.Errorf("%s: %v, losses %q, sent %s", effort, err, rep.Header(), call.Body)
		}
	}
}

// None of the models that take parameters of sampling only while they do not reason has top_k.
func TestPatchRemovesTopKWhereTheModelHasNone(t *testing.T) {
	target := dialogue.Target{Model: "up",
		Caps: dialogue.Capabilities{SamplingAtRest: true, Thinking: dialogue.ThinkingImplicit}}
	const body = `{"model":"up","messages":[{"role":"user","content":"a"}],"temperature":0.5,"top_k":3}`
	head, err := chat.Shape.Check([]byte(body), shapes.Params{})
	if err != nil {
		t.Fatal(err)
	}
	rep := new(dialogue.Report)
	call, err := chat.Shape.Patch([]byte(body), shapes.Params{}, head, target, rep, newEnv())
	if sent := string(call.Body); err != nil || sent != strings.Replace(body, `,"top_k":3`, "", 1) ||
		rep.Header() != "top_k" {
		t.Errorf("%v, losses %q, sent %s", err, rep.Header(), sent)
	}
}

func TestPatchLeavesTheRestAsItWas(t *testing.T) {
	target := dialogue.Target{Model: "up", Shape: dialoguetest.Chat,
		Caps: dialogue.Capabilities{StructuredOutputs: true}}
	weak := dialogue.Target{Model: "up", Shape: dialoguetest.Chat}
	format := `"response_format":{"type":"json_schema","json_schema":{"name":"n","schema":{"type":"object"}}}`
	rows := []struct {
		name, body, want string
		t                dialogue.Target
		degraded         string
	}{
		{"model", `{ "x" : 1.0, "model":"m" , "messages":[] }`, `{ "x" : 1.0, "model":"up" , "messages":[] }`, target,
			""},
		{"usage asked for", `{"model":"up","stream":true}`,
			`{"model":"up","stream":true,"stream_options":{"include_usage":true}}`, target, ""},
		{"usage added", `{"model":"up","stream_options":{"include_obfuscation":false},"stream":true}`,
			`{"model":"up","stream_options":{"include_usage":true,"include_obfuscation":false},"stream":true}`, target,
			""},
		{"usage turned on", `{"model":"up","stream_options":{"include_usage":false},"stream":true}`,
			`{"model":"up","stream_options":{"include_usage":true},"stream":true}`, target, ""},
		{"usage null", `{"model":"up","stream_options":null,"stream":true}`,
			`{"model":"up","stream_options":{"include_usage":true},"stream":true}`, target, ""},
		{"schema kept", `{"model":"up",` + format + `}`, `{"model":"up",` + format + `}`, target, ""},
		{"schema dropped", `{` + format + `,"model":"m"}`, `{"model":"up"}`, weak, dialogue.ModelUnsupported},
		{"schema missing", `{"model":"up","response_format":{"type":"json_schema","json_schema":{"name":"n"}}}`,
			`{"model":"up"}`, target, dialogue.MissingSchema},
		{"seal in a prompt stays", `{"model":"up","messages":[{"role":"user","content":"sd1.a.b.c"}]}`,
			`{"model":"up","messages":[{"role":"user","content":"sd1.a.b.c"}]}`, target, ""},
	}
	for _, row := range rows {
		t.Run(row.name, func(t *testing.T) {
			head := shapes.Head{Model: gjson.Get(row.body, "model").String(),
				Stream: gjson.Get(row.body, "stream").Bool(), N: 1}
			given := []byte(row.body)
			rep := new(dialogue.Report)
			c, err := chat.Shape.Patch(given, shapes.Params{}, head, row.t, rep, newEnv())
			if err != nil || string(c.Body) != row.want {
				t.Errorf("got  %s\nwant %s", c.Body, row.want)
			}
			if string(given) != row.body {
				t.Error("the client's bytes were written to")
			}
			if rep.Degraded != row.degraded {
				t.Errorf("degraded %q, want %q", rep.Degraded, row.degraded)
			}
		})
	}
}

func TestCheckRefusesWhatIsNotValidJSON(t *testing.T) {
	for _, text := range []string{with(`,"x":[1,]`), with(`,"x":{"a":1,"a":2}`), with(`,"x":"\ud83d"`), with(",\"x\":\"\xff\""), with(`,"model":"m"`),
		with(`,"x":` + strings.Repeat("[", 200) + strings.Repeat("]", 200)), with(`,"x":tru`), with(``) + "{}",
		strings.TrimSuffix(with(``), "}")} {
		if _, err := chat.Shape.Check([]byte(text), shapes.Params{}); err == nil {
			t.Errorf("%q passed", text)
		}
	}
}

// A request that Check calls plain is patched without looking for what Patch
// removes. It must come out as if it had looked.
func TestPlainRequestsArePatchedAlike(t *testing.T) {
	seal := `{"role":"assistant","content":"","reasoning_details":[{"data":"sd1.x"}]}`
	large := strings.Repeat("abcd", 3<<20)
	image := func(data string) string {
		return `{"image_url":{"url":"data:image/png;base64,` + data + `"},"type":"image_url"}`
	}
	rows := []struct {
		name, body string
		plain      bool
	}{
		{"nothing to do", with(``), true},
		{"usage to ask for", with(`,"stream":true`), true},
		{"usage asked for", with(`,"stream":true,"stream_options":{"include_usage":true}`), true},
		{"options without usage", with(`,"stream":true,"stream_options":{"include_obfuscation":false}`), false},
		{"options null", with(`,"stream":true,"stream_options":null`), false},
		{"text wanted", with(`,"response_format":{"type":"text"}`), true},
		{"JSON wanted", with(`,"response_format":{"type":"json_object"}`), false},
		{"seal in the history", saying(`{"role":"user","content":"a"},` + seal), false},
		{"mark of a seal in a prompt", saying(`{"role":"user","content":"sd1."}`), true},
		{"more text than an image may have", saying(`{"role":"user","content":"` + large + `"}`), true},
		{"small image", saying(`{"role":"user","content":[` + image("abcd") + `]}`), true},
		{"large image", saying(`{"role":"user","content":[` + image(large) + `,{"type":"text","text":"a"}]}`), false},
	}
	for _, row := range rows {
		t.Run(row.name, func(t *testing.T) {
			head, err := chat.Shape.Check([]byte(row.body), shapes.Params{})
			if err != nil || head.Plain != row.plain {
				t.Fatalf("plain %v, want %v (%v)", head.Plain, row.plain, err)
			}
			var bodies [2][]byte
			for i, model := range []string{head.Model, "up"} {
				for k := range bodies {
					head.Plain = row.plain && k == 0
					c, err := chat.Shape.Patch([]byte(row.body), shapes.Params{}, head, dialogue.Target{Model: model},
						new(dialogue.Report), newEnv())
					if err != nil {
						t.Fatal(err)
					}
					bodies[k] = c.Body
				}
				if !same(bodies[0], bodies[1]) {
					t.Errorf("model %d: got %s, want %s", i, bodies[0], bodies[1])
				}
			}
		})
	}
}

// same reports whether two texts hold the same JSON value.
func same(a, b []byte) bool {
	decode := func(text []byte) (v any) {
		d := json.NewDecoder(bytes.NewReader(text))
		d.UseNumber() // a fuzzed number may be out of any range
		if d.Decode(&v) != nil {
			return nil
		}
		return v
	}
	return reflect.DeepEqual(decode(a), decode(b))
}

func FuzzRequest(f *testing.F) {
	f.Add([]byte(with(`,"tools":[{"type":"function","function":{"name":"f"}}],"stop":["a"]`)))
	f.Add([]byte(saying(`{"role":"assistant","tool_calls":[{"id":"c","function":{"name":"f"}}]},{"role":"tool","tool_call_id":"c","content":[]}`)))
	f.Add([]byte(saying(`{"role":"assistant","content":"","reasoning_details":[{"data":"sd1.x"}]}`)))
	f.Fuzz(func(t *testing.T, body []byte) {
		head, err := chat.Shape.Check(body, shapes.Params{})
		if err != nil {
			return
		}
		if !jsontext.Value(body).IsValid() {
			t.Fatalf("%q passed", body)
		}
		env := newEnv()
		req, err := chat.Shape.Decode(body, shapes.Params{}, env)
		if err != nil {
			return
		}
		rep := new(dialogue.Report)
		if c, err := chat.Shape.Encode(req, able, rep, env); err == nil && !json.Valid(c.Body) {
			t.Fatalf("encoded %s", c.Body)
		}
		quick, err := chat.Shape.Patch(body, shapes.Params{}, head, dialogue.Target{Model: "up"}, rep, env)
		if err != nil || !json.Valid(quick.Body) {
			t.Fatalf("patched %s", quick.Body)
		}
		head.Plain = false
		slow, err := chat.Shape.Patch(body, shapes.Params{}, head, dialogue.Target{Model: "up"}, rep, env)
		if err != nil || !same(quick.Body, slow.Body) {
			t.Fatalf("patched %s without and %s with a look at all of it", quick.Body, slow.Body)
		}
	})
}

// A schema that strict mode refuses is its author's mistake where the shapes
// mean the same by strict, and the gateway's where they do not.
func TestStrictStaysWhereItMeansTheSame(t *testing.T) {
	yes := true
	loose := dialogue.Tool{Kind: dialogue.FunctionTool, Name: "f", Strict: &yes,
		Schema: json.RawMessage(`{"type":"object","properties":{"a":{"type":"string"}}}`)}
	for inbound, strict := range map[dialogue.Shape]bool{dialoguetest.Chat: true, dialoguetest.Responses: true, dialoguetest.Messages: false} {
		body, _ := encoded(t, &dialogue.Request{Inbound: inbound, Turns: []dialogue.Turn{user(text("q"))},
			Tools: []dialogue.Tool{loose}})
		if got := body.Get("tools.0.function.strict").Bool(); got != strict {
			t.Errorf("from %s: strict %v", inbound, got)
		}
	}
}

// Where a schema always binds, strict says so here; a schema that strict mode
// refuses goes without.
func TestSchemasThatBindAreStrict(t *testing.T) {
	closed := `{"type":"object","properties":{"a":{"type":"string"}},"required":["a"],"additionalProperties":false}`
	for _, c := range []struct {
		inbound dialogue.Shape
		schema  string
		strict  string
	}{
		{dialoguetest.Messages, closed, "true"},
		{dialoguetest.Gemini, closed, "true"},
		{dialoguetest.Messages, `{"type":"object","properties":{"a":{"type":"string"}}}`, ""},
		{dialoguetest.Chat, closed, ""},
		{dialoguetest.Responses, closed, ""},
	} {
		body, _ := encoded(t, &dialogue.Request{Inbound: c.inbound, Turns: []dialogue.Turn{user(text("q"))},
			Output: dialogue.Output{Mode: dialogue.OutputSchema, Schema: json.RawMessage(c.schema)}})
		if got := body.Get("response_format.json_schema.strict").Raw; got != c.strict {
			t.Errorf("from %s with %s: strict %q, want %q", c.inbound, c.schema, got, c.strict)
		}
	}
}

func TestALimitOfNothingIsRaised(t *testing.T) {
	none := int64(0)
	body, rep := encoded(t, &dialogue.Request{Inbound: dialoguetest.Messages, Turns: []dialogue.Turn{user(text("q"))},
		MaxTokens: &none})
	if got := body.Get("max_completion_tokens").Raw; got != "1" || rep.Header() != "max_tokens:raised" {
		t.Errorf("got %s, lost %q", got, rep.Header())
	}
}

func TestASearchKeepsItsOptionsAndReportsOthers(t *testing.T) {
	searches := able
	searches.Caps.WebSearch = true
	for name, c := range map[string]struct {
		req          dialogue.Request
		want, losses string
	}{
		"its own": {dialogue.Request{WebSearch: true, SearchOptions: json.RawMessage(`{"search_context_size":"low"}`)}, `{"search_context_size":"low"}`, ""},
		"a tool's": {dialogue.Request{Tools: []dialogue.Tool{{Kind: dialogue.WebSearchTool, Origin: dialoguetest.Messages,
			Opaque: json.RawMessage(`{"type":"web_search_20250305","max_uses":2,"blocked_domains":["a.example"]}`)}}},
			`{}`, "web_search:max_uses,web_search:blocked_domains"},
	} {
		c.req.Turns = []dialogue.Turn{{Role: dialogue.User, Parts: []dialogue.Part{{Text: "q"}}}}
		got, rep := encodedFor(t, &c.req, searches)
		if got.Get("web_search_options").Raw != c.want || rep.Header() != c.losses {
			t.Errorf("%s: got %s, losses %q, want %s, losses %q", name, got.Get("web_search_options").Raw, rep.Header(),
				c.want, c.losses)
		}
	}
}

// Agents offer a search with every model, and most models of this shape refuse the member for it.
func TestASearchIsLeftOutForModelsThatDoNotSearch(t *testing.T) {
	search := dialogue.Tool{Kind: dialogue.WebSearchTool, Type: "web_search", Origin: dialoguetest.Responses,
		Opaque: json.RawMessage(`{"type":"web_search"}`)}
	got, rep := encoded(t, &dialogue.Request{Inbound: dialoguetest.Responses, Turns: []dialogue.Turn{user(text("q"))},
		Tools: []dialogue.Tool{search}})
	if got.Get("web_search_options").Exists() || got.Get("tools").Exists() || rep.Header() != "tools:web_search" {
		t.Errorf("got %s, losses %q", got.Raw, rep.Header())
	}
}
