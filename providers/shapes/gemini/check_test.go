package gemini_test

import (
	"errors"
	"strings"
	"testing"

	"stagedoor/providers/dialogue"
	"stagedoor/providers/shapes"
	"stagedoor/providers/shapes/gemini"
)

const hi = `"contents":[{"parts":[{"text":"hi"}]}]`

func TestCheckNamesTheFirstBrokenField(t *testing.T) {
	for _, row := range []struct{ body, param, rule string }{
		{`[]`, "body", "object"},
		{`{}`, "contents", "required"},
		{`{"contents":[]}`, "contents", "empty"},
		{`{"contents":null}`, "contents", "required"},
		{`{"contents":"hi"}`, "contents", "array"},
		{`{"contents":[{"role":"system","parts":[{"text":"x"}]}]}`, "contents.0.role", "user or model"},
		{`{"contents":[{"role":"user"}]}`, "contents.0.parts", "required"},
		{`{"contents":[{"parts":[]}]}`, "contents.0.parts", "empty"},
		{`{"contents":[{"parts":[{"text":"a"},{"video":1}]}]}`, "contents.0.parts.1", "exactly one data field"},
		{`{"contents":[{"parts":[{"text":"a","inlineData":{"mimeType":"a/b","data":"QQ=="}}]}]}`, "contents.0.parts.0",
			"exactly one data field"},
		{`{"contents":[{"parts":[{"text":5}]}]}`, "contents.0.parts.0.text", "string"},
		{`{"contents":[{"parts":[{"inlineData":{"data":"QQ=="}}]}]}`, "contents.0.parts.0.inlineData.mimeType",
			"required"},
		{`{"contents":[{"parts":[{"functionCall":{"name":"f","args":[]}}]}]}`, "contents.0.parts.0.functionCall.args",
			"object"},
		{`{"contents":[{"parts":[{"functionResponse":{"name":"f","response":"x"}}]}]}`,
			"contents.0.parts.0.functionResponse.response", "object"},
		{`{` + hi + `,"generationConfig":{"temperature":2.1}}`, "generationConfig.temperature", "between 0 and 2"},
		{`{` + hi + `,"generation_config":{"top_p":1.5}}`, "generationConfig.topP", "between 0 and 1"},
		{`{` + hi + `,"generationConfig":{"topK":1.5}}`, "generationConfig.topK", "integer"},
		{`{` + hi + `,"generationConfig":{"candidateCount":9}}`, "generationConfig.candidateCount", "between 1 and 8"},
		{`{` + hi + `,"generationConfig":{"maxOutputTokens":0}}`, "generationConfig.maxOutputTokens", "at least 1"},
		{`{` + hi + `,"generationConfig":{"stopSequences":["a","b","c","d","e","f"]}}`,
			"generationConfig.stopSequences", "at most 5"},
		{`{` + hi + `,"generationConfig":{"presencePenalty":-2.5}}`, "generationConfig.presencePenalty",
			"between -2 and 2"},
		{`{` + hi + `,"generationConfig":{"thinkingConfig":{"thinkingBudget":10,"thinkingLevel":"LOW"}}}`,
			"generationConfig.thinkingConfig.thinkingLevel", "combined"},
		{`{` + hi + `,"generationConfig":{"thinkingConfig":{"thinkingLevel":"HUGE"}}}`,
			"generationConfig.thinkingConfig.thinkingLevel", "MINIMAL"},
		{`{` + hi + `,"generationConfig":{"responseLogprobs":1}}`, "generationConfig.responseLogprobs", "boolean"},
		{`{` + hi + `,"generationConfig":{"thinkingConfig":{"includeThoughts":"yes"}}}`,
			"generationConfig.thinkingConfig.includeThoughts", "boolean"},
		{`{` + hi + `,"generationConfig":{"responseSchema":{},"responseJsonSchema":{},"responseMimeType":"application/json"}}`, "generationConfig.responseJsonSchema", "combined"},
		{`{` + hi + `,"generationConfig":{"responseSchema":{}}}`, "generationConfig.responseMimeType",
			"application/json"},
		{`{` + hi + `,"tools":[{"functionDeclarations":[{"name":"a"},{}]}]}`, "tools.0.functionDeclarations.1.name",
			"required"},
		{`{` + hi + `,"tools":[{"functionDeclarations":[{"name":"a","parameters":{},"parametersJsonSchema":{}}]}]}`,
			"tools.0.functionDeclarations.0.parametersJsonSchema", "combined"},
		{`{` + hi + `,"toolConfig":{"functionCallingConfig":{"mode":"SOMETIMES"}}}`,
			"toolConfig.functionCallingConfig.mode", "AUTO"},
		{`{"systemInstruction":5,` + hi + `}`, "systemInstruction", "object"},
		{`{"generationConfig":{"topP":2},"contents":[]}`, "generationConfig.topP", "between"},
	} {
		_, err := gemini.Shape.Check([]byte(row.body), inbound())
		var e *dialogue.Error
		if !errors.As(err, &e) {
			t.Errorf("%s: accepted", row.body)
			continue
		}
		if e.Status != 400 || e.Param != row.param || !strings.Contains(e.Message, row.rule) {
			t.Errorf("%s: got %d %q %q, want 400 %q %q", row.body, e.Status, e.Param, e.Message, row.param, row.rule)
		}
	}
}

func TestCheckAcceptsEverySpelling(t *testing.T) {
	for _, body := range []string{
		`{` + hi + `}`,
		`{"contents":{"parts":{"text":"hi"}}}`,
		`{"contents":[{"role":"function","parts":[{"function_response":{"name":"f","response":{}}}]}]}`,
		`{` + hi + `,"system_instruction":"be terse"}`,
		`{` + hi + `,"systemInstruction":{"parts":{"text":"x"}}}`,
		`{` + hi + `,"generation_config":{"max_output_tokens":"100","temperature":"0.5","seed":7.0}}`,
		`{` + hi + `,"generationConfig":{"temperature":null,"responseMimeType":"application/json","_responseJsonSchema":{}}}`,
		`{` + hi + `,"generationConfig":{"thinkingConfig":{"thinkingBudget":-1,"thinking_level":"THINKING_LEVEL_UNSPECIFIED"}}}`,
		`{` + hi + `,"generationConfig":{"responseLogprobs":"true","thinkingConfig":{"includeThoughts":false}}}`,
		`{` + hi + `,"tools":{"google_search":{}},"somethingNew":{"a":1},"toolConfig":{"functionCallingConfig":{"mode":"validated"}}}`,
		`{"contents":[{"parts":[{"text":"","thoughtSignature":"QQ==","future":1}]}]}`,
		`{"contents":[{"parts":[{"thoughtSignature":"QQ=="},{"thought":true}]}]}`,
		`{"contents":[{"parts":[{"thought":true,"thought_signature":"QQ=="}]}]}`,
	} {
		if _, err := gemini.Shape.Check([]byte(body), inbound()); err != nil {
			t.Errorf("%s: %v", body, err)
		}
	}
}

func TestCheckReadsTheHead(t *testing.T) {
	body := `{` + hi + `,"serviceTier":"flex","generationConfig":{"candidateCount":3,"maxOutputTokens":"77","responseMimeType":"application/json"}}`
	got, err := gemini.Shape.Check([]byte(body), shapes.Params{Model: "m", Stream: true})
	want := shapes.Head{Model: "m", Stream: true, IncludeUsage: true, MaxTokens: 77, N: 3, ServiceTier: "flex",
		Structured: true}
	if err != nil || got != want {
		t.Errorf("got %+v %v, want %+v", got, err, want)
	}
}
