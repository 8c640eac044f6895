package chat_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/tidwall/gjson"

	"stagedoor/providers/dialogue"
	"stagedoor/providers/shapes"
	"stagedoor/providers/shapes/chat"
)

func TestTapLearnsAndLeavesAlone(t *testing.T) {
	const usage = `{"choices":[],"usage":{"prompt_tokens":9,"completion_tokens":4}}`
	type step struct {
		data    string
		verdict shapes.Verdict
		content bool
		out     string
	}
	rows := []struct {
		name    string
		options shapes.TapOptions
		steps   []step
		owed    string
		failed  bool
		reason  dialogue.Reason
		input   int64
	}{
		{"plain", shapes.TapOptions{}, []step{
			{delta(`{"role":"assistant","content":""}`, `null`), shapes.Forward, false, ""},
			{delta(`{"content":"a"}`, `null`), shapes.Forward, true, ""},
			{delta(`{}`, `"length"`), shapes.Forward, true, ""},
			{usage, shapes.Forward, true, ""},
			{`[DONE]`, shapes.Forward, false, ""},
			{`[DONE]`, shapes.Drop, false, ""},
		}, "", false, dialogue.ReasonLength, 9},
		{"usage hidden", shapes.TapOptions{HideUsage: true}, []step{
			{delta(`{"content":"a"}`, `"stop"`), shapes.Forward, true, ""},
			{usage, shapes.Drop, false, ""},
		}, "data: [DONE]\n\n", false, dialogue.ReasonStop, 9},
		{"alias", shapes.TapOptions{Model: "mine"}, []step{
			{`{"model" : "um","choices":[{"delta":{"content":"\"model\":\"um\""},"finish_reason":"stop"}]}`,
				shapes.Replace, true,
				`{"model" : "mine","choices":[{"delta":{"content":"\"model\":\"um\""},"finish_reason":"stop"}]}`},
		}, "data: [DONE]\n\n", false, dialogue.ReasonStop, -1},
		{"two ends", shapes.TapOptions{}, []step{
			{delta(`{"content":"a"}`, `"stop"`), shapes.Forward, true, ""},
			{delta(`{}`, `"stop"`), shapes.Drop, false, ""},
		}, "data: [DONE]\n\n", false, dialogue.ReasonStop, -1},
		{"cut short", shapes.TapOptions{}, []step{{delta(`{"content":"a"}`, `null`), shapes.Forward, true, ""}}, "",
			true, dialogue.ReasonStop, -1},
		{"done without finish is passed on", shapes.TapOptions{}, []step{
			{delta(`{"content":"a"}`, `null`), shapes.Forward, true, ""}, {`[DONE]`, shapes.Forward, false, ""}}, "",
			false, dialogue.ReasonStop, -1},
		{"the word error in a text", shapes.TapOptions{}, []step{{delta(`{"content":"\"error\": 1"}`, `"stop"`),
			shapes.Forward, true, ""}}, "data: [DONE]\n\n", false, dialogue.ReasonStop, -1},
	}
	for _, row := range rows {
		t.Run(row.name, func(t *testing.T) {
			tap := chat.Shape.NewTap(row.options, newEnv())
			for _, s := range row.steps {
				out, verdict, content := tap.Event("", []byte(s.data))
				if verdict != s.verdict || content != s.content || string(out) != s.out {
					t.Errorf("%s: got %d %v %s", s.data, verdict, content, out)
				}
			}
			owed, err := tap.EOF()
			if string(owed) != row.owed || (err != nil) != row.failed {
				t.Errorf("owed %q, %v", owed, err)
			}
			if tap.Reason() != row.reason || tap.Usage().InputTotal != row.input {
				t.Errorf("reason %d, input %d", tap.Reason(), tap.Usage().InputTotal)
			}
		})
	}
}

func TestTapStopsAtErrors(t *testing.T) {
	tap := chat.Shape.NewTap(shapes.TapOptions{}, newEnv())
	_, verdict, _ := tap.Event("", []byte(`{"error":{"message":"slow","type":"rate_limit_error"}}`))
	if verdict != shapes.Failed || tap.Err() == nil {
		t.Errorf("got %d, %v", verdict, tap.Err())
	}
	out := string(tap.Fail(nil, tap.Err()))
	if !strings.HasPrefix(out, `data: {"error":{"message":`) || !strings.HasSuffix(out, "}}\n\n") {
		t.Errorf("got %q", out)
	}
}

func TestTapOfAWholeReply(t *testing.T) {
	const reply = `{"id":"a","model":"um","choices":[{"message":{"content":"x"},"finish_reason":"tool_calls"}],"usage":{"prompt_tokens":3}}`
	tap := chat.Shape.NewTap(shapes.TapOptions{}, newEnv())
	if out, err := tap.Body([]byte(reply)); err != nil || string(out) != reply || tap.Reason() != dialogue.ReasonTool || tap.Usage().InputTotal != 3 {
		t.Errorf("got %s, %v, %d", out, err, tap.Reason())
	}
	tap = chat.Shape.NewTap(shapes.TapOptions{Model: "mine"}, newEnv())
	if out, err := tap.Body([]byte(reply)); err != nil || string(out) != strings.Replace(reply, "um", "mine", 1) {
		t.Errorf("got %s, %v", out, err)
	}
	for body, status := range map[string]int{`{"error":{"type":"overloaded_error"}}`: 503, `{}`: 502, `{"choices":[}`: 502, ``: 502} {
		if _, err := chat.Shape.NewTap(shapes.TapOptions{}, newEnv()).Body([]byte(body)); err == nil || err.Status != status {
			t.Errorf("%q: got %v, want %d", body, err, status)
		}
	}
}

func BenchmarkTap(b *testing.B) {
	tap := chat.Shape.NewTap(shapes.TapOptions{HideUsage: true}, newEnv())
	data := []byte(`{"id":"chatcmpl-1","object":"chat.completion.chunk","created":1760000000,"model":"gpt-5.1","choices":[{"index":0,"delta":{"content":" the quick brown fox"},"logprobs":null,"finish_reason":null}],"usage":null}`)
	b.ReportAllocs()
	for b.Loop() {
		tap.Event("", data)
	}
}

// The reasoning of a reply is remembered with its first call, streamed or whole, if it is not too long.
func TestReasoningThatAServerWantsBackIsRemembered(t *testing.T) {
	const call = `"tool_calls":[{"index":0,"id":"%s","function":{"name":"f","arguments":""}},{"index":1,"id":"x"}]`
	for name, row := range map[string]struct{ first, second, third, want string }{
		"pieces":   {"w", "h", "y", "why"},
		"too long": {strings.Repeat("x", 256<<10-1), "yy", "z", strings.Repeat("x", 256<<10-1)}, // and no hole
		"none":     {},
	} {
		env := newEnv()
		o := shapes.TapOptions{KeepReasoning: true}
		tap := chat.Shape.NewTap(o, env)
		calls := fmt.Sprintf(call, "s")
		for _, v := range []string{`"reasoning_content":"` + row.first + `"`,
			`"reasoning_content":"` + row.second + `"`, `"reasoning_content":"` + row.third + `"`,
			`"content":null,` + calls, calls} {
			tap.Event("", []byte(delta(`{`+v+`}`, `null`)))
		}
		whole := `{"choices":[{"index":0,"message":{"reasoning_content":"` + row.first + row.second + row.third + `",` +
			fmt.Sprintf(call, "w") + `},"finish_reason":"tool_calls"}]}`
		if _, err := chat.Shape.NewTap(o, env).Body([]byte(whole)); err != nil {
			t.Fatal(err)
		}
		body := `{"model":"up","messages":[{"role":"assistant",` + fmt.Sprintf(call, "s") + `},{"role":"assistant",` +
			fmt.Sprintf(call, "w") + `}]}`
		target := dialogue.Target{Model: "up", Caps: dialogue.Capabilities{
			ReasoningContent: dialogue.ReasoningRequired, Sampling: true}}
		sent, err := chat.Shape.Patch([]byte(body), shapes.Params{}, shapes.Head{Model: "up"}, target,
			new(dialogue.Report), env)
		if err != nil {
			t.Fatal(err)
		}
		got := gjson.GetBytes(sent.Body, "messages.0.reasoning_content").Str
		second := gjson.GetBytes(sent.Body, "messages.1.reasoning_content").Str
		if got != row.want || name != "too long" && second != got {
			t.Errorf("%s: sent %.300s", name, sent.Body)
		}
	}
}
