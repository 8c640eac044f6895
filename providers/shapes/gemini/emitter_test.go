package gemini_test

import (
	"cmp"
	"encoding/base64"
	"encoding/json"
	"strings"
	"testing"

	"github.com/tidwall/gjson"

	"stagedoor/providers/dialogue"
	"stagedoor/providers/dialogue/dialoguetest"
	"stagedoor/providers/shapes"
	"stagedoor/providers/shapes/gemini"
)

// ev shortens the making of events.
type ev = dialogue.Event

func opened(part int, kind dialogue.PartKind) ev {
	return ev{Kind: dialogue.EventOpen, Part: part, PartKind: kind}
}

func openedCall(part int, id, name string) ev {
	return ev{
		Kind:     dialogue.EventOpen,
		Part:     part,
		PartKind: dialogue.CallPart,
		Call:     &dialogue.Call{ID: id, Name: name},
	}
}

func delta(part int, text string) ev { return ev{Kind: dialogue.EventDelta, Part: part, Text: text} }

func closed(part int) ev { return ev{Kind: dialogue.EventClose, Part: part} }

func usage(in, out, thoughts int64) ev {
	u := dialogue.NoUsage
	u.InputTotal, u.OutputTotal, u.Reasoning = in, out, thoughts
	return ev{Kind: dialogue.EventUsage, Usage: &u}
}

// asking is a request of a client that wants to see thoughts.
func asking() *dialogue.Request {
	return &dialogue.Request{Model: "m", Reasoning: dialogue.Reasoning{Include: true}}
}

func emitAll(t *testing.T, env *dialogue.Env, mode shapes.Mode, events ...ev) string {
	t.Helper()
	e := gemini.Shape.NewEmitter(asking(), mode, env)
	out := e.Emit(nil, &ev{Kind: dialogue.EventStart, ID: "up", Model: "upstream-m"})
	for i := range events {
		out = e.Emit(out, &events[i])
	}
	last := len(out)
	if out = e.Emit(out, &ev{Kind: dialogue.EventEnd}); len(out) > last && strings.HasSuffix(string(out[:last]), "]}") {
		t.Error("the emitter wrote after its end")
	}
	return string(out)
}

var end = []ev{{Kind: dialogue.EventFinish}, {Kind: dialogue.EventEnd}}

func TestAStreamIsChunks(t *testing.T) {
	events := []ev{
		opened(0, dialogue.TextPart),
		delta(0, "He"),
		delta(0, ""),
		delta(0, "llo"),
		closed(0),
		usage(3, 7, 5),
		{
			Kind: dialogue.EventPing,
		},
		{Kind: dialogue.EventFinish, Reason: dialogue.ReasonLength},
		{Kind: dialogue.EventEnd},
	}
	const tail = `"modelVersion":"m","responseId":"id1"}`
	one := `{"candidates":[{"content":{"role":"model","parts":[{"text":"He"}]},"index":0}],` + tail
	two := `{"candidates":[{"content":{"role":"model","parts":[{"text":"llo"}]},"index":0}],` + tail
	last := `{"candidates":[{"finishReason":"MAX_TOKENS","index":0}],"usageMetadata":{"promptTokenCount":3,"candidatesTokenCount":2,"thoughtsTokenCount":5,"totalTokenCount":10},` + tail
	if got, want := emitAll(t, newEnv(), shapes.Stream, events...), "data: "+one+"\n\ndata: "+two+"\n\ndata: "+last+"\n\n"; got != want {
		t.Errorf("stream\ngot  %s\nwant %s", got, want)
	}
	if got, want := emitAll(t, newEnv(), shapes.Array, events...), "["+one+",\r\n"+two+",\r\n"+last+"]"; got != want {
		t.Errorf("array\ngot  %s\nwant %s", got, want)
	}
	whole := `{"candidates":[{"content":{"parts":[{"text":"Hello"}],"role":"model"},"finishReason":"MAX_TOKENS","index":0}],"usageMetadata":{"promptTokenCount":3,"candidatesTokenCount":2,"thoughtsTokenCount":5,"totalTokenCount":10},` + tail
	if got := emitAll(t, newEnv(), shapes.Whole, events...); got != whole {
		t.Errorf("whole\ngot  %s\nwant %s", got, whole)
	}
}

// parts are the parts of all candidates with index 0 in a reply.
func parts(t *testing.T, reply string) string {
	t.Helper()
	var out []string
	for _, line := range strings.Split(reply, "\n\n") {
		for _, p := range gjson.Get(strings.TrimPrefix(line, "data: "), "candidates.0.content.parts").Array() {
			out = append(out, p.Raw)
		}
	}
	return strings.Join(out, " ")
}

func TestCallsComeWhole(t *testing.T) {
	events := append(
		[]ev{
			openedCall(0, "a", "f"),
			delta(0, `{"city":`),
			openedCall(1, "b", "g"),
			delta(1, ``),
			opened(2, dialogue.TextPart),
			delta(2, "x"),
			delta(0, `"Oslo"}`),
			closed(1),
			{Kind: dialogue.EventClose, Signature: "S"},
			closed(2),
			openedCall(3, "c", "h"),
			delta(3, `{"cut`),
			closed(3),
		},
		end...)
	want := `{"text":"x"} {"functionCall":{"id":"b","name":"g","args":{}}} {"functionCall":{"id":"a","name":"f","args":{"city":"Oslo"}},"thoughtSignature":"S"} {"functionCall":{"id":"c","name":"h","args":{"input":"{\"cut"}}}`
	if got := parts(t, emitAll(t, newEnv(), shapes.Stream, events...)); got != want {
		t.Errorf("got  %s\nwant %s", got, want)
	}
}

func TestThoughtsCarryTheirProof(t *testing.T) {
	for _, mode := range []shapes.Mode{shapes.Stream, shapes.Whole} {
		env := newEnv()
		native := append(
			[]ev{
				opened(0, dialogue.ThinkingPart),
				delta(0, "why"),
				{Kind: dialogue.EventClose, Thinking: &dialogue.Thinking{Signature: "N", Origin: dialoguetest.Gemini}},
			},
			end...)
		if got := parts(t, emitAll(t, env, mode, native...)); !strings.Contains(got,
			`"thought":true,"thoughtSignature":"N"}`) {
			t.Errorf("mode %d: native %s", mode, got)
		}
		foreign := append(
			[]ev{
				opened(0, dialogue.ThinkingPart),
				delta(0, "wh"),
				delta(0, "y"),
				{
					Kind:     dialogue.EventClose,
					Thinking: &dialogue.Thinking{Signature: "F", Origin: dialoguetest.Messages},
				},
			},
			end...)
		got := parts(t, emitAll(t, env, mode, foreign...))
		last := got[strings.LastIndex(got, `{"text"`):]
		if _, err := base64.StdEncoding.DecodeString(gjson.Get(last, "thoughtSignature").Str); err != nil {
			t.Errorf("mode %d: clients of the shape decode base64: %v", mode, err)
		}
		th, ok := env.Sealer.Open(gjson.Get(last, "thoughtSignature").Str)
		if !ok || *th != (dialogue.Thinking{Text: "why", Signature: "F", Origin: dialoguetest.Messages}) {
			t.Errorf("mode %d: sealed %+v in %s", mode, th, got)
		}
		plain := append(
			[]ev{
				opened(0, dialogue.ThinkingPart),
				delta(0, "why"),
				{Kind: dialogue.EventClose, Thinking: &dialogue.Thinking{Origin: dialoguetest.Chat}},
			},
			end...)
		if got := parts(t, emitAll(t, env, mode, plain...)); got != `{"text":"why","thought":true}` {
			t.Errorf("mode %d: unsigned %s", mode, got)
		}
		text := append(
			[]ev{opened(0, dialogue.TextPart), delta(0, "x"), {Kind: dialogue.EventClose, Signature: "T"}},
			end...)
		if got := parts(t, emitAll(t, env, mode, text...)); !strings.Contains(got, `"thoughtSignature":"T"}`) {
			t.Errorf("mode %d: text %s", mode, got)
		}
	}
}

// keptOf returns the parts of a reply that a client sends back. One that drops thoughts drops empty parts as well.
func keptOf(reply []string, drops bool) (kept []string) {
	for _, p := range reply {
		text := gjson.Get(p, "text")
		if !drops || !gjson.Get(p, "thought").Bool() && (!text.Exists() || text.Str != "") {
			kept = append(kept, p)
		}
	}
	return kept
}

// Clients drop thoughts from their history, and keep the signatures of calls and text.
func TestAForeignThoughtSurvivesAClientThatDropsThoughts(t *testing.T) {
	made := map[string][]ev{
		"text":  {opened(2, dialogue.TextPart), delta(2, "x"), closed(2)},
		"texts": {opened(3, dialogue.TextPart), delta(3, "y"), delta(3, "z"), closed(3)},
		"call":  {openedCall(4, "a", "f"), delta(4, `{}`), closed(4)},
	}
	for part, word := range []string{"why", "how"} {
		th := dialogue.Thinking{Text: word, Signature: word, Origin: dialoguetest.Messages}
		made[word] = []ev{opened(part, dialogue.ThinkingPart), delta(part, word),
			{Kind: dialogue.EventClose, Part: part, Thinking: &th}}
	}
	// One part carries one signature. Of two thoughts the other one is on an empty part, which some clients drop.
	dropped := map[string]map[shapes.Mode]string{
		"why how texts call":      {shapes.Stream: "how texts call", shapes.Whole: "how texts call"},
		"text why how texts call": {shapes.Stream: "text how texts call", shapes.Whole: "text how texts call"},
		"why text how texts call": {shapes.Stream: "text how texts call"},
		"why how text":            {shapes.Stream: "text", shapes.Whole: "how text"},
	}
	for _, name := range []string{"why call", "why text call", "text why call", "why texts call", "why how texts call",
		"text why how texts call", "why text how texts call", "why how text"} {
		for _, mode := range []shapes.Mode{shapes.Stream, shapes.Whole} {
			for _, drops := range []bool{true, false} {
				env := newEnv()
				var reply []ev
				for part := range strings.FieldsSeq(name) {
					reply = append(reply, made[part]...)
				}
				all := strings.ReplaceAll(parts(t, emitAll(t, env, mode, append(reply, end...)...)), "} {", "}\n{")
				kept := strings.Join(keptOf(strings.Split(all, "\n"), drops), ",")
				var got []string
				for _, p := range decode(t, env, `{"contents":[{"role":"model","parts":[`+kept+`]}]}`).Turns[0].Parts {
					switch {
					case p.Kind == dialogue.ThinkingPart && p.Thinking.Signature == p.Thinking.Text &&
						p.Thinking.Origin == dialoguetest.Messages && p.Thinking.TextAfter == 0:
						got = append(got, p.Thinking.Text)
					case p.Kind == dialogue.TextPart && p.Text == "x":
						got = append(got, "text")
					case p.Kind == dialogue.TextPart && p.Text == "y" && mode == shapes.Stream: // and then the other piece
					case p.Kind == dialogue.TextPart:
						got = append(got, "texts")
					case p.Kind == dialogue.CallPart:
						got = append(got, "call")
					default:
						got = append(got, "other")
					}
				}
				want := name
				if drops {
					want = cmp.Or(dropped[name][mode], name)
				}
				if strings.Join(got, " ") != want {
					t.Errorf("%s, mode %d, drops %t: %s of %s", name, mode, drops, got, kept)
				}
			}
		}
	}
}

// A thought that a foreign upstream signed survives the way to the client and back.
func TestForeignThoughtsMakeTheRound(t *testing.T) {
	env := newEnv()
	got := parts(
		t,
		emitAll(t, env, shapes.Stream, append([]ev{opened(0, dialogue.ThinkingPart), delta(0, "a"), delta(0, "b"),
			{
				Kind:     dialogue.EventClose,
				Thinking: &dialogue.Thinking{Signature: "F", Origin: dialoguetest.Messages},
			}, opened(1, dialogue.TextPart), delta(1, "x"), closed(1)}, end...)...),
	)
	req := decode(t, env, `{"contents":[{"role":"model","parts":[`+strings.ReplaceAll(got, "} {", "},{")+`]}]}`)
	if p := req.Turns[0].Parts; len(p) != 2 ||
		*p[0].Thinking != (dialogue.Thinking{Text: "ab", Signature: "F", Origin: dialoguetest.Messages}) ||
		p[1].Text != "x" {
		t.Errorf("got %+v", p)
	}
}

func TestFinishWords(t *testing.T) {
	for reason, want := range map[dialogue.Reason]string{
		dialogue.ReasonStop: "STOP", dialogue.ReasonStopSequence: "STOP", dialogue.ReasonTool: "STOP",
		dialogue.ReasonPause:  "STOP",
		dialogue.ReasonLength: "MAX_TOKENS", dialogue.ReasonContextWindow: "MAX_TOKENS",
		dialogue.ReasonFilter:        "SAFETY",
		dialogue.ReasonMalformedCall: "MALFORMED_FUNCTION_CALL", dialogue.ReasonOther: "OTHER",
	} {
		got := emitAll(t, newEnv(), shapes.Whole, ev{Kind: dialogue.EventFinish, Reason: reason, Detail: "d"},
			ev{Kind: dialogue.EventEnd})
		if w := gjson.Get(got, "candidates.0.finishReason").Str; w != want ||
			gjson.Get(got, "candidates.0.finishMessage").Str != "d" {
			t.Errorf("reason %d: got %s, want %s", reason, w, want)
		}
	}
	for _, mode := range []shapes.Mode{shapes.Stream, shapes.Whole} {
		got := emitAll(
			t,
			newEnv(),
			mode,
			append([]ev{opened(0, dialogue.RefusalPart), delta(0, "no"), closed(0)}, end...)...)
		if !strings.Contains(got, `"finishReason":"SAFETY"`) || !strings.Contains(got, `{"text":"no"}`) {
			t.Errorf("refusal: %s", got)
		}
	}
}

func TestErrorsEndAStream(t *testing.T) {
	failed := ev{
		Kind: dialogue.EventError,
		Err:  &dialogue.Error{Status: 503, Message: "Overloaded", Type: "overloaded_error"},
	}
	const doc = `{"error":{"message":"Overloaded","type":"overloaded_error","param":null,"code":503,"status":"UNAVAILABLE"}}`
	begun := []ev{opened(0, dialogue.TextPart), delta(0, "x"), failed}
	if got := emitAll(t, newEnv(), shapes.Stream, begun...); !strings.HasSuffix(got, "\n\ndata: "+doc+"\n\n") ||
		strings.Contains(got, "finishReason") {
		t.Errorf("stream: %s", got)
	}
	if got := emitAll(t, newEnv(), shapes.Array, begun...); !strings.HasSuffix(got, ",\r\n"+doc+"]") ||
		!json.Valid([]byte(got)) {
		t.Errorf("array: %s", got)
	}
	if got := emitAll(t, newEnv(), shapes.Array, failed); got != "["+doc+"]" {
		t.Errorf("array at once: %s", got)
	}
	if got := emitAll(t, newEnv(), shapes.Whole, begun...); got != "" {
		t.Errorf("whole: %s", got)
	}
}

func TestCitationsComeBackInBytes(t *testing.T) {
	cite := ev{
		Kind: dialogue.EventDelta,
		Part: 1,
		Citations: []dialogue.Citation{
			{URL: "https://a", Title: "A", Start: 2, End: 4},
			{URL: "https://a", Start: 0, End: 90},
			{URL: "https://b"},
		},
	}
	for _, mode := range []shapes.Mode{shapes.Stream, shapes.Whole} {
		got := emitAll(
			t,
			newEnv(),
			mode,
			append(
				[]ev{
					opened(0, dialogue.TextPart),
					delta(0, "ö"),
					closed(0),
					opened(1, dialogue.TextPart),
					delta(1, "éèab"),
					cite,
					closed(1),
				},
				end...)...)
		got = got[strings.LastIndex(got, `"groundingMetadata":`)+len(`"groundingMetadata":`):]
		want := `{"groundingChunks":[{"web":{"uri":"https://a","title":"A"}},{"web":{"uri":"https://b","title":""}}],"groundingSupports":[` +
			`{"segment":{"startIndex":6,"endIndex":8,"text":"ab"},"groundingChunkIndices":[0]},{"segment":{"startIndex":2,"endIndex":8,"text":"éèab"},"groundingChunkIndices":[0]}]}`
		if !strings.HasPrefix(got, want) {
			t.Errorf("got  %s\nwant %s", got, want)
		}
	}
}

func TestLogProbsComeBack(t *testing.T) {
	logs := ev{
		Kind:     dialogue.EventDelta,
		Text:     "a",
		LogProbs: json.RawMessage(`[{"token":"a","logprob":-0.5,"top_logprobs":[{"token":"b","logprob":-1}]}]`),
	}
	got := emitAll(t, newEnv(), shapes.Stream, append([]ev{opened(0, dialogue.TextPart), logs, closed(0)}, end...)...)
	want := `"logprobsResult":{"topCandidates":[{"candidates":[{"token":"b","logProbability":-1}]}],"chosenCandidates":[{"token":"a","logProbability":-0.5}]}`
	if !strings.Contains(got, want) {
		t.Errorf("got %s", got)
	}
}

func TestUsageIsOnlyToldWhenKnown(t *testing.T) {
	if got := emitAll(t, newEnv(), shapes.Whole, end...); strings.Contains(got, "usageMetadata") {
		t.Error(got)
	}
	got := emitAll(t, newEnv(), shapes.Whole, append([]ev{usage(4, 0, -1)}, end...)...)
	if u := gjson.Get(got, "usageMetadata").Raw; u != `{"promptTokenCount":4,"totalTokenCount":4}` {
		t.Error(u)
	}
}

func TestEveryCandidateFinishes(t *testing.T) {
	got := emitAll(
		t,
		newEnv(),
		shapes.Stream,
		ev{Kind: dialogue.EventOpen, Choice: 1},
		ev{Kind: dialogue.EventDelta, Choice: 1, Text: "b"},
		ev{Kind: dialogue.EventClose, Choice: 1},
		ev{
			Kind:   dialogue.EventFinish,
			Choice: 1,
			Reason: dialogue.ReasonLength,
		},
		ev{Kind: dialogue.EventFinish},
		ev{Kind: dialogue.EventEnd},
	)
	if strings.Count(got, "finishReason") != 2 ||
		strings.Index(
			got,
			`"finishReason":"STOP","index":0`,
		) > strings.Index(got, `"finishReason":"MAX_TOKENS","index":1`) {
		t.Error(got)
	}
}

// What the parser reads of a reply, the emitter writes to the same meaning.
func TestRepliesMakeTheRound(t *testing.T) {
	in := `{"candidates":[{"content":{"parts":[{"text":"t","thought":true,"thoughtSignature":"A"},{"text":"x","thoughtSignature":"B"},{"functionCall":{"id":"c","name":"f","args":{"n":9007199254740993}},"thoughtSignature":"C"},` +
		`{"inlineData":{"mimeType":"image/png","data":"QQ=="}},{"executableCode":{"code":"1"}}],"role":"model"},"finishReason":"STOP","index":0}],"usageMetadata":{"promptTokenCount":3,"cachedContentTokenCount":1,"candidatesTokenCount":2,"thoughtsTokenCount":4,"totalTokenCount":9},"modelVersion":"m","responseId":"id1"}`
	env := newEnv()
	e := gemini.Shape.NewEmitter(asking(), shapes.Whole, env)
	var out []byte
	gemini.Shape.NewParser(1, env).Body([]byte(in), func(ev *dialogue.Event) { out = e.Emit(out, ev) })
	if string(out) != in {
		t.Errorf("got  %s\nwant %s", out, in)
	}
}

func TestHeartbeats(t *testing.T) {
	if got := string(gemini.Shape.Heartbeat(shapes.Stream)); !strings.HasPrefix(got, `data: {"candidates":[`) ||
		!strings.HasSuffix(got, "\n\n") {
		t.Errorf("stream %q", got)
	}
	if got := string(gemini.Shape.Heartbeat(shapes.Array)); strings.TrimSpace(got) != "" || got == "" {
		t.Errorf("array %q", got)
	}
	if got := gemini.Shape.Heartbeat(shapes.Whole); got != nil {
		t.Errorf("whole %q", got)
	}
}

// A reply of many thoughts and texts costs what its length is worth.
func TestEachThoughtIsSealedOnce(t *testing.T) {
	sealing := func(n int) float64 {
		var events []ev
		for part := range n {
			th := dialogue.Thinking{Text: "why", Signature: "F", Origin: dialoguetest.Messages}
			events = append(events, opened(2*part, dialogue.ThinkingPart),
				ev{Kind: dialogue.EventClose, Part: 2 * part, Thinking: &th},
				opened(2*part+1, dialogue.TextPart), delta(2*part+1, "x"), closed(2*part+1))
		}
		return testing.AllocsPerRun(1, func() { emitAll(t, newEnv(), shapes.Stream, append(events, end...)...) })
	}
	if few, many := sealing(32), sealing(256); many > 12*few {
		t.Errorf("%.0f allocations for 32 thoughts and %.0f for 8 times as many", few, many)
	}
}
