package fields_test

import (
	"strings"
	"testing"

	"stagedoor/providers/dialogue"
	"stagedoor/providers/fields"
)

var snakeNames = fields.NewNames("model", "messages", "content", "role", "tools", "name", "stream", "logprobs", "k").
	Except("metadata", "tools.function.parameters", "tools.examples")

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
		if f.Flaw != fields.MisspelledName || f.Path != path ||
			!strings.EqualFold(f.Name, path[strings.LastIndexByte(path, '.')+1:]) {
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
	names := fields.NewCamelNames("model", "topK").Except("generationConfig.responseSchema")
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
		`{"_generationConfig":{"response_schema":{"Model":1}}}`:        fields.Sound,
		`{"responseSchema":{"Model":1,"TOPK":2}}`:                      fields.MisspelledName,
	} {
		if f := fields.ExplainNames([]byte(text), names); f.Flaw != want {
			t.Errorf("%s: got %+v, want flaw %d", text, f, want)
		}
	}
}

// TestClientsNamesPassOnlyAtTheirPlaces lists objects with the same name inside and outside of the
// places in which the names are the client's own.
func TestClientsNamesPassOnlyAtTheirPlaces(t *testing.T) {
	for text, path := range map[string]string{
		`{"metadata":{"Model":1,"deep":[{"ROLE":1}]}}`:                       "",
		`{"tools":[{"function":{"parameters":{"properties":{"Role":{}}}}}]}`: "",
		`{"tools":{"function":{"parameters":{"Role":1}}}}`:                   "",
		`{"tools":[{"examples":[{"Role":1}]}]}`:                              "",
		`{"tools":[{"function":{"parameters":{}},"Name":1}]}`:                "tools.0.Name",
		`{"messages":[{"metadata":{"Model":1}}]}`:                            "messages.0.metadata.Model",
		`{"messages":[{"content":[{"metadata":{"deep":{"Role":1}}}]}]}`:      "",
		`{"messages":[{"content":[{"metadata":{"tools":{"Role":1}}}]}]}`:     "messages.0.content.0.metadata.tools.Role",
		`{"function":{"parameters":{"Role":1}}}`:                             "function.parameters.Role",
		`{"tools":[{"parameters":{"Role":1}}]}`:                              "tools.0.parameters.Role",
		`{"tools":[{"function":{"tools":{"parameters":{"Role":1}}}}]}`:       "tools.0.function.tools.parameters.Role",
		`{"examples":[{"Role":1}]}`:                                          "examples.0.Role",
		`{"Metadata":{"x":1}}`:                                               "Metadata",
		`{"x":{"metadata":{"Model":1}},"y":[{"Model":1}]}`:                   "", // nothing reads x and y
	} {
		fault := fields.ExplainNames([]byte(text), snakeNames)
		if fault.Path != path || (fault.Flaw == fields.MisspelledName) != (path != "") {
			t.Errorf("%s: got %+v, want a misspelled name at %q", text, fault, path)
		}
		r := fields.NewReader([]byte(text)).Knowing(snakeNames)
		_ = r.Object(func(name []byte) error {
			if r.Peek() == fields.Array {
				return r.Array(func(int) error { return r.Object(func([]byte) error { return nil }) })
			}
			return nil
		})
		if r.Whole() != (path == "") {
			t.Errorf("%s: the walk disagrees", text)
		}
	}
}

func TestFormFieldsAreWrittenAsTheyAreRead(t *testing.T) {
	for field, code := range map[string]string{
		"model": "", "Model": "misspelled_name", "tools[name]": "", "tools[Name]": "misspelled_name",
		"Tools[x]": "misspelled_name",
		"x[MODEL]": "misspelled_name", "\u017ftream": "misspelled_name", "other": "", "Other[Thing]": "", "tools[]": "",
	} {
		err := snakeNames.CheckField(field)
		if bad, ok := err.(*dialogue.Error); (code != "") != ok || ok && (bad.Code != code || bad.Param != field) {
			t.Errorf("%s: got %v, want code %q", field, err, code)
		}
	}
	for text, param := range map[string]string{
		`{"name":"x"}`: "none", `{"Name":"x"}`: "function.Name", `[]`: "function", `{"a":1,"a":2}`: "function.a",
		`{`: "function",
	} {
		bad, ok := snakeNames.CheckObject("function", text).(*dialogue.Error)
		if ok != (param != "none") || ok && bad.Param != param {
			t.Errorf("%s: got %v, want an error of %s", text, bad, param)
		}
	}
}
