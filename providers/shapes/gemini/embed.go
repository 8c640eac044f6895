package gemini

import (
	"bytes"
	"net/http"
	"strconv"
	"strings"

	"github.com/tidwall/gjson"

	"stagedoor/providers/dialogue"
	"stagedoor/providers/fields"
	"stagedoor/providers/shapes"
	"stagedoor/providers/vector"
)

// Methods of requests for embeddings.
const (
	embedContent       = "embedContent"
	batchEmbedContents = "batchEmbedContents"
)

// Embeddings is the shape's form of requests for embeddings: embedContent for one input and batchEmbedContents for
// several. Its upstreams do not scale vectors that they have cut.
var Embeddings = &vector.Dialect{
	Shape: &Shape.Descriptor, Read: readEmbed, Envelope: shape{}.Envelope,
	Inbound: embedder{}, Outbound: embedder{}, CutsUnscaled: true,
	Reply: vector.ReplyMembers{Vectors: []string{"embedding", "embeddings"}, Usage: "usageMetadata", Error: "error"},
	Usage: embedUsage,
}

// embedder implements both sides of vector.Dialect.
type embedder struct{ shape }

// readEmbed returns the model of a request for embeddings. ok is false for another method.
func readEmbed(r *http.Request) (shapes.Params, bool) {
	_, rest, _ := strings.Cut(r.URL.Path, "/models/")
	model, method, ok := splitPath(rest)
	in := shapes.Params{Path: r.URL.Path, Header: r.Header, Model: model}
	return in, ok && isEmbed(method)
}

func isEmbed(method string) bool { return method == embedContent || method == batchEmbedContents }

// Check implements vector.Inbound.
func (embedder) Check(body []byte, in shapes.Params) (*vector.Request, error) {
	r := &vector.Request{Inbound: Name, Model: in.Model, Body: body, Single: strings.HasSuffix(in.Path,
		":"+embedContent)}
	if bad := dialogue.CheckModel("model", in.Model); bad != nil {
		return nil, bad
	}
	doc := fields.View(body)
	if r.Single {
		return r, readInput(r, doc, "")
	}
	requests := field(doc, "requests")
	switch {
	case !requests.Exists():
		return nil, dialogue.Missing("requests")
	case !requests.IsArray():
		return nil, dialogue.Invalid("requests", "must be an array")
	}
	var err error
	requests.ForEach(func(_, v gjson.Result) bool {
		if len(r.Inputs) == vector.MaxInputs {
			err = dialogue.Invalid("requests", "must not have more than "+strconv.Itoa(vector.MaxInputs)+" elements")
			return false
		}
		err = readInput(r, v, "requests."+strconv.Itoa(len(r.Inputs))+".")
		return err == nil
	})
	if err == nil && len(r.Inputs) == 0 {
		err = dialogue.Invalid("requests", "must not be empty")
	}
	return r, err
}

// readInput reads the request for one vector. at is its place, with a dot behind it unless it is the body.
func readInput(r *vector.Request, v gjson.Result, at string) error {
	if !v.IsObject() {
		return dialogue.Invalid(strings.TrimSuffix(at, "."), "must be an object")
	}
	in := vector.Input{Raw: fields.Raw(v)}
	var err error
	content := false
	eachMember(v, func(name string, v gjson.Result) bool {
		switch name {
		case "model":
			if v.Type != gjson.String || strings.TrimPrefix(v.Str, "models/") != r.Model {
				err = dialogue.Invalid(at+name, "must name the model of the path")
			}
		case "content":
			content = true
			err = readContent(&in, v, at+name)
		case "embedContentConfig": // after the flat members, which it overrides
		default:
			err = readOption(r, &in, name, v, at)
		}
		return err == nil
	})
	if config := field(v, "embedContentConfig"); err == nil && config.Exists() {
		if !config.IsObject() {
			return dialogue.Invalid(at+"embedContentConfig", "must be an object")
		}
		eachMember(config, func(name string, v gjson.Result) bool {
			err = readOption(r, &in, name, v, at+"embedContentConfig.")
			return err == nil
		})
	}
	if err == nil && !content {
		err = dialogue.Missing(at + "content")
	}
	r.Inputs = append(r.Inputs, in)
	return err
}

// readOption reads one parameter of a vector. Upstreams of the other dialect can only be asked for
// a length, so everything else is noted as lost for them.
func readOption(r *vector.Request, in *vector.Input, name string, v gjson.Result, at string) error {
	switch name {
	case "outputDimensionality":
		n, ok := integer(v)
		if !ok || n < 1 || n > 1<<31-1 {
			return dialogue.Invalid(at+name, "must be an integer of 1 or more")
		}
		in.Dimensions = n
		return nil
	case "taskType", "title":
		if v.Type != gjson.String {
			return dialogue.Invalid(at+name, "must be a string")
		}
	}
	const most = 64 // names are reported as lost
	if len(r.Lost) < most {
		r.Lost = append(r.Lost, name)
	}
	return nil
}

// readContent reads the parts of a content, which together give one vector. Texts are joined by
// newlines, in their escaped form, so that nothing is decoded. Media are noted with their place,
// for the error of upstreams that take only text.
func readContent(in *vector.Input, v gjson.Result, at string) error {
	parts := field(v, "parts")
	if !v.IsObject() || !parts.Exists() {
		return dialogue.Missing(at + ".parts")
	}
	var joined []byte
	bad, n := "", 0
	each(parts, func(i int, part gjson.Result) bool {
		n++
		place := at + ".parts." + strconv.Itoa(i)
		switch text := field(part, "text"); {
		case !part.IsObject():
			bad = place
		case text.Type == gjson.String && n == 1:
			in.Text = fields.Raw(text)
		case text.Type == gjson.String:
			if joined == nil {
				joined = bytes.Clone(in.Text)
			}
			joined = append(append(bytes.TrimSuffix(joined, []byte{'"'}), `\n`...), text.Raw[1:]...)
		case text.Exists():
			bad = place + ".text"
		case in.Media == "":
			in.Media = place
		}
		return bad == ""
	})
	switch {
	case bad != "" && strings.HasSuffix(bad, ".text"):
		return dialogue.Invalid(bad, "must be a string")
	case bad != "":
		return dialogue.Invalid(bad, "must be an object")
	case joined != nil:
		in.Text = joined
	}
	if in.Media == "" && len(in.Text) <= len(`""`) {
		return dialogue.Invalid(at+".parts", "must not be empty")
	}
	return nil
}
