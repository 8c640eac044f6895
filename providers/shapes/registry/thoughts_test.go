package registry_test

import (
	"strings"
	"testing"

	"github.com/tidwall/gjson"

	"stagedoor/providers/dialogue"
	"stagedoor/providers/dialogue/dialoguetest"
	"stagedoor/providers/shapes"
	"stagedoor/providers/shapes/registry"
)

// A client that did not ask for thinking gets no part of it, because many read the first part only.
// What the model thought before a call comes back with the call all the same.
func TestThinkingThatWasNotAskedForIsCarriedUnseen(t *testing.T) {
	for _, c := range []struct {
		shape          dialogue.Shape
		content, asked string
	}{
		{dialoguetest.Messages, "content",
			`{"model":"m","max_tokens":9,"messages":[{"role":"assistant","content":%}]}`},
		{dialoguetest.Gemini, "candidates.0.content", `{"contents":[%]}`},
	} {
		shape, env := registry.ByName()[c.shape], dialoguetest.NewEnv(1, "id")
		emitter := shape.NewEmitter(&dialogue.Request{Inbound: c.shape}, shapes.Whole, env)
		sealed := dialogue.Thinking{ItemID: "rs_1", Encrypted: "E", Origin: dialoguetest.Responses}
		var out []byte
		for _, ev := range []dialogue.Event{
			{Kind: dialogue.EventStart},
			{Kind: dialogue.EventOpen, PartKind: dialogue.ThinkingPart}, {Kind: dialogue.EventDelta, Text: "why"},
			{Kind: dialogue.EventClose, Thinking: &sealed},
			{Kind: dialogue.EventOpen, Part: 1, PartKind: dialogue.CallPart, Call: &dialogue.Call{ID: "a", Name: "f"}},
			{Kind: dialogue.EventDelta, Part: 1, Text: "{}"}, {Kind: dialogue.EventClose, Part: 1},
			{Kind: dialogue.EventFinish, Reason: dialogue.ReasonTool}, {Kind: dialogue.EventEnd},
		} {
			out = emitter.Emit(out, &ev)
		}
		if strings.Contains(string(out), "why") || strings.Contains(string(out), `"thought":true`) ||
			strings.Contains(string(out), "thinking\"") {
			t.Errorf("%s: the thought is shown: %s", c.shape, out)
		}
		body := strings.Replace(c.asked, "%", gjson.GetBytes(out, c.content).Raw, 1)
		req, err := shape.Decode([]byte(body), shapes.Params{Model: "m"}, env)
		if err != nil {
			t.Fatal(err)
		}
		parts := req.Turns[0].Parts
		sealed.Text = "why"
		if len(parts) != 2 || parts[0].Thinking == nil || *parts[0].Thinking != sealed || parts[1].Call == nil {
			t.Errorf("%s: %s came back as %+v", c.shape, body, parts)
		}
	}
}
