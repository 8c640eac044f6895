package responses_test

import (
	"strings"
	"testing"

	"stagedoor/providers/dialogue"
	"stagedoor/providers/dialogue/dialoguetest"
	"stagedoor/providers/shapes"
	"stagedoor/providers/shapes/responses"
)

// reply frames steps with what every reply has.
func reply(reason dialogue.Reason, steps ...dialogue.Event) []dialogue.Event {
	events := append([]dialogue.Event{{Kind: dialogue.EventStart, ID: "up", Model: "up-model"}}, steps...)
	usage := dialogue.NoUsage
	usage.InputTotal, usage.CacheRead, usage.OutputTotal, usage.Reasoning = 100, 90, 30, 12
	return append(events,
		dialogue.Event{Kind: dialogue.EventUsage, Usage: &usage},
		dialogue.Event{Kind: dialogue.EventFinish, Reason: reason},
		dialogue.Event{Kind: dialogue.EventEnd})
}

func open(part int, kind dialogue.PartKind) dialogue.Event {
	return dialogue.Event{Kind: dialogue.EventOpen, Part: part, PartKind: kind}
}

func openCall(part int, id, name string) dialogue.Event {
	ev := open(part, dialogue.CallPart)
	ev.Call = &dialogue.Call{ID: id, Name: name}
	return ev
}

func say(part int, text string) dialogue.Event {
	return dialogue.Event{Kind: dialogue.EventDelta, Part: part, Text: text}
}

func end(part int) dialogue.Event { return dialogue.Event{Kind: dialogue.EventClose, Part: part} }

func TestEveryItemGetsItsWholeProtocol(t *testing.T) {
	req := &dialogue.Request{Inbound: dialoguetest.Responses, Model: "m", Body: []byte(`{"model":"m","input":"x"}`)}
	sealed := end(0)
	sealed.Thinking = &dialogue.Thinking{Origin: dialoguetest.Messages, Signature: "sig"}
	env := newEnv()
	events, doc := emitAll(t, env, req, reply(dialogue.ReasonTool,
		open(0, dialogue.ThinkingPart), say(0, "hm"), say(0, "m"), sealed,
		open(1, dialogue.TextPart), say(1, "Su"), say(1, "re."), end(1),
		openCall(2, "call_a", "f"), openCall(3, "call_b", "g"), say(2, `{"a"`), say(3, "{}"), say(2, `:1}`), end(2),
		end(3),
	))
	want(t, "events", types(events), "created in_progress "+
		"output_item.added reasoning_summary_part.added reasoning_summary_text.delta reasoning_summary_text.delta reasoning_summary_text.done reasoning_summary_part.done output_item.done "+
		"output_item.added content_part.added output_text.delta output_text.delta output_text.done content_part.done output_item.done "+
		"output_item.added output_item.added function_call_arguments.delta function_call_arguments.delta function_call_arguments.delta "+
		"function_call_arguments.done output_item.done function_call_arguments.done output_item.done completed")
	want(t, "arguments", doc.Get("output.2.arguments").Str, `{"a":1}`)
	want(t, "usage", doc.Get("usage").Raw, `{"input_tokens":100,"input_tokens_details":{"cached_tokens":90},"output_tokens":30,"output_tokens_details":{"reasoning_tokens":12},"total_tokens":130}`)
	want(t, "status", doc.Get("status").Str, "completed")
	want(t, "completed_at", doc.Get("completed_at").Int(), 1_800_000_000)
	want(t, "output_text", doc.Get("output_text").Exists(), false)
	got, ok := env.Sealer.Open(doc.Get("output.0.encrypted_content").Str)
	if !ok || got.Signature != "sig" || got.Text != "hmm" {
		t.Errorf("carrier: got %+v", got)
	}
}

func TestTextPartsThatFollowEachOtherAreOneMessage(t *testing.T) {
	req := &dialogue.Request{Inbound: dialoguetest.Responses, Model: "m"}
	_, doc := emitAll(t, newEnv(), req, reply(dialogue.ReasonStop,
		open(0, dialogue.TextPart), say(0, "a"), end(0), open(1, dialogue.TextPart), say(1, "b"), end(1),
		open(2, dialogue.ThinkingPart), end(2), open(3, dialogue.TextPart), say(3, "c"), end(3)))
	want(t, "items", doc.Get("output.#").Int(), 3)
	want(t, "parts", doc.Get("output.0.content.#.text").Raw, `["a","b"]`)
	want(t, "text", doc.Get("output.2.content.0.text").Str, "c")
}

func TestATextWithoutWordsHasNoPlaceInTheOutput(t *testing.T) {
	req := &dialogue.Request{Inbound: dialoguetest.Responses, Model: "m"}
	_, doc := emitAll(t, newEnv(), req, reply(dialogue.ReasonTool,
		open(0, dialogue.TextPart), say(0, ""), end(0), openCall(1, "call_a", "f"), end(1),
		open(2, dialogue.TextPart), open(3, dialogue.RefusalPart), say(3, "no"), end(3), say(2, "yes"), end(2)))
	want(t, "types", doc.Get("output.#.type").Raw, `["function_call","message"]`)
	want(t, "content", doc.Get("output.1.content.#.type").Raw, `["refusal","output_text"]`)
}

func TestTruncatedAndFilteredRepliesAreIncomplete(t *testing.T) {
	for reason, word := range map[dialogue.Reason]string{
		dialogue.ReasonLength: "max_output_tokens", dialogue.ReasonContextWindow: "max_output_tokens",
		dialogue.ReasonFilter: "content_filter",
	} {
		events, doc := emitAll(t, newEnv(), &dialogue.Request{Model: "m"},
			reply(reason, open(0, dialogue.TextPart), say(0, "cut"), end(0)))
		want(t, "terminal", events[len(events)-1].Get("type").Str, "response.incomplete")
		want(t, "reason", doc.Get("incomplete_details.reason").Str, word)
		want(t, "item", doc.Get("output.0.status").Str, "incomplete")
		want(t, "completed_at", doc.Get("completed_at").Exists(), false)
	}
}

func TestACallCutShortIsIncomplete(t *testing.T) {
	events, doc := emitAll(t, newEnv(), &dialogue.Request{Model: "m"}, reply(dialogue.ReasonLength,
		openCall(0, "call_a", "f"), say(0, `{"a":1}`), end(0), openCall(1, "call_b", "f"), say(1, `{"a`), end(1)))
	want(t, "whole call", doc.Get("output.0.status").Str, "completed")
	want(t, "cut call", doc.Get("output.1.status").Str, "incomplete")
	want(t, "arguments", doc.Get("output.1.arguments").Str, `{"a`)
	done := events[len(events)-2]
	want(t, "last item", done.Get("type").Str+" "+done.Get("item.status").Str, "response.output_item.done incomplete")
}

func TestExplanationOfARefusalIsARefusalPart(t *testing.T) {
	events := reply(dialogue.ReasonFilter)
	events[len(events)-2].Detail = "not this"
	_, doc := emitAll(t, newEnv(), &dialogue.Request{Model: "m"}, events)
	want(t, "refusal", doc.Get("output.0.content.0").Raw, `{"type":"refusal","refusal":"not this"}`)
}

func TestCustomToolsAreUnwrapped(t *testing.T) {
	req := &dialogue.Request{Model: "m", Tools: []dialogue.Tool{{Kind: dialogue.CustomTool, Name: "apply_patch"}}}
	_, doc := emitAll(t, newEnv(), req, reply(dialogue.ReasonTool,
		openCall(0, "c", "apply_patch"), say(0, `{"inp`), say(0, `ut":"*** \ud83`), say(0, `d\ude80\n`), say(0, `+x"}`),
		end(0),
		openCall(1, "d", "apply_patch"), say(1, `not json`), end(1),
		openCall(2, "e", "apply_patch"), say(2, `{}`), end(2)))
	want(t, "type", doc.Get("output.0.type").Str, "custom_tool_call")
	want(t, "input", doc.Get("output.0.input").Str, "*** 🚀\n+x")
	want(t, "broken", doc.Get("output.1.input").Str, "not json")
	want(t, "empty", doc.Get("output.2.input").Str, "")
}

func TestNamespacesComeBack(t *testing.T) {
	env := newEnv()
	req := decode(t, env, `{"model":"m","input":"x","tools":[{"type":"namespace","name":"a","tools":[{"type":"function","name":"t"}]},
		{"type":"namespace","name":"b","tools":[{"type":"function","name":"t"},{"type":"custom","name":"u"}]}],
		"tool_choice":{"type":"function","namespace":"b","name":"t"}}`)
	want(t, "choice", req.ToolChoice.Names[0], "b__t")
	_, doc := emitAll(t, env, req, reply(dialogue.ReasonTool, openCall(0, "c", "b__t"), end(0),
		openCall(1, "d", "b__u"), say(1, `{"input":"q"}`), end(1)))
	want(t, "namespace", doc.Get("output.0.namespace").Str, "b")
	want(t, "name", doc.Get("output.0.name").Str, "t")
	want(t, "arguments", doc.Get("output.0.arguments").Str, "{}")
	want(t, "input", doc.Get("output.1.input").Str, "q")
}

// Tools that an item of the input declares are offered like those of the member, once under each name, and
// a call of one returns under its own namespace.
func TestToolsOfTheInputAreOffered(t *testing.T) {
	env := newEnv()
	req := decode(t, env, `{"model":"m","tools":[{"type":"function","name":"f","description":"old"}],
		"tool_choice":{"type":"custom","name":"exec"},"input":[
		{"type":"additional_tools","id":"at_1","role":"developer","tools":[
			{"type":"namespace","name":"functions","tools":[{"type":"custom","name":"exec"}]},
			{"type":"function","name":"f","description":"new"}]},
		{"type":"message","role":"developer","content":"d"},{"type":"message","role":"user","content":"u"},
		{"type":"additional_tools","role":"developer","tools":[{"type":"function","name":"g"},{"type":"function","name":"g"}]}]}`)
	var names []string
	for _, tool := range req.Tools {
		names = append(names, tool.Name+" "+tool.Description)
	}
	want(t, "tools", strings.Join(names, ","), "f new,functions__exec ,g ")
	want(t, "choice", req.ToolChoice.Names[0], "functions__exec")
	if len(req.System) != 1 || len(req.Turns) != 1 {
		t.Errorf("the item is a part of the dialogue: %d system parts, %d turns", len(req.System), len(req.Turns))
	}
	_, doc := emitAll(t, env, req, reply(dialogue.ReasonTool,
		openCall(0, "c", "functions__exec"), say(0, `{"input":"q"}`), end(0)))
	want(t, "call", doc.Get("output.0.type").Str+" "+doc.Get("output.0.namespace").Str+" "+doc.Get("output.0.name").Str,
		"custom_tool_call functions exec")
	want(t, "input", doc.Get("output.0.input").Str, "q")
}

func TestChoicesMayLeaveTheNamespaceOut(t *testing.T) {
	req := decode(t, newEnv(), `{"model":"m","input":"x","tool_choice":{"type":"function","name":"t"},
		"tools":[{"type":"namespace","name":"a","tools":[{"type":"function","name":"t"}]}]}`)
	want(t, "choice", req.ToolChoice.Names[0], "a__t")
}

func TestResponseEchoesTheRequest(t *testing.T) {
	env := newEnv()
	req := decode(t, env, `{"model":"m","input":"x","instructions":"Be.","tools":[{"type":"function","name":"f","strict":null}],"tool_choice":"required",
		"temperature":0.10,"metadata":{"a":"b"},"text":{"verbosity":"low"},"reasoning":{"effort":"low"},"max_output_tokens":20,"store":false,"user":null}`)
	req.ReplyID, req.PreviousResponseID = "resp_mine", "resp_before"
	_, doc := emitAll(t, env, req, reply(dialogue.ReasonStop))
	for path, wanted := range map[string]string{
		"id": `"resp_mine"`, "object": `"response"`, "error": "null", "incomplete_details": "null",
		"instructions":         `"Be."`,
		"previous_response_id": `"resp_before"`, "temperature": "0.10", "top_p": "1", "metadata": `{"a":"b"}`,
		"tool_choice": `"required"`,
		"tools":       `[{"type":"function","name":"f","strict":null}]`,
		"text":        `{"verbosity":"low","format":{"type":"text"}}`,
		"reasoning":   `{"effort":"low","summary":null}`, "max_output_tokens": "20", "parallel_tool_calls": "true",
		"truncation": `"disabled"`,
		"store":      "false", "user": "null", "model": `"m"`, "output": "[]", "background": "false",
		"service_tier": `"auto"`,
	} {
		want(t, path, doc.Get(path).Raw, wanted)
	}
}

func TestResponseHasTheDefaultsOfText(t *testing.T) {
	env := newEnv()
	for text, echoed := range map[string]string{
		``:                                   `{"format":{"type":"text"},"verbosity":"medium"}`,
		`,"text":null`:                       `{"format":{"type":"text"},"verbosity":"medium"}`,
		`,"text":{}`:                         `{"format":{"type":"text"},"verbosity":"medium"}`,
		`,"text":{"format":{"type":"text"}}`: `{"format":{"type":"text"},"verbosity":"medium"}`,
	} {
		_, doc := emitAll(t, env, decode(t, env, `{"model":"m","input":"x"`+text+`}`), reply(dialogue.ReasonStop))
		want(t, text, doc.Get("text").Raw, echoed)
	}
}

func TestBackgroundStreamsAreQueuedFirst(t *testing.T) {
	req := &dialogue.Request{Model: "m", Body: []byte(`{"background":true}`)}
	events, _ := emitAll(t, newEnv(), req, reply(dialogue.ReasonStop))
	want(t, "events", types(events), "created queued in_progress completed")
	want(t, "status", events[0].Get("response.status").Str, "queued")
}

func TestCitationsBecomeAnnotations(t *testing.T) {
	cited := say(0, "x")
	cited.Citations = []dialogue.Citation{{URL: "https://a", Title: "A", Start: 0, End: 1}, {CitedText: "of a file"}}
	events, doc := emitAll(t, newEnv(), &dialogue.Request{Model: "m"},
		reply(dialogue.ReasonStop, open(0, dialogue.TextPart), cited, end(0)))
	want(t, "annotations", doc.Get("output.0.content.0.annotations").Raw,
		`[{"type":"url_citation","url":"https://a","title":"A","start_index":0,"end_index":1}]`)
	want(t, "event", strings.Contains(types(events), "output_text.annotation.added"), true)
}

func TestFailuresEndTheStreamOnce(t *testing.T) {
	boom := dialogue.Event{Kind: dialogue.EventError,
		Err: &dialogue.Error{Status: 429, Type: dialogue.TypeRateLimit, Message: "slow down"}}
	start := dialogue.Event{Kind: dialogue.EventStart}
	for _, tt := range []struct {
		events []dialogue.Event
		types  string
	}{
		{[]dialogue.Event{boom, start, boom}, "error"},
		{[]dialogue.Event{start, open(0, dialogue.TextPart), say(0, "a"), boom, say(0, "b"), {Kind: dialogue.EventEnd}},
			"created in_progress output_item.added content_part.added output_text.delta failed"},
	} {
		events, doc := emitAll(t, newEnv(), &dialogue.Request{Model: "m"}, tt.events)
		want(t, "events", types(events), tt.types)
		want(t, "document", doc.Raw, "")
		last := events[len(events)-1]
		failure := last.Get("response.error")
		if !failure.Exists() {
			failure = last
		}
		want(t, "code", failure.Get("code").Str, "rate_limit_exceeded")
		want(t, "message", failure.Get("message").Str, "slow down")
	}
}

func TestSignaturesOfOthersAreRemembered(t *testing.T) {
	env := newEnv()
	text, call := end(0), end(1)
	text.Signature, call.Signature = "text-sig", "call-sig"
	_, doc := emitAll(t, env, &dialogue.Request{Model: "m"}, reply(dialogue.ReasonTool,
		open(0, dialogue.TextPart), say(0, "a"), text, openCall(1, "call_1", "f"), call))
	if sig, _ := env.RecallSignature("call_1"); sig != "call-sig" {
		t.Errorf("call: got %q", sig)
	}
	req := decode(t, env, `{"model":"m","input":`+doc.Get("output").Raw+`}`)
	parts := req.Turns[0].Parts
	want(t, "signature", parts[len(parts)-1].Thinking.Signature, "text-sig")
}

func TestPingsAreComments(t *testing.T) {
	e := responses.Shape.NewEmitter(&dialogue.Request{}, shapes.Stream, newEnv())
	want(t, "ping", string(e.Emit(nil, &dialogue.Event{Kind: dialogue.EventPing})), ": keep-alive\n")
	want(t, "whole", responses.Shape.Heartbeat(shapes.Whole) == nil, true)
}

func BenchmarkParseAndEmitDelta(b *testing.B) {
	env := newEnv()
	p := responses.Shape.NewParser(1, env)
	var dst []byte
	var e shapes.Emitter
	fresh := func() {
		p = responses.Shape.NewParser(1, env)
		e = responses.Shape.NewEmitter(&dialogue.Request{Model: "m"}, shapes.Stream, env)
	}
	emit := func(ev *dialogue.Event) { dst = e.Emit(dst[:0], ev) }
	fresh()
	delta := []byte(`{"type":"response.output_text.delta","sequence_number":7,"item_id":"msg_1","output_index":0,"content_index":0,"delta":" the weather","logprobs":[]}`)
	b.ReportAllocs()
	for i := 0; b.Loop(); i++ {
		if i%1000 == 999 {
			fresh() // a reply of usual length
		}
		p.Event("response.output_text.delta", delta, emit)
	}
}
