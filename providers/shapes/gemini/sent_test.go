package gemini_test

import (
	"encoding/json"
	"regexp"
	"slices"
	"testing"
)

type wire = map[string]any

var legalFunction = regexp.MustCompile(`^[A-Za-z_][A-Za-z0-9_.:-]{0,63}$`)

// checkSent holds an upstream request against what the vendor accepts.
func checkSent(t testing.TB, body []byte) {
	t.Helper()
	var doc wire
	if err := json.Unmarshal(body, &doc); err != nil {
		t.Fatalf("not JSON: %v\n%s", err, body)
	}
	contents, _ := doc["contents"].([]any)
	if len(contents) == 0 {
		t.Errorf("contents is empty: %s", body)
	}
	var calls []string
	last := ""
	for i, c := range contents {
		content := c.(wire)
		role := content["role"].(string)
		if i == 0 && role != "user" || role == last {
			t.Errorf("content %d: role %s follows %q", i, role, last)
		}
		last = role
		parts, _ := content["parts"].([]any)
		if len(parts) == 0 {
			t.Errorf("content %d has no parts", i)
		}
		var made, answered []string
		for _, p := range parts {
			part := p.(wire)
			data := 0
			for name := range part {
				if !slices.Contains([]string{"thought", "thoughtSignature", "videoMetadata"}, name) {
					data++
				}
			}
			if data != 1 {
				t.Errorf("part with %d data fields: %v", data, part)
			}
			if s, ok := part["text"].(string); ok && s == "" && part["thoughtSignature"] == nil {
				t.Error("empty text part")
			}
			if f, ok := part["functionCall"].(wire); ok {
				made = append(made, f["name"].(string))
				if _, ok := f["args"].(wire); !ok {
					t.Errorf("args is not an object: %v", f)
				}
			}
			if f, ok := part["functionResponse"].(wire); ok {
				answered = append(answered, f["name"].(string))
				if _, ok := f["response"].(wire); !ok {
					t.Errorf("response is not an object: %v", f)
				}
			}
		}
		if i > 0 && !slices.Equal(calls, answered) {
			t.Errorf("results %v do not answer calls %v", answered, calls)
		}
		calls = made
		for _, name := range made {
			if !legalFunction.MatchString(name) {
				t.Errorf("function name %q", name)
			}
		}
	}
	for _, name := range []string{"messages", "stop", "system", "temperature", "stream", "tool_choice", "metadata"} {
		if _, found := doc[name]; found {
			t.Errorf("foreign field %s", name)
		}
	}
	checkDeclared(t, doc)
}

func checkDeclared(t testing.TB, doc wire) {
	t.Helper()
	tools, _ := doc["tools"].([]any)
	if doc["tools"] != nil && len(tools) == 0 {
		t.Error("empty tools")
	}
	for _, tool := range tools {
		declared, _ := tool.(wire)["functionDeclarations"].([]any)
		for _, d := range declared {
			f := d.(wire)
			if !legalFunction.MatchString(f["name"].(string)) {
				t.Errorf("function name %q", f["name"])
			}
			if f["parameters"] != nil && f["parametersJsonSchema"] != nil {
				t.Error("two schemas")
			}
		}
	}
}
