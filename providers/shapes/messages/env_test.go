package messages

import (
	"encoding/json"
	"testing"

	"stagedoor/providers/dialogue"
	"stagedoor/providers/dialogue/dialoguetest"
)

func newEnv() *dialogue.Env { return dialoguetest.NewEnv(1_700_000_000, "made") }

// model is a target that can do everything, and thinks with a budget.
func model() dialogue.Target {
	return dialogue.Target{Shape: dialoguetest.Messages, Model: "up", MaxOutputTokens: 8192,
		Caps: dialogue.Capabilities{
			StructuredOutputs: true, Thinking: dialogue.ThinkingBudget, ImagesIn: true, FilesIn: true, Sampling: true,
			Prefill: true,
		}}
}

func decoded(t *testing.T, text []byte) map[string]any {
	t.Helper()
	var v map[string]any
	if err := json.Unmarshal(text, &v); err != nil {
		t.Fatalf("%v in %s", err, text)
	}
	return v
}

func compact(t *testing.T, v any) string {
	t.Helper()
	text, err := json.Marshal(v)
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

func text(s string) dialogue.Part { return dialogue.Part{Text: s} }

func call(id, name, args string) dialogue.Part {
	return dialogue.Part{Kind: dialogue.CallPart, Call: &dialogue.Call{ID: id, Name: name, Args: args}}
}

func result(id, s string) dialogue.Part {
	return dialogue.Part{Kind: dialogue.ResultPart,
		Result: &dialogue.Result{CallID: id, Parts: []dialogue.Part{text(s)}}}
}

func thought(t dialogue.Thinking) dialogue.Part {
	return dialogue.Part{Kind: dialogue.ThinkingPart, Thinking: &t, Text: t.Text}
}

func user(parts ...dialogue.Part) dialogue.Turn {
	return dialogue.Turn{Role: dialogue.User, Parts: parts}
}

func assistant(parts ...dialogue.Part) dialogue.Turn {
	return dialogue.Turn{Role: dialogue.Assistant, Parts: parts}
}
