package completions_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/tidwall/gjson"

	"stagedoor/providers/dialogue"
	"stagedoor/providers/dialogue/dialoguetest"
	"stagedoor/providers/fields"
	"stagedoor/providers/shapes"
	"stagedoor/providers/shapes/completions"
)

func newEnv() *dialogue.Env { return dialoguetest.NewEnv(1_760_000_000, "id") }

func param(err error) string {
	if e := new(dialogue.Error); errors.As(err, &e) {
		return e.Param
	}
	return ""
}

func TestCheckNamesTheFirstBrokenRule(t *testing.T) {
	rows := map[string]string{ // body after the model -> offending field
		``: "", `,"prompt":"x"`: "", `,"prompt":null`: "", `,"prompt":["a","b"]`: "", `,"prompt":[1,2]`: "",
		`,"prompt":[[1],[2]]`: "",
		`,"prompt":[]`:        "prompt", `,"prompt":5`: "prompt", `,"prompt":["a",1]`: "prompt.1",
		`,"prompt":[-1]`: "prompt.0", `,"prompt":[1.5]`: "prompt.0",
		`,"prompt":["a"` + strings.Repeat(`,"a"`, 2047) + `]`: "", `,"prompt":["a"` + strings.Repeat(`,"a"`, 2048) +
			`]`: "prompt",
		`,"prompt":[[1]` + strings.Repeat(`,[1]`, 2048) + `]`: "prompt", `,"prompt":[1` + strings.Repeat(`,1`, 9999) +
			`]`: "",
		`,"best_of":1`: "", `,"best_of":0`: "",
		`,"best_of":3,"n":2`: "", `,"best_of":2,"n":2`: "best_of", `,"n":3,"best_of":2`: "best_of",
		`,"best_of":21`:              "best_of",
		`,"best_of":2,"stream":true`: "best_of", `,"best_of":1,"stream":true`: "",
		`,"logprobs":5`: "", `,"logprobs":6`: "logprobs", `,"logprobs":true`: "logprobs",
		`,"max_tokens":0`: "", `,"max_tokens":-1`: "max_tokens", `,"n":129`: "n", `,"echo":1`: "echo",
		`,"stream_options":{}`: "stream_options", `,"stream_options":{},"stream":true`: "",
		`,"stop":["a","b","c","d","e"]`: "stop",
		`,"temperature":3`:              "temperature", `,"suffix":null`: "", `,"user":null`: "", `,"user":1`: "user",
		`,"unknown":{}`: "",
	}
	for more, want := range rows {
		_, err := completions.Shape.Check([]byte(`{"model":"m"`+more+`}`), shapes.Params{})
		if got := param(err); got != want {
			t.Errorf("%s: got %q, want %q", more, got, want)
		}
	}
	if _, err := completions.Shape.Check([]byte(`{"prompt":"x"}`), shapes.Params{}); param(err) != "model" {
		t.Errorf("got %v", err)
	}
}

func decode(more string) (*dialogue.Request, error) {
	return completions.Shape.Decode([]byte(`{"model":"m"`+more+`}`), shapes.Params{}, newEnv())
}

func TestDecodeRefusesWhatOthersCannotDo(t *testing.T) {
	for more, want := range map[string]string{``: "prompt", `,"prompt":""`: "prompt", `,"prompt":[1,2]`: "prompt", `,"prompt":["a",""]`: "prompt",
		`,"prompt":"x","suffix":"y"`: "suffix", `,"prompt":"x","best_of":2`: "best_of",
		`,"prompt":"x","echo":true,"logprobs":1`: "logprobs", `,"prompt":"x","best_of":1`: ""} {
		if _, err := decode(more); param(err) != want {
			t.Errorf("%s: got %v, want %q", more, err, want)
		}
	}
}

func TestDecodeKeepsWhatWasAsked(t *testing.T) {
	req, err := decode(`,"prompt":["Once\n","Twice"],"temperature":0,"n":2,"stop":"x","logprobs":0,"echo":false`)
	if err != nil {
		t.Fatal(err)
	}
	if len(req.Prompts) != 2 || req.Turns[0].Parts[0].Text != "Once\n" || *req.MaxTokens != 16 || req.Temperature != "0" || req.N != 2 || !req.LogProbs || *req.TopLogProbs != 0 {
		t.Errorf("got %+v", req)
	}
}

func TestEncodeRendersAPrompt(t *testing.T) {
	turn := func(role dialogue.Role, text string) dialogue.Turn {
		return dialogue.Turn{Role: role, Parts: []dialogue.Part{{Text: text}}}
	}
	rows := []struct {
		req  dialogue.Request
		want string
	}{
		{dialogue.Request{Turns: []dialogue.Turn{turn(dialogue.User, "Hi")}}, "Hi"},
		{dialogue.Request{System: []dialogue.Part{{Text: "Rule."}}, Turns: []dialogue.Turn{turn(dialogue.User, "Hi")}},
			"Rule.\n\nUser: Hi\n\nAssistant:"},
		{dialogue.Request{Turns: []dialogue.Turn{turn(dialogue.User, "Hi"), turn(dialogue.Assistant, "Well")}},
			"User: Hi\n\nAssistant: Well"},
	}
	for _, row := range rows {
		call, err := completions.Shape.Encode(&row.req, dialogue.Target{Model: "up", MaxOutputTokens: 99},
			new(dialogue.Report), newEnv())
		if got := gjson.GetBytes(call.Body, "prompt").String(); err != nil || got != row.want || gjson.GetBytes(call.Body, "max_tokens").Int() != 99 {
			t.Errorf("got %s, %v", call.Body, err)
		}
	}
}

func TestEncodeTakesTextOnly(t *testing.T) {
	part := func(p dialogue.Part) *dialogue.Request {
		return &dialogue.Request{Turns: []dialogue.Turn{{Role: dialogue.User, Parts: []dialogue.Part{p}}}}
	}
	for name, req := range map[string]*dialogue.Request{
		"tools": {Tools: []dialogue.Tool{{Name: "f"}}},
		"image": part(dialogue.Part{Kind: dialogue.MediaPart, Media: &dialogue.Media{Kind: dialogue.Image, URL: "u"}}),
		"call":  part(dialogue.Part{Kind: dialogue.CallPart, Call: &dialogue.Call{}}),
	} {
		if _, err := completions.Shape.Encode(req, dialogue.Target{}, new(dialogue.Report), newEnv()); param(err) == "" {
			t.Errorf("%s: got %v", name, err)
		}
	}
	req := part(dialogue.Part{Text: "x"})
	req.Output = dialogue.Output{Mode: dialogue.OutputSchema, Schema: json.RawMessage(`{"type":"object"}`)}
	rep := new(dialogue.Report)
	if _, err := completions.Shape.Encode(req, dialogue.Target{Caps: dialogue.Capabilities{StructuredOutputs: true}}, rep, newEnv()); err != nil || rep.Degraded != dialogue.ModelUnsupported {
		t.Errorf("degraded %q, %v", rep.Degraded, err)
	}
}

func play(req *dialogue.Request, mode shapes.Mode, chunks ...string) string {
	p, em := completions.Shape.NewParser(1, newEnv()), completions.Shape.NewEmitter(req, mode, newEnv())
	var out []byte
	emit := func(ev *dialogue.Event) { out = em.Emit(out, ev) }
	for _, c := range chunks {
		p.Event("", []byte(c), emit)
	}
	p.EOF(emit)
	return string(out)
}

const (
	first  = `{"id":"u","choices":[{"text":" a\ud83d","index":0,"logprobs":{"tokens":[" a"],"token_logprobs":[-0.5],"top_logprobs":[{" b":-1.5}],"text_offset":[7]},"finish_reason":null}]}`
	second = `{"id":"u","choices":[{"text":"\ude80","index":0,"finish_reason":"length"}]}`
	usage  = `{"choices":[],"usage":{"prompt_tokens":2,"completion_tokens":3}}`
)

func TestRepliesEchoAndCount(t *testing.T) {
	req := &dialogue.Request{Model: "m", Echo: true, Prompts: [][]byte{[]byte(`"ABC"`)}, LogProbs: true,
		IncludeUsage: true}
	whole := gjson.Parse(play(req, shapes.Whole, first, second, usage))
	for path, want := range map[string]string{"object": "text_completion", "choices.0.text": "ABC a\U0001F680", "choices.0.finish_reason": "length",
		"choices.0.logprobs.tokens": `[" a"]`, "choices.0.logprobs.token_logprobs": `[-0.5]`,
		"choices.0.logprobs.top_logprobs": `[{" b":-1.5," a":-0.5}]`,
		"choices.0.logprobs.text_offset":  `[3]`, "usage.total_tokens": "5"} {
		if got := whole.Get(path).String(); got != want {
			t.Errorf("%s: got %s, want %s", path, got, want)
		}
	}
	out := play(req, shapes.Stream, first, second, usage, `[DONE]`)
	text := ""
	events := strings.Split(strings.TrimSpace(out), "\n\n")
	for _, e := range events[:len(events)-1] {
		data := strings.TrimPrefix(e, "data: ")
		if !json.Valid([]byte(data)) {
			t.Fatalf("event %s", e)
		}
		text += gjson.Get(data, "choices.0.text").String()
	}
	if text != "ABC a\U0001F680" || strings.Count(out, "total_tokens") != 1 || events[len(events)-1] != "data: [DONE]" {
		t.Errorf("got %s", out)
	}
}

func TestEachPromptEchoesItself(t *testing.T) {
	req := &dialogue.Request{Model: "m", Echo: true, N: 2, Prompts: [][]byte{[]byte(`"A"`), []byte(`"B"`)}}
	em := completions.Shape.NewEmitter(req, shapes.Whole, newEnv())
	var out []byte
	out = em.Emit(out, &dialogue.Event{Kind: dialogue.EventStart})
	for i := range 4 {
		out = em.Emit(out, &dialogue.Event{Kind: dialogue.EventOpen, Choice: i})
		out = em.Emit(out, &dialogue.Event{Kind: dialogue.EventDelta, Choice: i, Text: fmt.Sprint(i)})
	}
	out = em.Emit(out, &dialogue.Event{Kind: dialogue.EventEnd})
	if got := gjson.GetBytes(out, "choices.#.text").Raw; got != `["A0","A1","B2","B3"]` {
		t.Errorf("got %s", got)
	}
}

func TestChoicesThatNeverCameAreNotInvented(t *testing.T) {
	req := &dialogue.Request{Model: "m", N: 2, Prompts: [][]byte{[]byte(`"A"`), []byte(`"B"`)}}
	em := completions.Shape.NewEmitter(req, shapes.Whole, newEnv())
	out := em.Emit(nil, &dialogue.Event{Kind: dialogue.EventStart})
	for _, i := range []int{0, 2} {
		out = em.Emit(out, &dialogue.Event{Kind: dialogue.EventOpen, Choice: i})
		out = em.Emit(out, &dialogue.Event{Kind: dialogue.EventClose, Choice: i})
		out = em.Emit(out, &dialogue.Event{Kind: dialogue.EventFinish, Choice: i})
	}
	out = em.Emit(out, &dialogue.Event{Kind: dialogue.EventEnd})
	if got := gjson.GetBytes(out, "choices.#.index").Raw; !json.Valid(out) || got != `[0,2]` {
		t.Errorf("got %s", out)
	}
}

func TestThoughtsAndCallsAreNotShown(t *testing.T) {
	em := completions.Shape.NewEmitter(&dialogue.Request{Model: "m"}, shapes.Stream, newEnv())
	var out []byte
	for _, ev := range []dialogue.Event{{Kind: dialogue.EventStart}, {Kind: dialogue.EventOpen, PartKind: dialogue.ThinkingPart}, {Kind: dialogue.EventDelta, Text: "hm"},
		{Kind: dialogue.EventClose}, {Kind: dialogue.EventOpen, Part: 1, PartKind: dialogue.RefusalPart},
		{Kind: dialogue.EventDelta, Part: 1, Text: "no"},
		{Kind: dialogue.EventClose, Part: 1}, {Kind: dialogue.EventFinish}, {Kind: dialogue.EventEnd}} {
		out = em.Emit(out, &ev)
	}
	if s := string(out); strings.Contains(s, "hm") || !strings.Contains(s, `"text":"no"`) || !strings.Contains(s, `"finish_reason":"content_filter"`) {
		t.Errorf("got %s", s)
	}
}

func TestFailuresStayFailures(t *testing.T) {
	for _, chunks := range [][]string{nil, {first}, {`[DONE]`}, {first, `{"error":{"message":"x"}}`}, {`nope`}} {
		out := play(&dialogue.Request{Model: "m"}, shapes.Stream, chunks...)
		if !strings.Contains(out, `data: {"error":`) || strings.Contains(out, "[DONE]") {
			t.Errorf("%v: got %s", chunks, out)
		}
	}
}

func FuzzRequest(f *testing.F) {
	f.Add([]byte(`{"model":"m","prompt":["a",[1]],"stop":["x"],"stream":true,"n":2}`))
	f.Fuzz(func(t *testing.T, body []byte) {
		head, err := completions.Shape.Check(body, shapes.Params{})
		if err != nil {
			return
		}
		if !fields.Valid(body) {
			t.Fatalf("%q passed", body)
		}
		rep, env := new(dialogue.Report), newEnv()
		if c, err := completions.Shape.Patch(body, shapes.Params{}, head, dialogue.Target{Model: "up"}, rep, env); err != nil || !json.Valid(c.Body) {
			t.Fatalf("patched %s", c.Body)
		}
		req, err := completions.Shape.Decode(body, shapes.Params{}, env)
		if err != nil {
			return
		}
		if c, err := completions.Shape.Encode(req, dialogue.Target{Model: "up"}, rep, env); err != nil || !json.Valid(c.Body) {
			t.Fatalf("encoded %s, %v", c.Body, err)
		}
	})
}

func FuzzParser(f *testing.F) {
	f.Add([]byte(first), []byte(second))
	f.Add([]byte(`{"choices":[null,{"text":5,"index":-1,"logprobs":{"tokens":{}}}]}`), []byte(`{"choices":3}`))
	f.Fuzz(func(t *testing.T, a, b []byte) {
		req := &dialogue.Request{Model: "m", LogProbs: true, IncludeUsage: true}
		for _, e := range strings.Split(play(req, shapes.Stream, string(a), string(b)), "\n\n") {
			if data, ok := strings.CutPrefix(e, "data: "); ok && data != "[DONE]" && !json.Valid([]byte(data)) {
				t.Fatalf("wrote %s", e)
			}
		}
	})
}
