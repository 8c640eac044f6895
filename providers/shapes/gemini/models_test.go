package gemini_test

import (
	"net/http"
	"testing"

	"stagedoor/providers/dialogue"
	"stagedoor/providers/shapes/gemini"
)

func TestPathsSplitAtTheLastColon(t *testing.T) {
	for rest, want := range map[string][2]string{
		"gemini-2.5-flash:generateContent": {"gemini-2.5-flash", "generateContent"},
		"tuned/a:b:countTokens":            {"tuned/a:b", "countTokens"},
		"models/x:generateContent":         {"x", "generateContent"},
		"gemini":                           {}, "x:": {}, ":y": {}, "": {},
	} {
		model, method, ok := gemini.SplitPath(rest)
		if model != want[0] || method != want[1] || ok != (want[1] != "") {
			t.Errorf("%q: got %q %q %v", rest, model, method, ok)
		}
	}
}

func TestCountTokens(t *testing.T) {
	if got := string(gemini.CountTokensReply(31)); got != `{"totalTokens":31}` {
		t.Error(got)
	}
	for body, want := range map[string]string{
		`{"contents":[]}`: `{"contents":[]}`,
		`{"generateContentRequest":{"model":"models/m"}}`:  `{"model":"models/m"}`,
		`{"generate_content_request":{"a":1}}`:             `{"a":1}`,
		`{"contents":[],"generateContentRequest":{"a":1}}`: "",
		`{"generateContentRequest":"x"}`:                   "",
		`[]`:                                               "",
	} {
		got, err := gemini.CountTokensRequest([]byte(body))
		if string(got) != want || (err == nil) != (want != "") {
			t.Errorf("%s: got %s %v", body, got, err)
		}
	}
}

func TestModelsAreDescribed(t *testing.T) {
	got := string(gemini.ModelList([]gemini.Model{{ID: "a", Version: "001", InputLimit: 10, OutputLimit: 5, Thinking: true}}, "n"))
	want := `{"models":[{"name":"models/a","version":"001","displayName":"a","inputTokenLimit":10,"outputTokenLimit":5,"supportedGenerationMethods":["generateContent","streamGenerateContent","countTokens"],"thinking":true}],"nextPageToken":"n"}`
	if got != want {
		t.Errorf("got  %s\nwant %s", got, want)
	}
	if got := string(gemini.ModelObject(gemini.Model{ID: "a"})); got != `{"name":"models/a","displayName":"a","supportedGenerationMethods":["generateContent","streamGenerateContent","countTokens"]}` {
		t.Error(got)
	}
}

func TestTheShapeIntroducesItself(t *testing.T) {
	h := http.Header{}
	gemini.Shape.Authorize(h, "k")
	if h.Get("x-goog-api-key") != "k" || gemini.Shape.MaxChoices() != 8 || gemini.Shape.Name() != dialogue.Gemini {
		t.Errorf("%v %d %s", h, gemini.Shape.MaxChoices(), gemini.Shape.Name())
	}
}
