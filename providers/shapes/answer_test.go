package shapes

import (
	"strings"
	"testing"
)

// TestAnswerBytesCountsTheTextOfDeltas checks that neither frames nor names nor what was counted
// before count.
func TestAnswerBytesCountsTheTextOfDeltas(t *testing.T) {
	long := strings.Repeat("a", 8000)
	all := AnswerMembers{
		Text:    []string{"content", "reasoning_content", "arguments", "text", "partial_json", "delta"},
		Object:  []string{"input", "args"},
		Repeats: func(kind []byte) bool { return strings.HasSuffix(string(kind), ".done") },
	}
	tests := []struct {
		data string
		want int
	}{
		{`{"id":"x","choices":[{"index":0,"delta":{"role":"assistant","content":"` + long + `"}}]}`, 8000},
		{`{"choices":[{"delta":{"content":"say \"hi\\\\"}}]}`, 12},
		{`{"choices":[{"delta":{"reasoning_content":"abc","content":null}}]}`, 3},
		{`{"choices":[{"delta":{"tool_calls":[{"function":{"name":"f","arguments":"{\"a\":1}"}}]}}]}`, 9},
		{`{"choices":[{"delta":{},"finish_reason":"stop","logprobs":{"content":[{"token":"a"}]}}]}`, 0},
		{`{"choices":[{"text":"abcd"}]}`, 4},
		{`{"type":"content_block_delta","index":0,"delta":{"type":"text_delta","text":"Hello"}}`, 5},
		{`{"type":"content_block_delta","delta":{"type":"input_json_delta","partial_json":"{}"}}`, 2},
		{`{"type":"message","content":[{"type":"tool_use","name":"f","input":{"a":"}\"b"}}]}`, len(`{"a":"}\"b"}`)},
		{`{"type":"message_stop"}`, 0},
		{`{"type":"response.output_text.delta","delta":"abc"}`, 3},
		{`{"type":"response.output_text.done","text":"abc"}`, 0},
		{`{"candidates":[{"content":{"parts":[{"text":"abc"},{"functionCall":{"name":"f","args":{"a":1}}}]}}]}`, 3 + 7},
		{`{"text": "open`, 0},
		{``, 0},
	}
	for _, tt := range tests {
		if got := all.Bytes([]byte(tt.data)); got != tt.want {
			t.Errorf("%.90s: got %d, want %d", tt.data, got, tt.want)
		}
	}
}

func BenchmarkAnswerBytes(b *testing.B) {
	data := []byte(`{"id":"chatcmpl-1","object":"chat.completion.chunk","created":1700000000,"model":"m","choices":[{"index":0,"delta":{"content":" word"},"finish_reason":null}]}`)
	chat := AnswerMembers{Text: []string{"content", "reasoning_content", "reasoning", "refusal", "arguments", "input",
		"text"}}
	b.SetBytes(int64(len(data)))
	for b.Loop() {
		chat.Bytes(data)
	}
}
