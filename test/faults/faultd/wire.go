package faultd

import (
	"cmp"
	"fmt"
	"strings"

	"stagedoor/test/cases"
)

// Text is the answer of a good provider, and Pieces the deltas in which it streams it.
const Text = "The quick brown fox."

// Pieces are the deltas of Text.
var Pieces = []string{"The quick ", "brown ", "fox."}

// A Wire is what a provider of a shape says when all is well, and its way to say
// that it is not.
type Wire struct {
	Shape cases.Shape
	// Start are the events before the first delta, End those after the last one.
	Start, End []string
	// Delta is the nth event of a piece of text, which must need no escape.
	Delta func(n int, text string) string
	// Whole is the reply that is no stream.
	Whole string
	// Error is an error's body; Event the same in a stream.
	Error func(status int, kind, message string) string
	Event func(kind, message string) string
}

// Stream is a whole good stream, event by event.
func (w Wire) Stream() []string {
	out := append([]string(nil), w.Start...)
	for n, p := range Pieces {
		out = append(out, w.Delta(n, p))
	}
	return append(out, w.End...)
}

// Begun is a good stream up to its first delta.
func (w Wire) Begun() string { return strings.Join(w.Start, "") + w.Delta(0, Pieces[0]) }

// data returns an event without a name.
func data(format string, args ...any) string { return "data: " + fmt.Sprintf(format, args...) + "\n\n" }

// named returns an event with a name.
func named(name, format string, args ...any) string {
	return "event: " + name + "\n" + data(format, args...)
}

func plainError(_ int, kind, message string) string {
	return fmt.Sprintf(`{"error":{"message":%q,"type":%q,"param":null,"code":null}}`, message, kind)
}

// Wires has the shapes an upstream may have.
var Wires = map[cases.Shape]Wire{
	cases.Chat: {
		Shape: cases.Chat,
		Start: []string{
			data(
				`{"id":"c1","object":"chat.completion.chunk","created":1760000000,"model":"m","choices":[{"index":0,` +
					`"delta":{"role":"assistant","content":""},"finish_reason":null}]}`,
			),
		},
		Delta: func(_ int, text string) string {
			return data(
				`{"id":"c1","object":"chat.completion.chunk","created":1760000000,"model":"m","choices":[{"index":0,`+
					`"delta":{"content":"%s"},"finish_reason":null}]}`,
				text,
			)
		},
		End: []string{
			data(
				`{"id":"c1","object":"chat.completion.chunk","created":1760000000,"model":"m","choices":[{"index":0,` +
					`"delta":{},"finish_reason":"stop"}]}`,
			),
			data("[DONE]"),
		},
		Whole: `{"id":"c1","object":"chat.completion","created":1760000000,"model":"m","choices":[{"index":0,"message":{"role":"assistant","content":"` + Text + `"},"finish_reason":"stop"}],"usage":{"prompt_tokens":3,"completion_tokens":5,"total_tokens":8}}`,
		Error: plainError,
		Event: func(kind, message string) string { return "data: " + plainError(0, kind, message) + "\n\n" },
	},
	cases.Completions: {
		Shape: cases.Completions,
		Delta: func(_ int, text string) string {
			return data(
				`{"id":"t1","object":"text_completion","created":1760000000,"model":"m","choices":[{"index":0,`+
					`"text":"%s","logprobs":null,"finish_reason":null}]}`,
				text,
			)
		},
		End: []string{
			data(
				`{"id":"t1","object":"text_completion","created":1760000000,"model":"m","choices":[{"index":0,` +
					`"text":"","logprobs":null,"finish_reason":"stop"}]}`,
			),
			data("[DONE]"),
		},
		Whole: `{"id":"t1","object":"text_completion","created":1760000000,"model":"m","choices":[{"index":0,"text":"` +
			Text + `","logprobs":null,"finish_reason":"stop"}],"usage":{"prompt_tokens":3,"completion_tokens":5,"total_tokens":8}}`,
		Error: plainError,
		Event: func(kind, message string) string { return "data: " + plainError(0, kind, message) + "\n\n" },
	},
	cases.Messages: {
		Shape: cases.Messages,
		Start: []string{
			named(
				"message_start",
				`{"type":"message_start","message":{"id":"msg_1","type":"message","role":"assistant","content":[],`+
					`"model":"m","stop_reason":null,"stop_sequence":null,"usage":{"input_tokens":3,`+
					`"output_tokens":1}}}`,
			),
			named("content_block_start",
				`{"type":"content_block_start","index":0,"content_block":{"type":"text","text":""}}`),
		},
		Delta: func(_ int, text string) string {
			return named("content_block_delta",
				`{"type":"content_block_delta","index":0,"delta":{"type":"text_delta","text":"%s"}}`, text)
		},
		End: []string{
			named("content_block_stop", `{"type":"content_block_stop","index":0}`),
			named(
				"message_delta",
				`{"type":"message_delta","delta":{"stop_reason":"end_turn","stop_sequence":null},`+
					`"usage":{"output_tokens":5}}`,
			),
			named("message_stop", `{"type":"message_stop"}`),
		},
		Whole: `{"id":"msg_1","type":"message","role":"assistant","content":[{"type":"text","text":"` + Text +
			`"}],"model":"m","stop_reason":"end_turn","stop_sequence":null,"usage":{"input_tokens":3,"output_tokens":5}}`,
		Error: func(_ int, kind, message string) string {
			return fmt.Sprintf(`{"type":"error","error":{"type":%q,"message":%q}}`, kind, message)
		},
		Event: func(kind, message string) string {
			return named("error", `{"type":"error","error":{"type":%q,"message":%q}}`, kind, message)
		},
	},
	cases.Responses: responsesWire(),
	cases.Gemini: {
		Shape: cases.Gemini,
		Delta: func(_ int, text string) string {
			return data(
				`{"candidates":[{"index":0,"content":{"role":"model","parts":[{"text":"%s"}]}}],"modelVersion":"m",`+
					`"responseId":"g1"}`,
				text,
			)
		},
		End: []string{
			data(
				`{"candidates":[{"index":0,"content":{"role":"model","parts":[]},"finishReason":"STOP"}],` +
					`"usageMetadata":{"promptTokenCount":3,"candidatesTokenCount":5,"totalTokenCount":8},` +
					`"modelVersion":"m","responseId":"g1"}`,
			),
		},
		Whole: `{"candidates":[{"index":0,"content":{"role":"model","parts":[{"text":"` + Text +
			`"}]},"finishReason":"STOP"}],"usageMetadata":{"promptTokenCount":3,"candidatesTokenCount":5,"totalTokenCount":8},"modelVersion":"m","responseId":"g1"}`,
		Error: geminiError,
		Event: func(kind, message string) string { return "data: " + geminiError(503, kind, message) + "\n\n" },
	},
}

func geminiError(status int, _, message string) string {
	words := map[int]string{
		400: "INVALID_ARGUMENT",
		401: "UNAUTHENTICATED",
		403: "PERMISSION_DENIED",
		404: "NOT_FOUND",
		429: "RESOURCE_EXHAUSTED",
		503: "UNAVAILABLE",
	}
	word := words[status]
	word = cmp.Or(word, "INTERNAL")
	return fmt.Sprintf(`{"error":{"code":%d,"message":%q,"status":%q}}`, status, message, word)
}

func responsesWire() Wire {
	const response = `{"id":"resp_1","object":"response","created_at":1760000000,"status":"%s","error":null,"incomplete_details":null,"instructions":null,"model":"m","output":[%s],"parallel_tool_calls":true,"usage":%s}`
	const item = `{"id":"item_1","type":"message","status":"completed","role":"assistant","content":[{"type":"output_text","text":"` + Text + `","annotations":[]}]}`
	const usage = `{"input_tokens":3,"input_tokens_details":{"cached_tokens":0},"output_tokens":5,"output_tokens_details":{"reasoning_tokens":0},"total_tokens":8}`
	done := fmt.Sprintf(response, "completed", item, usage)
	return Wire{
		Shape: cases.Responses,
		Start: []string{
			named("response.created", `{"type":"response.created","sequence_number":0,"response":%s}`,
				fmt.Sprintf(response, "in_progress", "", "null")),
			named(
				"response.output_item.added",
				`{"type":"response.output_item.added","sequence_number":1,"output_index":0,"item":{"id":"item_1",`+
					`"type":"message","status":"in_progress","role":"assistant","content":[]}}`,
			),
			named(
				"response.content_part.added",
				`{"type":"response.content_part.added","sequence_number":2,"item_id":"item_1","output_index":0,`+
					`"content_index":0,"part":{"type":"output_text","text":"","annotations":[]}}`,
			),
		},
		Delta: func(n int, text string) string {
			return named(
				"response.output_text.delta",
				`{"type":"response.output_text.delta","sequence_number":%d,"item_id":"item_1","output_index":0,`+
					`"content_index":0,"delta":"%s"}`,
				n+3,
				text,
			)
		},
		End: []string{
			named(
				"response.output_text.done",
				`{"type":"response.output_text.done","sequence_number":1000001,"item_id":"item_1","output_index":0,`+
					`"content_index":0,"text":"%s"}`,
				Text,
			),
			named(
				"response.content_part.done",
				`{"type":"response.content_part.done","sequence_number":1000002,"item_id":"item_1","output_index":0,`+
					`"content_index":0,"part":{"type":"output_text","text":"%s","annotations":[]}}`,
				Text,
			),
			named("response.output_item.done",
				`{"type":"response.output_item.done","sequence_number":1000003,"output_index":0,"item":%s}`, item),
			named("response.completed", `{"type":"response.completed","sequence_number":1000004,"response":%s}`, done),
		},
		Whole: done,
		Error: plainError,
		Event: func(kind, message string) string {
			return named("error", `{"type":"error","sequence_number":1000000,"code":%q,"message":%q,"param":null}`,
				kind, message)
		},
	}
}
