package cases

import (
	"strings"
	"testing"
)

// good streams, one event a line: name, a space, data; - is no name.
var good = map[Shape]string{
	Chat: `- {"id":"c","object":"chat.completion.chunk","choices":[{"index":0,"delta":{"role":"assistant","content":""},"finish_reason":null}]}
- {"id":"c","object":"chat.completion.chunk","choices":[{"index":0,"delta":{"content":"hi"},"finish_reason":null}]}
- {"id":"c","object":"chat.completion.chunk","choices":[{"index":0,"delta":{"tool_calls":[{"index":0,"id":"call_1","type":"function","function":{"name":"f","arguments":"{\"a\""}}]},"finish_reason":null}]}
- {"id":"c","object":"chat.completion.chunk","choices":[{"index":0,"delta":{"tool_calls":[{"index":0,"function":{"arguments":":1}"}}]},"finish_reason":null}]}
- {"id":"c","object":"chat.completion.chunk","choices":[{"index":0,"delta":{},"finish_reason":"tool_calls"}]}
- [DONE]`,
	Completions: `- {"id":"c","object":"text_completion","choices":[{"index":0,"text":"hi","finish_reason":null}]}
- {"id":"c","object":"text_completion","choices":[{"index":0,"text":"","finish_reason":"stop"}]}
- [DONE]`,
	Messages: `message_start {"type":"message_start","message":{"id":"m","type":"message","role":"assistant","content":[],"stop_reason":null,"usage":{"input_tokens":1}}}
ping {"type":"ping"}
content_block_start {"type":"content_block_start","index":0,"content_block":{"type":"text","text":""}}
content_block_delta {"type":"content_block_delta","index":0,"delta":{"type":"text_delta","text":"hi"}}
content_block_stop {"type":"content_block_stop","index":0}
content_block_start {"type":"content_block_start","index":1,"content_block":{"type":"tool_use","id":"t","name":"f","input":{}}}
content_block_delta {"type":"content_block_delta","index":1,"delta":{"type":"input_json_delta","partial_json":"{\"a\":1}"}}
content_block_stop {"type":"content_block_stop","index":1}
message_delta {"type":"message_delta","delta":{"stop_reason":"tool_use","stop_sequence":null},"usage":{"output_tokens":3}}
message_stop {"type":"message_stop"}`,
	Responses: `response.created {"type":"response.created","sequence_number":0,"response":{"id":"r","status":"in_progress"}}
response.output_item.added {"type":"response.output_item.added","sequence_number":1,"output_index":0,"item":{"id":"i","type":"message"}}
response.content_part.added {"type":"response.content_part.added","sequence_number":2,"output_index":0,"content_index":0,"item_id":"i"}
response.output_text.delta {"type":"response.output_text.delta","sequence_number":3,"output_index":0,"content_index":0,"item_id":"i","delta":"hi"}
response.output_text.done {"type":"response.output_text.done","sequence_number":4,"output_index":0,"content_index":0,"item_id":"i","text":"hi"}
response.output_item.done {"type":"response.output_item.done","sequence_number":5,"output_index":0,"item":{"id":"i","type":"message"}}
response.completed {"type":"response.completed","sequence_number":6,"response":{"id":"r","status":"completed","output":[{"id":"i","type":"message"}]}}`,
	Gemini: `- {"candidates":[{"index":0,"content":{"parts":[{"text":"h"}]}}]}
- {"candidates":[{"index":0,"content":{"parts":[{"text":"i"},{"functionCall":{"name":"f","args":{"a":1}}}]},"finishReason":"STOP"}]}`,
}

// sse writes a stream from its lines.
func sse(lines string) []byte {
	var b strings.Builder
	for line := range strings.Lines(lines) {
		name, data, _ := strings.Cut(strings.TrimSuffix(line, "\n"), " ")
		if name != "-" {
			b.WriteString("event: " + name + "\n")
		}
		b.WriteString("data: " + data + "\n\n")
	}
	return []byte(b.String())
}

func decodeGood(t *testing.T, lines string) []Event {
	t.Helper()
	events, err := Decode(sse(lines))
	if err != nil {
		t.Fatal(err)
	}
	return events
}

func TestGoodStreamsKeepTheRules(t *testing.T) {
	for shape, lines := range good {
		if bad := ClientRules(shape, decodeGood(t, lines), false); len(bad) > 0 {
			t.Errorf("%s: %q", shape, bad)
		}
	}
}

func TestStreamWithoutItsLastEventIsBroken(t *testing.T) {
	for shape, lines := range good {
		cut := lines[:strings.LastIndex(lines, "\n")]
		if bad := ClientRules(shape, decodeGood(t, cut), false); len(bad) == 0 {
			t.Errorf("%s: a stream that was cut keeps all rules", shape)
		}
	}
}

func TestStreamWithAnEventTwiceIsBroken(t *testing.T) {
	// Of the shapes without positions only the end can be seen twice.
	for shape, event := range map[Shape]string{Chat: "- [DONE]", Completions: "- [DONE]", Messages: "message_stop", Responses: "response.completed"} {
		lines := strings.Split(good[shape], "\n")
		for _, l := range lines {
			if strings.HasPrefix(l, event) {
				twice := good[shape] + "\n" + l
				if bad := ClientRules(shape, decodeGood(t, twice), false); len(bad) == 0 {
					t.Errorf("%s: two ends keep all rules", shape)
				}
			}
		}
	}
}

func TestRulesSeeWhatIsWrong(t *testing.T) {
	for _, c := range []struct {
		shape     Shape
		old, new  string
		complaint string
	}{
		{Chat, `"role":"assistant",`, ``, "delta before role"},
		{Chat, `"tool_calls":[{"index":0,"id":"call_1"`, `"tool_calls":[{"index":1,"id":"call_1"`, "opened, want 0"},
		{Chat, `"finish_reason":"tool_calls"`, `"finish_reason":"tool_use"`, "vocabulary"},
		{Chat, `{"id":"c","object":"chat.completion.chunk","choices":[{"index":0,"delta":{},`,
			`{"id":"d","object":"chat.completion.chunk","choices":[{"index":0,"delta":{},`, "different ids"},
		{Messages, `"index":1,"content_block"`, `"index":2,"content_block"`, "want 1"},
		{Messages, `"stop_reason":null`, `"stop_reason":"end_turn"`, "not null"},
		{Messages, `text_delta","text"`, `input_json_delta","partial_json"`, "on a text block"},
		{Responses, `"sequence_number":3`, `"sequence_number":1`, "not increasing"},
		{Responses, `"item_id":"i","delta"`, `"item_id":"j","delta"`, "item_id"},
		{Responses, `"status":"completed"`, `"status":"failed"`, "response.status"},
		{Gemini, `"args":{"a":1}`, `"args":"{}"`, "not an object"},
	} {
		broken := strings.Replace(good[c.shape], c.old, c.new, 1)
		if broken == good[c.shape] {
			t.Fatalf("%s: %q does not occur", c.shape, c.old)
		}
		bad := strings.Join(ClientRules(c.shape, decodeGood(t, broken), false), "; ")
		if !strings.Contains(bad, c.complaint) {
			t.Errorf("%s with %q: got %q, want %q", c.shape, c.new, bad, c.complaint)
		}
	}
}

func TestFoldBuildsWhatAnSDKWould(t *testing.T) {
	for shape, want := range map[Shape]string{
		Chat:        `{"/choices/0/message/content":"hi","/choices/0/message/tool_calls/0":{"id":"call_1","function":{"name":"f","arguments":"{\"a\":1}"}},"/_done":true}`,
		Completions: `{"/choices/0/text":"hi","/choices/0/finish_reason":"stop"}`,
		Messages:    `{"/content/0/text":"hi","/content/1/input":{"a":1},"/usage":{"input_tokens":1,"output_tokens":3},"/stop_reason":"tool_use"}`,
		Responses:   `{"/status":"completed","/_items/0/_text":"hi","/_terminal":"response.completed"}`,
		Gemini:      `{"/candidates/0/content/parts/0/text":"hi","/candidates/0/content/parts/1/functionCall/name":"f","/candidates/0/finishReason":"STOP"}`,
	} {
		folded, bad := Fold(shape, decodeGood(t, good[shape]))
		bad = append(bad, matchMap(folded, asObject(mustParse(t, want)), nil)...)
		if len(bad) > 0 {
			t.Errorf("%s: %q", shape, bad)
		}
	}
}

func TestDecodeReadsAsTheStandardSays(t *testing.T) {
	for _, c := range []struct{ raw, want string }{
		{"data: {}\n\n", `{}`},
		{"\ufeffdata:{}\r\n\r\n", `{}`},
		{"data: {\rdata: }\r\r", `{}`},
		{": comment\n\ndata: {}\n\n", `{}`},
		{"event: x\n\ndata: {}\n\n", `{}`}, // an event without data is none
		{"data: {}\n\ndata: {\"unterminated\":1}", `{}`},
		{"id: 1\nretry: 5\ndata: {}\n\n", `{}`},
	} {
		events, err := Decode([]byte(c.raw))
		if err != nil || len(events) != 1 || compact(events[0].Data) != c.want {
			t.Errorf("%q: got %v, %v, want one event %s", c.raw, events, err, c.want)
		}
	}
	for _, raw := range []string{"data: \xff\n\n", "data: {\n\n", "data: 1\n\n", "data: {} {}\n\n"} {
		if _, err := Decode([]byte(raw)); err == nil {
			t.Errorf("%q is accepted", raw)
		}
	}
}

func FuzzClientRules(f *testing.F) {
	for shape, lines := range good {
		f.Add(string(shape), sse(lines))
	}
	f.Fuzz(func(t *testing.T, shape string, raw []byte) {
		events, err := Decode(raw)
		if err != nil {
			return
		}
		ClientRules(Shape(shape), events, false)
	})
}
