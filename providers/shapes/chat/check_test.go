package chat_test

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	"stagedoor/providers/dialogue"
	"stagedoor/providers/shapes"
	"stagedoor/providers/shapes/chat"
)

// with is a valid request with more fields.
func with(more string) string {
	return `{"model":"m","messages":[{"role":"user","content":"hi"}]` + more + `}`
}

// saying is a valid request with these messages.
func saying(messages string) string { return `{"model":"m","messages":[` + messages + `]}` }

func TestCheckNamesTheFirstBrokenRule(t *testing.T) {
	rows := []struct{ name, body, param string }{
		{"plain", with(``), ""},
		{"unknown field", with(`,"client_metadata":{"a":1}`), ""},
		{"no messages", `{"model":"m"}`, "messages"},
		{"no model", `{"messages":[{"role":"user","content":"x"}]}`, "model"},
		{"nothing", `{}`, "messages"},
		{"model of a wrong type", `{"model":1,"messages":[]}`, "model"},
		{"empty messages", saying(``), "messages"},
		{"messages of a wrong type", `{"model":"m","messages":"hi"}`, "messages"},
		{"body order before required", `{"temperature":9}`, "temperature"},
		{"temperature 2", with(`,"temperature":2`), ""},
		{"temperature 2.01", with(`,"temperature":2.01`), "temperature"},
		{"temperature null", with(`,"temperature":null`), ""},
		{"nothing but nulls", with(`,"user":null,"safety_identifier":null,"prompt_cache_key":null,"web_search_options":null,"response_format":null,"tools":null,"tool_choice":null,` +
			`"parallel_tool_calls":null,"function_call":null,"functions":null,"top_k":null,"stream":null,"stream_options":null,"n":null,"max_tokens":null,"modalities":null,"audio":null`), ""},
		{"messages null", `{"model":"m","messages":null}`, "messages"},
		{"temperature string", with(`,"temperature":"1"`), "temperature"},
		{"top_p", with(`,"top_p":1.5`), "top_p"},
		{"penalty", with(`,"presence_penalty":-2.5`), "presence_penalty"},
		{"n 0", with(`,"n":0`), "n"},
		{"n 128", with(`,"n":128`), ""},
		{"n 129", with(`,"n":129`), "n"},
		{"n 1.0", with(`,"n":1.0`), ""},
		{"n 1e2", with(`,"n":1e2`), ""},
		{"n 1.5", with(`,"n":1.5`), "n"},
		{"n escaped", with(`,"\u006e":129`), "n"},
		{"stop five", with(`,"stop":["a","b","c","d","e"]`), "stop"},
		{"stop number", with(`,"stop":5`), "stop"},
		{"stop null", with(`,"stop":null`), ""},
		{"logit_bias", with(`,"logit_bias":{"1":-101}`), "logit_bias.1"},
		{"metadata 17", with(`,"metadata":{` + pairs(17) + `}`), "metadata"},
		{"metadata 16", with(`,"metadata":{` + pairs(16) + `}`), ""},
		{"metadata number", with(`,"metadata":{"a":1}`), "metadata.a"},
		{"safety_identifier", with(`,"safety_identifier":"` + strings.Repeat("x", 65) + `"`), "safety_identifier"},
		{"top_logprobs alone", with(`,"top_logprobs":2`), "top_logprobs"},
		{"top_logprobs before logprobs", with(`,"top_logprobs":2,"logprobs":true`), ""},
		{"top_logprobs 21", with(`,"logprobs":true,"top_logprobs":21`), "top_logprobs"},
		{"stream_options alone", with(`,"stream_options":{"include_usage":true}`), "stream_options"},
		{"stream_options before stream", with(`,"stream_options":{"include_usage":true},"stream":true`), ""},
		{"audio missing", with(`,"modalities":["text","audio"]`), "audio"},
		{"audio given", with(`,"modalities":["audio"],"audio":{"voice":"v","format":"wav"}`), ""},
		{"modality", with(`,"modalities":["smell"]`), "modalities.0"},
		{"verbosity", with(`,"verbosity":"loud"`), "verbosity"},
		{"retention", with(`,"prompt_cache_retention":"1h"`), "prompt_cache_retention"},
		{"open effort", with(`,"reasoning_effort":"max"`), ""},
		{"open tier", with(`,"service_tier":"fast"`), ""},
		{"top_k", with(`,"top_k":-1`), "top_k"},
		{"functions empty", with(`,"functions":[]`), "functions"},
		{"function nameless", with(`,"functions":[{}]`), "functions.0.name"},
		{"function_call", with(`,"function_call":"any"`), "function_call"},
		{"tool without type", with(`,"tools":[{"function":{"name":"f"}}]`), "tools.0.type"},
		{"tool without function", with(`,"tools":[{"type":"function"}]`), "tools.0.function"},
		{"tool without name", with(`,"tools":[{"type":"function","function":{}}]`), "tools.0.function.name"},
		{"tool parameters", with(`,"tools":[{"type":"function","function":{"name":"f","parameters":"x"}}]`),
			"tools.0.function.parameters"},
		{"open tool type", with(`,"tools":[{"type":"web_search"}]`), ""},
		{"tool_choice", with(`,"tool_choice":"any"`), "tool_choice"},
		{"tool_choice nameless", with(`,"tool_choice":{"type":"function"}`), "tool_choice.function"},
		{"tool_choice allowed", with(`,"tool_choice":{"type":"allowed_tools","allowed_tools":{"mode":"auto","tools":[]}}`), ""},
		{"format", with(`,"response_format":{"type":"yaml"}`), "response_format.type"},
		{"format nameless", with(`,"response_format":{"type":"json_schema","json_schema":{"schema":{}}}`),
			"response_format.json_schema.name"},
		{"format without schema", with(`,"response_format":{"type":"json_schema","json_schema":{"name":"x"}}`), ""},
		{"format typeless", with(`,"response_format":{}`), "response_format.type"},
		{"stream number", with(`,"stream":1`), "stream"},
		{"role", saying(`{"role":"robot","content":"x"}`), "messages.0.role"},
		{"role missing", saying(`{"content":"x"}`), "messages.0.role"},
		{"content missing", saying(`{"role":"user"}`), "messages.0.content"},
		{"content null", saying(`{"role":"user","content":null}`), "messages.0.content"},
		{"content number", saying(`{"role":"user","content":5}`), "messages.0.content"},
		{"content empty list", saying(`{"role":"user","content":[]}`), "messages.0.content"},
		{"assistant without anything", saying(`{"role":"assistant"}`), "messages.0.content"},
		{"assistant with null", saying(`{"role":"assistant","content":null}`), ""},
		{"assistant with an empty list", saying(`{"content":[],"role":"assistant"}`), ""},
		{"tool with null", saying(`{"role":"tool","tool_call_id":"c","content":null}`), ""},
		{"tool with an empty list", saying(`{"role":"tool","tool_call_id":"c","content":[]}`), ""},
		{"tool without content", saying(`{"role":"tool","tool_call_id":"c"}`), "messages.0.content"},
		{"empty list before the role", saying(`{"content":[],"role":"user"}`), "messages.0.content"},
		{"assistant with calls", saying(`{"role":"assistant","content":null,"tool_calls":[{"id":"c","type":"function","function":{"name":"f","arguments":"{}"}}]}`), ""},
		{"call without id", saying(`{"role":"assistant","tool_calls":[{"type":"function","function":{"name":"f","arguments":"{}"}}]}`), "messages.0.tool_calls.0.id"},
		{"call arguments object", saying(`{"role":"assistant","tool_calls":[{"id":"c","type":"function","function":{"name":"f","arguments":{}}}]}`), "messages.0.tool_calls.0.function.arguments"},
		{"tool without id", saying(`{"role":"tool","content":"x"}`), "messages.0.tool_call_id"},
		{"function without name", saying(`{"role":"function","content":"x"}`), "messages.0.name"},
		{"part unknown", saying(`{"role":"user","content":[{"type":"hologram"}]}`), ""},
		{"part typeless", saying(`{"role":"user","content":[{"text":"x"}]}`), "messages.0.content.0.type"},
		{"part textless", saying(`{"role":"user","content":[{"type":"text"}]}`), "messages.0.content.0.text"},
		{"type behind", saying(`{"role":"user","content":[{"text":"x","type":"text"}]}`), ""},
		{"image without url", saying(`{"role":"user","content":[{"type":"image_url","image_url":{}}]}`),
			"messages.0.content.0.image_url.url"},
		{"image without the object", saying(`{"role":"user","content":[{"type":"image_url","image_url":"u"}]}`), ""},
		{"image from the system", saying(`{"role":"system","content":[{"type":"image_url","image_url":{"url":"u"}}]}`),
			"messages.0.content.0"},
		{"role behind content", saying(`{"content":[{"type":"image_url","image_url":{"url":"u"}}],"role":"system"}`),
			"messages.0"},
		{"file empty", saying(`{"role":"user","content":[{"type":"file","file":{}}]}`), "messages.0.content.0.file"},
		{"not an object", `[1]`, "body"},
	}
	for _, row := range rows {
		t.Run(row.name, func(t *testing.T) {
			_, err := chat.Shape.Check([]byte(row.body), shapes.Params{})
			got := ""
			if e := new(dialogue.Error); errors.As(err, &e) {
				got = e.Param
				if e.Status != 400 || !strings.HasPrefix(e.Message, e.Param+": ") {
					t.Errorf("got %d %q", e.Status, e.Message)
				}
			}
			if got != row.param {
				t.Errorf("got %q (%v), want %q", got, err, row.param)
			}
		})
	}
}

func pairs(n int) string {
	var list []string
	for i := range n {
		list = append(list, fmt.Sprintf(`"k%d":"v"`, i))
	}
	return strings.Join(list, ",")
}

func TestCheckReadsTheHead(t *testing.T) {
	head, err := chat.Shape.Check([]byte(with(`,"stream":true,"stream_options":{"include_usage":true},"n":3,"max_tokens":7,
		"max_completion_tokens":9,"service_tier":"flex","store":true,"response_format":{"type":"json_object"}`)), shapes.Params{})
	want := shapes.Head{Model: "m", Stream: true, IncludeUsage: true, MaxTokens: 9, N: 3, ServiceTier: "flex",
		Structured: true, Store: true}
	if err != nil || head != want {
		t.Errorf("got %+v, %v, want %+v", head, err, want)
	}
}

// request is a body of about size bytes with this many tools.
func request(size, tools int) []byte {
	var b strings.Builder
	b.WriteString(`{"model":"gpt-5.1","stream":true,"messages":[{"role":"system","content":"You help."}`)
	const prose = `The quick brown fox (said \"jump\") runs over 13 lazy dogs;\n caf\u00e9 na\u00efve, then rests. `
	for i := 0; b.Len() < size-tools*400; i++ {
		role := []string{"user", "assistant"}[i%2]
		fmt.Fprintf(&b, `,{"role":%q,"content":"%s"}`, role, strings.Repeat(prose, 20))
	}
	b.WriteString(`],"tools":[`)
	for i := range tools {
		if i > 0 {
			b.WriteByte(',')
		}
		fmt.Fprintf(&b, `{"type":"function","function":{"name":"tool_%d","description":"Does a thing with a city and a unit.","parameters":{"type":"object","properties":{"city":{"type":"string","description":"The city, for example Oslo"},"unit":{"type":"string","enum":["celsius","fahrenheit"]},"days":{"type":"integer","minimum":1,"maximum":14}},"required":["city"],"additionalProperties":false}}}`, i)
	}
	b.WriteString(`],"temperature":0.7,"max_completion_tokens":1024}`)
	return []byte(b.String())
}

func BenchmarkCheck(b *testing.B) {
	for _, size := range []int{1 << 10, 64 << 10} {
		body := request(size, 10)
		b.Run(fmt.Sprint(len(body)>>10, "KiB"), func(b *testing.B) {
			b.SetBytes(int64(len(body)))
			b.ReportAllocs()
			for b.Loop() {
				if _, err := chat.Shape.Check(body, shapes.Params{}); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}
