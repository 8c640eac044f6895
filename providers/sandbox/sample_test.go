package sandbox_test

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/santhosh-tekuri/jsonschema/v6"

	"stagedoor/providers/sandbox"
)

type noLoader struct{}

func (noLoader) Load(string) (any, error) { return nil, errors.New("none") }

// breaks reports why a value does not satisfy a schema, or nil.
func breaks(t testing.TB, schema, value []byte) error {
	t.Helper()
	doc, err := jsonschema.UnmarshalJSON(bytes.NewReader(schema))
	if err != nil {
		t.Fatalf("schema: %v", err)
	}
	c := jsonschema.NewCompiler()
	c.UseLoader(noLoader{})
	c.AssertFormat()
	if err := c.AddResource("test:schema", doc); err != nil {
		t.Fatalf("schema: %v", err)
	}
	compiled, err := c.Compile("test:schema")
	if err != nil {
		t.Fatalf("schema: %v", err)
	}
	v, err := jsonschema.UnmarshalJSON(bytes.NewReader(value))
	if err != nil {
		return err
	}
	return compiled.Validate(v)
}

func TestSamplesSatisfyTheirSchema(t *testing.T) {
	schemas := []string{
		`{}`,
		`true`,
		`{"type":"object"}`,
		`{"type":"string"}`,
		`{"type":"null"}`,
		`{"type":["null","integer"]}`,
		`{"const":{"a":[1]}}`,
		`{"enum":["x",2]}`,
		`{"type":"integer","minimum":5,"maximum":5}`,
		`{"type":"integer","exclusiveMinimum":5,"exclusiveMaximum":7}`,
		`{"type":"number","exclusiveMinimum":0,"exclusiveMaximum":0.1}`,
		`{"type":"integer","minimum":12,"multipleOf":5}`,
		`{"type":"integer","maximum":-3}`,
		`{"type":"number","multipleOf":0.5,"minimum":0.25}`,
		`{"type":"integer","minimum":9007199254740993}`,
		`{"minimum":3}`,
		`{"type":"string","minLength":20}`,
		`{"type":"string","maxLength":3}`,
		`{"type":"string","minLength":2,"maxLength":2}`,
		`{"type":"string","pattern":"^[A-Z]{3}-\\d{4}$"}`,
		`{"type":"string","pattern":"^(red|green)$"}`,
		`{"type":"string","pattern":"^\\w+@\\w+\\.com$","minLength":15}`,
		`{"type":"string","pattern":"b+","minLength":5}`,
		`{"type":"string","pattern":"^[^a]*$","minLength":3}`,
		`{"type":"string","format":"date-time"}`,
		`{"type":"string","format":"uuid"}`,
		`{"type":"string","format":"email"}`,
		`{"type":"string","format":"ipv6"}`,
		`{"type":"string","format":"uri"}`,
		`{"type":"string","format":"date"}`,
		`{"type":"string","format":"time"}`,
		`{"type":"string","format":"hostname"}`,
		`{"type":"string","format":"duration"}`,
		`{"type":"array","items":{"type":"integer"},"minItems":3,"uniqueItems":true}`,
		`{"type":"array","items":{"type":"string"},"uniqueItems":true,"minItems":4}`,
		`{"type":"array","items":{"enum":["a","b","c"]},"uniqueItems":true,"minItems":3}`,
		`{"type":"array","maxItems":0,"items":{"type":"string"}}`,
		`{"type":"array","prefixItems":[{"type":"string"},{"type":"integer"}],"items":false}`,
		`{"type":"array","contains":{"const":7}}`,
		`{"type":"object","properties":{"a":{"type":"string"}},"required":["a","b"]}`,
		`{"type":"object","required":["z"],"additionalProperties":{"type":"integer"}}`,
		`{"type":"object","properties":{"a.b":{"type":"integer"},"x*":{"type":"boolean"}},"required":["a.b"],"additionalProperties":false}`,
		`{"type":"object","minProperties":2,"additionalProperties":{"type":"boolean"}}`,
		`{"allOf":[{"type":"object","properties":{"a":{"type":"number"}},"required":["a"]},{"properties":{"a":{"minimum":4},"b":{"type":"integer"}},"required":["b"]}]}`,
		`{"anyOf":[{"type":"string"},{"type":"integer"}]}`,
		`{"oneOf":[{"type":"number"},{"type":"integer"}]}`,
		`{"type":"object","oneOf":[{"properties":{"k":{"const":"a"},"x":{"type":"integer"}},"required":["k","x"]},{"properties":{"k":{"const":"b"}},"required":["k"]}]}`,
		`{"type":"string","not":{"const":"sandbox"},"enum":["sandbox","other"]}`,
		`{"type":"object","properties":{"p":{"$ref":"#/$defs/P"}},"required":["p"],"$defs":{"P":{"type":"object","properties":{"n":{"type":"integer"}},"required":["n"],"additionalProperties":false}}}`,
		`{"$ref":"#/$defs/N","$defs":{"N":{"type":"object","properties":{"v":{"type":"integer"},"next":{"$ref":"#/$defs/N"}},"required":["v"]}}}`,
		`{"$ref":"#/$defs/N","$defs":{"N":{"type":"object","properties":{"next":{"anyOf":[{"$ref":"#/$defs/N"},{"type":"null"}]}},"required":["next"],"additionalProperties":false}}}`,
		`{"$defs":{"T":{"type":"object","properties":{"kids":{"type":"array","items":{"$ref":"#/$defs/T"}}},"required":["kids"]}},"$ref":"#/$defs/T"}`,
		`{"type":"object","properties":{"a":{"type":"integer"}},"if":{"required":["a"]},"then":{"properties":{"b":{"const":1}},"required":["b"]}}`,
		`{"type":"object","properties":{"card":{"type":"string"},"address":{"type":"string"}},"dependentRequired":{"card":["address"]}}`,
		`{"type":"object","properties":{"list":{"type":"array","minItems":2,"items":{"type":"object","properties":{"id":{"type":"integer"}},"required":["id"]}}},"required":["list"],"additionalProperties":false}`,
	}
	for _, schema := range schemas {
		got := sandbox.Sample([]byte(schema))
		if err := breaks(t, []byte(schema), got); err != nil {
			t.Errorf("%s\nmade %s: %v", schema, got, err)
		}
		if again := sandbox.Sample([]byte(schema)); !bytes.Equal(again, got) {
			t.Errorf("%s made %s, then %s", schema, got, again)
		}
	}
}

// TestSamplesAreBounded: a schema of a few bytes may ask for a billion items of a million characters.
func TestSamplesAreBounded(t *testing.T) {
	many := func(format string) string {
		var b strings.Builder
		for i := range 20_000 {
			fmt.Fprintf(&b, format, i)
		}
		return strings.TrimSuffix(b.String(), ",")
	}
	long := `{"type":"string","minLength":1000000000}`
	for range 6 {
		long = `{"type":"array","minItems":1000000000,"items":` + long + `}`
	}
	for name, schema := range map[string]string{
		"items of items":  long,
		"required":        `{"type":"object","required":[` + many(`"n%d",`) + `]}`,
		"properties":      `{"type":"object","properties":{` + many(`"n%d":{},`) + `}}`,
		"enums":           `{"allOf":[{"enum":[` + many(`"n%d",`) + `]},{"enum":[` + many(`"m%d",`) + `]}]}`,
		"choices":         `{"oneOf":[` + many(`{"type":"array","minItems":1000000000,"items":{"const":%d}},`) + `]}`,
		"oneOf of itself": `{"type":"object","required":["a"],"oneOf":[{"properties":{"a":{"$ref":"#"}}},{"properties":{"a":{"$ref":"#"}}}]}`,
		"const of items": `{"type":"array","minItems":64,"items":{"type":"array","minItems":64,"items":{"const":"` +
			strings.Repeat("x", 10_000) + `"}}}`,
		"places": `{"type":"array","prefixItems":[` + many(`{"const":%d},`) + `]}`,
	} {
		if testing.AllocsPerRun(1, func() {
			if n := len(sandbox.Sample([]byte(schema))); n > 256<<10 {
				t.Errorf("%s: a sample of %d bytes", name, n)
			}
		}) > float64(len(schema)+200_000) {
			t.Errorf("%s: more work than the schema is worth", name)
		}
	}
}

func FuzzSample(f *testing.F) {
	for _, seed := range []string{
		`{"$ref":"#"}`, `{"allOf":[{"$ref":"#"},{"$ref":"#"}]}`, `{"type":"array","minItems":1e300}`,
		`{"type":"string","pattern":"((a{100}){100}){100}","minLength":1e9}`,
		`{"type":"integer","multipleOf":1e-300,"minimum":1e300}`,
		`{"properties":{"a":{"$ref":"#/properties/a"}},"required":["a"]}`, `{"type":"object","minProperties":1e9}`,
		`[1]`,
		`{"enum":[]}`, `{"type":[]}`, `{"anyOf":[false]}`, `{"type":"string","maxLength":-1}`,
		`{"oneOf":[{"$ref":"#/oneOf/1"},{"$ref":"#/oneOf/0"}],"not":{}}`,
	} {
		f.Add([]byte(seed))
	}
	f.Fuzz(func(t *testing.T, schema []byte) {
		if got := sandbox.Sample(schema); !json.Valid(got) {
			t.Errorf("%s made %s", schema, got)
		}
	})
}
