package messages

import (
	"fmt"
	"strings"
	"testing"

	"stagedoor/providers/dialogue"
	"stagedoor/providers/shapes"
)

// BenchmarkCheck measures Check with a long conversation, as for a request that is passed through.
func BenchmarkCheck(b *testing.B) {
	var turns []string
	for i := range 100 {
		turns = append(turns, `{"role":"user","content":[{"type":"text","text":"`+strings.Repeat("word ", 100)+`"}]}`,
			fmt.Sprintf(`{"role":"assistant","content":[{"type":"tool_use","id":"t%d","name":"f","input":{"a":[1,2,{"b":"c"}]}}]}`, i))
	}
	body := []byte(`{"model":"m","max_tokens":9,"messages":[` + strings.Join(turns, ",") + `]}`)
	b.SetBytes(int64(len(body)))
	b.ReportAllocs()
	for b.Loop() {
		if _, err := Shape.Check(body, shapes.Params{}); err != nil {
			b.Fatal(err)
		}
	}
}

// BenchmarkDelta is one text delta through parser and emitter.
func BenchmarkDelta(b *testing.B) {
	env := newEnv()
	p := Shape.NewParser(1, env)
	e := Shape.NewEmitter(&dialogue.Request{Model: "m"}, shapes.Stream, env)
	var out []byte
	emit := func(ev *dialogue.Event) { out = e.Emit(out[:0], ev) }
	p.Event("message_start", []byte(started), emit)
	p.Event("content_block_start", []byte(textOpen), emit)
	chunk := []byte(delta(0, `{"type":"text_delta","text":"some words of an answer"}`))
	b.ReportAllocs()
	for b.Loop() {
		p.Event("content_block_delta", chunk, emit)
	}
}

// BenchmarkTapDelta is one text delta on the untouched lane.
func BenchmarkTapDelta(b *testing.B) {
	tap := Shape.NewTap(shapes.TapOptions{Stream: true}, newEnv())
	chunk := []byte(delta(0, `{"type":"text_delta","text":"some words of an answer"}`))
	b.ReportAllocs()
	for b.Loop() {
		tap.Event("content_block_delta", chunk)
	}
}
