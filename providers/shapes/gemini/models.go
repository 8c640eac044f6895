package gemini

import (
	"strings"

	"stagedoor/providers/jsonw"
	"stagedoor/providers/shapes"
)

// splitPath divides what follows /v1beta/models/ in a decoded path. Ids of tuned models may
// contain slashes and colons, so the last colon counts.
func splitPath(rest string) (model, method string, ok bool) {
	i := strings.LastIndexByte(rest, ':')
	if i <= 0 || i == len(rest)-1 {
		return "", "", false
	}
	return strings.TrimPrefix(rest[:i], "models/"), rest[i+1:], true
}

// modelList describes the lists of models for clients of the shape, which have a path of their own.
var modelList = shapes.ModelList{
	Path:    "/v1beta/models",
	Paging:  shapes.Paging{Size: "pageSize", Default: 50, After: "pageToken", Coerce: true},
	Methods: methods,
	Page:    modelPage,
	One: func(m shapes.Model) []byte {
		var w jsonw.Writer
		writeModel(&w, m)
		return w.Buf
	},
}

// modelPage writes a page. The id of its last model is the token of the next page.
func modelPage(models []shapes.Model, more bool) []byte {
	var w jsonw.Writer
	w.Object().Key("models").Array()
	for _, m := range models {
		writeModel(&w, m)
	}
	w.End()
	if more {
		w.Key("nextPageToken").String(models[len(models)-1].ID)
	}
	w.End()
	return w.Buf
}

// writeModel writes one model of the list.
func writeModel(w *jsonw.Writer, m shapes.Model) {
	w.Object().Key("name").String("models/" + strings.TrimPrefix(m.ID, "models/"))
	w.Key("displayName").String(m.ID)
	w.Key("supportedGenerationMethods").Array()
	for _, method := range methods {
		w.String(method)
	}
	w.End().End()
}
