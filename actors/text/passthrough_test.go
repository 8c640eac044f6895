package text_test

import (
	"strings"
	"testing"

	"stagedoor/providers/dialogue"
	"stagedoor/providers/dialogue/dialoguetest"
)

// Clients of some shapes read the type of an event from its name. Servers that imitate the shape leave it out.
func TestEventsWithoutANameGetIt(t *testing.T) {
	nameless := func(events ...string) script {
		return stream("data: " + strings.Join(events, "\n\ndata: ") + "\n\n")
	}
	for client, row := range map[dialogue.Shape]struct {
		script script
		want   string
	}{
		dialoguetest.Messages: {
			nameless(
				`{"type":"message_start","message":{"id":"msg_1","type":"message","role":"assistant","model":"m",`+
					`"content":[],"usage":{"input_tokens":1,"output_tokens":1}}}`,
				`{"type":"content_block_start","index":0,"content_block":{"type":"text","text":"x"}}`,
				`{"type":"content_block_stop","index":0}`,
				`{"type":"bad\nname"}`,
				`{"type":"message_delta","delta":{"stop_reason":"end_turn"},"usage":{"output_tokens":1}}`,
				`{"type":"message_stop"}`,
			),
			"event: content_block_stop\ndata: {",
		},
		dialoguetest.Responses: {
			nameless(
				`{"type":"response.created","sequence_number":0,"response":{"id":"resp_1","object":"response",`+
					`"status":"in_progress","output":[]}}`,
				`{"type":"response.output_text.delta","sequence_number":1,"item_id":"i","output_index":0,`+
					`"content_index":0,"delta":"x"}`,
				`{"type":"response.completed","sequence_number":2,"response":{"id":"resp_1","object":"response",`+
					`"status":"completed","output":[]}}`,
			),
			"event: response.output_text.delta\ndata: {",
		},
		dialoguetest.Chat: {
			stream(strings.ReplaceAll(chatRole+chatText("x")+chatStop, `{"id"`, `{"type":"t","id"`) + chatDone),
			`data: {"type":"t"`,
		},
	} {
		play(t, func(t *testing.T, s *stage) {
			s.upstream("a", client, row.script)
			got := s.ask(s.request(client, `{"model":"m","stream":true,"max_tokens":9,"store":false,"input":"hi",
				"messages":[{"role":"user","content":"hi"}]}`))
			if got.Err != nil || !strings.Contains(got.text, row.want) || strings.Contains(got.text, "event: t\n") ||
				strings.Contains(got.text, "event: bad") {
				t.Errorf("%s: got %v, %s", client, got.Err, got.text)
			}
		})
	}
}
