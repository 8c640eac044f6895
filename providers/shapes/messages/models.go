package messages

import (
	"time"

	"stagedoor/providers/jsonw"
	"stagedoor/providers/shapes"
)

// models describes the list of models for clients of the shape. Other shapes have the same path GET
// /v1/models, so these clients are recognised by the version header that the vendor requires.
var models = shapes.ModelList{
	Header: versionHeader,
	Paging: shapes.Paging{Size: "limit", Default: 20, After: "after_id", Before: "before_id"},
	Page:   modelPage,
	One: func(m shapes.Model) []byte {
		var w jsonw.Writer
		writeModel(&w, m)
		return w.Buf
	},
}

// modelPage returns a page as the vendor documents it: data, first_id, last_id, has_more.
func modelPage(list []shapes.Model, more bool) []byte {
	var w jsonw.Writer
	w.Object().Key("data").Array()
	for _, m := range list {
		writeModel(&w, m)
	}
	w.End()
	first, last := "", ""
	if n := len(list); n > 0 {
		first, last = list[0].ID, list[n-1].ID
	}
	w.Key("first_id").StringOrNull(first).Key("last_id").StringOrNull(last).Key("has_more").Bool(more).End()
	return w.Buf
}

// writeModel writes one model of the list.
func writeModel(w *jsonw.Writer, m shapes.Model) {
	w.Object()
	w.Key("type").String("model").Key("id").String(m.ID).Key("display_name").String(m.ID)
	w.Key("created_at").String(shapes.ModelTime.Format(time.RFC3339))
	w.End()
}
