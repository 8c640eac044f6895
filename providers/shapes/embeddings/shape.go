// Package embeddings is OpenAI's shape for embeddings, POST /v1/embeddings, after its API
// reference, "Embeddings". It serves clients and calls upstreams. The gemini shape has another form
// of embeddings, and providers/vector is the form between the two. The package does no I/O and
// keeps nothing between requests.
//
//	{"model":"m","input":["a","b"],"dimensions":256}
//	{"object":"list","data":[{"object":"embedding","index":0,"embedding":[0.1,...]}, ...],
//	 "model":"m","usage":{"prompt_tokens":2,"total_tokens":2}}
//
//	shape.go   the descriptor, and the frame of replies
//	check.go   the rules of requests
//	encode.go  calls of upstreams and their replies
//
// # Usage
//
// The Descriptor has the routes and member names, and the dialect has the functions that
// http/embeddings and actors/embeddings call: check a request, write a call, read a reply. Vectors
// are passed on as the bytes that the upstream sent wherever no conversion between floats and
// base64 is needed.
//
// # Members
//
// Where Check puts the members of a request in vector.Request. Clients write null for what they leave out.
//
//	model               Model
//	input               Inputs: one for a string or a list of tokens, else one for each element
//	encoding_format     Base64, for base64
//	dimensions          Dimensions of each input
//	input_type, task    Purpose of each input, for the words of several vendors; other words go to Lost
//	title               Title of each input
//	all others          Lost: upstreams of this shape get them, and others report them in X-Stagedoor-Losses
package embeddings

import (
	"net/http"
	"strconv"
	"strings"

	"github.com/tidwall/gjson"

	"stagedoor/providers/chunks"
	"stagedoor/providers/dialogue"
	"stagedoor/providers/fields"
	"stagedoor/providers/jsonw"
	"stagedoor/providers/shapes"
	"stagedoor/providers/vector"
)

// Name is the name of the shape.
const Name dialogue.Shape = "embeddings"

// path of an upstream call, below the provider's base address.
const path = "/embeddings"

// Descriptor holds the facts about the shape. Its scope is that of embeddings in every dialect.
var Descriptor = shapes.Descriptor{
	Name: Name, Scope: "embeddings", Members: members,
	Routes:      []shapes.Route{{Pattern: "POST /v1/embeddings", Task: shapes.Embed}},
	Telemetry:   shapes.Telemetry{Operation: "embeddings", Vendor: chunks.Vendor},
	Probe:       chunks.Probe,
	SandboxPath: path,
}

// Dialect serves the shape.
var Dialect = &vector.Dialect{
	Shape: &Descriptor, Envelope: chunks.Envelope, Inbound: codec{}, Outbound: codec{},
	Read: func(r *http.Request) (shapes.Params, bool) {
		return shapes.Params{Path: r.URL.Path, Header: r.Header}, strings.HasSuffix(r.URL.Path, path)
	},
	Reply: vector.ReplyMembers{Vectors: []string{"data"}, Usage: "usage", Model: "model", Error: "error"},
	Usage: usage,
}

type codec struct{ chunks.Family }

// members are the member names of requests: those of the vendor, and the extensions of others.
var members = fields.NewNames("dimensions", "encoding_format", "input", "input_type", "model", "task", "title", "user")

// usage reads the usage of a reply. Some vendors report only the total, which is the input.
func usage(raw []byte) dialogue.Usage {
	v := gjson.ParseBytes(raw)
	u := chunks.Usage(v)
	if n := v.Get("total_tokens"); u.InputTotal == dialogue.NoUsage.InputTotal && n.Type == gjson.Number {
		u.InputTotal = max(n.Int(), dialogue.NegativeCount)
	}
	return u
}

// AppendStart implements vector.Inbound.
func (codec) AppendStart(dst []byte, _ *vector.Request) []byte {
	return append(dst, `{"object":"list","data":[`...)
}

// AppendOpening implements vector.Inbound.
func (codec) AppendOpening(dst []byte, _ *vector.Request, i int) []byte {
	dst = strconv.AppendInt(append(dst, `{"object":"embedding","index":`...), int64(i), 10)
	return append(dst, `,"embedding":`...)
}

// AppendEnd implements vector.Inbound.
func (codec) AppendEnd(dst []byte, r *vector.Request, u dialogue.Usage) []byte {
	w := jsonw.Writer{Buf: append(dst, `],"model":`...)}
	w.String(r.Model)
	w.Buf = append(w.Buf, `,"usage":`...)
	n := dialogue.CountOrZero(u.InputTotal)
	w.Object().Key("prompt_tokens").Int(n).Key("total_tokens").Int(n).End()
	return append(w.Buf, '}')
}
