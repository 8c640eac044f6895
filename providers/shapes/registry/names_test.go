package registry

import (
	"errors"
	"strings"
	"testing"

	"stagedoor/providers/dialogue"
	"stagedoor/providers/dialogue/dialoguetest"
	"stagedoor/providers/shapes"
)

// TestModelNamesAreShort: a model's name is kept in the ledger, in metrics and in logs.
func TestModelNamesAreShort(t *testing.T) {
	requests := map[dialogue.Shape]string{
		dialoguetest.Chat:        `{"model":"%","messages":[{"role":"user","content":"hi"}]}`,
		dialoguetest.Completions: `{"model":"%","prompt":"hi"}`,
		dialoguetest.Messages:    `{"model":"%","max_tokens":9,"messages":[{"role":"user","content":"hi"}]}`,
		dialoguetest.Responses:   `{"model":"%","input":"hi"}`,
		dialoguetest.Gemini:      `{"contents":[{"role":"user","parts":[{"text":"hi"}]}]}`,
	}
	for name, shape := range ByName() {
		for length, allowed := range map[int]bool{dialogue.MaxName: true, dialogue.MaxName + 1: false, 2 << 20: false} {
			model := strings.Repeat("\u00e9", length)
			in := shapes.Params{}
			if name == dialoguetest.Gemini {
				in.Model = model
			}
			head, err := shape.Check([]byte(strings.Replace(requests[name], "%", model, 1)), in)
			var bad *dialogue.Error
			switch {
			case allowed && (err != nil || head.Model != model):
				t.Errorf("%s: %d characters: %v", name, length, err)
			case !allowed && (!errors.As(err, &bad) || bad.Status != 400 || bad.Param != "model" || head.Model != ""):
				t.Errorf("%s: %d characters: got %v, want 400 that names model", name, length, err)
			}
		}
	}
}
