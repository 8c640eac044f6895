package schema_test

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"time"

	"stagedoor/providers/schema"
)

func FuzzRewrites(f *testing.F) {
	for _, seed := range []string{
		person, `{"$ref":"#"}`, `{"allOf":[{"$ref":"#/$defs/A"},{"type":["string","null"]}],"$defs":{"A":{"anyOf":[{"$ref":"#/$defs/A"},true,false]}}}`,
		`{"type":"OBJECT","nullable":true,"properties":{"a":{"any_of":[{}],"minItems":"3"}},"property_ordering":["a"]}`,
		`{"items":[{"const":null},{"enum":[1,"",null]}],"required":7,"properties":[],"anyOf":{}}`, `[]`, `"x"`,
		`{"oneOf":[{"$ref":"#/oneOf/1"},{"$ref":"#/oneOf/0"}]}`,
	} {
		f.Add([]byte(seed))
	}
	f.Fuzz(func(t *testing.T, raw []byte) {
		if !json.Valid(raw) {
			return
		}
		check := func(name string, out json.RawMessage) {
			if out != nil && !json.Valid(out) {
				t.Errorf("%s made invalid JSON of %s: %s", name, raw, out)
			}
		}
		messages, _, ok := schema.ForMessages(raw)
		check("ForMessages", messages)
		if ok {
			if again, stripped, ok := schema.ForMessages(messages); !ok || stripped {
				t.Errorf("ForMessages is not done after one pass over %s: %s, then %s", raw, messages, again)
			}
		}
		bare, _ := schema.StripBounds(raw)
		check("StripBounds", bare)
		if again, found := schema.StripBounds(bare); found {
			t.Errorf("StripBounds left bounds in %s", again)
		}
		gemini, _ := schema.ForGemini(raw)
		check("ForGemini", gemini)
		check("FromGemini", schema.FromGemini(raw))
		geminiJSON, _ := schema.ForGeminiJSON(raw)
		check("ForGeminiJSON", geminiJSON)
		check("ToolForMessages", schema.ToolForMessages(raw, true))
		tool, _ := schema.ToolForGemini(raw)
		check("ToolForGemini", tool)
		tool, _ = schema.ToolForGeminiJSON(raw)
		check("ToolForGeminiJSON", tool)
		schema.SupportsStrict(raw)
	})
}

// hostile are schemas that grow or loop when they are taken at their word.
func hostile() map[string]string {
	var doubling, wide, names strings.Builder
	doubling.WriteString(`{"$defs":{"D0":{"type":"string"}`)
	for i := 1; i < 60; i++ {
		fmt.Fprintf(&doubling,
			`,"D%d":{"type":"object","properties":{"a":{"$ref":"#/$defs/D%d"},"b":{"$ref":"#/$defs/D%[2]d"}}}`, i, i-1)
	}
	doubling.WriteString(`},"$ref":"#/$defs/D59"}`)
	for i := range 3000 {
		if i > 0 {
			wide.WriteByte(',')
			names.WriteByte(',')
		}
		wide.WriteString(`{"$ref":"#/$defs/A"}`)
		fmt.Fprintf(&names, `"p%d":{}`, i)
	}
	long := strings.Repeat("x", 1<<20)
	return map[string]string{
		"doubling references": doubling.String(),
		"conjunction of many": `{"allOf":[` + wide.String() + `],"$defs":{"A":{"type":"object","properties":{` +
			names.String() + `}}}}`,
		"long text many times": `{"anyOf":[` + wide.String() + `],"$defs":{"A":{"type":"string","description":"` +
			long + `"}}}`,
		"long text beside many": `{"description":"` + long + `","properties":{"a":{}},"type":"object","anyOf":[` +
			strings.ReplaceAll(wide.String(), `"$ref":"#/$defs/A"`, ``) + `]}`,
		"nested alternatives": strings.Repeat(`{"anyOf":[{"type":"string"},{"type":"null"}],"oneOf":[{"a":1},{"b":2},`,
			30) + `{}` + strings.Repeat(
			`]}`,
			30,
		),
		"conjunction with self": `{"allOf":[{"$ref":"#"},{"allOf":[{"$ref":"#"}]}]}`,
	}
}

func TestHostileSchemasCostLittle(t *testing.T) {
	const most = 16 << 20
	for name, in := range hostile() {
		began := time.Now()
		for form, rewrite := range map[string]func() json.RawMessage{
			"ForMessages":       func() json.RawMessage { out, _, _ := schema.ForMessages([]byte(in)); return out },
			"ForGemini":         func() json.RawMessage { out, _ := schema.ForGemini([]byte(in)); return out },
			"ForGeminiJSON":     func() json.RawMessage { out, _ := schema.ForGeminiJSON([]byte(in)); return out },
			"ToolForMessages":   func() json.RawMessage { return schema.ToolForMessages([]byte(in), false) },
			"ToolForGemini":     func() json.RawMessage { out, _ := schema.ToolForGemini([]byte(in)); return out },
			"ToolForGeminiJSON": func() json.RawMessage { out, _ := schema.ToolForGeminiJSON([]byte(in)); return out },
			"StripBounds":       func() json.RawMessage { out, _ := schema.StripBounds([]byte(in)); return out },
		} {
			if out := rewrite(); len(out) > most {
				t.Errorf("%s: %s made %d bytes of %d", name, form, len(out), len(in))
			}
		}
		// Generous: what it guards against takes minutes.
		if took := time.Since(began); took > time.Minute {
			t.Errorf("%s took %v", name, took)
		}
	}
}
