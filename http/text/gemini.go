package text

import (
	"net/http"
	"slices"

	"stagedoor/http/envelope"
	"stagedoor/providers/dialogue"
	"stagedoor/providers/shapes"
	"stagedoor/providers/shapes/gemini"
)

// Generate is the door of the third shape, whose paths end in {model}:{method}:
// generateContent, streamGenerateContent and countTokens.
func (d *Doors) Generate(w http.ResponseWriter, r *http.Request) {
	model, method, ok := gemini.SplitPath(r.PathValue("rest"))
	v := visit{doors: d, shape: d.Shapes[dialogue.Gemini], w: w, r: r,
		in: shapes.Inbound{Path: r.URL.Path, Header: r.Header, Model: model}}
	switch {
	case ok && method == "generateContent":
		v.serve()
	case ok && method == "streamGenerateContent":
		v.in.Stream = true
		v.in.Array = !slices.Contains(r.URL.Query()["alt"], "sse")
		v.serve()
	case ok && method == "countTokens":
		v.count(geminiCounter)
	default:
		v.refuse(envelope.NotFound(r.URL.Path))
	}
}
