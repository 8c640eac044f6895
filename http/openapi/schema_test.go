package openapi

import (
	"encoding/json"
	"testing"
)

func asJSON(t *testing.T, v any) string {
	t.Helper()
	b, err := json.Marshal(v)
	if err != nil {
		t.Fatal(err)
	}
	return string(b)
}

func TestTypesAreSchemas(t *testing.T) {
	for text, want := range map[string]string{
		"string":           `{"type":"string"}`,
		"string 1..64":     `{"maxLength":64,"minLength":1,"type":"string"}`,
		"integer 0..":      `{"minimum":0,"type":"integer"}`,
		"number -2..2":     `{"maximum":2,"minimum":-2,"type":"number"}`,
		"any":              `{}`,
		"Message":          `{"$ref":"#/components/schemas/Message"}`,
		"[string 1..] ..4": `{"items":{"minLength":1,"type":"string"},"maxItems":4,"type":"array"}`,
		"{number}":         `{"additionalProperties":{"type":"number"},"type":"object"}`,
		`"a" | "b c"`:      `{"enum":["a","b c"],"type":"string"}`,
		`[Part] | string?`: `{"anyOf":[{"items":{"$ref":"#/components/schemas/Part"},"type":"array"},` +
			`{"type":"string"},{"type":"null"}]}`,
		`"auto" | integer`: `{"anyOf":[{"type":"integer"},{"enum":["auto"],"type":"string"}]}`,
	} {
		if got := asJSON(t, typeOf(text)); got != want {
			t.Errorf("%s: got %s, want %s", text, got, want)
		}
	}
}

func TestTypesOfATextHaveMembers(t *testing.T) {
	all := types("Base # what both have\n  id! string\n\nMore + Base\n  n, size! integer # a number\n  ...\n" +
		"Other = [More] # many\n")
	for name, want := range map[string]string{
		"Base": `{"description":"what both have","properties":{"id":{"type":"string"}},"required":["id"],` +
			`"type":"object"}`,
		"More": `{"additionalProperties":true,"properties":{"id":{"type":"string"},` +
			`"n":{"description":"a number","type":"integer"},"size":{"description":"a number","type":"integer"}},` +
			`"required":["id","size"],"type":"object"}`,
		"Other": `{"description":"many","items":{"$ref":"#/components/schemas/More"},"type":"array"}`,
	} {
		if got := asJSON(t, all[name]); got != want {
			t.Errorf("%s: got %s, want %s", name, got, want)
		}
	}
	if len(all) != 3 {
		t.Errorf("got %d types", len(all))
	}
}

func TestAPatternServesSeveralOperations(t *testing.T) {
	generate := operation{route: "POST /v1beta/models/{model}:generateContent"}
	for pattern, want := range map[string]bool{
		"POST /v1beta/models/{rest...}":               true,
		"POST /v1beta/models/{model}:generateContent": true,
		"GET /v1beta/models/{rest...}":                false,
		"POST /v1beta/models":                         false,
		"POST /v1beta/models/":                        false,
	} {
		if generate.servedBy(pattern) != want {
			t.Errorf("%s: got %t", pattern, !want)
		}
	}
}
