package main

import (
	"bufio"
	"bytes"
	"encoding/json"
	"io"
	"net/http"
)

// The events of a messages stream, as small as they may be.
type (
	deltaEvent struct {
		Type  string    `json:"type"`
		Index int       `json:"index"`
		Delta textDelta `json:"delta"`
	}
	textDelta struct {
		Type string `json:"type"`
		Text string `json:"text"`
	}
)

// streamMessage turns chat chunks into messages events, each flushed at once.
func streamMessage(w http.ResponseWriter, body io.Reader) {
	w.Header().Set("Content-Type", "text/event-stream")
	flush := http.NewResponseController(w)
	send := func(name string, event any) {
		text, err := json.Marshal(event)
		if err != nil {
			return
		}
		_, _ = w.Write([]byte("event: " + name + "\ndata: " + string(text) + "\n\n"))
		_ = flush.Flush()
	}
	started := false
	lines := bufio.NewScanner(body)
	for lines.Scan() {
		data, ok := bytes.CutPrefix(lines.Bytes(), []byte("data: "))
		if !ok || string(data) == "[DONE]" {
			continue
		}
		var chunk chatReply
		if json.Unmarshal(data, &chunk) != nil || len(chunk.Choices) == 0 {
			return // unfinished: the client will notice
		}
		if !started {
			started = true
			send("message_start", map[string]any{"type": "message_start", "message": map[string]any{
				"id": chunk.ID, "type": "message", "role": "assistant", "model": chunk.Model, "content": []any{},
				"stop_reason": nil, "stop_sequence": nil,
				"usage": map[string]any{"input_tokens": 0, "output_tokens": 0}}})
			send("content_block_start", map[string]any{"type": "content_block_start", "index": 0,
				"content_block": map[string]any{"type": "text", "text": ""}})
		}
		choice := chunk.Choices[0]
		if choice.Delta.Content != "" {
			send("content_block_delta", deltaEvent{"content_block_delta", 0,
				textDelta{"text_delta", choice.Delta.Content}})
		}
		if choice.Finish != "" {
			send("content_block_stop", map[string]any{"type": "content_block_stop", "index": 0})
			send("message_delta", map[string]any{"type": "message_delta",
				"delta": map[string]any{"stop_reason": "end_turn", "stop_sequence": nil},
				"usage": map[string]any{"output_tokens": 0}})
			send("message_stop", map[string]any{"type": "message_stop"})
		}
	}
}
