package text

import (
	"net/http"

	"github.com/tidwall/gjson"
	"github.com/tidwall/sjson"

	"stagedoor/providers/dialogue"
	"stagedoor/providers/shapes"
	"stagedoor/providers/shapes/messages"
)

// CountTokens is POST /v1/messages/count_tokens.
func (d *Doors) CountTokens(w http.ResponseWriter, r *http.Request) {
	v := visit{doors: d, shape: d.Shapes[dialogue.Messages], w: w, r: r,
		in: shapes.Inbound{Path: r.URL.Path, Header: r.Header}}
	v.count(messages.InputTokensBody)
}

// countable makes a count request one that the shape's rules accept: its body
// is that of a generation without what only generating needs.
func countable(shape dialogue.Shape, body []byte) []byte {
	switch shape {
	case dialogue.Messages:
		if gjson.GetBytes(body, "max_tokens").Exists() {
			return body
		}
		if with, err := sjson.SetBytes(body, "max_tokens", 1); err == nil {
			return with
		}
	case dialogue.Gemini:
		if inner := gjson.GetBytes(body, "generateContentRequest"); inner.IsObject() {
			return []byte(inner.Raw)
		}
	}
	return body
}
