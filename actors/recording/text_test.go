package recording_test

import (
	"testing"

	"stagedoor/actors/recording"
	"stagedoor/providers/shapes"
	"stagedoor/providers/shapes/messages"
)

// TestTheContentOfAStreamIsReadInOnePiece, also of one that was cut, and never of another reply.
func TestTheContentOfAStreamIsReadInOnePiece(t *testing.T) {
	const stream = `event: message_start
data: {"type":"message_start","message":{"id":"m","type":"message","role":"assistant","model":"m","content":[],` +
		`"usage":{"input_tokens":1,"output_tokens":1}}}

event: content_block_start
data: {"type":"content_block_start","index":0,"content_block":{"type":"text","text":""}}

event: content_block_delta
data: {"type":"content_block_delta","index":0,"delta":{"type":"text_delta","text":"It is "}}

event: content_block_delta
data: {"type":"content_block_delta","index":0,"delta":{"type":"text_delta","text":"raining."}}

event: content_block_stop
data: {"type":"content_block_stop","index":0}

event: content_block_start
data: {"type":"content_block_start","index":1,"content_block":{"type":"tool_use","id":"c","name":"umbrella","input":{}}}

event: content_block_delta
data: {"type":"content_block_delta","index":1,"delta":{"type":"input_json_delta","partial_json":"{\"open\":true}"}}

event: content_block_delta
data: {"type":"content_block_delta","index":1,"delta":{"type":"input_js
[recording: 99 further bytes were not kept]`
	x := &recording.Exchange{Client: recording.Client{Shape: messages.Shape.Name, Mode: uint8(shapes.Stream)},
		Reply: recording.Reply{Body: []byte(stream)}}
	const want = "It is raining.\n\n[call of umbrella]\n{\"open\":true}"
	if got := x.Text(messages.Shape); got != want {
		t.Errorf("got %q, want %q", got, want)
	}
	if got := x.Text(nil); got != "" {
		t.Errorf("of an unknown shape: %q", got)
	}
	x.Client.Mode = uint8(shapes.Whole)
	if got := x.Text(messages.Shape); got != "" {
		t.Errorf("of a whole reply: %q", got)
	}
}
