package gemini_test

import (
	"bytes"
	"encoding/json"
	"testing"

	"stagedoor/providers/dialogue"
	"stagedoor/providers/dialogue/dialoguetest"
	"stagedoor/providers/shapes"
	"stagedoor/providers/shapes/gemini"
)

// Whatever passes the check decodes, and what is decoded encodes to something
// the vendor accepts.
func FuzzRequest(f *testing.F) {
	f.Add([]byte(`{`+hi+`,"generationConfig":{"topK":"3","responseMimeType":"application/json","responseSchema":{"type":"OBJECT"}}}`), false)
	f.Add([]byte(`{"contents":[{"role":"model","parts":[{"text":"a","thought":true},{"functionCall":{"name":"a b","args":{}}},{"text":"x","thoughtSignature":"QQ=="}]},
		{"role":"function","parts":[{"functionResponse":{"name":"c","response":{"output":"x"},"parts":[{"inlineData":{"mimeType":"image/png","data":"_-"}}]}}]}]}`), true)
	f.Add([]byte(`{"contents":{"parts":{"inline_data":{"mime_type":"text/plain","data":"aGk="}}},"tools":[{"functionDeclarations":[{"name":"1","parameters":{}}]},{"googleSearch":{}}],"toolConfig":{"functionCallingConfig":{"mode":"ANY"}}}`), true)
	f.Fuzz(func(t *testing.T, body []byte, third bool) {
		if !json.Valid(body) || duplicated(body) {
			return
		}
		head, err := gemini.Shape.Check(body, inbound())
		if err != nil {
			if e, ok := err.(*dialogue.Error); !ok || e.Status != 400 || e.Message == "" {
				t.Fatalf("%v", err)
			}
			return
		}
		env := newEnv()
		req, err := gemini.Shape.Decode(body, inbound(), env)
		if err != nil {
			t.Fatal(err)
		}
		to := target()
		if third {
			to.Model, to.Caps.Thinking, to.Caps.StructuredOutputs = "gemini-3-pro", dialogue.ThinkingEffort, false
		}
		patched, err := gemini.Shape.Patch(body, inbound(), head, to, new(dialogue.Report), env)
		if err != nil || !json.Valid(patched.Body) {
			t.Fatalf("patched: %v %s", err, patched.Body)
		}
		req.Inbound, req.Body = dialoguetest.Chat, nil // as if another shape had asked the same
		call, err := gemini.Shape.Encode(req, to, new(dialogue.Report), env)
		if err == nil {
			checkSent(t, call.Body)
		}
	})
}

// duplicated reports objects with a name twice, in any spelling. The handler
// refuses such bodies.
func duplicated(body []byte) bool {
	names := bytes.Count(body, []byte(`":`)) + bytes.Count(body, []byte(`" :`))
	var doc any
	d := json.NewDecoder(bytes.NewReader(body))
	if d.Decode(&doc) != nil {
		return true
	}
	return countNames(doc) < names
}

func countNames(v any) (n int) {
	switch v := v.(type) {
	case map[string]any:
		n = len(v)
		for _, m := range v {
			n += countNames(m)
		}
	case []any:
		for _, m := range v {
			n += countNames(m)
		}
	}
	return n
}

// Whatever an upstream sends becomes a well-formed sequence of events, and a
// legal reply in every mode.
func FuzzReply(f *testing.F) {
	f.Add([]byte(chunk(`{"text":"a"}`)+"\n"+chunk(`{"functionCall":{"name":"f","partialArgs":[{"jsonPath":"$.a[0].b","stringValue":"x"}]}},{"text":"t","thought":true,"thoughtSignature":"S"}`, stop)), uint8(0))
	f.Add([]byte(chunk(`{"text":"\ud83d"}`)+"\n"+chunk(`{"text":"\ude80"}`, stop,
		`,"groundingMetadata":{"groundingChunks":[{"web":{"uri":"u"}}],"groundingSupports":[{"segment":{"endIndex":2},"groundingChunkIndices":[0]}]}`)), uint8(1))
	f.Add([]byte(`[`+chunk(`{"text":"a"}`, stop)+`,{"error":{"code":500}}]`), uint8(2))
	f.Fuzz(func(t *testing.T, data []byte, mode uint8) {
		env := newEnv()
		w := watch{t: t, open: map[[2]int]bool{}}
		e := gemini.Shape.NewEmitter(&dialogue.Request{}, shapes.Mode(mode%3), env)
		tap := gemini.Shape.NewTap(shapes.TapOptions{Model: "m", Stream: true}, env)
		p := gemini.Shape.NewParser(1, env)
		var out []byte
		failed := false
		emit := func(ev *dialogue.Event) {
			failed = failed || ev.Kind == dialogue.EventError
			w.see(ev)
			out = e.Emit(out, ev)
		}
		if mode >= 128 {
			p.Body(data, emit)
		} else {
			for _, line := range bytes.Split(data, []byte("\n")) {
				p.Event("", line, emit)
				tap.Event("", line)
			}
			p.EOF(emit)
		}
		if !p.Done() || !w.ended {
			t.Error("the reply has no end")
		}
		checkReply(t, out, shapes.Mode(mode%3), failed)
	})
}

func checkReply(t *testing.T, out []byte, mode shapes.Mode, failed bool) {
	t.Helper()
	switch {
	case mode == shapes.Stream:
		for _, line := range bytes.Split(bytes.TrimSuffix(out, []byte("\n\n")), []byte("\n\n")) {
			if data, ok := bytes.CutPrefix(line, []byte("data: ")); !ok || !json.Valid(data) {
				t.Errorf("event %q", line)
			}
		}
	case mode == shapes.Whole && failed:
		if len(out) > 0 {
			t.Errorf("a failed reply says %s", out)
		}
	case !json.Valid(out):
		t.Errorf("not JSON: %s", out)
	}
}

func FuzzDecodeError(f *testing.F) {
	f.Add(429, []byte(`[{"error":{"code":429,"details":[{"retryDelay":"3s"}]}}]`))
	f.Fuzz(func(t *testing.T, status int, body []byte) {
		e := gemini.Shape.DecodeError(status, nil, body)
		if e.Message == "" || !json.Valid(gemini.Shape.Envelope(e)) {
			t.Errorf("got %+v", e)
		}
	})
}
