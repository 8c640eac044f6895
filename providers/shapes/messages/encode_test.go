package messages

import (
	"encoding/json"
	"errors"
	"strings"
	"testing"

	"stagedoor/providers/dialogue"
	"stagedoor/providers/dialogue/dialoguetest"
)

func encoded(t *testing.T, req *dialogue.Request, target dialogue.Target) (map[string]any, *dialogue.Report) {
	t.Helper()
	rep := new(dialogue.Report)
	c, err := Shape.Encode(req, target, rep, newEnv())
	if err != nil {
		t.Fatal(err)
	}
	if c.Path != "/v1/messages" || c.Header.Get("anthropic-version") != version {
		t.Errorf("call is %s %v", c.Path, c.Header)
	}
	return decoded(t, c.Body), rep
}

func TestConversationKeepsTheVendorsRules(t *testing.T) {
	signed := thought(dialogue.Thinking{Text: "t", Signature: "S", Origin: dialoguetest.Messages})
	for _, c := range []struct {
		name   string
		turns  []dialogue.Turn
		want   string
		losses string
	}{
		{"sides are merged", []dialogue.Turn{user(text("a")), user(text("b")), assistant(text("c")),
			assistant(text("d")), user(text("e"))},
			`[user: a b | assistant: c d | user: e]`, ""},
		{"blank text is dropped", []dialogue.Turn{user(text("a"), text(" \n")), assistant(text("")), user(text("b"))},
			`[user: a b]`, ""},
		{"the user begins", []dialogue.Turn{assistant(text("a")), user(text("b"))},
			`[user: Continue. | assistant: a | user: b]`, "messages:first_user"},
		{"there are no turns", nil, `[user: Continue.]`, "messages:first_user"},
		{"results come first", []dialogue.Turn{user(text("a")), assistant(call("1", "f", "")),
			user(text("b"), result("1", "r"))},
			`[user: a | assistant: use(1) | user: result(1) b]`, ""},
		{"results in the order of the calls", []dialogue.Turn{user(text("a")),
			assistant(call("1", "f", ""), call("2", "f", "")), user(result("2", "r")), user(result("1", "r"))},
			`[user: a | assistant: use(1) use(2) | user: result(1) result(2)]`, ""},
		{"a late result moves to its call", []dialogue.Turn{user(text("a")), assistant(call("1", "f", ""),
			call("2", "f", "")), user(result("1", "r")), assistant(text("b")), user(result("2", "r")), user(text("c"))},
			`[user: a | assistant: use(1) use(2) | user: result(1) result(2) | assistant: b | user: c]`, ""},
		{"a second result is dropped", []dialogue.Turn{user(text("a")), assistant(call("1", "f", "")),
			user(result("1", "r"), result("1", "s"))},
			`[user: a | assistant: use(1) | user: result(1)]`, "tool_result:duplicate"},
		{"an orphan becomes text", []dialogue.Turn{user(text("a"), result("9", "r"))},
			`[user: a Result of an earlier tool call:` + "\n" + `r]`, "tool_result:orphan"},
		{"a call without a result gets one",
			[]dialogue.Turn{user(text("a")), assistant(call("1", "f", "")), user(text("b"))},
			`[user: a | assistant: use(1) | user: result(1) b]`, "tool_result:missing"},
		{"a call at the end too", []dialogue.Turn{user(text("a")), assistant(call("1", "f", ""))},
			`[user: a | assistant: use(1) | user: result(1)]`, "tool_result:missing"},
		{"an id is used in two turns", []dialogue.Turn{user(text("a")), assistant(call("1", "f", "")),
			user(result("1", "r")), assistant(call("1", "f", "")), user(result("1", "s"))},
			`[user: a | assistant: use(1) | user: result(1) | assistant: use(1_2) | user: result(1_2)]`, ""},
		{"ids are rewritten without collision", []dialogue.Turn{user(text("a")), assistant(call("a.b", "f", ""),
			call("a:b", "f", ""), call("", "g", "")), user(result("a.b", "r"), result("a:b", "r"), result("", "r"))},
			`[user: a | assistant: use(a_b) use(a_b_2) use(unnamed) | user: result(a_b) result(a_b_2) result(unnamed)]`,
			""},
		{"signed thinking goes first", []dialogue.Turn{user(text("a")),
			assistant(text("b"), signed, call("1", "f", "")), user(result("1", "r"))},
			`[user: a | assistant: thinking b use(1) | user: result(1)]`, ""},
		{"foreign thinking is dropped", []dialogue.Turn{user(text("a")),
			assistant(thought(dialogue.Thinking{Text: "t", Signature: "S", Origin: dialoguetest.Gemini}),
				thought(dialogue.Thinking{Text: "u"}), text("b")), user(text("c"))},
			`[user: a | assistant: b | user: c]`, "thinking"},
		{"thinking alone is dropped", []dialogue.Turn{user(text("a")), assistant(signed), user(text("c"))},
			`[user: a c]`, "thinking"},
		{"prefill loses its white space", []dialogue.Turn{user(text("a")), assistant(text("b \n"))},
			`[user: a | assistant: b]`, ""},
		{"a late system message is the user's", []dialogue.Turn{user(text("a")), assistant(text("b")),
			user(dialogue.Part{Kind: dialogue.SystemPart, Text: "s"}), user(text("c"))},
			"[user: a | assistant: b | user: <system-reminder>\ns\n</system-reminder> c]", "system:folded"},
	} {
		t.Run(c.name, func(t *testing.T) {
			got, rep := encoded(t, &dialogue.Request{Turns: c.turns, MaxTokens: new(int64(99))}, model())
			if s := sketch(got); s != c.want {
				t.Errorf("got  %s\nwant %s", s, c.want)
			}
			if rep.Header() != c.losses {
				t.Errorf("losses %q, want %q", rep.Header(), c.losses)
			}
		})
	}
}

// sketch draws a request's conversation in one line.
func sketch(req map[string]any) string {
	var sides []string
	for _, m := range req["messages"].([]any) {
		m := m.(map[string]any)
		line := m["role"].(string) + ":"
		for _, b := range m["content"].([]any) {
			switch b := b.(map[string]any); b["type"] {
			case "text":
				line += " " + b["text"].(string)
			case "tool_use":
				line += " use(" + b["id"].(string) + ")"
			case "tool_result":
				line += " result(" + b["tool_use_id"].(string) + ")"
			default:
				line += " " + b["type"].(string)
			}
		}
		sides = append(sides, line)
	}
	return "[" + strings.Join(sides, " | ") + "]"
}

func TestPrefillOfAModelWithoutItIsFollowedByTheUser(t *testing.T) {
	target := model()
	target.Caps.Prefill = false
	got, rep := encoded(t, &dialogue.Request{Turns: []dialogue.Turn{user(text("a")), assistant(text("b"))},
		MaxTokens: new(int64(9))}, target)
	if s := sketch(got); s != "[user: a | assistant: b | user: Continue.]" || rep.Header() != "prefill" {
		t.Errorf("got %s, losses %s", s, rep.Header())
	}
}

func TestArgumentsAlwaysMakeAnObject(t *testing.T) {
	for args, want := range map[string]string{
		"":                          `{}`,
		"null":                      `{}`,
		`{"id": 9007199254740993}`:  `{"id": 9007199254740993}`,
		`{"path":"a.txt","te`:       `{"_raw":"{\"path\":\"a.txt\",\"te"}`,
		`[1]`:                       `{"value":[1]}`,
		`"{\"a\":1}"`:               `{"a":1}`,
		strings.Repeat("[", 100000): `{"_raw":"` + strings.Repeat("[", 100000) + `"}`,
	} {
		if got, _ := object(args); string(got) != want {
			t.Errorf("%.40s: got %.60s, want %.60s", args, got, want)
		}
	}
}

func TestParametersFitTheModel(t *testing.T) {
	n := func(v int64) *int64 { return &v }
	yes, no := true, false
	f := dialogue.Tool{Kind: dialogue.FunctionTool, Name: "f"}
	g := dialogue.Tool{Kind: dialogue.FunctionTool, Name: "g"}
	adaptive := func(t *dialogue.Target) { t.Caps.Thinking = dialogue.ThinkingEffort }
	for _, c := range []struct {
		name   string
		req    dialogue.Request
		target func(*dialogue.Target)
		want   string // members, "" absent
		losses string
	}{
		{name: "max_tokens is required", want: `{"max_tokens":8192}`, losses: "max_tokens:default"},
		{name: "zero is not the others' zero", req: dialogue.Request{MaxTokens: n(0),
			Inbound: dialoguetest.Completions}, want: `{"max_tokens":1}`, losses: "max_tokens:raised"},
		{name: "temperature is clamped", req: dialogue.Request{MaxTokens: n(9), Temperature: "1.7"},
			want: `{"temperature":1}`, losses: "temperature:clamped"},
		{name: "zero temperature survives", req: dialogue.Request{MaxTokens: n(9), Temperature: "0"},
			want: `{"temperature":0}`},
		{name: "top_k passes", req: dialogue.Request{MaxTokens: n(9), TopK: n(3)}, want: `{"top_k":3}`},
		{name: "effort is a budget", req: dialogue.Request{Reasoning: dialogue.Reasoning{Effort: "high"},
			MaxTokens: n(40000)}, want: `{"thinking":{"type":"enabled","budget_tokens":16384}}`},
		{name: "a budget leaves room", req: dialogue.Request{Reasoning: dialogue.Reasoning{Effort: "medium"},
			MaxTokens: n(4000)}, want: `{"thinking":{"type":"enabled","budget_tokens":3199}}`},
		{name: "a client's own budget is kept", req: dialogue.Request{Reasoning: dialogue.Reasoning{Budget: n(3900)},
			MaxTokens: n(4000)}, want: `{"thinking":{"type":"enabled","budget_tokens":3900}}`},
		{name: "no room to think", req: dialogue.Request{Reasoning: dialogue.Reasoning{Effort: "low"},
			MaxTokens: n(1024)}, want: `{"thinking":null}`, losses: "reasoning"},
		{name: "a default makes room", req: dialogue.Request{Reasoning: dialogue.Reasoning{Effort: "high"}},
			want:   `{"thinking":{"type":"enabled","budget_tokens":16384},"max_tokens":24576}`,
			losses: "max_tokens:default"},
		{name: "thinking drops sampling", req: dialogue.Request{Reasoning: dialogue.Reasoning{Effort: "low"},
			MaxTokens: n(9000), Temperature: "0.3", TopK: n(1), TopP: "0.5"},
			want: `{"temperature":null,"top_k":null,"top_p":null}`, losses: "temperature,top_p,top_k"},
		{name: "forced tools drop thinking", req: dialogue.Request{Reasoning: dialogue.Reasoning{Effort: "low"},
			MaxTokens: n(9000), Tools: []dialogue.Tool{f},
			ToolChoice: &dialogue.ToolChoice{Mode: dialogue.ToolRequired}},
			want: `{"thinking":null,"tool_choice":{"type":"any"}}`, losses: "reasoning:tool_choice"},
		{name: "no effort", req: dialogue.Request{Reasoning: dialogue.Reasoning{Effort: "none"}, MaxTokens: n(9000)},
			want: `{"thinking":null}`},
		{name: "a model that cannot think",
			req:    dialogue.Request{Reasoning: dialogue.Reasoning{Effort: "low"}, MaxTokens: n(9000)},
			target: func(t *dialogue.Target) { t.Caps.Thinking = dialogue.ThinkingNone }, want: `{"thinking":null}`,
			losses: "reasoning"},
		{name: "effort in words", target: adaptive,
			req:  dialogue.Request{Reasoning: dialogue.Reasoning{Effort: "minimal"}, MaxTokens: n(9)},
			want: `{"thinking":{"type":"adaptive"},"output_config":{"effort":"low"}}`},
		{name: "a budget in words", target: adaptive,
			req:  dialogue.Request{Reasoning: dialogue.Reasoning{Budget: n(5000)}, MaxTokens: n(9)},
			want: `{"thinking":{"type":"adaptive"},"output_config":{"effort":"medium"}}`},
		{name: "thinking by default is switched off", target: adaptive,
			req:  dialogue.Request{Reasoning: dialogue.Reasoning{Effort: "none"}, MaxTokens: n(9)},
			want: `{"thinking":{"type":"disabled"}}`},
		{name: "nothing asked, nothing invented", target: adaptive, req: dialogue.Request{MaxTokens: n(9)},
			want: `{"thinking":null,"output_config":null}`},
		{name: "no tools, no choice", req: dialogue.Request{MaxTokens: n(9),
			ToolChoice: &dialogue.ToolChoice{Mode: dialogue.ToolAuto}, Parallel: &no},
			want: `{"tools":null,"tool_choice":null}`},
		{name: "one call at a time", req: dialogue.Request{MaxTokens: n(9), Tools: []dialogue.Tool{f}, Parallel: &no},
			want: `{"tool_choice":{"type":"auto","disable_parallel_tool_use":true}}`},
		{name: "no flag beside none", req: dialogue.Request{MaxTokens: n(9), Tools: []dialogue.Tool{f}, Parallel: &no,
			ToolChoice: &dialogue.ToolChoice{Mode: dialogue.ToolNone}}, want: `{"tool_choice":{"type":"none"}}`},
		{name: "parallel is the default", req: dialogue.Request{MaxTokens: n(9), Tools: []dialogue.Tool{f},
			Parallel: &yes}, want: `{"tool_choice":null}`},
		{name: "a named tool", req: dialogue.Request{MaxTokens: n(9), Tools: []dialogue.Tool{f, g},
			ToolChoice: &dialogue.ToolChoice{Mode: dialogue.ToolNamed, Names: []string{"g"}}},
			want: `{"tool_choice":{"type":"tool","name":"g"}}`},
		{name: "a subset", req: dialogue.Request{MaxTokens: n(9), Tools: []dialogue.Tool{f, g},
			ToolChoice: &dialogue.ToolChoice{Mode: dialogue.ToolAllowed, Names: []string{"g"}, Required: true}},
			want: `{"tool_choice":{"type":"any"},"tools":[{"name":"g","input_schema":{"type":"object","properties":{}}}]}`},
		{name: "a custom tool is one string",
			req:  dialogue.Request{MaxTokens: n(9), Tools: []dialogue.Tool{{Kind: dialogue.CustomTool, Name: "p"}}},
			want: `{"tools":[{"name":"p","description":"Put the whole input of this tool, as it is, into \"input\".","input_schema":{"type":"object","properties":{"input":{"type":"string"}},"required":["input"],"additionalProperties":false}}]}`},
		{name: "web search", req: dialogue.Request{MaxTokens: n(9), WebSearch: true},
			want: `{"tools":[{"type":"web_search_20250305","name":"web_search"}]}`},
		{name: "the limits of a search that has no tool", req: dialogue.Request{MaxTokens: n(9), WebSearch: true,
			SearchOptions: json.RawMessage(`{"search_context_size":"low","user_location":{"type":"approximate","approximate":{"city":"Oslo"}}}`)},
			want:   `{"tools":[{"type":"web_search_20250305","name":"web_search","user_location":{"type":"approximate","city":"Oslo"}}]}`,
			losses: "web_search:search_context_size"},
		{name: "another vendor's tool", req: dialogue.Request{MaxTokens: n(9),
			Tools: []dialogue.Tool{{Kind: dialogue.OpaqueTool, Type: "mcp", Origin: dialoguetest.Responses}}},
			want: `{"tools":null}`, losses: "tools:mcp"},
		{name: "stop without blanks", req: dialogue.Request{MaxTokens: n(9), Stop: []string{"a", " "}},
			want: `{"stop_sequences":["a"]}`},
		{name: "user", req: dialogue.Request{MaxTokens: n(9), User: "u", Metadata: json.RawMessage(`{"a":"b"}`)},
			want: `{"metadata":{"user_id":"u"}}`, losses: "metadata"},
		{name: "tiers", req: dialogue.Request{MaxTokens: n(9), ServiceTier: "flex"},
			want: `{"service_tier":"standard_only"}`, losses: "service_tier"},
		{name: "unknown tiers", req: dialogue.Request{MaxTokens: n(9), ServiceTier: "priority"},
			want: `{"service_tier":null}`, losses: "service_tier"},
		{name: "any JSON degrades", req: dialogue.Request{MaxTokens: n(9),
			Output: dialogue.Output{Mode: dialogue.OutputJSON}}, want: `{"output_config":null}`},
		{name: "system is joined in order", req: dialogue.Request{MaxTokens: n(9),
			System: []dialogue.Part{text("a"), text(""), text("b")}}, want: `{"system":"a\n\nb"}`},
		{name: "marked system stays apart", req: dialogue.Request{MaxTokens: n(9),
			System: []dialogue.Part{{Text: "a", CacheHint: json.RawMessage(`{"type":"ephemeral"}`)}, text("b")}},
			want: `{"system":[{"type":"text","text":"a","cache_control":{"type":"ephemeral"}},{"type":"text","text":"b"}]}`},
	} {
		t.Run(c.name, func(t *testing.T) {
			c.req.Turns = []dialogue.Turn{user(text("hi"))}
			target := model()
			if c.target != nil {
				c.target(&target)
			}
			got, rep := encoded(t, &c.req, target)
			for name, want := range decoded(t, []byte(c.want)) {
				if g, w := compact(t, got[name]), compact(t, want); g != w {
					t.Errorf("%s: got %s, want %s", name, g, w)
				}
			}
			if rep.Header() != c.losses {
				t.Errorf("losses %q, want %q", rep.Header(), c.losses)
			}
		})
	}
}

func TestThinkingStopsWhereItsHistoryIsGone(t *testing.T) {
	turns := []dialogue.Turn{user(text("a")), assistant(call("1", "f", "{}")), user(result("1", "r"))}
	got, rep := encoded(t, &dialogue.Request{Turns: turns, MaxTokens: new(int64(9000)),
		Reasoning: dialogue.Reasoning{Effort: "low"}}, model())
	if got["thinking"] != nil || rep.Header() != "reasoning:history" {
		t.Errorf("thinking %v, losses %q", got["thinking"], rep.Header())
	}
}

func TestToolNamesAreRewrittenAndRemembered(t *testing.T) {
	long := strings.Repeat("x", 200)
	req := &dialogue.Request{MaxTokens: new(int64(9)),
		Turns: []dialogue.Turn{user(text("a")), assistant(call("1", "a.b", "")), user(result("1", "r"))},
		Tools: []dialogue.Tool{{Kind: dialogue.FunctionTool, Name: "a.b"}, {Kind: dialogue.FunctionTool, Name: "a_b"},
			{Kind: dialogue.FunctionTool, Name: long}}}
	got, _ := encoded(t, req, model())
	names := map[string]bool{}
	for _, tool := range got["tools"].([]any) {
		name := tool.(map[string]any)["name"].(string)
		if names[name] || len(name) > 128 || name != safe(name, 128) {
			t.Errorf("bad name %q", name)
		}
		names[name] = true
	}
	if !names["a_b"] || req.Renamed["a_b_2"] != "a.b" || req.Renamed["a_b"] != "" {
		t.Errorf("names %v, renamed %v", names, req.Renamed)
	}
	use := got["messages"].([]any)[1].(map[string]any)["content"].([]any)[0].(map[string]any)
	if use["name"] != "a_b_2" {
		t.Errorf("the history calls it %v", use["name"])
	}
}

func TestMediaBecomesBlocks(t *testing.T) {
	for _, c := range []struct {
		name    string
		part    dialogue.Part
		want    string
		refusal string // words of it
	}{
		{"image", dialogue.Part{Media: &dialogue.Media{Kind: dialogue.Image, MIME: "image/jpg", Base64: "AA"}},
			`{"type":"image","source":{"type":"base64","media_type":"image/jpeg","data":"AA"}}`, ""},
		{"image without a type", dialogue.Part{Media: &dialogue.Media{Kind: dialogue.Image, Base64: "iVBORw0KGgoA"}},
			`{"type":"image","source":{"type":"base64","media_type":"image/png","data":"iVBORw0KGgoA"}}`, ""},
		{"image address", dialogue.Part{Media: &dialogue.Media{Kind: dialogue.Image, URL: "https://h/x"}},
			`{"type":"image","source":{"type":"url","url":"https://h/x"}}`, ""},
		{"svg", dialogue.Part{Media: &dialogue.Media{Kind: dialogue.Image, MIME: "image/svg+xml", Base64: "AA"}}, "",
			"gif and webp images only"},
		{"pdf", dialogue.Part{Media: &dialogue.Media{Kind: dialogue.File, MIME: "application/pdf", Base64: "AA",
			Name: "a.pdf"}}, `{"type":"document","source":{"type":"base64","media_type":"application/pdf","data":"AA"},"title":"a.pdf"}`, ""},
		{"text", dialogue.Part{Media: &dialogue.Media{Kind: dialogue.File, MIME: "text/csv", Base64: "YSxi"}},
			`{"type":"document","source":{"type":"text","media_type":"text/plain","data":"a,b"}}`, ""},
		{"binary", dialogue.Part{Media: &dialogue.Media{Kind: dialogue.File, MIME: "application/zip", Base64: "AAAA"}},
			"", "plain text documents only"},
		{"foreign file", dialogue.Part{Media: &dialogue.Media{Kind: dialogue.File, FileID: "file-1"},
			Origin: dialoguetest.Chat}, "", "file of another provider"},
		{"audio", dialogue.Part{Media: &dialogue.Media{Kind: dialogue.Audio, Base64: "AA"}}, "", "does not take audio"},
		{"bucket", dialogue.Part{Media: &dialogue.Media{Kind: dialogue.File, URL: "gs://b/x"}}, "",
			"cannot fetch the address"},
	} {
		t.Run(c.name, func(t *testing.T) {
			c.part.Kind = dialogue.MediaPart
			req := &dialogue.Request{MaxTokens: new(int64(9)), Turns: []dialogue.Turn{user(c.part)}}
			call, err := Shape.Encode(req, model(), new(dialogue.Report), newEnv())
			if c.refusal != "" {
				var refused *dialogue.Error
				if !errors.As(err, &refused) || refused.Status != 400 || refused.Param != dialogue.Conversation ||
					!strings.Contains(refused.Message, c.refusal) {
					t.Fatalf("got %v, want 400 with %q", err, c.refusal)
				}
				return
			}
			if err != nil {
				t.Fatal(err)
			}
			block := decoded(t, call.Body)["messages"].([]any)[0].(map[string]any)["content"].([]any)[0]
			if got := compact(t, block); got != compact(t, decoded(t, []byte(c.want))) {
				t.Errorf("got %s, want %s", got, c.want)
			}
		})
	}
}

func TestWhatCannotBeLeftOutIsRefused(t *testing.T) {
	hosted := &dialogue.ToolChoice{Mode: dialogue.ToolNamed, Opaque: json.RawMessage(`{"type":"file_search"}`),
		Origin: dialoguetest.Responses}
	for param, req := range map[string]dialogue.Request{
		"modalities":  {Modalities: []string{"text", "audio"}},
		"suffix":      {Suffix: "x"},
		"prompt":      {Prompts: [][]byte{[]byte(`[1,2]`)}},
		"tool_choice": {ToolChoice: hosted, Turns: []dialogue.Turn{user(text("a"))}},
	} {
		_, err := Shape.Encode(&req, model(), new(dialogue.Report), newEnv())
		var refused *dialogue.Error
		if !errors.As(err, &refused) || refused.Status != 400 || refused.Param != param {
			t.Errorf("%s: got %v", param, err)
		}
	}
}

func TestNativePartsGoBackAsTheyCame(t *testing.T) {
	body := `{"model":"m","max_tokens":9,"messages":[{"role":"user","content":[{"type":"document","source":{"type":"text","media_type":"text/plain","data":"d"},"citations":{"enabled":true}}]},` +
		`{"role":"assistant","content":[{"type":"thinking","thinking":"t","signature":"S"},{"type":"redacted_thinking","data":"R"},{"type":"server_tool_use","id":"srvtoolu_1","name":"web_search","input":{"q":1}},{"type":"text","text":"x","citations":[{"type":"char_location"}]},{"type":"tool_use","id":"1","name":"f","input":{"a":12345678901234567890}}]},` +
		`{"role":"user","content":[{"type":"tool_result","tool_use_id":"1","is_error":true,"content":"r"}]}]}`
	env := newEnv()
	req, err := Shape.Decode([]byte(body), inbound(), env)
	if err != nil {
		t.Fatal(err)
	}
	call, err := Shape.Encode(req, model(), new(dialogue.Report), env)
	if err != nil {
		t.Fatal(err)
	}
	want := body[strings.Index(body, `"messages"`)+len(`"messages":`) : len(body)-1]
	var got struct{ Messages json.RawMessage }
	if err := json.Unmarshal(call.Body, &got); err != nil {
		t.Fatal(err)
	}
	var a, b any
	_ = json.Unmarshal(got.Messages, &a)
	_ = json.Unmarshal([]byte(want), &b)
	if compact(t, a) != compact(t, b) || !strings.Contains(string(got.Messages), "12345678901234567890") {
		t.Errorf("got  %s\nwant %s", got.Messages, want)
	}
}
