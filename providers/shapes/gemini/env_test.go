package gemini_test

import (
	"testing"

	"stagedoor/providers/catalog"
	"stagedoor/providers/dialogue"
	"stagedoor/providers/dialogue/dialoguetest"
	"stagedoor/providers/shapes"
	"stagedoor/providers/shapes/gemini"
	"stagedoor/providers/shapes/registry"
)

func newEnv() *dialogue.Env { return dialoguetest.NewEnv(1_760_000_000, "id") }

func inbound() shapes.Params { return shapes.Params{Model: "gemini-2.5-flash"} }

func decode(t *testing.T, env *dialogue.Env, body string) *dialogue.Request {
	t.Helper()
	if _, err := gemini.Shape.Check([]byte(body), inbound()); err != nil {
		t.Fatalf("check: %v", err)
	}
	req, err := gemini.Shape.Decode([]byte(body), inbound(), env)
	if err != nil {
		t.Fatalf("decode: %v", err)
	}
	return req
}

// target is a model of generation 2.5.
func target() dialogue.Target { return targetOf("gemini-2.5-flash") }

// targetOf returns a model as the catalogue describes it.
func targetOf(model string) dialogue.Target {
	return dialogue.Target{Shape: dialoguetest.Gemini, Model: model, MaxOutputTokens: 8192,
		Caps: catalog.CapabilitiesOf(model, dialoguetest.Gemini)}
}

func encode(t *testing.T, req *dialogue.Request, to dialogue.Target) (string, *dialogue.Report) {
	t.Helper()
	rep := new(dialogue.Report)
	if d := registry.Describe(req.Inbound); d != nil {
		req.Traits = d.Traits
	}
	call, err := gemini.Shape.Encode(req, to, rep, newEnv())
	if err != nil {
		t.Fatalf("encode: %v", err)
	}
	checkSent(t, call.Body)
	return string(call.Body), rep
}

func text(s string) dialogue.Part { return dialogue.Part{Kind: dialogue.TextPart, Text: s} }

func user(parts ...dialogue.Part) dialogue.Turn {
	return dialogue.Turn{Role: dialogue.User, Parts: parts}
}

func assistant(parts ...dialogue.Part) dialogue.Turn {
	return dialogue.Turn{Role: dialogue.Assistant, Parts: parts}
}

func called(id, name, args string) dialogue.Part {
	return dialogue.Part{Kind: dialogue.CallPart, Call: &dialogue.Call{ID: id, Name: name, Args: args}}
}

func result(id, answer string) dialogue.Part {
	return dialogue.Part{Kind: dialogue.ResultPart,
		Result: &dialogue.Result{CallID: id, Parts: []dialogue.Part{text(answer)}}}
}

// fold parses a stream, or a whole body if there is one chunk and whole is set.
func fold(t *testing.T, env *dialogue.Env, whole bool, chunks ...string) *dialogue.ReplyBuilder {
	t.Helper()
	f := new(dialogue.ReplyBuilder)
	w := watch{t: t, open: map[[2]int]bool{}}
	p := gemini.Shape.NewParser(1, env)
	emit := func(ev *dialogue.Event) { w.see(ev); f.Add(ev) }
	if whole {
		p.Body([]byte(chunks[0]), emit)
	} else {
		for _, c := range chunks {
			p.Event("", []byte(c), emit)
		}
		p.EOF(emit)
	}
	if !p.Done() || !w.ended {
		t.Errorf("the reply has no end")
	}
	return f
}

// watch checks that events are well formed (dialogue.EventKind).
type watch struct {
	t        testing.TB
	started  bool
	ended    bool
	finished map[int]bool
	open     map[[2]int]bool
}

func (w *watch) see(ev *dialogue.Event) {
	w.t.Helper()
	key := [2]int{ev.Choice, ev.Part}
	switch {
	case w.ended:
		w.t.Errorf("event %d after the end", ev.Kind)
	case ev.Kind == dialogue.EventError:
		w.ended = true
	case ev.Kind == dialogue.EventStart:
		if w.started {
			w.t.Error("two starts")
		}
		w.started, w.finished = true, map[int]bool{}
	case !w.started:
		w.t.Errorf("event %d before the start", ev.Kind)
	case ev.Kind == dialogue.EventOpen:
		if w.open[key] || len(w.finished) > 0 {
			w.t.Errorf("part %v opened twice or after a finish", key)
		}
		w.open[key] = true
	case ev.Kind == dialogue.EventDelta && !w.open[key]:
		w.t.Errorf("delta for closed part %v", key)
	case ev.Kind == dialogue.EventClose:
		if !w.open[key] {
			w.t.Errorf("close of closed part %v", key)
		}
		delete(w.open, key)
	case ev.Kind == dialogue.EventFinish:
		if w.finished[ev.Choice] || len(w.open) > 0 {
			w.t.Errorf("finish of choice %d twice, or with open parts", ev.Choice)
		}
		w.finished[ev.Choice] = true
	case ev.Kind == dialogue.EventEnd:
		if len(w.finished) == 0 {
			w.t.Error("end without finish")
		}
		w.ended = true
	}
}
