package gemini_test

import (
	"testing"

	"stagedoor/providers/dialogue"
	"stagedoor/providers/shapes"
	"stagedoor/providers/shapes/gemini"
)

// BenchmarkChunk is one text increment from an upstream of this shape to a
// client of this shape through the neutral form.
func BenchmarkChunk(b *testing.B) {
	env := newEnv()
	p := gemini.Shape.NewParser(1, env)
	e := gemini.Shape.NewEmitter(&dialogue.Request{Model: "m"}, shapes.Stream, env)
	data := []byte(chunk(`{"text":"Hello, world"}`))
	buf := make([]byte, 0, 4096)
	emit := func(ev *dialogue.Event) { buf = e.Emit(buf, ev) }
	b.ReportAllocs()
	for b.Loop() {
		buf = buf[:0]
		p.Event("", data, emit)
	}
}

// BenchmarkTap is the same increment on the untouched lane.
func BenchmarkTap(b *testing.B) {
	tap := gemini.Shape.NewTap(shapes.TapOptions{Stream: true}, newEnv())
	data := []byte(chunk(`{"text":"Hello, world"}`))
	b.ReportAllocs()
	for b.Loop() {
		tap.Event("", data)
	}
}

func BenchmarkCheck(b *testing.B) {
	body := []byte(`{` + hi + `,"generationConfig":{"temperature":0.5,"maxOutputTokens":100},"tools":[{"functionDeclarations":[{"name":"f","parameters":{"type":"OBJECT"}}]}]}`)
	b.ReportAllocs()
	for b.Loop() {
		if _, err := gemini.Shape.Check(body, inbound()); err != nil {
			b.Fatal(err)
		}
	}
}
