package registry_test

import (
	"errors"
	"strconv"
	"strings"
	"testing"

	"stagedoor/providers/dialogue"
	"stagedoor/providers/dialogue/dialoguetest"
	"stagedoor/providers/fields"
	"stagedoor/providers/shapes"
	"stagedoor/providers/shapes/registry"
)

// TestJSONInsideRequestsKeepsTheLimits: other shapes want the JSON in some strings of a request as objects.
func TestJSONInsideRequestsKeepsTheLimits(t *testing.T) {
	requests := map[dialogue.Shape]map[string]string{
		dialoguetest.Chat: {
			"messages.1.tool_calls.0.function.arguments": `{"model":"m","messages":[{"role":"user","content":"hi"},{"role":"assistant","content":null,` +
				`"tool_calls":[{"id":"c","type":"function","function":{"name":"f","arguments":%}}]}]}`,
			"messages.1.function_call.arguments": `{"model":"m","messages":[{"role":"user","content":"hi"},{"role":"assistant","content":null,` +
				`"function_call":{"name":"f","arguments":%}}]}`,
			"messages.2.content": `{"model":"m","messages":[{"role":"user","content":"hi"},{"role":"assistant","content":null,` +
				`"tool_calls":[{"id":"c","type":"function","function":{"name":"f","arguments":"{}"}}]},{"role":"tool","tool_call_id":"c","content":%}]}`,
		},
		dialoguetest.Responses: {
			"input.0.arguments": `{"model":"m","input":[{"type":"function_call","call_id":"c","name":"f","arguments":%}]}`,
			"input.1.output": `{"model":"m","input":[{"type":"function_call","call_id":"c","name":"f","arguments":"{}"},` +
				`{"type":"function_call_output","call_id":"c","output":%}]}`,
		},
		dialoguetest.Messages: {
			"messages.2.content.0.content": `{"model":"m","max_tokens":9,"messages":[{"role":"user","content":"hi"},{"role":"assistant","content":[` +
				`{"type":"tool_use","id":"c","name":"f","input":{}}]},{"role":"user","content":[{"type":"tool_result","tool_use_id":"c","content":%}]}]}`,
		},
	}
	deep := func(levels int) string {
		return strconv.Quote(strings.Repeat("[", levels) + strings.Repeat("]", levels))
	}
	for name, byField := range requests {
		shape := registry.ByName()[name]
		for field, request := range byField {
			decode := func(inner string) error {
				body := []byte(strings.Replace(request, "%", inner, 1))
				if _, err := shape.Check(body, shapes.Params{}); err != nil {
					t.Fatalf("%s: %v", field, err)
				}
				_, err := shape.Decode(body, shapes.Params{}, dialoguetest.NewEnv(1_700_000_000, "made"))
				return err
			}
			if err := decode(deep(fields.MaxDepth)); err != nil {
				t.Errorf("%s %s: %v", name, field, err)
			}
			for _, inner := range []string{deep(fields.MaxDepth + 1), strconv.Quote(strings.Repeat("[", 7<<20))} {
				var bad *dialogue.Error
				if err := decode(inner); !errors.As(err, &bad) || bad.Status != 400 || bad.Param != field {
					t.Errorf("%s %s: got %v, want 400 that names the field", name, field, err)
				}
			}
		}
	}
}
