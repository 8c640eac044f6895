package gemini

import (
	"strings"

	"github.com/tidwall/gjson"

	"stagedoor/providers/dialogue"
	"stagedoor/providers/jsonw"
)

// SplitPath takes what follows /v1beta/models/ in a decoded path apart. Ids of
// tuned models may hold slashes and colons, so the last colon counts.
func SplitPath(rest string) (model, method string, ok bool) {
	i := strings.LastIndexByte(rest, ':')
	if i <= 0 || i == len(rest)-1 {
		return "", "", false
	}
	return strings.TrimPrefix(rest[:i], "models/"), rest[i+1:], true
}

// CountTokensRequest is the generation request whose tokens a countTokens body
// asks for: the body itself, or what it wraps.
func CountTokensRequest(body []byte) ([]byte, error) {
	doc := gjson.ParseBytes(body)
	if !doc.IsObject() {
		return nil, dialogue.Invalid("body", "must be a JSON object")
	}
	inner := field(doc, "generateContentRequest")
	switch {
	case !inner.Exists():
		return body, nil
	case field(doc, "contents").Exists():
		return nil, dialogue.Invalid("generateContentRequest", "cannot be combined with contents")
	case !inner.IsObject():
		return nil, dialogue.Invalid("generateContentRequest", "must be an object")
	}
	return []byte(inner.Raw), nil
}

// CountTokensReply answers a countTokens call.
func CountTokensReply(total int64) []byte {
	var w jsonw.Writer
	w.Object().Key("totalTokens").Int(total).End()
	return w.Buf
}

// Model is what a models list says of a model.
type Model struct {
	ID          string
	DisplayName string // the id if ""
	Description string
	Version     string
	InputLimit  int64 // tokens; 0: not known
	OutputLimit int64
	Thinking    bool
}

// ModelObject is the description of one model.
func ModelObject(m Model) []byte {
	var w jsonw.Writer
	writeModel(&w, m)
	return w.Buf
}

// ModelList is one page of descriptions. next is the token of the next page.
func ModelList(models []Model, next string) []byte {
	var w jsonw.Writer
	w.Object().Key("models").Array()
	for _, m := range models {
		writeModel(&w, m)
	}
	w.End()
	if next != "" {
		w.Key("nextPageToken").String(next)
	}
	w.End()
	return w.Buf
}

func writeModel(w *jsonw.Writer, m Model) {
	text := func(name, value string) {
		if value != "" {
			w.Key(name).String(value)
		}
	}
	if m.DisplayName == "" {
		m.DisplayName = m.ID
	}
	w.Object().Key("name").String("models/" + strings.TrimPrefix(m.ID, "models/"))
	text("version", m.Version)
	w.Key("displayName").String(m.DisplayName)
	text("description", m.Description)
	if m.InputLimit > 0 {
		w.Key("inputTokenLimit").Int(m.InputLimit)
	}
	if m.OutputLimit > 0 {
		w.Key("outputTokenLimit").Int(m.OutputLimit)
	}
	w.Key("supportedGenerationMethods").Array()
	for _, method := range Methods {
		w.String(method)
	}
	w.End()
	if m.Thinking {
		w.Key("thinking").Bool(true)
	}
	w.End()
}
