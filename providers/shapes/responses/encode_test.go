package responses_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/tidwall/gjson"

	"stagedoor/providers/dialogue"
	"stagedoor/providers/dialogue/dialoguetest"
	"stagedoor/providers/shapes"
	"stagedoor/providers/shapes/responses"
)

func textPart(s string) dialogue.Part { return dialogue.Part{Kind: dialogue.TextPart, Text: s} }

func callPart(id, name, args string) dialogue.Part {
	return dialogue.Part{Kind: dialogue.CallPart, Call: &dialogue.Call{ID: id, Name: name, Args: args}}
}

func resultPart(id string, parts ...dialogue.Part) dialogue.Part {
	return dialogue.Part{Kind: dialogue.ResultPart, Result: &dialogue.Result{CallID: id, Parts: parts}}
}

func thinkingPart(t dialogue.Thinking) dialogue.Part {
	return dialogue.Part{Kind: dialogue.ThinkingPart, Thinking: &t}
}

func turn(role dialogue.Role, parts ...dialogue.Part) dialogue.Turn {
	return dialogue.Turn{Role: role, Parts: parts}
}

func TestInputKeepsTheOrderOfParts(t *testing.T) {
	image := dialogue.Part{Kind: dialogue.MediaPart,
		Media: &dialogue.Media{Kind: dialogue.Image, MIME: "image/png", Base64: "QQ=="}}
	native := dialogue.Thinking{Origin: dialoguetest.Responses, ItemID: "rs_1", Encrypted: "enc", Text: "s"}
	req := &dialogue.Request{Inbound: dialoguetest.Messages, System: []dialogue.Part{textPart("A."), textPart("B.")},
		Turns: []dialogue.Turn{
			turn(dialogue.User, textPart("q"), image),
			turn(dialogue.Assistant, thinkingPart(native), textPart("t"), callPart("c", "f", ""), textPart("u")),
			turn(dialogue.User, resultPart("c", textPart("r"), image), textPart("next")),
			turn(dialogue.User, dialogue.Part{Kind: dialogue.SystemPart, Text: "late"}),
		}}
	body, rep := encode(t, req)
	want(t, "instructions", body.Get("instructions").Str, "A.\n\nB.")
	want(t, "input", body.Get("input").Raw, `[`+
		`{"type":"message","role":"user","content":[{"type":"input_text","text":"q"},{"type":"input_image","image_url":"data:image/png;base64,QQ=="}]},`+
		`{"type":"reasoning","id":"rs_1","summary":[{"type":"summary_text","text":"s"}],"encrypted_content":"enc"},`+
		`{"type":"message","role":"assistant","content":[{"type":"output_text","text":"t"}]},`+
		`{"type":"function_call","call_id":"c","name":"f","arguments":"{}"},`+
		`{"type":"message","role":"assistant","content":[{"type":"output_text","text":"u"}]},`+
		`{"type":"function_call_output","call_id":"c","output":[{"type":"input_text","text":"r"},{"type":"input_image","image_url":"data:image/png;base64,QQ=="}]},`+
		`{"type":"message","role":"user","content":[{"type":"input_text","text":"next"}]},`+
		`{"type":"message","role":"developer","content":[{"type":"input_text","text":"late"}]}]`)
	want(t, "losses", rep.Header(), "")
	want(t, "store", body.Get("store").Raw, "false")
	want(t, "include", body.Get("include").Raw, `["reasoning.encrypted_content"]`)
}

func TestThoughtsOfOthersAreDropped(t *testing.T) {
	req := &dialogue.Request{Inbound: dialoguetest.Messages, Turns: []dialogue.Turn{
		turn(dialogue.User, textPart("q")),
		turn(dialogue.Assistant, thinkingPart(dialogue.Thinking{Text: "x", Signature: "s",
			Origin: dialoguetest.Messages}), textPart("a")),
		turn(dialogue.Assistant, thinkingPart(dialogue.Thinking{Origin: dialoguetest.Responses, Encrypted: "e"})),
		// nothing follows
		turn(dialogue.User, textPart("q")),
	}}
	body, rep := encode(t, req)
	want(t, "reasoning items", body.Get(`input.#(type=="reasoning")`).Exists(), false)
	want(t, "losses", rep.Header(), "thinking")
}

func TestResultsWithoutCallBecomeWords(t *testing.T) {
	failed := resultPart("c", textPart("boom"))
	failed.Result.IsError = true
	req := &dialogue.Request{Inbound: dialoguetest.Chat,
		Turns: []dialogue.Turn{turn(dialogue.User, resultPart("gone", textPart("r"))),
			turn(dialogue.Assistant, callPart("c", "f", "{}")), turn(dialogue.User, failed)}}
	body, rep := encode(t, req)
	want(t, "orphan", body.Get("input.0").Raw,
		`{"type":"message","role":"user","content":[{"type":"input_text","text":"r"}]}`)
	want(t, "error", body.Get("input.2.output").Str, "Error: boom")
	want(t, "losses", rep.Header(), "tool_result:orphan")
}

// The upstream refuses a call without a result, unless the call ends the input, and an id that two
// calls have.
func TestEveryCallHasItsOwnResult(t *testing.T) {
	req := &dialogue.Request{Inbound: dialoguetest.Messages, Turns: []dialogue.Turn{
		turn(dialogue.Assistant, callPart("a", "f", ""), callPart("a", "f", ""), callPart("b", "f", "")),
		turn(dialogue.User, resultPart("a", textPart("1")), resultPart("a", textPart("2"))),
		turn(dialogue.Assistant, callPart("c", "f", "")),
	}}
	body, rep := encode(t, req)
	var got []string
	body.Get("input").ForEach(func(_, item gjson.Result) bool {
		id := item.Get("call_id").Str
		got = append(got, id[:min(len(id), 6)]+item.Get("output").Str)
		return true
	})
	want(t, "calls and results", strings.Join(got, " "), "a call_e b b(no result) a1 call_e2 c")
	want(t, "losses", rep.Header(), "tool_result:missing")
}

func TestParametersWithoutAPlaceAreLost(t *testing.T) {
	small, k := int64(5), int64(3)
	req := &dialogue.Request{Inbound: dialoguetest.Chat, Turns: []dialogue.Turn{turn(dialogue.User, textPart("q"))},
		MaxTokens: &small, TopK: &k,
		Stop: []string{"x"}, Seed: "1", PresencePenalty: "0.5", FrequencyPenalty: "0",
		LogitBias: json.RawMessage(`{"1":2}`), Temperature: "0",
		Echo:  true, // the emitter of the client's shape sees to it
		Extra: []dialogue.Field{{Name: "prediction", Value: json.RawMessage(`{"type":"content"}`)}},
		User:  strings.Repeat("u", 80), LogProbs: true, ServiceTier: "flex", CacheKey: "k", Verbosity: "low"}
	body, rep := encode(t, req)
	want(t, "losses", rep.Header(), "max_tokens:raised,top_k,prediction,seed,presence_penalty,logit_bias")
	for path, wanted := range map[string]string{
		"max_output_tokens": "16", "temperature": "0", "service_tier": `"flex"`, "prompt_cache_key": `"k"`,
		"text":    `{"verbosity":"low"}`,
		"include": `["reasoning.encrypted_content","message.output_text.logprobs"]`, "stop": "", "seed": "",
		"top_k": "", "stream": "",
	} {
		want(t, path, body.Get(path).Raw, wanted)
	}
	want(t, "safety_identifier", len(body.Get("safety_identifier").Str), 64)
}

func TestToolsAreFlatAndNeverStrictByDefault(t *testing.T) {
	long := strings.Repeat("n", 80)
	yes := true
	req := &dialogue.Request{Inbound: dialoguetest.Chat,
		Turns: []dialogue.Turn{turn(dialogue.User, textPart("q")), turn(dialogue.Assistant, callPart("c", long, "{}"))},
		Tools: []dialogue.Tool{
			{Kind: dialogue.FunctionTool, Name: "f", Description: "d",
				Schema: json.RawMessage(`{"type":"object","properties":{"a":{"const":9007199254740993}}}`)},
			{Kind: dialogue.FunctionTool, Name: long, Strict: &yes},
			{Kind: dialogue.CustomTool, Name: "c",
				Format: json.RawMessage(`{"type":"grammar","grammar":{"syntax":"lark","definition":"x"}}`)},
			{Kind: dialogue.WebSearchTool, Name: "web_search", Origin: dialoguetest.Messages,
				Opaque: json.RawMessage(`{"type":"web_search_20250305"}`)},
			{Kind: dialogue.OpaqueTool, Type: "bash_20250124", Origin: dialoguetest.Messages,
				Opaque: json.RawMessage(`{}`)},
		},
		ToolChoice: &dialogue.ToolChoice{Mode: dialogue.ToolAllowed, Names: []string{"f", "c"}, Required: true}}
	body, rep := encode(t, req)
	want(t, "function", body.Get("tools.0").Raw,
		`{"type":"function","name":"f","description":"d","parameters":{"type":"object","properties":{"a":{"const":9007199254740993}}},"strict":false}`)
	want(t, "strict", body.Get("tools.1.strict").Raw, "true")
	want(t, "custom", body.Get("tools.2").Raw,
		`{"type":"custom","name":"c","format":{"type":"grammar","syntax":"lark","definition":"x"}}`)
	want(t, "search", body.Get("tools.3").Raw, `{"type":"web_search"}`)
	want(t, "choice", body.Get("tool_choice").Raw,
		`{"type":"allowed_tools","mode":"required","tools":[{"type":"function","name":"f"},{"type":"custom","name":"c"}]}`)
	want(t, "losses", rep.Header(), "tools:bash_20250124")
	sent := body.Get("tools.1.name").Str
	want(t, "length", len(sent), 64)
	want(t, "way back", req.Renamed[sent], long)
	want(t, "history", body.Get("input.1.name").Str, sent)
}

func TestWebSearchKeepsItsLimits(t *testing.T) {
	search := dialogue.Tool{Kind: dialogue.WebSearchTool, Type: "web_search_20250305", Name: "web_search",
		Origin: dialoguetest.Messages,
		Opaque: json.RawMessage(`{"type":"web_search_20250305","name":"web_search","max_uses":2,"allowed_domains":["a.example"],"user_location":{"type":"approximate","city":"Oslo"}}`)}
	body, rep := encode(t, &dialogue.Request{Inbound: dialoguetest.Messages,
		Turns: []dialogue.Turn{turn(dialogue.User, textPart("q"))}, Tools: []dialogue.Tool{search}})
	want(t, "tool", body.Get("tools.0").Raw, `{"type":"web_search","filters":{"allowed_domains":["a.example"]},"user_location":{"type":"approximate","city":"Oslo"}}`)
	want(t, "losses", rep.Header(), "web_search:max_uses")
}

func TestSearchOptionsBecomeTheToolsLimits(t *testing.T) {
	body, rep := encode(t, &dialogue.Request{Inbound: dialoguetest.Chat,
		Turns: []dialogue.Turn{turn(dialogue.User, textPart("q"))}, WebSearch: true,
		SearchOptions: json.RawMessage(`{"search_context_size":"low","user_location":{"type":"approximate","approximate":{"city":"Oslo","country":"NO"}},"filters":{"x":1}}`)})
	want(t, "tool", body.Get("tools.0").Raw, `{"type":"web_search","search_context_size":"low","user_location":{"type":"approximate","city":"Oslo","country":"NO"}}`)
	want(t, "losses", rep.Header(), "web_search:filters")
}

func TestChoiceOfAnotherVendorsToolIsRefused(t *testing.T) {
	req := &dialogue.Request{Inbound: dialoguetest.Messages, Turns: []dialogue.Turn{turn(dialogue.User, textPart("q"))},
		Tools: []dialogue.Tool{{Kind: dialogue.OpaqueTool, Type: "code_execution_20250522", Name: "code_execution",
			Origin: dialoguetest.Messages}, {Kind: dialogue.FunctionTool, Name: "f"}},
		ToolChoice: &dialogue.ToolChoice{Mode: dialogue.ToolNamed, Names: []string{"code_execution"}}}
	if _, err := responses.Shape.Encode(req, newTarget(), new(dialogue.Report), newEnv()); err == nil {
		t.Error("a choice of a tool that the provider does not have was accepted")
	}
}

// What messages clients call strict may leave properties out.
func TestStrictMeansLessToMessagesClients(t *testing.T) {
	yes := true
	tool := dialogue.Tool{Kind: dialogue.FunctionTool, Name: "f", Strict: &yes,
		Schema: json.RawMessage(`{"type":"object","properties":{"a":{"type":"string"}},"additionalProperties":false}`)}
	for inbound, strict := range map[dialogue.Shape]string{dialoguetest.Messages: "false", dialoguetest.Chat: "true"} {
		body, _ := encode(t, &dialogue.Request{Inbound: inbound,
			Turns: []dialogue.Turn{turn(dialogue.User, textPart("q"))}, Tools: []dialogue.Tool{tool}})
		want(t, string(inbound), body.Get("tools.0.strict").Raw, strict)
	}
}

func TestChoiceWithoutToolsIsLeftOut(t *testing.T) {
	no := false
	req := &dialogue.Request{Inbound: dialoguetest.Chat, Turns: []dialogue.Turn{turn(dialogue.User, textPart("q"))},
		Parallel:   &no,
		ToolChoice: &dialogue.ToolChoice{Mode: dialogue.ToolRequired}}
	body, _ := encode(t, req)
	for _, name := range []string{"tools", "tool_choice", "parallel_tool_calls"} {
		want(t, name, body.Get(name).Exists(), false)
	}
}

func TestFormatsAreFlat(t *testing.T) {
	closed := json.RawMessage(`{"type":"object","properties":{"a":{"type":"string"}},"required":["a"],"additionalProperties":false}`)
	bounded := json.RawMessage(`{"type":"object","properties":{"a":{"type":"integer","minimum":1}}}`)
	for _, tt := range []struct {
		inbound  dialogue.Shape
		output   dialogue.Output
		path     string
		want     string
		degraded string
	}{
		{dialoguetest.Chat, dialogue.Output{Mode: dialogue.OutputJSON}, "text.format", `{"type":"json_object"}`, ""},
		{dialoguetest.Chat, dialogue.Output{Mode: dialogue.OutputSchema, Name: "a b", Schema: closed}, "text.format",
			`{"type":"json_schema","name":"a_b","schema":` + string(closed) + `}`, ""},
		{dialoguetest.Messages, dialogue.Output{Mode: dialogue.OutputSchema, Schema: closed}, "text.format",
			`{"type":"json_schema","name":"response","strict":true,"schema":` + string(closed) + `}`, ""},
		{dialoguetest.Messages, dialogue.Output{Mode: dialogue.OutputSchema, Schema: bounded},
			"text.format.schema.properties.a.minimum", "", dialogue.KeywordsStripped},
		{dialoguetest.Chat, dialogue.Output{Mode: dialogue.OutputSchema}, "text", "", dialogue.MissingSchema},
	} {
		body, rep := encode(t, &dialogue.Request{Inbound: tt.inbound,
			Turns: []dialogue.Turn{turn(dialogue.User, textPart("q"))}, Output: tt.output})
		want(t, tt.path, body.Get(tt.path).Raw, tt.want)
		want(t, "degraded", rep.Degraded, tt.degraded)
	}
}

func TestEffortFollowsTheTable(t *testing.T) {
	n := func(v int64) *int64 { return &v }
	for _, tt := range []struct {
		r    dialogue.Reasoning
		want string
	}{
		{dialogue.Reasoning{}, ""},
		{dialogue.Reasoning{Effort: "none"}, "none"},
		{dialogue.Reasoning{Effort: "max"}, "xhigh"},
		{dialogue.Reasoning{Budget: n(2000)}, "low"},
		{dialogue.Reasoning{Budget: n(8000)}, "medium"},
		{dialogue.Reasoning{Budget: n(20000)}, "high"},
		{dialogue.Reasoning{Budget: n(-1)}, "medium"},
		{dialogue.Reasoning{Adaptive: true}, "medium"},
		{dialogue.Reasoning{Disabled: true}, ""},
	} {
		body, _ := encode(t, &dialogue.Request{Inbound: dialoguetest.Messages,
			Turns: []dialogue.Turn{turn(dialogue.User, textPart("q"))}, Reasoning: tt.r})
		want(t, fmt.Sprintf("%+v", tt.r), body.Get("reasoning.effort").Str, tt.want)
	}
}

func TestEncodeRefusesWhatChangesTheAnswer(t *testing.T) {
	media := func(m dialogue.Media) []dialogue.Turn {
		return []dialogue.Turn{turn(dialogue.User,
			dialogue.Part{Kind: dialogue.MediaPart, Media: &m, Origin: dialoguetest.Messages})}
	}
	for want, req := range map[string]*dialogue.Request{
		"modalities: ":                             {Modalities: []string{"audio"}},
		"messages: a file of another provider":     {Turns: media(dialogue.Media{Kind: dialogue.File, FileID: "f"})},
		"messages: this model does not take video": {Turns: media(dialogue.Media{Kind: dialogue.Video, URL: "u"})},
		"tool_choice: ": {ToolChoice: &dialogue.ToolChoice{Origin: dialoguetest.Messages,
			Opaque: json.RawMessage(`{}`)}},
		"prompt: ": {Prompts: [][]byte{[]byte(`[1,2]`)}},
	} {
		_, err := responses.Shape.Encode(req, newTarget(), new(dialogue.Report), newEnv())
		var e *dialogue.Error
		if !errors.As(err, &e) || !strings.HasPrefix(e.Message, want) {
			t.Errorf("%s: got %v", want, err)
		}
	}
}

func TestSystemAloneIsAnItem(t *testing.T) {
	body, _ := encode(t, &dialogue.Request{Inbound: dialoguetest.Chat, System: []dialogue.Part{textPart("S")}})
	want(t, "input", body.Get("input").Raw,
		`[{"type":"message","role":"developer","content":[{"type":"input_text","text":"S"}]}]`)
	want(t, "instructions", body.Get("instructions").Exists(), false)
}

func TestSilenceIsAnEmptyText(t *testing.T) {
	body, _ := encode(t, &dialogue.Request{Inbound: dialoguetest.Chat,
		Turns: []dialogue.Turn{turn(dialogue.User, textPart(""))}})
	want(t, "input", body.Get("input").Raw,
		`[{"type":"message","role":"user","content":[{"type":"input_text","text":""}]}]`)
}

func TestTheHighestEffortOfAChatClientIsPassedOn(t *testing.T) {
	body, _ := encode(t, &dialogue.Request{Inbound: dialoguetest.Chat,
		Turns: []dialogue.Turn{turn(dialogue.User, textPart("q"))}, Reasoning: dialogue.Reasoning{Effort: "max"}})
	want(t, "effort", body.Get("reasoning.effort").Str, "max")
}

// A client that changes its model sends parameters that the new one may refuse.
func TestPatchRemovesParametersThatTheModelRefuses(t *testing.T) {
	body := `{"model":"up","temperature":0.5,"reasoning":{"effort":"low"},"input":"a",` +
		`"include":["reasoning.encrypted_content","x"],"top_p":1}`
	head, err := responses.Shape.Check([]byte(body), shapes.Params{})
	if err != nil {
		t.Fatal(err)
	}
	target := newTarget()
	for _, thinks := range []bool{true, false} {
		expected, losses := body, ""
		if target.Caps.Sampling = thinks; !thinks {
			target.Caps.Thinking = dialogue.ThinkingNone
			expected, losses = `{"model":"up","input":"a","include":["x"],"top_p":1}`, "temperature,reasoning"
		}
		rep := new(dialogue.Report)
		call, err := responses.Shape.Patch([]byte(body), shapes.Params{}, head, target, rep, newEnv())
		if err != nil {
			t.Fatal(err)
		}
		want(t, "body", string(call.Body), expected)
		want(t, "losses", rep.Header(), losses)
	}
}

// Models of OpenAI from GPT-5.1 on take parameters of sampling while they do not reason, which they do when asked.
func TestPatchKeepsSamplingOfAModelAtRest(t *testing.T) {
	target := newTarget()
	target.Caps.Sampling, target.Caps.SamplingAtRest = false, true
	for reasoning, kept := range map[string]bool{
		"": true, `"reasoning":{"effort":"none"},`: true, `"reasoning":{"summary":"auto"},`: true,
		`"reasoning":{"effort":"low"},`: false,
	} {
		body := `{"model":"up",` + reasoning + `"input":"a","top_p":0.5}`
		head, err := responses.Shape.Check([]byte(body), shapes.Params{})
		if err != nil {
			t.Fatal(err)
		}
		rep := new(dialogue.Report)
		call, err := responses.Shape.Patch([]byte(body), shapes.Params{}, head, target, rep, newEnv())
		has := strings.Contains(string(call.Body), "top_p")
		if err != nil || has != kept || (rep.Header() == "") != kept {
			t.Errorf("%s: %v, losses %q, sent %s", reasoning, err, rep.Header(), call.Body)
		}
	}
}

// None of the models that take parameters of sampling only while they do not reason has top_k.
func TestPatchRemovesTopKWhereTheModelHasNone(t *testing.T) {
	target := newTarget()
	target.Caps.Sampling, target.Caps.SamplingAtRest = false, true
	const body = `{"model":"up","input":"a","temperature":0.5,"top_k":3}`
	head, err := responses.Shape.Check([]byte(body), shapes.Params{})
	if err != nil {
		t.Fatal(err)
	}
	rep := new(dialogue.Report)
	call, err := responses.Shape.Patch([]byte(body), shapes.Params{}, head, target, rep, newEnv())
	if sent := string(call.Body); err != nil || sent != strings.Replace(body, `,"top_k":3`, "", 1) ||
		rep.Header() != "top_k" {
		t.Errorf("%v, losses %q, sent %s", err, rep.Header(), sent)
	}
}

func TestPatchChangesNothingElse(t *testing.T) {
	env := newEnv()
	sealed := env.Sealer.Seal(&dialogue.Thinking{Text: "x", Origin: dialoguetest.Messages})
	lacking := newTarget()
	lacking.Caps.StructuredOutputs = false
	for _, tt := range []struct {
		name, body, want, degraded string
		target                     dialogue.Target
		emptied                    bool
	}{
		{"nothing", `{ "model" : "up", "input":"x", "n": 1.0, "previous_response_id":"r"}`,
			`{ "model" : "up", "input":"x", "n": 1.0, "previous_response_id":"r"}`, "", newTarget(), false},
		{"model", `{"model":"m","input":"x","zzz":1e0}`, `{"model":"up","input":"x","zzz":1e0}`, "", newTarget(),
			false},
		{"chain", `{"model":"up","input":"x","previous_response_id":"r"}`, `{"model":"up","input":"x"}`, "",
			newTarget(), true},
		{"background", `{"model":"up","input":"x","background":true}`, `{"model":"up","input":"x"}`, "", newTarget(),
			true},
		{"carrier", `{"model":"up","input":[{"type":"reasoning","summary":[],"encrypted_content":"` + sealed +
			`"},{"type":"reasoning","encrypted_content":"gA"},{"role":"user","content":"x"}]}`,
			`{"model":"up","input":[{"type":"reasoning","encrypted_content":"gA"},{"role":"user","content":"x"}]}`, "",
			newTarget(), false},
		{"degraded", `{"model":"up","input":"x","text":{"format":{"type":"json_schema","name":"n","schema":{"type":"object"}},"verbosity":"low"}}`,
			`{"model":"up","input":"x","text":{"verbosity":"low"}}`, dialogue.ModelUnsupported, lacking, false},
		{"no schema", `{"model":"up","text":{"format":{"type":"json_schema"}},"input":"x"}`,
			`{"model":"up","input":"x"}`, dialogue.MissingSchema, newTarget(), false},
		{"schema", `{"model":"up","input":"x","text":{"format":{"type":"json_schema","name":"n","schema":{ "minimum":1.0}}}}`,
			`{"model":"up","input":"x","text":{"format":{"type":"json_schema","name":"n","schema":{ "minimum":1.0}}}}`,
			"", newTarget(), false},
	} {
		head, err := responses.Shape.Check([]byte(tt.body), shapes.Params{})
		if err != nil {
			t.Fatal(err)
		}
		if tt.emptied {
			head.PreviousResponseID, head.Background = "", false
		}
		before, rep := []byte(tt.body), new(dialogue.Report)
		call, err := responses.Shape.Patch(before, shapes.Params{}, head, tt.target, rep, env)
		if err != nil {
			t.Fatal(err)
		}
		want(t, tt.name, string(call.Body), tt.want)
		want(t, tt.name+" degraded", rep.Degraded, tt.degraded)
		want(t, tt.name+" original", string(before), tt.body)
	}
}
