package gemini_test

import (
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"stagedoor/providers/dialogue/dialoguetest"
	"stagedoor/providers/shapes"
	"stagedoor/providers/shapes/gemini"
)

func TestPathsSplitAtTheLastColon(t *testing.T) {
	for rest, want := range map[string]struct {
		model string
		task  shapes.Task
	}{
		"gemini-2.5-flash:generateContent": {"gemini-2.5-flash", shapes.Generate},
		"tuned/a:b:countTokens":            {"tuned/a:b", shapes.Count},
		"models/x:generateContent":         {"x", shapes.Generate},
		"x:streamGenerateContent":          {"x", shapes.Generate},
		"gemini":                           {}, "x:": {}, ":y": {}, "": {},
		"x:other": {"x", shapes.NoTask},
	} {
		r := httptest.NewRequest("POST", "/", nil)
		r.SetPathValue("rest", rest)
		in, task := gemini.Shape.Read(r)
		if in.Model != want.model || task != want.task || in.Stream != strings.HasSuffix(rest, "streamGenerateContent") || in.Array != in.Stream {
			t.Errorf("%q: got %q %d", rest, in.Model, task)
		}
	}
}

func TestCountTokens(t *testing.T) {
	counter := gemini.Shape.Counter
	if got := string(counter.CountReply(31)); got != `{"totalTokens":31}` || !counter.IsCount([]byte(got)) {
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
		got, err := counter.CountedRequest([]byte(body))
		if string(got) != want || (err == nil) != (want != "") {
			t.Errorf("%s: got %s %v", body, got, err)
		}
	}
}

func TestModelsAreDescribed(t *testing.T) {
	const a = `{"name":"models/a","displayName":"a",` +
		`"supportedGenerationMethods":["generateContent","streamGenerateContent","countTokens",` +
		`"embedContent","batchEmbedContents"]}`
	list := gemini.Shape.Models
	if got, want := string(list.Page([]shapes.Model{{ID: "a"}}, true)), `{"models":[`+a+`],"nextPageToken":"a"}`; got != want {
		t.Errorf("got  %s\nwant %s", got, want)
	}
	if got := string(list.One(shapes.Model{ID: "a"})); got != a {
		t.Error(got)
	}
}

func TestTheShapeIntroducesItself(t *testing.T) {
	h := http.Header{}
	gemini.Shape.Authorize(h, "k")
	if h.Get("x-goog-api-key") != "k" || gemini.Shape.MaxChoices() != 8 || gemini.Shape.Name != dialoguetest.Gemini {
		t.Errorf("%v %d %s", h, gemini.Shape.MaxChoices(), gemini.Shape.Name)
	}
}
