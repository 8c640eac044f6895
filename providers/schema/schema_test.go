package schema_test

import (
	"bytes"
	"encoding/json"
	"strings"
	"testing"

	"stagedoor/providers/dialogue"
	"stagedoor/providers/dialogue/dialoguetest"
	"stagedoor/providers/schema"
)

const person = `{"type":"object","properties":{"name":{"type":"string"},"tags":{"type":"array","items":{"type":"object","properties":{"k":{"type":"string"}}}},` +
	`"addr":{"anyOf":[{"$ref":"#/$defs/Addr"},{"type":"null"}]}},"required":["name"],"$defs":{"Addr":{"type":"object","properties":{"city":{"type":"string"}}}}}`

func TestForMessagesClosesAndStrips(t *testing.T) {
	rows := []struct {
		name, in, want string
		stripped       bool
	}{
		{
			"every object is closed, also in items, anyOf and definitions",
			person,
			`{"type":"object","properties":{"name":{"type":"string"},"tags":{"type":"array","items":{"type":"object","properties":{"k":{"type":"string"}},"additionalProperties":false}},` +
				`"addr":{"anyOf":[{"$ref":"#/$defs/Addr"},{"type":"null"}]}},"required":["name"],"$defs":{"Addr":{"type":"object","properties":{"city":{"type":"string"}},"additionalProperties":false}},"additionalProperties":false}`,
			false,
		},
		{
			"a type that goes without saying is said",
			`{"properties":{"a":{"type":"string"}}}`,
			`{"type":"object","properties":{"a":{"type":"string"}},"additionalProperties":false}`,
			false,
		},
		{"bounds move to the description", `{"type":"integer","minimum":0,"maximum":1.50e2}`,
			`{"type":"integer","description":"{minimum: 0, maximum: 1.50e2}"}`, true},
		{"a description is kept in front of them", `{"description":"Age.","type":"integer","exclusiveMinimum":0}`,
			`{"description":"Age.\n\n{exclusiveMinimum: 0}","type":"integer"}`, true},
		{
			"a property called minimum is data",
			`{"type":"object","properties":{"minimum":{"type":"string"},"oneOf":{"type":"string"}},"required":["minimum"]}`,
			`{"type":"object","properties":{"minimum":{"type":"string"},"oneOf":{"type":"string"}},"required":["minimum"],"additionalProperties":false}`,
			false,
		},
		{
			"keywords inside enum, const and default are data",
			`{"type":"object","properties":{"a":{"const":{"minimum":1}},"b":{"default":{"oneOf":2}}}}`,
			`{"type":"object","properties":{"a":{"const":{"minimum":1}},"b":{"default":{"oneOf":2}}},"additionalProperties":false}`,
			false,
		},
		{
			"oneOf is spelled anyOf",
			`{"oneOf":[{"type":"string"},{"type":"integer"}]}`,
			`{"anyOf":[{"type":"string"},{"type":"integer"}]}`,
			false,
		},
		{
			"an open object is closed and that is a loss",
			`{"type":"object","additionalProperties":true}`,
			`{"type":"object","additionalProperties":false}`,
			true,
		},
		{
			"a map cannot be said",
			`{"type":"object","additionalProperties":{"type":"string"}}`,
			`{"type":"object","additionalProperties":false,"description":"{additionalProperties: {\"type\":\"string\"}}"}`,
			true,
		},
		{
			"minItems of one stays",
			`{"type":"array","items":true,"minItems":1}`,
			`{"type":"array","items":{},"minItems":1}`,
			false,
		},
		{
			"minItems of two goes",
			`{"type":"array","items":{"type":"string"},"minItems":2}`,
			`{"type":"array","items":{"type":"string"},"description":"{minItems: 2}"}`,
			true,
		},
		{
			"known formats stay, others go",
			`{"anyOf":[{"type":"string","format":"uuid"},{"type":"string","format":"iban"}]}`,
			`{"anyOf":[{"type":"string","format":"uuid"},{"type":"string","description":"{format: \"iban\"}"}]}`,
			true,
		},
		{
			"lookaround goes",
			`{"type":"string","pattern":"^(?!a)b$"}`,
			`{"type":"string","description":"{pattern: \"^(?!a)b$\"}"}`,
			true,
		},
		{
			"conjunctions are merged, or closed objects would contradict each other",
			`{"allOf":[{"type":"object","properties":{"a":{"type":"string"}},"required":["a"]},{"properties":{"b":{"type":"number"}},"required":["b"]}]}`,
			`{"type":"object","properties":{"a":{"type":"string"},"b":{"type":"number"}},"required":["a","b"],"additionalProperties":false}`,
			false,
		},
		{
			"alternatives beside properties are written out",
			`{"type":"object","properties":{"a":{"type":"string"}},"anyOf":[{"properties":{"b":{"type":"string"}}},{"required":["a"]}]}`,
			`{"anyOf":[{"type":"object","properties":{"a":{"type":"string"},"b":{"type":"string"}},"additionalProperties":false},{"type":"object","properties":{"a":{"type":"string"}},"required":["a"],"additionalProperties":false}]}`,
			false,
		},
		{
			"a lone allOf of a reference is the reference",
			`{"type":"object","properties":{"p":{"allOf":[{"$ref":"#/$defs/P"}]}},"$defs":{"P":{"type":"string"}}}`,
			`{"type":"object","properties":{"p":{"$ref":"#/$defs/P"}},"$defs":{"P":{"type":"string"}},"additionalProperties":false}`,
			false,
		},
		{
			"a reference to anywhere but definitions is written out",
			`{"type":"object","properties":{"a":{"type":"string"},"b":{"$ref":"#/properties/a"}}}`,
			`{"type":"object","properties":{"a":{"type":"string"},"b":{"type":"string"}},"additionalProperties":false}`,
			false,
		},
	}
	for _, row := range rows {
		t.Run(row.name, func(t *testing.T) {
			got, stripped, ok := schema.ForMessages([]byte(row.in))
			if !ok || string(got) != row.want || stripped != row.stripped {
				t.Errorf("got  %s stripped %v ok %v\nwant %s stripped %v", got, stripped, ok, row.want, row.stripped)
			}
			again, stripped, ok := schema.ForMessages(got)
			if !ok || stripped || !bytes.Equal(again, got) {
				t.Errorf("a second time changes it again: %s stripped %v ok %v", again, stripped, ok)
			}
		})
	}
}

func TestForMessagesRefusesRecursiveAndForeignReferences(t *testing.T) {
	rows := map[string]string{
		"recursion":          `{"type":"object","properties":{"next":{"$ref":"#"}}}`,
		"recursion in defs":  `{"$ref":"#/$defs/N","$defs":{"N":{"type":"object","properties":{"next":{"$ref":"#/$defs/N"}}}}}`,
		"mutual recursion":   `{"$defs":{"A":{"items":{"$ref":"#/$defs/B"}},"B":{"items":{"$ref":"#/$defs/A"}}}}`,
		"another document":   `{"$ref":"https://example.com/schema.json"}`,
		"dangling reference": `{"type":"object","properties":{"a":{"$ref":"#/$defs/Nope"}}}`,
		"not a schema":       `7`,
		"not JSON":           `{"type":`,
		"too deep":           strings.Repeat(`{"items":`, 70) + `{}` + strings.Repeat(`}`, 70),
	}
	for name, in := range rows {
		if out, _, ok := schema.ForMessages([]byte(in)); ok {
			t.Errorf("%s: got %s, want ok false", name, out)
		}
	}
}

func TestStripBoundsTakesFourKeywordsAndNothingElse(t *testing.T) {
	in := `{"type":"object","oneOf":[{"minLength":1}],"properties":{"minimum":{"maximum":3,"multipleOf":2,"enum":[{"minimum":1}]}}}`
	want := `{"type":"object","oneOf":[{"description":"{minLength: 1}"}],"properties":{"minimum":{"multipleOf":2,"enum":[{"minimum":1}],"description":"{maximum: 3}"}}}`
	got, stripped := schema.StripBounds([]byte(in))
	if string(got) != want || !stripped {
		t.Errorf("got %s %v\nwant %s", got, stripped, want)
	}
	if got, stripped := schema.StripBounds([]byte(person)); stripped || string(got) != person {
		t.Errorf("a schema without bounds was changed: %s", got)
	}
}

func TestForGeminiConvertsToTheSubset(t *testing.T) {
	rows := []struct {
		name, in, want string
		lossy          bool
	}{
		{
			"references are inlined and types spelled in capitals",
			person,
			`{"type":"OBJECT","properties":{"name":{"type":"STRING"},"tags":{"type":"ARRAY","items":{"type":"OBJECT","properties":{"k":{"type":"STRING"}}}},` +
				`"addr":{"type":"OBJECT","properties":{"city":{"type":"STRING"}},"nullable":true}},"required":["name"],"propertyOrdering":["name","tags","addr"]}`,
			false,
		},
		{
			"a type list without null is alternatives, and nothing stands beside them",
			`{"type":["string","integer","null"],"description":"d"}`,
			`{"anyOf":[{"description":"d","type":"STRING","nullable":true},{"description":"d","type":"INTEGER","nullable":true}]}`,
			false,
		},
		{"null in a type list", `{"type":["string","null"]}`, `{"type":"STRING","nullable":true}`, false},
		{"const is an enum of one", `{"const":"a"}`, `{"enum":["a"],"type":"STRING"}`, false},
		{
			"an enum of numbers moves to the description",
			`{"type":"integer","enum":[1,2]}`,
			`{"type":"INTEGER","description":"{enum: [1,2]}"}`,
			true,
		},
		{"null in an enum", `{"enum":["a",null]}`, `{"enum":["a"],"type":"STRING","nullable":true}`, false},
		{
			"unknown formats go",
			`{"type":"string","format":"uuid"}`,
			`{"type":"STRING","description":"{format: \"uuid\"}"}`,
			true,
		},
		{
			"closing says nothing there",
			`{"type":"object","additionalProperties":false,"$schema":"x"}`,
			`{"type":"OBJECT"}`,
			false,
		},
		{
			"required keeps to the properties",
			`{"type":"object","properties":{"a":{"type":"string"}},"required":["a","b"]}`,
			`{"type":"OBJECT","properties":{"a":{"type":"STRING"}},"required":["a"]}`,
			false,
		},
		{
			"a tuple's items may be any of its places",
			`{"type":"array","prefixItems":[{"type":"string"},{"type":"integer"}]}`,
			`{"type":"ARRAY","items":{"anyOf":[{"type":"STRING"},{"type":"INTEGER"}]},"description":"{prefixItems: [{\"type\":\"string\"},{\"type\":\"integer\"}]}"}`,
			true,
		},
		{
			"recursion ends in an object",
			`{"type":"object","properties":{"next":{"$ref":"#"}}}`,
			`{"type":"OBJECT","properties":{"next":{"type":"OBJECT"}}}`,
			true,
		},
		{
			"properties named like keywords are data",
			`{"type":"object","properties":{"const":{"type":"string"},"$ref":{"type":"string"}}}`,
			`{"type":"OBJECT","properties":{"const":{"type":"STRING"},"$ref":{"type":"STRING"}},"propertyOrdering":["const","$ref"]}`,
			false,
		},
	}
	for _, row := range rows {
		t.Run(row.name, func(t *testing.T) {
			got, lossy := schema.ForGemini([]byte(row.in))
			if string(got) != row.want || lossy != row.lossy {
				t.Errorf("got  %s lossy %v\nwant %s lossy %v", got, lossy, row.want, row.lossy)
			}
			if again, lossy := schema.ForGemini(got); lossy || !bytes.Equal(again, got) {
				t.Errorf("a second time changes it again: %s", again)
			}
		})
	}
}

func TestForGeminiJSON(t *testing.T) {
	rows := []struct {
		name, in, want string
		lossy          bool
	}{
		{"definitions stay", person, person, false},
		{
			"$schema goes, recursion stays",
			`{"$schema":"x","$ref":"#/$defs/N","$defs":{"N":{"type":"object","properties":{"n":{"$ref":"#/$defs/N"}}}}}`,
			`{"$ref":"#/$defs/N","$defs":{"N":{"type":"object","properties":{"n":{"$ref":"#/$defs/N"}}}}}`,
			false,
		},
		{
			"older definitions are inlined",
			`{"type":"object","properties":{"a":{"$ref":"#/definitions/A"}},"definitions":{"A":{"type":"string"}}}`,
			`{"type":"object","properties":{"a":{"type":"string"}}}`,
			false,
		},
		{
			"unlisted constraints move to the description",
			`{"type":"string","pattern":"a"}`,
			`{"type":"string","description":"{pattern: \"a\"}"}`,
			true,
		},
		{
			"types are said and arrays have items",
			`{"properties":{"a":{"type":"array"}}}`,
			`{"type":"object","properties":{"a":{"type":"array","items":{}}}}`,
			false,
		},
		{"const is an enum of one", `{"const":3}`, `{"enum":[3]}`, false},
		{
			"allOf is merged",
			`{"type":"object","allOf":[{"properties":{"a":{"type":"string"}}}]}`,
			`{"type":"object","properties":{"a":{"type":"string"}}}`,
			false,
		},
		{
			"null leaves an enum",
			`{"type":["string","null"],"description":"d","enum":["x",null]}`,
			`{"description":"d","anyOf":[{"type":"string","enum":["x"]},{"type":"null"}]}`,
			false,
		},
		{
			"null leaves an enum without a type",
			`{"enum":["x",2,null]}`,
			`{"anyOf":[{"enum":["x",2]},{"type":"null"}]}`,
			false,
		},
		{"null that the type forbids", `{"type":"string","enum":["x",null]}`, `{"type":"string","enum":["x"]}`, false},
		{
			"required names properties",
			`{"type":"object","properties":{"a":{"type":"string"}},"required":["a","b"]}`,
			`{"type":"object","properties":{"a":{"type":"string"}},"required":["a"]}`,
			false,
		},
	}
	for _, row := range rows {
		got, lossy := schema.ForGeminiJSON([]byte(row.in))
		if string(got) != row.want || lossy != row.lossy {
			t.Errorf("%s:\ngot  %s lossy %v\nwant %s lossy %v", row.name, got, lossy, row.want, row.lossy)
		}
	}
}

func TestFromGeminiConvertsToJSONSchema(t *testing.T) {
	rows := []struct{ name, in, want string }{
		{
			"types in small letters",
			`{"type":"OBJECT","properties":{"a":{"type":"STRING","format":"enum","enum":["x"]}}}`,
			`{"type":"object","properties":{"a":{"type":"string","enum":["x"]}}}`,
		},
		{
			"nullable is the type null",
			`{"type":"STRING","nullable":true,"enum":["a"]}`,
			`{"type":["string","null"],"enum":["a",null]}`,
		},
		{
			"nullable alternatives",
			`{"any_of":[{"type":"STRING"},{"type":"NUMBER"}],"nullable":true}`,
			`{"anyOf":[{"type":"string"},{"type":"number"},{"type":"null"}]}`,
		},
		{
			"counts are numbers",
			`{"type":"ARRAY","min_items":"3","items":{"type":"INTEGER","format":"int64"}}`,
			`{"type":"array","minItems":3,"items":{"type":"integer"}}`,
		},
		{
			"properties follow propertyOrdering",
			`{"type":"OBJECT","properties":{"a":{},"b":{},"c":{}},"propertyOrdering":["c","b"]}`,
			`{"type":"object","properties":{"c":{},"b":{},"a":{}}}`,
		},
		{"JSON Schema stays", `{"type":["string","null"],"minimum":1}`, `{"type":["string","null"],"minimum":1}`},
	}
	for _, row := range rows {
		if got := schema.FromGemini([]byte(row.in)); string(got) != row.want {
			t.Errorf("%s:\ngot  %s\nwant %s", row.name, got, row.want)
		}
	}
}

func TestToolsHaveAnObjectAtTheRoot(t *testing.T) {
	rows := []struct{ name, in, want string }{
		{"none", ``, `{"type":"object","properties":{}}`},
		{"null", `null`, `{"type":"object","properties":{}}`},
		{
			"as it is, bounds included",
			`{"type":"object", "properties":{"a":{"minimum":1}}}`,
			`{"type":"object", "properties":{"a":{"minimum":1}}}`,
		},
		{"no type", `{"properties":{"a":{}}}`, `{"type":"object","properties":{"a":{}}}`},
		{"empty", `{}`, `{"type":"object","properties":{}}`},
		{
			"alternatives become one",
			`{"anyOf":[{"properties":{"a":{"type":"string"},"k":{"const":1}},"required":["a","k"]},{"properties":{"b":{},"k":{"const":2}},"required":["k"]}]}`,
			`{"type":"object","properties":{"a":{"type":"string"},"k":{"anyOf":[{"const":1},{"const":2}]},"b":{}},"required":["k"]}`,
		},
		{
			"a reference at the root",
			`{"$ref":"#/$defs/A","$defs":{"A":{"type":"object","properties":{"n":{"$ref":"#/$defs/A"}}}}}`,
			`{"type":"object","properties":{"n":{"$ref":"#/$defs/A"}},"$defs":{"A":{"type":"object","properties":{"n":{"$ref":"#/$defs/A"}}}}}`,
		},
		{
			"a dangling reference",
			`{"type":"object","properties":{"a":{"$ref":"#/$defs/No","description":"d"}}}`,
			`{"type":"object","properties":{"a":{"description":"d"}}}`,
		},
		{"a root that contains itself", `{"$ref":"#"}`, `{"type":"object","properties":{}}`},
	}
	for _, row := range rows {
		if got := schema.ToolForMessages([]byte(row.in), false); string(got) != row.want {
			t.Errorf("%s:\ngot  %s\nwant %s", row.name, got, row.want)
		}
	}
	if got := schema.ToolForMessages(
		[]byte(`{"type":"OBJECT","properties":{"a":{"type":"STRING"}}}`),
		true,
	); string(got) != `{"type":"object","properties":{"a":{"type":"string"}}}` {
		t.Errorf("Gemini's schema: got %s", got)
	}
}

func TestToolsOfGemini(t *testing.T) {
	for _, in := range []string{``, `{}`, `{"type":"object"}`, `{"type":"object","properties":{},"additionalProperties":false}`} {
		if got, _ := schema.ToolForGemini([]byte(in)); got != nil {
			t.Errorf("ToolForGemini(%s) = %s, want nil: the vendor refuses an empty object", in, got)
		}
		if got, _ := schema.ToolForGeminiJSON([]byte(in)); got != nil {
			t.Errorf("ToolForGeminiJSON(%s) = %s, want nil", in, got)
		}
	}
	in := `{"type":"object","allOf":[{"properties":{"a":{"type":"string"}},"required":["a"]},{"properties":{"b":{"type":"number","exclusiveMinimum":0}}}],` +
		`"properties":{"c":{"oneOf":[{"type":"string"},{"type":"integer"}]},"d":{"type":"array","items":{"type":"string"},"minItems":1}}}`
	want := `{"type":"OBJECT","properties":{"c":{"anyOf":[{"type":"STRING"},{"type":"INTEGER"}]},"d":{"type":"ARRAY","items":{"type":"STRING"},"minItems":1},` +
		`"a":{"type":"STRING"},"b":{"type":"NUMBER","description":"{exclusiveMinimum: 0}"}},"required":["a"]}`
	if got, lossy := schema.ToolForGemini([]byte(in)); string(got) != want || !lossy {
		t.Errorf("got  %s lossy %v\nwant %s", got, lossy, want)
	}
}

func TestSupportsStrictAppliesTheRulesOfStrictMode(t *testing.T) {
	rows := map[string]bool{
		`{"type":"object","properties":{"a":{"type":"string"}},"required":["a"],"additionalProperties":false}`:                       true,
		`{"type":"object","properties":{"a":{"type":"string"}},"required":[],"additionalProperties":false}`:                          false,
		`{"type":"object","properties":{"a":{"type":"string"}},"required":["a"]}`:                                                    false,
		`{"type":"object","properties":{"a":{"allOf":[]}},"required":["a"],"additionalProperties":false}`:                            false,
		`{"type":"object","properties":{"a":{"$ref":"#/x"}},"required":["a"],"additionalProperties":false}`:                          false,
		`{"type":"object","properties":{"allOf":{"type":"string"}},"required":["allOf"],"additionalProperties":false}`:               true,
		`{"type":"object","properties":{"a":{"type":"object","properties":{"b":{}}}},"required":["a"],"additionalProperties":false}`: false,
		`{"type":"array"}`: false,
		`{"type":"object","anyOf":[],"additionalProperties":false}`: false,
	}
	for in, want := range rows {
		if got := schema.SupportsStrict([]byte(in)); got != want {
			t.Errorf("Strictable(%s) = %v", in, got)
		}
	}
}

// TestStrictClosesObjectsAndChangesNothingElse: an optional property or a keyword of no use to strict mode cannot be
// mended by closing objects, so such a schema stays as it is.
func TestStrictClosesObjectsAndChangesNothingElse(t *testing.T) {
	const open = `{"type":"object","properties":{"a":{"type":"object","properties":{"b":{"type":"string"}},` +
		`"required":["b"]}},"required":["a"]}`
	for in, want := range map[string]string{
		open: `{"type":"object","properties":{"a":{"type":"object","properties":{"b":{"type":"string"}},` +
			`"required":["b"],"additionalProperties":false}},"required":["a"],"additionalProperties":false}`,
		`{"type": "object", "additionalProperties": false}`: `{"type": "object", "additionalProperties": false}`,
		`{"type":"object","additionalProperties":true}`:     "",
		`{"type":"object","properties":{"a":{}}}`:           "",
		`{"type":"object","not":{}}`:                        "",
		`{"type":"string"}`:                                 "",
		`{`:                                                 "",
	} {
		got, ok := schema.Strict([]byte(in))
		if ok != (want != "") {
			t.Errorf("Strict(%s) is ok: %v", in, ok)
		}
		if want == "" {
			want = in
		}
		if string(got) != want {
			t.Errorf("Strict(%s)\n got  %s\n want %s", in, got, want)
		}
	}
}

// dialects are those of the shapes that are named in the rows.
var dialects = map[dialogue.Shape]schema.Dialect{
	dialoguetest.Completions: schema.NoOutput, dialoguetest.Messages: schema.ClosedObjects,
	dialoguetest.Gemini: schema.OpenAPI,
}

func TestDecideOutputKeepsWhatTheTargetSupports(t *testing.T) {
	able := dialogue.Capabilities{StructuredOutputs: true}
	target := func(s dialogue.Shape, c dialogue.Capabilities) dialogue.Target {
		return dialogue.Target{Shape: s, Caps: c}
	}
	want := func(raw string) dialogue.Output {
		return dialogue.Output{Mode: dialogue.OutputSchema, Name: "p", Schema: json.RawMessage(raw)}
	}
	plain := `{"type":"object","properties":{"a":{"type":"string"}},"additionalProperties":false}`
	anyJSON := dialogue.Output{Mode: dialogue.OutputJSON}
	rows := []struct {
		name   string
		o      dialogue.Output
		t      dialogue.Target
		mode   dialogue.OutputMode
		schema string
		reason string
	}{
		{
			"text stays text",
			dialogue.Output{},
			target(dialoguetest.Messages, dialogue.Capabilities{}),
			dialogue.OutputText,
			"",
			"",
		},
		{"a schema passes", want(plain), target(dialoguetest.Chat, able), dialogue.OutputSchema, plain, ""},
		{
			"a model without",
			want(plain),
			target(dialoguetest.Chat, dialogue.Capabilities{}),
			dialogue.OutputText,
			"",
			dialogue.ModelUnsupported,
		},
		{
			"refused once already",
			want(plain),
			dialogue.Target{Shape: dialoguetest.Chat, Caps: able, NoSchema: true},
			dialogue.OutputText,
			"",
			dialogue.ModelUnsupported,
		},
		{"no schema", want(""), target(dialoguetest.Responses, able), dialogue.OutputText, "", dialogue.MissingSchema},
		{
			"no schema and no support",
			want("null"),
			target(dialoguetest.Chat, dialogue.Capabilities{}),
			dialogue.OutputText,
			"",
			dialogue.ModelUnsupported,
		},
		{
			"any JSON on an old chat model",
			anyJSON,
			target(dialoguetest.Chat, dialogue.Capabilities{}),
			dialogue.OutputJSON,
			"",
			"",
		},
		{"any JSON on gemini", anyJSON, target(dialoguetest.Gemini, able), dialogue.OutputJSON, "", ""},
		{
			"any JSON on messages",
			anyJSON,
			target(dialoguetest.Messages, able),
			dialogue.OutputText,
			"",
			dialogue.JSONObjectUnsupported,
		},
		{
			"any JSON on an old messages model",
			anyJSON,
			target(dialoguetest.Messages, dialogue.Capabilities{}),
			dialogue.OutputText,
			"",
			dialogue.ModelUnsupported,
		},
		{
			"bounds toward messages",
			want(`{"type":"integer","minimum":1}`),
			target(dialoguetest.Messages, able),
			dialogue.OutputSchema,
			`{"type":"integer","description":"{minimum: 1}"}`,
			dialogue.KeywordsStripped,
		},
		{
			"recursion toward messages",
			want(`{"items":{"$ref":"#"}}`),
			target(dialoguetest.Messages, able),
			dialogue.OutputText,
			"",
			dialogue.KeywordsStripped,
		},
		{
			"recursion toward chat",
			want(`{"items":{"$ref":"#"}}`),
			target(dialoguetest.Chat, able),
			dialogue.OutputSchema,
			`{"items":{"$ref":"#"}}`,
			"",
		},
		{
			"completions has none",
			want(plain),
			target(dialoguetest.Completions, able),
			dialogue.OutputText,
			"",
			dialogue.ModelUnsupported,
		},
		{
			"newer gemini takes JSON Schema",
			want(plain),
			target(dialoguetest.Gemini, dialogue.Capabilities{StructuredOutputs: true, JSONSchema: true}),
			dialogue.OutputSchema,
			plain,
			"",
		},
		{
			"older gemini its own",
			want(plain),
			target(dialoguetest.Gemini, able),
			dialogue.OutputSchema,
			`{"type":"OBJECT","properties":{"a":{"type":"STRING"}}}`,
			"",
		},
	}
	for _, row := range rows {
		t.Run(row.name, func(t *testing.T) {
			var rep dialogue.Report
			got := schema.DecideOutput(row.o, dialects[row.t.Shape], row.t, &rep)
			if got.Mode != row.mode || string(got.Schema) != row.schema || rep.Degraded != row.reason {
				t.Errorf("got mode %d schema %s reason %q, want %d %s %q", got.Mode, got.Schema, rep.Degraded,
					row.mode, row.schema, row.reason)
			}
		})
	}
}
