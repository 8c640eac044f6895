package gemini_test

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/tidwall/gjson"

	"stagedoor/providers/dialogue"
	"stagedoor/providers/dialogue/dialoguetest"
	"stagedoor/providers/shapes"
	"stagedoor/providers/shapes/gemini"
)

func num[T int64 | bool](v T) *T { return &v }

func TestEncodeSaysEveryParameter(t *testing.T) {
	req := &dialogue.Request{Inbound: dialoguetest.Chat, System: []dialogue.Part{text("A"), text("B")},
		Turns:       []dialogue.Turn{user(text("hi"))},
		Temperature: "0", TopP: "0.50", TopK: num[int64](5), MaxTokens: num[int64](300),
		Stop: []string{"1", "", "2", "3", "4", "5", "6"}, Seed: "7",
		PresencePenalty: "1", FrequencyPenalty: "-1", N: 2, LogProbs: true, TopLogProbs: num[int64](3),
		LogitBias: json.RawMessage(`{"5":1}`), User: "u",
		Reasoning: dialogue.Reasoning{Effort: "low"}, Output: dialogue.Output{Mode: dialogue.OutputJSON}}
	body, rep := encode(t, req, target())
	want := `{"systemInstruction":{"parts":[{"text":"A"},{"text":"B"}]},"contents":[{"role":"user","parts":[{"text":"hi"}]}],` +
		`"generationConfig":{"temperature":0,"topP":0.50,"topK":5,"maxOutputTokens":300,"stopSequences":["1","2","3","4","5"],"seed":7,` +
		`"presencePenalty":1,"frequencyPenalty":-1,"candidateCount":2,"responseLogprobs":true,"logprobs":3,` +
		`"responseMimeType":"application/json","thinkingConfig":{"thinkingBudget":1024,"includeThoughts":true}}}`
	if body != want {
		t.Errorf("got  %s\nwant %s", body, want)
	}
	if got := strings.Join(rep.Losses(), " "); got != "logit_bias user" || strings.Join(req.Enforced.Stop, " ") != "6" {
		t.Errorf("losses %q", got)
	}
}

func TestEncodeAddressesTheModel(t *testing.T) {
	req := &dialogue.Request{Turns: []dialogue.Turn{user(text("hi"))}}
	for _, row := range []struct {
		model, path, query string
		stream             bool
	}{
		{"gemini-2.5-flash", "/v1beta/models/gemini-2.5-flash:generateContent", "", false},
		{"gemini-2.5-flash", "/v1beta/models/gemini-2.5-flash:streamGenerateContent", "alt=sse", true},
		{"tunedModels/x", "/v1beta/tunedModels/x:generateContent", "", false},
	} {
		req.Stream = row.stream
		to := target()
		to.Model = row.model
		c, err := gemini.Shape.Encode(req, to, nil, newEnv())
		if err != nil || c.Path != row.path || c.Query != row.query || c.Stream != row.stream {
			t.Errorf("got %q %q %v %v", c.Path, c.Query, c.Stream, err)
		}
	}
}

func TestHistoryIsPutInOrder(t *testing.T) {
	for _, row := range []struct {
		name   string
		turns  []dialogue.Turn
		want   string // roles and parts in short
		losses string
	}{
		{"same roles merge", []dialogue.Turn{user(text("a")), user(text("b")), assistant(text("c")),
			assistant(text(""))}, "user(a b) model(c)", ""},
		{"results follow their calls in order",
			[]dialogue.Turn{user(text("q")), assistant(text("t"), called("1", "f", ""), called("2", "g", "{}")),
				user(result("2", "G")), user(text("and"), result("1", "F"))},
			"user(q) model(t f! g!) user(f=F g=G and)", ""},
		{"a result far away comes back",
			[]dialogue.Turn{user(text("q")), assistant(called("1", "f", "")), user(text("x")), assistant(text("y")),
				user(result("1", "F"))},
			"user(q) model(f!) user(f=F x) model(y)", ""},
		{"a hole is filled", []dialogue.Turn{user(text("q")), assistant(called("1", "f", ""), called("2", "g", "")),
			user(result("2", "G"))},
			"user(q) model(f! g!) user(f=The call was not answered. g=G)", "tool_results:missing"},
		{"an orphan becomes text", []dialogue.Turn{user(result("9", "X"))}, "user(Result of an earlier tool call:\nX)",
			"tool_results:orphan"},
		{"a second result is lost", []dialogue.Turn{user(text("q")), assistant(called("1", "f", "")),
			user(result("1", "A")), user(result("1", "B"))}, "user(q) model(f!) user(f=A)", "tool_results:duplicate"},
		{"open calls at the end stay open", []dialogue.Turn{user(text("q")), assistant(called("1", "f", ""))},
			"user(q) model(f!)", ""},
		{"ids that come again in each turn", []dialogue.Turn{user(text("q")), assistant(called("1", "f", "")),
			user(result("1", "A")), assistant(called("1", "g", "")), user(result("1", "B"))},
			"user(q) model(f!) user(f=A) model(g!) user(g=B)", ""},
		{"the user speaks first", []dialogue.Turn{assistant(text("a")), user(text("b"))}, "user(.) model(a) user(b)",
			"contents:placeholder"},
		{"nothing said at all", nil, "user(.)", "contents:placeholder"},
		{"a late system message is the user's", []dialogue.Turn{user(text("a")),
			{Role: dialogue.Assistant, Parts: []dialogue.Part{{Kind: dialogue.SystemPart, Text: "s"}}}},
			"user(a <system-reminder>\ns\n</system-reminder>)", "system:folded"},
		{"foreign thoughts stay at home", []dialogue.Turn{user(text("a")),
			assistant(dialogue.Part{Kind: dialogue.ThinkingPart, Thinking: &dialogue.Thinking{Text: "t", Signature: "s",
				Origin: dialoguetest.Messages}}), user(text("b"))}, "user(a b)", "thinking"},
	} {
		t.Run(row.name, func(t *testing.T) {
			body, rep := encode(t, &dialogue.Request{Turns: row.turns}, target())
			if got := outline(body); got != row.want {
				t.Errorf("got %q, want %q", got, row.want)
			}
			if got := strings.Join(rep.Losses(), ","); got != row.losses {
				t.Errorf("losses %q, want %q", got, row.losses)
			}
		})
	}
}

// outline is the contents of a body in short.
func outline(body string) string {
	var turns []string
	for _, c := range gjson.Get(body, "contents").Array() {
		var parts []string
		for _, p := range c.Get("parts").Array() {
			switch {
			case p.Get("functionCall").Exists():
				parts = append(parts, p.Get("functionCall.name").Str+"!")
			case p.Get("functionResponse").Exists():
				answer := p.Get("functionResponse.response.output").Str + p.Get("functionResponse.response.error").Str
				parts = append(parts, p.Get("functionResponse.name").Str+"="+answer)
			default:
				parts = append(parts, p.Get("text").Str)
			}
		}
		turns = append(turns, c.Get("role").Str+"("+strings.Join(parts, " ")+")")
	}
	return strings.Join(turns, " ")
}

func TestResultsAreObjects(t *testing.T) {
	for _, row := range []struct {
		in   dialogue.Result
		want string
	}{
		{dialogue.Result{Parts: []dialogue.Part{text("rain")}}, `{"output":"rain"}`},
		{dialogue.Result{Parts: []dialogue.Part{text(`["a",1]`)}}, `{"output":["a",1]}`},
		{dialogue.Result{Parts: []dialogue.Part{text(`{"n":9007199254740993}`)}}, `{"n":9007199254740993}`},
		{dialogue.Result{Parts: []dialogue.Part{text(`{"n":`)}}, `{"output":"{\"n\":"}`},
		{dialogue.Result{Parts: []dialogue.Part{text("boom")}, IsError: true}, `{"error":"boom"}`},
		{dialogue.Result{Parts: []dialogue.Part{text("x")}, Object: json.RawMessage(`{"a":1}`)}, `{"a":1}`},
		{dialogue.Result{}, `{"output":""}`},
	} {
		in := row.in
		in.CallID = "1"
		body, _ := encode(t, &dialogue.Request{Turns: []dialogue.Turn{user(text("q")), assistant(called("1", "f", "")),
			user(dialogue.Part{Kind: dialogue.ResultPart, Result: &in})}}, target())
		if got := gjson.Get(body, "contents.2.parts.0.functionResponse.response").Raw; got != row.want {
			t.Errorf("got %s, want %s", got, row.want)
		}
	}
}

func TestArgumentsAreObjects(t *testing.T) {
	for in, want := range map[string]string{
		"": `{}`, "null": `{}`, ` {"a":1.0} `: `{"a":1.0}`, `[1]`: `{"input":[1]}`, `{"a":`: `{"input":"{\"a\":"}`,
	} {
		body, _ := encode(t, &dialogue.Request{Turns: []dialogue.Turn{user(text("q")),
			assistant(called("1", "f", in))}}, target())
		if got := gjson.Get(body, "contents.1.parts.0.functionCall.args").Raw; got != want {
			t.Errorf("%q: got %s, want %s", in, got, want)
		}
	}
}

func TestTheTextOfACustomToolKeepsItsWhiteSpace(t *testing.T) {
	call := called("1", "apply_patch", " *** Begin Patch\n")
	call.Call.Custom = true
	body, _ := encode(t, &dialogue.Request{Turns: []dialogue.Turn{user(text("q")), assistant(call)}}, target())
	if got := gjson.Get(body, "contents.1.parts.0.functionCall.args.input").Str; got != " *** Begin Patch\n" {
		t.Errorf("got %q", got)
	}
}

func TestMediaFindsItsPlace(t *testing.T) {
	part := func(m dialogue.Media) dialogue.Part { return dialogue.Part{Kind: dialogue.MediaPart, Media: &m} }
	for _, row := range []struct {
		in           dialogue.Media
		want, losses string
	}{
		{dialogue.Media{Kind: dialogue.Image, MIME: "image/png", Base64: "QQ=="},
			`{"inlineData":{"mimeType":"image/png","data":"QQ=="}}`, ""},
		{dialogue.Media{Kind: dialogue.Image, URL: "data:image/gif;charset=x;BASE64,QQ=="},
			`{"inlineData":{"mimeType":"image/gif","data":"QQ=="}}`, ""},
		{dialogue.Media{Kind: dialogue.Image, URL: "https://h/a.PNG?x=1"},
			`{"fileData":{"mimeType":"image/png","fileUri":"https://h/a.PNG?x=1"}}`, "image:mime_guessed"},
		{dialogue.Media{Kind: dialogue.File, Text: "doc"}, `{"text":"doc"}`, ""},
		{dialogue.Media{Kind: dialogue.Audio, MIME: "audio/wav", Base64: "QQ=="},
			`{"inlineData":{"mimeType":"audio/wav","data":"QQ=="}}`, ""},
	} {
		body, rep := encode(t, &dialogue.Request{Turns: []dialogue.Turn{user(part(row.in))}}, target())
		if got := gjson.Get(body, "contents.0.parts.0").Raw; got != row.want {
			t.Errorf("got %s, want %s", got, row.want)
		}
		if got := strings.Join(rep.Losses(), ","); got != row.losses {
			t.Errorf("losses %q, want %q", got, row.losses)
		}
	}
}

func TestForeignFilesAreRefused(t *testing.T) {
	file := dialogue.Part{Kind: dialogue.MediaPart, Origin: dialoguetest.Chat,
		Media: &dialogue.Media{Kind: dialogue.File, FileID: "file-1"}}
	for name, turns := range map[string][]dialogue.Turn{
		"in a turn":   {user(file)},
		"in a result": {assistant(called("1", "f", "")), user(dialogue.Part{Kind: dialogue.ResultPart, Result: &dialogue.Result{CallID: "1", Parts: []dialogue.Part{file}}})},
	} {
		_, err := gemini.Shape.Encode(&dialogue.Request{Turns: turns}, target(), nil, newEnv())
		if e, ok := err.(*dialogue.Error); !ok || e.Status != 400 {
			t.Errorf("%s: got %v", name, err)
		}
	}
}

func TestMediaOfResultsStandsWhereTheGenerationTakesIt(t *testing.T) {
	image := dialogue.Part{Kind: dialogue.MediaPart,
		Media: &dialogue.Media{Kind: dialogue.Image, MIME: "image/png", Base64: "QQ=="}}
	turns := []dialogue.Turn{user(text("q")), assistant(called("1", "f", ""), called("2", "g", "")),
		user(dialogue.Part{Kind: dialogue.ResultPart,
			Result: &dialogue.Result{CallID: "1", Parts: []dialogue.Part{image}}}, result("2", "x"))}
	body, _ := encode(t, &dialogue.Request{Turns: turns}, target())
	if !gjson.Get(body, "contents.2.parts.2.inlineData").Exists() {
		t.Errorf("2.5: %s", body)
	}
	body, _ = encode(t, &dialogue.Request{Turns: turns}, targetOf("gemini-3-pro-preview"))
	if !gjson.Get(body, "contents.2.parts.0.functionResponse.parts.0.inlineData").Exists() {
		t.Errorf("3: %s", body)
	}
}

func TestToolsAreDeclared(t *testing.T) {
	req := &dialogue.Request{Inbound: dialoguetest.Responses,
		Turns: []dialogue.Turn{user(text("q")), assistant(called("1", "my tool", "{}")), user(result("1", "x"))},
		Tools: []dialogue.Tool{
			{Kind: dialogue.FunctionTool, Name: "f", Description: "d",
				Schema: json.RawMessage(`{"type":"object","properties":{"a":{"type":"string"}}}`)},
			{Kind: dialogue.FunctionTool, Name: "none", Schema: json.RawMessage(`{"type":"object","properties":{}}`)},
			{Kind: dialogue.FunctionTool, Name: "my tool"},
			{Kind: dialogue.FunctionTool, Name: "my_tool"},
			{Kind: dialogue.CustomTool, Name: "free"},
			{Kind: dialogue.WebSearchTool, Origin: dialoguetest.Responses},
			{Kind: dialogue.OpaqueTool, Type: "mcp", Origin: dialoguetest.Responses},
		}}
	body, rep := encode(t, req, target())
	declared := gjson.Get(body, "tools.0.functionDeclarations")
	for path, want := range map[string]string{
		"0.parametersJsonSchema.properties.a.type": "string",
		"2.name": "my_tool_2", "3.name": "my_tool",
		"4.parametersJsonSchema.required.0": "input",
	} {
		if got := declared.Get(path).Str; got != want {
			t.Errorf("%s: got %q, want %q", path, got, want)
		}
	}
	if declared.Get("1.parametersJsonSchema").Exists() || declared.Get("1.parameters").Exists() {
		t.Error("an empty object was sent as parameters")
	}
	if req.Renamed["my_tool_2"] != "my tool" || len(req.Renamed) != 1 {
		t.Errorf("renamed: %v", req.Renamed)
	}
	if got := gjson.Get(body, "contents.1.parts.0.functionCall.name").Str; got != "my_tool_2" {
		t.Errorf("the call in history is named %q", got)
	}
	if gjson.Get(body, "tools.1").Raw != `{"googleSearch":{}}` || gjson.Get(body, "tools.#").Int() != 2 || strings.Join(rep.Losses(), ",") != "tools:mcp" {
		t.Errorf("server tools: %s %v", body, rep.Losses())
	}
}

func TestWhatASearchCannotKeepIsTold(t *testing.T) {
	search := []dialogue.Tool{{Kind: dialogue.WebSearchTool, Origin: dialoguetest.Responses,
		Opaque: json.RawMessage(`{"type":"web_search","search_context_size":"high","user_location":null}`)}}
	for name, c := range map[string]struct {
		req    dialogue.Request
		losses string
	}{
		"options":              {dialogue.Request{WebSearch: true, SearchOptions: json.RawMessage(`{"user_location":{"type":"approximate"}}`)}, "web_search:user_location"},
		"a tool's limits":      {dialogue.Request{Tools: search}, "web_search:search_context_size"},
		"a duty to search":     {dialogue.Request{WebSearch: true, ToolChoice: &dialogue.ToolChoice{Mode: dialogue.ToolRequired}}, "tool_choice"},
		"a duty among some":    {dialogue.Request{WebSearch: true, ToolChoice: &dialogue.ToolChoice{Mode: dialogue.ToolAllowed, Required: true}}, "tool_choice"},
		"a ban on searching":   {dialogue.Request{WebSearch: true, ToolChoice: &dialogue.ToolChoice{Mode: dialogue.ToolNone}}, "tool_choice"},
		"a free choice":        {dialogue.Request{WebSearch: true, ToolChoice: &dialogue.ToolChoice{Mode: dialogue.ToolAuto}}, ""},
		"nothing to be banned": {dialogue.Request{ToolChoice: &dialogue.ToolChoice{Mode: dialogue.ToolNone}}, ""},
		"a duty that functions have": {dialogue.Request{WebSearch: true, Tools: []dialogue.Tool{{Kind: dialogue.FunctionTool, Name: "f"}},
			ToolChoice: &dialogue.ToolChoice{Mode: dialogue.ToolRequired}}, ""},
	} {
		c.req.Inbound, c.req.Turns = dialoguetest.Chat, []dialogue.Turn{user(text("q"))}
		if _, rep := encode(t, &c.req, target()); rep.Header() != c.losses {
			t.Errorf("%s: losses %q, want %q", name, rep.Header(), c.losses)
		}
	}
}

func TestOlderModelsGetTheSubset(t *testing.T) {
	to := target()
	to.Caps.JSONSchema = false
	body, _ := encode(t, &dialogue.Request{Turns: []dialogue.Turn{user(text("q"))},
		Output: dialogue.Output{Mode: dialogue.OutputSchema,
			Schema: json.RawMessage(`{"type":"object","properties":{"a":{"type":["string","null"]}}}`)},
		Tools: []dialogue.Tool{{Kind: dialogue.FunctionTool, Name: "f",
			Schema: json.RawMessage(`{"type":"object","properties":{"a":{"const":"x"}}}`)}}}, to)
	if gjson.Get(body, "tools.0.functionDeclarations.0.parameters.type").Str != "OBJECT" || gjson.Get(body, "generationConfig.responseSchema.properties.a.nullable").Raw != "true" {
		t.Error(body)
	}
}

func TestToolChoices(t *testing.T) {
	tools := []dialogue.Tool{{Kind: dialogue.FunctionTool, Name: "f"}, {Kind: dialogue.FunctionTool, Name: "g g"}}
	for _, row := range []struct {
		choice *dialogue.ToolChoice
		strict bool
		want   string
	}{
		{nil, false, ""},
		{nil, true, `{"mode":"VALIDATED"}`},
		{&dialogue.ToolChoice{Mode: dialogue.ToolAuto}, false, `{"mode":"AUTO"}`},
		{&dialogue.ToolChoice{Mode: dialogue.ToolNone}, true, `{"mode":"NONE"}`},
		{&dialogue.ToolChoice{Mode: dialogue.ToolRequired}, false, `{"mode":"ANY"}`},
		{&dialogue.ToolChoice{Mode: dialogue.ToolNamed, Names: []string{"g g"}}, false,
			`{"mode":"ANY","allowedFunctionNames":["g_g"]}`},
		{&dialogue.ToolChoice{Mode: dialogue.ToolAllowed, Names: []string{"f", "g g"}, Required: true}, false,
			`{"mode":"ANY","allowedFunctionNames":["f","g_g"]}`},
		{&dialogue.ToolChoice{Mode: dialogue.ToolAllowed, Names: []string{"f"}}, false, `{"mode":"AUTO"}`},
	} {
		list := append([]dialogue.Tool(nil), tools...)
		list[0].Strict = num(row.strict)
		body, _ := encode(t, &dialogue.Request{Turns: []dialogue.Turn{user(text("q"))}, Tools: list,
			ToolChoice: row.choice}, target())
		if got := gjson.Get(body, "toolConfig.functionCallingConfig").Raw; got != row.want {
			t.Errorf("%+v: got %s, want %s", row.choice, got, row.want)
		}
	}
	body, _ := encode(t, &dialogue.Request{Turns: []dialogue.Turn{user(text("q"))},
		ToolChoice: &dialogue.ToolChoice{Mode: dialogue.ToolRequired}}, target())
	if gjson.Get(body, "toolConfig").Exists() {
		t.Error("a choice without tools was sent")
	}
	_, err := gemini.Shape.Encode(&dialogue.Request{Turns: []dialogue.Turn{user(text("q"))},
		ToolChoice: &dialogue.ToolChoice{Opaque: json.RawMessage(`{}`), Origin: dialoguetest.Responses}}, target(), nil,
		newEnv())
	if err == nil {
		t.Error("a choice of a tool that does not exist was accepted")
	}
	_, err = gemini.Shape.Encode(&dialogue.Request{Turns: []dialogue.Turn{user(text("q"))},
		Tools: []dialogue.Tool{{Kind: dialogue.OpaqueTool, Type: "code_execution_20250522", Name: "code_execution",
			Origin: dialoguetest.Messages}},
		ToolChoice: &dialogue.ToolChoice{Mode: dialogue.ToolNamed, Names: []string{"code_execution"}}}, target(), nil,
		newEnv())
	if err == nil {
		t.Error("a choice of a tool of another vendor was accepted")
	}
}

func TestThinkingIsToldInTheModelsWords(t *testing.T) {
	budget := func(n int64) dialogue.Reasoning { return dialogue.Reasoning{Budget: &n} }
	effort := func(s string) dialogue.Reasoning { return dialogue.Reasoning{Effort: s} }
	for _, row := range []struct {
		model string
		in    dialogue.Reasoning
		want  string
	}{
		{"gemini-2.5-flash", dialogue.Reasoning{}, ""},
		{"gemini-2.5-flash", effort("none"), `{"thinkingBudget":0}`},
		{"gemini-2.5-pro", effort("none"), `{"thinkingBudget":128}`},
		{"gemini-2.5-flash", effort("medium"), `{"thinkingBudget":8192,"includeThoughts":true}`},
		{"gemini-2.5-flash", effort("xhigh"), `{"thinkingBudget":24576,"includeThoughts":true}`},
		{"gemini-2.5-flash", budget(50000), `{"thinkingBudget":24576,"includeThoughts":true}`},
		{"gemini-2.5-pro", budget(30000), `{"thinkingBudget":30000,"includeThoughts":true}`},
		{"gemini-2.5-flash-lite", budget(100), `{"thinkingBudget":512,"includeThoughts":true}`},
		{"gemini-2.5-flash", dialogue.Reasoning{Adaptive: true}, `{"thinkingBudget":-1,"includeThoughts":true}`},
		{"gemini-3-pro-preview", effort("medium"), `{"thinkingLevel":"HIGH","includeThoughts":true}`},
		{"gemini-3-flash", effort("medium"), `{"thinkingLevel":"MEDIUM","includeThoughts":true}`},
		{"gemini-3-flash", effort("none"), `{"thinkingLevel":"MINIMAL"}`},
		{"gemini-3-pro-preview", budget(2000), `{"thinkingLevel":"LOW","includeThoughts":true}`},
		{"gemini-3-pro-preview", dialogue.Reasoning{Adaptive: true, Include: true}, `{"includeThoughts":true}`},
		{"gemini-1.5-pro", effort("high"), ""},
	} {
		body, _ := encode(t, &dialogue.Request{Inbound: dialoguetest.Messages,
			Turns: []dialogue.Turn{user(text("q"))}, Reasoning: row.in}, targetOf(row.model))
		if got := gjson.Get(body, "generationConfig.thinkingConfig").Raw; got != row.want {
			t.Errorf("%s %+v: got %s, want %s", row.model, row.in, got, row.want)
		}
	}
}

func TestSignaturesComeBackWithTheirCalls(t *testing.T) {
	env := newEnv()
	env.RememberSignature("2", "remembered")
	own := called("1", "f", "")
	own.Call.Signature = "own"
	to := target()
	to.Model, to.Caps.Thinking = "gemini-3-pro-preview", dialogue.ThinkingEffort
	for _, row := range []struct {
		call  dialogue.Part
		model string
		want  string
	}{
		{own, to.Model, "own"},
		{called("2", "f", ""), to.Model, "remembered"},
		{called("3", "f", ""), to.Model, "skip_thought_signature_validator"},
		{called("3", "f", ""), "gemini-2.5-flash", ""},
	} {
		target := targetOf(row.model)
		call, err := gemini.Shape.Encode(&dialogue.Request{Turns: []dialogue.Turn{user(text("q")),
			assistant(row.call, called("9", "g", ""))}}, target, nil, env)
		if err != nil {
			t.Fatal(err)
		}
		parts := gjson.GetBytes(call.Body, "contents.1.parts")
		if got := parts.Get("0.thoughtSignature").Str; got != row.want || parts.Get("1.thoughtSignature").Exists() {
			t.Errorf("got %q, want %q in %s", got, row.want, parts.Raw)
		}
	}
}

func TestThoughtsGoBackWhereTheyStood(t *testing.T) {
	th := func(text, sig string) dialogue.Part {
		return dialogue.Part{Kind: dialogue.ThinkingPart,
			Thinking: &dialogue.Thinking{Text: text, Signature: sig, Origin: dialoguetest.Gemini}}
	}
	for want, parts := range map[string][]dialogue.Part{
		`[{"text":"why","thought":true,"thoughtSignature":"A"},{"text":"x","thoughtSignature":"B"},` +
			`{"text":"","thoughtSignature":"C"}]`: {th("why", "A"), text("x"), th("", "B"), th("", "C")},
		// Clients of chat have no place for a signature but in front of the text.
		`[{"text":"x","thoughtSignature":"A"}]`: {th("", "A"), text("x")},
		`[{"text":"","thoughtSignature":"A"},{"text":"x","thoughtSignature":"B"}]`: {
			th("", "A"), text("x"), th("", "B"),
		},
	} {
		body, _ := encode(t, &dialogue.Request{Turns: []dialogue.Turn{user(text("q")), assistant(parts...)}}, target())
		if got := gjson.Get(body, "contents.1.parts").Raw; got != want {
			t.Errorf("got %s, want %s", got, want)
		}
	}
}

func TestASecondFunctionOfOneNameIsLost(t *testing.T) {
	tool := func(namespace, name string) dialogue.Tool {
		return dialogue.Tool{Kind: dialogue.FunctionTool, Namespace: namespace, Name: name}
	}
	body, rep := encode(t, &dialogue.Request{Turns: []dialogue.Turn{user(text("q"))},
		Tools: []dialogue.Tool{tool("", "f"), tool("n", "f"), tool("", "f"), tool("", "g")}}, target())
	got := gjson.Get(body, "tools.0.functionDeclarations.#.name").Raw
	if want := `["f","n__f","g"]`; got != want || strings.Join(rep.Losses(), ",") != "tools:duplicate" {
		t.Errorf("got %s, losses %q, want %s", got, rep.Losses(), want)
	}
}

func TestACustomToolSaysWhatItsInputIs(t *testing.T) {
	body, _ := encode(t, &dialogue.Request{Turns: []dialogue.Turn{user(text("q"))}, Tools: []dialogue.Tool{{
		Kind: dialogue.CustomTool, Name: "patch", Description: "Edits files.",
		Format: json.RawMessage(`{"type":"grammar","syntax":"lark","definition":"start: /x/"}`)}}}, target())
	const want = "Edits files.\nPut the whole input of this tool, as it is, into \"input\".\n" +
		"It must follow this lark grammar:\nstart: /x/"
	if got := gjson.Get(body, "tools.0.functionDeclarations.0.description").Str; got != want {
		t.Errorf("got %q, want %q", got, want)
	}
}

// A data URL in percent encoding stays an address in the neutral form, and this shape has no such addresses.
func TestADataURLWithoutBase64IsSentAsData(t *testing.T) {
	media := &dialogue.Media{Kind: dialogue.Image}
	media.SetURL("data:image/svg+xml,%3Csvg/%3E")
	body, rep := encode(t, &dialogue.Request{Turns: []dialogue.Turn{
		user(dialogue.Part{Kind: dialogue.MediaPart, Media: media})}}, target())
	got := gjson.Get(body, "contents.0.parts.0.inlineData").Raw
	if want := `{"mimeType":"image/svg+xml","data":"PHN2Zy8+"}`; got != want || len(rep.Losses()) > 0 {
		t.Errorf("got %s, losses %q, want %s", got, rep.Losses(), want)
	}
}

func TestAClientOfTheSameShapeIsSentAsItCame(t *testing.T) {
	body := `{"model":"models/alias","contents":[{"parts":[{"text":"hi","future":1}]}],"generation_config":{"top_k":3},"new":[1]}`
	req := decode(t, newEnv(), body)
	req.Stream = true
	call, err := gemini.Shape.Encode(req, target(), new(dialogue.Report), newEnv())
	if want := strings.Replace(body, "alias", "gemini-2.5-flash", 1); err != nil || string(call.Body) != want || call.Query != "alt=sse" {
		t.Errorf("got %s %v", call.Body, err)
	}
}

// Gemini 3 refuses a step whose first call has no signature. A loop that another model began gets
// the documented stand-in; signed steps and older models get what the client sent.
func TestCallsOfOtherModelsAreSignedOnTheWayThrough(t *testing.T) {
	const signed = `{"parts":[{"text":"x"},{"functionCall":{"name":"f"},"thoughtSignature":"QQ=="},` +
		`{"functionCall":{"name":"g"}}]}`
	body := `{"contents": [{"role":"user","parts":[{"text":"q"}]},{"role":"model","parts":[{"text":"y"}, ` +
		`{"functionCall":{"name":"f"}},{"functionCall":{"name":"g"}}]},` + signed + `]}`
	want := strings.Replace(body, `{"functionCall"`,
		`{"thoughtSignature":"skip_thought_signature_validator","functionCall"`, 1)
	for model, want := range map[string]string{"gemini-3-pro-preview": want, "gemini-2.5-flash": body} {
		rep := new(dialogue.Report)
		call, err := gemini.Shape.Patch([]byte(body), shapes.Params{}, shapes.Head{}, targetOf(model), rep, newEnv())
		if err != nil || string(call.Body) != want || (rep.Header() != "") != (want != body) {
			t.Errorf("%s: %v, losses %q, got %s", model, err, rep.Header(), call.Body)
		}
	}
}

func TestPatchTakesOutOnlyWhatItMust(t *testing.T) {
	env := newEnv()
	seal := env.Sealer.Seal(&dialogue.Thinking{Signature: "S", Origin: dialoguetest.Messages})
	none := target()
	none.Caps.StructuredOutputs = false
	const (
		called = `{"parts":[{"functionCall":{"id":"1","name":"f"}},{"functionCall":{"id":"2","name":"f"}}]}`
		one    = `{"functionResponse":{"id":"1","name":"f","response":{}}}`
		two    = `{"functionResponse":{"id":"2","name":"f","response":{}}}`
		other  = `{"functionResponse":{"id":"2","name":"f","response":{"a":1}}}`
	)
	for _, row := range []struct {
		name, body, want string
		to               dialogue.Target
		degraded         string
	}{
		{"nothing", `{ "contents":[{"parts":[{"text":"hi"}]}] }`, `{ "contents":[{"parts":[{"text":"hi"}]}] }`,
			target(), ""},
		{"a schema the model lacks", `{` + hi + `,"generation_config":{"response_mime_type":"application/json","responseSchema":{"type":"OBJECT"},"topK":1}}`,
			`{` + hi + `,"generation_config":{"topK":1}}`, none, dialogue.ModelUnsupported},
		{"a schema it has", `{` + hi + `,"generationConfig":{"responseMimeType":"application/json","responseSchema":{"type":"OBJECT"}}}`,
			`{` + hi + `,"generationConfig":{"responseMimeType":"application/json","responseSchema":{"type":"OBJECT"}}}`, target(), ""},
		{"a foreign thought", `{"contents":[{"parts":[{"text":"q"}]},{"role":"model","parts":[{"text":"a","thought":true},{"text":"","thought":true,"thoughtSignature":"` + seal + `"},{"text":"b"}]}]}`,
			`{"contents":[{"parts":[{"text":"q"}]},{"role":"model","parts":[{"text":"b"}]}]}`, target(), ""},
		{"a turn of nothing else", `{"contents":[{"parts":[{"text":"q"}]},{"role":"model","parts":[{"text":"","thoughtSignature":"` + seal + `"}]}]}`,
			`{"contents":[{"parts":[{"text":"q"}]}]}`, target(), ""},
		{"a seal on a call", `{"contents":[{"parts":[{"functionCall":{"name":"f"},"thoughtSignature":"` + seal +
			`"}]}]}`,
			`{"contents":[{"parts":[{"functionCall":{"name":"f"}}]}]}`, target(), ""},
		{"a foreign thought whose seal is on a call",
			`{"contents":[{"parts":[{"text":"own"},{"text":"a","thought":true},` +
				`{"text":"b","thought":true},{"text":"c"},{"functionCall":{"name":"f"},"thoughtSignature":"` + seal +
				`"}]}]}`,
			`{"contents":[{"parts":[{"text":"own"},{"text":"c"},{"functionCall":{"name":"f"}}]}]}`, target(), ""},
		{"responses that are sent twice",
			`{"contents":[` + called + `,{"parts":[` + one + `, ` + two + `, ` + one + `,` + two + `,` + other + `]}]}`,
			`{"contents":[` + called + `,{"parts":[` + one + `, ` + two + `,` + other + `]}]}`, target(), ""},
	} {
		t.Run(row.name, func(t *testing.T) {
			head, err := gemini.Shape.Check([]byte(row.body), inbound())
			if err != nil {
				t.Fatal(err)
			}
			rep := new(dialogue.Report)
			before := []byte(row.body)
			call, err := gemini.Shape.Patch(before, shapes.Params{Model: "m"}, head, row.to, rep, env)
			if err != nil || string(call.Body) != row.want || rep.Degraded != row.degraded {
				t.Errorf("got %s %v %q\nwant %s", call.Body, err, rep.Degraded, row.want)
			}
			if string(before) != row.body {
				t.Error("the client's bytes were written to")
			}
		})
	}
}
