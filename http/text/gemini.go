package text

import (
	"net/http"
	"slices"

	"stagedoor/http/envelope"
	"stagedoor/providers/dialogue"
	"stagedoor/providers/shapes"
	"stagedoor/providers/shapes/gemini"
	"stagedoor/providers/tokens"
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
		v.count(func(n int64) []byte { return gemini.CountTokensReply(n) })
	default:
		v.refuse(envelope.NotFound(r.URL.Path))
	}
}

// count answers a token count: an estimate by the gateway's own vocabulary, and
// the header says so.
func (v *visit) count(reply func(n int64) []byte) {
	req, err := v.decodeForCount()
	if err != nil {
		v.refuse(err)
		return
	}
	body := reply(tokens.Request(req))
	v.w.Header().Set("X-Stagedoor-Estimate", "tokens")
	writeJSON(v.w, http.StatusOK, body)
}

func (v *visit) decodeForCount() (*dialogue.Request, error) {
	if err := v.identify(scopes[v.shape.Name()]); err != nil {
		return nil, err
	}
	b, err := readBody(v.w, v.r)
	if err != nil {
		return nil, err
	}
	defer b.free()
	v.payload = countable(v.shape.Name(), b.b)
	if err := v.route(); err != nil {
		return nil, err
	}
	return v.shape.Decode(v.payload, v.in, v.doors.Env)
}
