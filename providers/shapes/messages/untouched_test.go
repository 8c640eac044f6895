package messages

import (
	"bytes"
	"encoding/json"
	"net/http"
	"runtime"
	"strings"
	"testing"

	"stagedoor/providers/dialogue"
	"stagedoor/providers/dialogue/dialoguetest"
	"stagedoor/providers/shapes"
)

func TestPatchChangesNothingElse(t *testing.T) {
	sealed := newEnv().Sealer.Seal(&dialogue.Thinking{Origin: dialoguetest.Chat})
	for _, c := range []struct{ name, body, want, degraded, losses string }{
		{"bytes stay", `{ "model":"up", "x":1.0,  "max_tokens" : 5 }`, `{ "model":"up", "x":1.0,  "max_tokens" : 5 }`,
			"", ""},
		{"an alias", ` {"x":1, "model" : "alias", "max_tokens":5}`, ` {"x":1, "model" : "up", "max_tokens":5}`, "", ""},
		{"no schema", `{"model":"up","output_config":{"format":{"type":"json_schema"},"effort":"low"}}`,
			`{"model":"up","output_config":{"effort":"low"}}`, dialogue.MissingSchema, ""},
		{"no schema, last", `{"model":"up","output_config":{"effort":"low" , "format":{"type":"json_schema"} }}`,
			`{"model":"up","output_config":{"effort":"low"  }}`, dialogue.MissingSchema, ""},
		{"no schema, alone", `{"model":"up","output_config":{"format":{"type":"json_schema"}}}`,
			`{"model":"up","output_config":{}}`, dialogue.MissingSchema, ""},
		{"older no schema", `{"model":"up","output_format":{"type":"json_schema"}}`,
			`{"model":"up","output_format":null}`, dialogue.MissingSchema, ""},
		{"any JSON", `{"model":"up","output_config":{"format":{"type":"json_object"}}}`,
			`{"model":"up","output_config":{}}`, dialogue.JSONObjectUnsupported, ""},
		{"a fitting schema", `{"model":"up","output_config":{"format":{"type":"json_schema","schema":{"type": "object","properties":{},"additionalProperties":false}}}}`,
			`{"model":"up","output_config":{"format":{"type":"json_schema","schema":{"type": "object","properties":{},"additionalProperties":false}}}}`, "", ""},
		{"tools keep their bounds", `{"model":"up","tools":[{"name":"f","input_schema":{"type":"object","properties":{"a":{"type":"integer","minimum":3}}}}]}`,
			`{"model":"up","tools":[{"name":"f","input_schema":{"type":"object","properties":{"a":{"type":"integer","minimum":3}}}}]}`, "", ""},
		{"unsigned thinking", `{"model":"up","messages":[{"role":"assistant","content":[{"type":"thinking","thinking":"t","signature":""}, {"type":"text","text":"b"}]}]}`,
			`{"model":"up","messages":[{"role":"assistant","content":[{"type":"text","text":"b"}]}]}`, "", "thinking"},
		{"signed thinking", `{"model":"up","messages":[{"role":"assistant","content":[{"type":"thinking","thinking":"t","signature":"S"}, {"type":"redacted_thinking","data":"D"}]}]}`,
			`{"model":"up","messages":[{"role":"assistant","content":[{"type":"thinking","thinking":"t","signature":"S"}, {"type":"redacted_thinking","data":"D"}]}]}`, "", ""},
		{"sealed thinking and its message", `{"model":"up","messages":[{"role":"user","content":"a"},{"content":[{"type":"redacted_thinking","data":"` + sealed + `"}],"role":"assistant"},{"role":"user","content":"b"}]}`,
			`{"model":"up","messages":[{"role":"user","content":"a"},{"role":"user","content":"b"}]}`, "", "thinking"},
		{"calls without their thinking", `{"model":"up","thinking":{"type":"enabled","budget_tokens":1024},"messages":[{"role":"assistant","content":[{"type":"thinking","thinking":"t","signature":"` + sealed + `"},{"type":"tool_use","id":"1"}]},{"role":"user","content":[{"type":"tool_result","tool_use_id":"1"}]}]}`,
			`{"model":"up","thinking":{"type":"disabled"},"messages":[{"role":"assistant","content":[{"type":"tool_use","id":"1"}]},{"role":"user","content":[{"type":"tool_result","tool_use_id":"1"}]}]}`, "", "thinking,reasoning:history"},
	} {
		t.Run(c.name, func(t *testing.T) {
			rep := new(dialogue.Report)
			given := strings.Clone(c.body)
			body := []byte(given)
			call, err := Shape.Patch(body, inbound(), shapes.Head{Stream: true}, model(), rep, newEnv())
			if err != nil {
				t.Fatal(err)
			}
			if string(call.Body) != c.want {
				t.Errorf("got  %s\nwant %s", call.Body, c.want)
			}
			if string(body) != given || !call.Stream {
				t.Errorf("the client's bytes were written to, or stream was lost")
			}
			if rep.Degraded != c.degraded || rep.Header() != c.losses {
				t.Errorf("degraded %q, losses %q", rep.Degraded, rep.Header())
			}
		})
	}
}

// What newer models refuse is changed on the way through, too.
func TestPatchRemovesWhatTheModelRefuses(t *testing.T) {
	newest := model()
	newest.Caps.Sampling, newest.Caps.NoForcedTools = false, true
	newest.Caps.AlwaysThinks, newest.Caps.NoBudgets = true, true
	one := model()
	one.Caps.OneSampling = true
	for _, c := range []struct {
		name               string
		target             dialogue.Target
		body, want, losses string
	}{
		{"sampling", newest, `{"temperature":0.5, "top_p":0.9,"model":"up","top_k":3}`, `{"model":"up"}`,
			"temperature,top_p,top_k"},
		{"the default of it", newest, `{"temperature":1.0,"model":"up"}`, `{"temperature":1.0,"model":"up"}`, ""},
		{"two of them", one, `{"top_p":0.9,"model":"up","temperature":0.5}`,
			`{"model":"up","temperature":0.5}`, "top_p"},
		{"one of them", one, `{"top_p":0.9,"model":"up"}`, `{"top_p":0.9,"model":"up"}`, ""},
		{"a forced tool", newest, `{"model":"up","tool_choice":{"type":"tool","name":"f",` +
			`"disable_parallel_tool_use":true}}`,
			`{"model":"up","tool_choice":{"type":"auto","disable_parallel_tool_use":true}}`, "tool_choice:forced"},
		{"a free choice", newest, `{"model":"up","tool_choice":{"type":"none"}}`,
			`{"model":"up","tool_choice":{"type":"none"}}`, ""},
		{"no thinking", newest, `{"thinking":{"type":"disabled"},"model":"up"}`, `{"model":"up"}`, "reasoning:none"},
		{"a budget", newest, `{"thinking":{"type":"enabled","budget_tokens":1024,"display":"omitted"},"model":"up"}`,
			`{"thinking":{"type":"adaptive","display":"omitted"},"model":"up"}`, "reasoning:budget"},
	} {
		t.Run(c.name, func(t *testing.T) {
			rep := new(dialogue.Report)
			call, err := Shape.Patch([]byte(c.body), inbound(), shapes.Head{}, c.target, rep, newEnv())
			if err != nil || string(call.Body) != c.want || rep.Header() != c.losses {
				t.Errorf("%v, losses %q\ngot  %s\nwant %s", err, rep.Header(), call.Body, c.want)
			}
		})
	}
}

// TestManySystemTurnsBesideALargeTurnAreFoldedInOnePass: folding each for itself would copy the large turn each time.
func TestManySystemTurnsBesideALargeTurnAreFoldedInOnePass(t *testing.T) {
	const notes = 2000
	body := `{"model":"m","max_tokens":9,"messages":[{"role":"user","content":"` + strings.Repeat("x", 1<<20) + `"}` +
		strings.Repeat(`,{"role":"system","content":"b"}`, notes) + `]}`
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	call, err := Shape.Patch([]byte(body), inbound(), shapes.Head{SystemTurns: true}, dialogue.Target{Model: "m"},
		new(dialogue.Report), newEnv())
	runtime.ReadMemStats(&after)
	allocated := after.TotalAlloc - before.TotalAlloc
	if n := bytes.Count(call.Body, []byte("<system-reminder>")); err != nil || n != notes || allocated > 64<<20 {
		t.Errorf("%v, %d notes, %d MiB", err, n, allocated>>20)
	}
}

// A system role inside the conversation is sent as it is, unless the model refuses it. Then its text
// is in the user's turn beside it, behind the results of tools.
func TestASystemTurnIsPassedOnOrFolded(t *testing.T) {
	const note = `{"type":"text","text":"<system-reminder>\nb\n</system-reminder>"}`
	const system, call = `{"role":"system","content":"b"}`,
		`{"role":"assistant","content":[{"type":"tool_use","id":"1"}]}`
	const user, answered = `{"role":"user","content":`, `{"type":"tool_result","tool_use_id":"1"}`
	const said, more = `{"role":"assistant","content":"a"}`, `{"role":"assistant","content":"c"}`
	const marked = `"cache_control":{"type":"ephemeral"}}]}`
	for _, c := range []struct{ name, turns, want string }{
		{"behind a user's text", user + `"a"},` + system, user + `[{"type":"text","text":"a"},` + note + `]}`},
		{"behind a user's blocks", user + `[{"type":"text","text":"a"} ]},` + system,
			user + `[{"type":"text","text":"a"} ,` + note + `]}`},
		{"first", system + `,` + user + `""}`, user + `[` + note + `]}`},
		{"between a call and its result", call + `,` + system + `,` + user + `[` + answered + `]}`,
			call + `,` + user + `[` + answered + `,` + note + `]}`},
		{"between answers", said + `,` + system + `,` + more, said + `,` + user + `[` + note + `]},` + more},
		{"last, with a mark", said + `,{"role":"system","content":[{"type":"text","text":"b",` + marked,
			said + `,` + user + `[{"type":"text","text":"<system-reminder>\nb\n</system-reminder>",` + marked},
	} {
		t.Run(c.name, func(t *testing.T) {
			body := `{"model":"up","system":"s","messages":[` + c.turns + `],"max_tokens":1}`
			head := shapes.Head{SystemTurns: true}
			for _, accepts := range []bool{true, false} {
				target, rep, want, losses := model(), new(dialogue.Report), body, ""
				if target.Caps.SystemTurns = accepts; !accepts {
					want, losses = strings.Replace(body, c.turns, c.want, 1), "system:folded"
				}
				call, err := Shape.Patch([]byte(body), inbound(), head, target, rep, newEnv())
				if err != nil || string(call.Body) != want || rep.Header() != losses {
					t.Errorf("accepts %t: %v, losses %q\ngot  %s\nwant %s", accepts, err, rep.Header(), call.Body, want)
				}
			}
		})
	}
}

// The first message of the assistant after the user's last text decides whether the tool loop goes
// on with thinking, so one step without it changes nothing.
func TestTheBeginningOfAToolLoopDecidesAboutThinking(t *testing.T) {
	const (
		asked   = `{"role":"user","content":"a"}`
		thought = `{"role":"assistant","content":[{"type":"thinking","thinking":"t","signature":"S"},` +
			`{"type":"tool_use","id":"1"}]}`
		bare   = `{"role":"assistant","content":[{"type":"tool_use","id":"1"}]}`
		result = `{"role":"user","content":[{"type":"tool_result","tool_use_id":"1"},{"type":"text","text":"note"}]}`
	)
	for _, c := range []struct {
		name, turns string
		thinks      bool
	}{
		{"no loop", asked, true},
		{"begun with thinking", asked + "," + thought + "," + result, true},
		{"a step without", asked + "," + thought + "," + result + "," + bare + "," + result, true},
		{"begun without", asked + "," + bare + "," + result, false},
		{"begun without, then with", asked + "," + bare + "," + result + "," + thought + "," + result, false},
		{"an earlier loop", asked + "," + bare + "," + result + "," + asked, true},
	} {
		t.Run(c.name, func(t *testing.T) {
			rep := new(dialogue.Report)
			body := `{"model":"up","messages":[` + c.turns + `],"thinking":{"type":"enabled","budget_tokens":1024}}`
			call, err := Shape.Patch([]byte(body), inbound(), shapes.Head{}, model(), rep, newEnv())
			if thinks := string(call.Body) == body; err != nil || thinks != c.thinks || thinks != (rep.Header() == "") {
				t.Errorf("%v, losses %q, got %s", err, rep.Header(), call.Body)
			}
		})
	}
}

func TestPatchClosesObjectsAndStripsBounds(t *testing.T) {
	rep := new(dialogue.Report)
	body := `{"model":"up","output_config":{"format":{"type":"json_schema","schema":{"type":"object","properties":{"a":{"type":"integer","minimum":1}}}}}}`
	call, err := Shape.Patch([]byte(body), inbound(), shapes.Head{}, model(), rep, newEnv())
	if err != nil {
		t.Fatal(err)
	}
	if got := string(call.Body); strings.Contains(got, `"minimum":`) || !strings.Contains(got, `"additionalProperties":false`) || !json.Valid(call.Body) {
		t.Errorf("got %s", got)
	}
	if rep.Degraded != dialogue.KeywordsStripped {
		t.Errorf("degraded %q", rep.Degraded)
	}
}

func TestPatchPassesTheVendorsHeaders(t *testing.T) {
	in := shapes.Params{Path: "/v1/messages/count_tokens",
		Header: http.Header{"Anthropic-Version": {"2026-10-21"}, "Anthropic-Beta": {"a,b", "c"}, "Cookie": {"x"}}}
	call, err := Shape.Patch([]byte(`{"model":"up"}`), in, shapes.Head{}, model(), new(dialogue.Report), newEnv())
	if err != nil {
		t.Fatal(err)
	}
	if call.Path != "/v1/messages/count_tokens" || call.Header.Get("anthropic-version") != "2026-10-21" || len(call.Header.Values("anthropic-beta")) != 2 || len(call.Header) != 2 {
		t.Errorf("got %s %v", call.Path, call.Header)
	}
}

func TestTapLearnsHowAReplyEnds(t *testing.T) {
	tap := Shape.NewTap(shapes.TapOptions{Stream: true, Model: "alias"}, newEnv())
	replaced, v, content := tap.Event("message_start",
		[]byte(`{"type":"message_start","message":{"id":"x","model": "up","usage":{"input_tokens":3}}}`))
	if v != shapes.Replace || content || string(replaced) != `{"type":"message_start","message":{"id":"x","model": "alias","usage":{"input_tokens":3}}}` {
		t.Errorf("got %s %v %v", replaced, v, content)
	}
	for _, e := range []struct {
		name, data string
		verdict    shapes.Verdict
		content    bool
	}{
		{"ping", `{"type":"ping"}`, shapes.Forward, false},
		{"content_block_delta", `{}`, shapes.Forward, true},
		{"", `{"type":"content_block_stop","index":0}`, shapes.Forward, true},
		{"message_delta", `{"type":"message_delta","delta":{"stop_reason":"max_tokens"},"usage":{"output_tokens":8}}`,
			shapes.Forward, true},
		{"message_stop", `{"type":"message_stop"}`, shapes.Forward, true},
		{"message_stop", `{"type":"message_stop"}`, shapes.Drop, false},
	} {
		if _, v, content := tap.Event(e.name, []byte(e.data)); v != e.verdict || content != e.content {
			t.Errorf("%s: got %v %v", e.data, v, content)
		}
	}
	if u := tap.Usage(); !tap.Done() || u.InputTotal != 3 || u.OutputTotal != 8 || tap.Reason() != dialogue.ReasonLength {
		t.Errorf("done %v, usage %+v, reason %v", tap.Done(), u, tap.Reason())
	}
	if _, err := tap.EOF(); err != nil {
		t.Error(err)
	}
}

func TestTapReportsFailures(t *testing.T) {
	tap := Shape.NewTap(shapes.TapOptions{Stream: true}, newEnv())
	if _, err := tap.EOF(); err == nil || err.Code != "upstream_incomplete" {
		t.Errorf("early end: %v", err)
	}
	_, v, _ := tap.Event("error", []byte(`{"type":"error","error":{"type":"overloaded_error","message":"Overloaded"}}`))
	if v != shapes.Failed || tap.Err() == nil || tap.Err().Status != 529 {
		t.Errorf("got %v %v", v, tap.Err())
	}
	if got := string(tap.Fail(nil, tap.Err())); got != "event: error\ndata: {\"type\":\"error\",\"error\":{\"message\":\"Overloaded\",\"type\":\"overloaded_error\",\"param\":null,\"code\":null}}\n\n" {
		t.Errorf("got %s", got)
	}
}

func TestTapReadsWholeBodies(t *testing.T) {
	body := `{"id":"x","model":"up","content":[],"stop_reason":"end_turn","usage":{"output_tokens":2}}`
	tap := Shape.NewTap(shapes.TapOptions{Model: "alias"}, newEnv())
	got, err := tap.Body([]byte(body))
	if err != nil || string(got) != strings.Replace(body, "up", "alias", 1) || tap.Usage().OutputTotal != 2 {
		t.Errorf("got %s, %v", got, err)
	}
	for _, bad := range []string{`<html>`, `{"error":{"message":"x","type":"api_error"}}`, `[]`} {
		if _, err := Shape.NewTap(shapes.TapOptions{}, newEnv()).Body([]byte(bad)); err == nil {
			t.Errorf("%s passed", bad)
		}
	}
}

func TestDecodeErrorReadsEveryForm(t *testing.T) {
	h := http.Header{"X-Should-Retry": {"false"}}
	for _, c := range []struct {
		status  int
		body    string
		message string
		kind    string
		code    any
	}{
		{400, `{"type":"error","error":{"type":"invalid_request_error","message":"max_tokens: too big"},"request_id":"r"}`, "max_tokens: too big", "invalid_request_error", nil},
		{404, `{"error":{"message":"no","type":"odd","code":"c"}}`, "no", "odd", "c"},
		{500, `[{"error":{"message":"no","code":13}}]`, "no", "api_error", "13"},
		{429, `{"error":"slow"}`, "slow", "rate_limit_error", nil},
		{422, `{"message":"m"}`, "m", "invalid_request_error", nil},
		{401, `{"detail":"d"}`, "d", "authentication_error", nil},
		{529, `<html>`, "the upstream provider returned status 529", "overloaded_error", nil},
		{502, `"` + strings.Repeat("x", dialogue.MaxErrorBody) + `"`,
			"the upstream provider returned status 502", "api_error", nil},
		{503, ``, "the upstream provider returned status 503", "overloaded_error", nil},
	} {
		err := Shape.DecodeError(c.status, h, []byte(c.body))
		code := err.Code
		if raw, ok := code.(json.RawMessage); ok {
			code = string(raw)
		}
		if err.Status != c.status || err.Message != c.message || err.Type != c.kind || code != c.code {
			t.Errorf("%.40s: got %+v", c.body, err)
		}
		if !err.NoRetry {
			t.Error("it may be tried again")
		}
	}
}

func TestTheShapesOwnForms(t *testing.T) {
	if got := string(Shape.Envelope(dialogue.Missing("model"))); got != `{"type":"error","error":{"message":"model: is required","type":"invalid_request_error","param":"model","code":"missing_required_parameter"}}` {
		t.Errorf("envelope %s", got)
	}
	h := http.Header{}
	Shape.Authorize(h, "k")
	if h.Get("x-api-key") != "k" || Shape.MaxChoices() != 1 || Shape.Name != dialoguetest.Messages {
		t.Errorf("header %v", h)
	}
	if string(Shape.Heartbeat(shapes.Stream)) != "event: ping\ndata: {\"type\":\"ping\"}\n\n" || Shape.Heartbeat(shapes.Whole) != nil {
		t.Error("heartbeat")
	}
	if got := string(Shape.Counter.CountReply(12)); got != `{"input_tokens":12}` {
		t.Errorf("count %s", got)
	}
}
