package cases

import (
	"encoding/json"
	"io"
	"net/http"
	"strings"
	"testing"
)

func TestPlaceholdersQuoteTheRequest(t *testing.T) {
	request := json.RawMessage(
		`{"tools":[{"name":"a\"b","schema":{"properties":{"zeta":1,"alpha":2}}}],"n":9007199254740993}`,
	)
	for _, c := range []struct{ text, want string }{
		{`"{{up:/tools/0/name|x}}"`, `"a\"b"`},
		{`{{up:/n}}`, `9007199254740993`},
		{`"{{up:/none|fallback}}"`, `"fallback"`},
		{`"{{up:/none}}"`, `""`},
		{`"{{upkey:/tools/0/schema/properties|x}}"`, `"zeta"`},
		{`"{{upkey:/tools/7|x}}"`, `"x"`},
	} {
		if got := string(quote([]byte(c.text), request)); got != c.want {
			t.Errorf("%s: got %s, want %s", c.text, got, c.want)
		}
	}
	if got := string(generate([]byte("{{gen:b64:4}}"))); got != "AAAAAA==" {
		t.Errorf("generated %s", got)
	}
}

func TestFollowUpsRepeatTheReply(t *testing.T) {
	previous := mustParse(t, `{"id":"r1","output":[{"a":9007199254740993},{"b":2,"gone":1}]}`)
	for _, c := range []struct{ text, want string }{
		{`{"z":1,"a":{"$client":"/id"}}`, `{"z":1,"a":"r1"}`},
		{`{"in":[0,{"$client_splice":"/output"},1.0]}`, `{"in":[0,{"a":9007199254740993},{"b":2,"gone":1},1.0]}`},
		{`{"in":{"$client_strip":{"ptr":"/output/1","drop":["gone"]}}}`, `{"in":{"b":2}}`},
		{`{"plain": [1]}`, `{"plain": [1]}`},
	} {
		got, err := echo(json.RawMessage(c.text), previous)
		if err != nil || string(got) != c.want {
			t.Errorf("%s: got %s, %v, want %s", c.text, got, err, c.want)
		}
	}
	for _, text := range []string{`{"$client":"/none"}`, `[{"$client_splice":"/id"}]`} {
		if _, err := echo(json.RawMessage(text), previous); err == nil {
			t.Errorf("%s: no error although the reply lacks it", text)
		}
	}
}

func TestUpstreamAnswersAsScripted(t *testing.T) {
	const usage = `data: {\"choices\":[],\"usage\":{\"total_tokens\":1}}\n\n`
	for _, c := range []struct {
		name, script, request string
		want                  []string
		lacks                 string
	}{
		{"object", `{"upstream_response":{"echo":"{{up:/model}}"}}`, `{"model":"m"}`,
			[]string{"200", "application/json", `{"echo":"m"}`}, ""},
		{"text", `{"upstream_status":502,"upstream_response":{"$text":"<html>","$content_type":"text/html"}}`, `{}`,
			[]string{"502", "text/html", "<html>"}, ""},
		{"usage not asked", `{"upstream_response":["data: {\"choices\":[1]}\n\n","` + usage + `","data: [DONE]\n\n"]}`,
			`{}`, []string{"text/event-stream", "[DONE]"}, "total_tokens"},
		{"usage asked", `{"upstream_response":["` + usage + `"]}`, `{"stream_options":{"include_usage":true}}`,
			[]string{"total_tokens"}, ""},
		{"bytes", `{"upstream_write":{"chunk":2},"upstream_response":["data: [DONE]\n\n"]}`, `{}`,
			[]string{"data: [DONE]\n\n"}, ""},
		{"headers", `{"upstream_headers":{"retry-after":"7"},"upstream_response":{}}`, `{}`,
			[]string{"Retry-After", "7"}, ""},
	} {
		u, err := NewUpstream(Chat)
		if err != nil {
			t.Fatal(err)
		}
		script, err := Parse([]byte(c.script))
		if err != nil {
			t.Fatal(err)
		}
		u.play(&script.Exchange)
		response, err := http.Post(u.BaseURL()+"/chat/completions?q=1", "application/json",
			strings.NewReader(c.request))
		if err != nil {
			t.Fatal(err)
		}
		body, err := io.ReadAll(response.Body)
		_ = response.Body.Close()
		if err != nil {
			t.Fatal(err)
		}
		var head strings.Builder
		_ = response.Header.Write(&head)
		got := response.Status + "\n" + head.String() + string(body)
		for _, want := range c.want {
			if !strings.Contains(got, want) {
				t.Errorf("%s: got %q, want %q in it", c.name, got, want)
			}
		}
		if c.lacks != "" && strings.Contains(got, c.lacks) {
			t.Errorf("%s: got %q, which must not have %q", c.name, got, c.lacks)
		}
		if seen := u.seen(); len(seen) != 1 || seen[0].path != "/v1/chat/completions?q=1" {
			t.Errorf("%s: recorded %+v", c.name, seen)
		}
		u.Close()
	}
}

func TestUpstreamRulesSeeWhatIsWrong(t *testing.T) {
	for _, c := range []struct {
		shape              Shape
		request, complaint string
	}{
		{Chat, `{"messages":[{"role":"user","content":"x"}]}`, ""},
		{Chat, `{"messages":[{"role":"user","content":"x"}],"system":"s"}`, "foreign field"},
		{Chat, `{"messages":[{"role":"assistant","tool_calls":[{"id":"a","type":"function","function":{"name":"f","arguments":"{}"}}]},{"role":"user","content":"x"}]}`, "not answered"},
		{Chat, `{"messages":[{"role":"user","content":[{"type":"text","text":"x","cache_control":{}}]}]}`,
			"cache_control"},
		{Messages, `{"max_tokens":1,"messages":[{"role":"user","content":"x"}]}`, ""},
		{Messages, `{"max_tokens":1,"messages":[{"role":"user","content":" "}]}`, "empty text"},
		{Messages, `{"max_tokens":1,"temperature":1.5,"messages":[{"role":"user","content":"x"}]}`, "outside 0..1"},
		{Messages, `{"max_tokens":1,"messages":[{"role":"user","content":"x"},{"role":"assistant","content":[{"type":"tool_use","id":"t","name":"f","input":{}}]},{"role":"user","content":"y"}]}`, "without tool_result"},
		{Responses, `{"input":"x"}`, ""},
		{Responses, `{"input":[{"type":"function_call_output","call_id":"c","output":"x"}]}`, "unknown call_id"},
		{Responses, `{"input":[{"role":"assistant","content":[{"type":"input_text","text":"x"}]}]}`, "assistant part"},
		{Gemini, `{"contents":[{"role":"user","parts":[{"text":"x"}]}]}`, ""},
		{Gemini, `{"contents":[{"parts":[{"text":"x"}]}],"tools":[{"functionDeclarations":[{"name":"f","parameters":{"type":"object","additionalProperties":false}}]}]}`, "additionalProperties"},
		{Gemini, `{"contents":[{"role":"model","parts":[{"functionCall":{"name":"f"}}]},{"role":"user","parts":[{"text":"x"}]}]}`, "do not answer"},
	} {
		bad := strings.Join(upstreamRules(c.shape, asObject(mustParse(t, c.request))), "; ")
		if (c.complaint == "") != (bad == "") || !strings.Contains(bad, c.complaint) {
			t.Errorf("%s %s: got %q, want %q", c.shape, c.request, bad, c.complaint)
		}
	}
}

// One conversation in four spellings has one neutral view.
func TestNeutralViewHidesSpelling(t *testing.T) {
	requests := map[Shape]string{
		Chat: `{"max_tokens":5,"messages":[{"role":"system","content":"S"},{"role":"user","content":[{"type":"text","text":"look"},{"type":"image_url","image_url":{"url":"data:image/png;base64,QQ=="}}]},
			{"role":"assistant","content":null,"tool_calls":[{"id":"t1","type":"function","function":{"name":"f","arguments":"{\"a\":1}"}}]},{"role":"tool","tool_call_id":"t1","content":"done"}]}`,
		Messages: `{"max_tokens":5,"system":"S","messages":[{"role":"user","content":[{"type":"text","text":"look"},{"type":"image","source":{"type":"base64","media_type":"image/png","data":"QQ=="}}]},
			{"role":"assistant","content":[{"type":"tool_use","id":"t1","name":"f","input":{"a":1}}]},{"role":"user","content":[{"type":"tool_result","tool_use_id":"t1","content":"done"}]}]}`,
		Responses: `{"max_output_tokens":5,"instructions":"S","input":[{"role":"user","content":[{"type":"input_text","text":"look"},{"type":"input_image","image_url":"data:image/png;base64,QQ=="}]},
			{"type":"function_call","call_id":"t1","name":"f","arguments":"{\"a\":1}"},{"type":"function_call_output","call_id":"t1","output":"done"}]}`,
		Gemini: `{"generationConfig":{"maxOutputTokens":5},"systemInstruction":{"parts":[{"text":"S"}]},"contents":[{"role":"user","parts":[{"text":"look"},{"inlineData":{"mimeType":"image/png","data":"QQ=="}}]},
			{"role":"model","parts":[{"functionCall":{"id":"t1","name":"f","args":{"a":1}}}]},{"role":"user","parts":[{"functionResponse":{"id":"t1","name":"f","response":{"output":"done"}}}]}]}`,
	}
	want := mustParse(
		t,
		`{"~/system":"S","~/max_tokens":5,"~/roles":["user","assistant","user"],"~/turns/0/text":"look",
		"~/media":[{"kind":"image","mime":"image/png","data":"QQ=="}],"~/calls":[{"id":"t1","name":"f","args":{"a":1}}],
		"~/results":[{"id":"t1","text":"done"}]}`,
	)
	for shape, request := range requests {
		body := asObject(mustParse(t, request))
		if bad := matchMap(body, asObject(want), neutral(shape, body)); len(bad) > 0 {
			t.Errorf("%s: %q", shape, bad)
		}
	}
}

func TestSnakeCaseIsRespelledButNotTheUsersData(t *testing.T) {
	got := compact(
		camelize(
			mustParse(
				t,
				`{"generation_config":{"top_p":1},"contents":[{"parts":[{"function_call":{"name":"f",`+
					`"args":{"my_arg":1}}}]}],"cache_control":{}}`,
			),
		),
	)
	want := `{"cache_control":{},"contents":[{"parts":[{"functionCall":{"args":{"my_arg":1},"name":"f"}}]}],"generationConfig":{"topP":1}}`
	if got != want {
		t.Errorf("got %s, want %s", got, want)
	}
}
