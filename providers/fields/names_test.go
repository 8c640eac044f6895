package fields_test

import (
	"strings"
	"testing"

	"stagedoor/providers/fields"
)

var snakeNames = fields.NewNames("model", "messages", "role", "tools", "function", "name", "parameters", "stream", "metadata", "logprobs", "k")

func TestNamesThatFoldToKnownOnesAreRefused(t *testing.T) {
	for text, path := range map[string]string{
		`{"model":"a","Model":"b"}`: "Model",
		`{"MODEL":"b"}`:             "MODEL",
		`{"\u004dodel":"b"}`:        "Model",
		`{"M\u006fdel":"b"}`:        "Model",
		`{"\u017ftream":true}`:      "ſtream",
		`{"ſtream":true}`:           "ſtream",
		"{\"\u212a\":1}":            "\u212a",
		`{"messages":[{"role":"user"},{"Role":"system"}]}`:                        "messages.1.Role",
		`{"tools":[{"function":{"Name":"f"}}]}`:                                   "tools.0.function.Name",
		`{"tools":[{"function":{"name":"f","parameters":{"Name":1}},"Tools":0}]}`: "tools.0.Tools",
	} {
		if fields.ValidObject([]byte(text), snakeNames) {
			t.Errorf("%s passes", text)
		}
		f := fields.ExplainNames([]byte(text), snakeNames)
		if f.Flaw != fields.MisspelledName || f.Path != path || !strings.EqualFold(f.Name, path[strings.LastIndexByte(path, '.')+1:]) {
			t.Errorf("%s: got %+v", text, f)
		}
	}
	for _, text := range []string{
		`{"model":"a"}`, `{"\u006dodel":"a"}`, `{"topK":1,"Enable":true,"モデル":1,"mödel":2,"model_":3,"Models":4}`,
		`{"tools":[{"function":{"name":"f","parameters":{"Name":1,"properties":{"Model":{"Role":1}}}}}]}`,
		`{"metadata":{"Model":"x","ROLE":"y"}}`, `{"k":1,"m\u00f6del":1}`,
	} {
		if !fields.ValidObject([]byte(text), snakeNames) {
			t.Errorf("%s is refused: %+v", text, fields.ExplainNames([]byte(text), snakeNames))
		}
	}
	for _, text := range []string{`{"model":"a","model":"b"}`, `{"model":"a","\u006dodel":"b"}`} {
		if f := fields.ExplainNames([]byte(text), snakeNames); f.Flaw != fields.RepeatedName || f.Path != "model" {
			t.Errorf("%s: got %+v", text, f)
		}
	}
}

func TestCamelNamesHaveThreeSpellings(t *testing.T) {
	names := fields.NewCamelNames("generationConfig", "responseSchema", "model", "topK")
	for text, want := range map[string]fields.Flaw{
		`{"generationConfig":{"topK":1}}`:                              fields.Sound,
		`{"generation_config":{"top_k":1}}`:                            fields.Sound,
		`{"_generationConfig":{"unKnown":1}}`:                          fields.Sound,
		`{"generationconfig":{}}`:                                      fields.MisspelledName,
		`{"GenerationConfig":{}}`:                                      fields.MisspelledName,
		`{"generation_Config":{}}`:                                     fields.MisspelledName,
		`{"generation__config":{}}`:                                    fields.MisspelledName,
		"{\"generationConfig\":{\"top\u212a\":1}}":                     fields.MisspelledName,
		`{"Model":"x"}`:                                                fields.MisspelledName,
		`{"generationConfig":1,"generation_config":2}`:                 fields.RepeatedName,
		`{"generationConfig":{"responseSchema":{"Model":1,"TOPK":2}}}`: fields.Sound,
	} {
		if f := fields.ExplainNames([]byte(text), names); f.Flaw != want {
			t.Errorf("%s: got %+v, want flaw %d", text, f, want)
		}
	}
}
