package embeddings

import (
	"github.com/tidwall/gjson"

	"stagedoor/providers/dialogue"
	"stagedoor/providers/fields"
	"stagedoor/providers/jsonw"
	"stagedoor/providers/shapes"
	"stagedoor/providers/vector"
)

// Batch implements vector.Outbound. Dimensions are a parameter of a whole call here, so that inputs
// with different ones, which gemini's clients may send, need several calls.
func (codec) Batch(r *vector.Request, from int) vector.Batch {
	to := from + 1
	for to < len(r.Inputs) && to-from < vector.MaxInputs && r.Inputs[to].Dimensions == r.Inputs[from].Dimensions {
		to++
	}
	return vector.Batch{From: from, To: to}
}

// Encode implements vector.Outbound. A request of this shape that needs one call is sent as it
// came, with the model's name replaced.
func (codec) Encode(r *vector.Request, b vector.Batch, model string, rep *dialogue.Report) (shapes.Call, error) {
	if r.Inbound == Name && b.Whole(r) {
		return shapes.Call{Path: path, Body: withModel(r, model)}, nil
	}
	w := jsonw.Writer{}
	w.Object().Key("model").String(model).Key("input").Array()
	for _, in := range r.Inputs[b.From:b.To] {
		switch {
		case in.Media != "":
			return shapes.Call{}, dialogue.Unsupported(in.Media, "the provider of this model takes only text")
		case in.Tokens != nil:
			w.Raw(in.Tokens)
		default:
			w.Raw(in.Text)
		}
	}
	w.End().Key("encoding_format").String(format(r))
	if n := r.Inputs[b.From].Dimensions; n > 0 {
		w.Key("dimensions").Int(n)
	}
	w.End()
	for _, name := range r.Lost {
		rep.Lose(name)
	}
	return shapes.Call{Path: path, Body: w.Buf}, nil
}

// format returns the encoding_format that the client wants. The upstream makes it, so that the
// gateway can copy the vectors without reading them.
func format(r *vector.Request) string {
	if r.Base64 {
		return "base64"
	}
	return "float"
}

// withModel returns the body of r with another name of the model.
func withModel(r *vector.Request, model string) []byte {
	if model == r.Model {
		return r.Body
	}
	var edits []fields.Edit
	for _, m := range fields.Members(r.Body) {
		if m.Name == "model" {
			edits = append(edits, fields.Edit{Start: m.Value, End: m.End, With: jsonw.AppendString(nil, model)})
		}
	}
	return fields.Splice(r.Body, edits)
}

// Decode implements vector.Outbound. It sorts the vectors by their index and fails unless every
// input has exactly one.
func (codec) Decode(body []byte, inputs int) (*vector.Reply, error) {
	r := fields.NewLenientReader(body)
	defer r.Free()
	reply := &vector.Reply{Vectors: make([][]byte, inputs), Usage: dialogue.NoUsage}
	found := 0
	err := r.Object(func(name []byte) error {
		switch string(name) {
		case "data":
			return r.Array(func(i int) error {
				index, raw, err := item(r, int64(i))
				switch {
				case err != nil:
					return err
				case index < 0 || index >= int64(inputs) || reply.Vectors[index] != nil || !vector.IsVector(raw):
					return dialogue.BadUpstream("a vector that no input has, twice, or that is none")
				}
				reply.Vectors[index] = raw
				found++
				return nil
			})
		case "usage":
			reply.Usage = usage(r.Skip())
		case "model":
			reply.Model = gjson.ParseBytes(r.Skip()).String()
		case "error":
			if raw := r.Skip(); len(raw) > 0 && raw[0] != 'n' {
				return vector.ErrorInReply(Dialect, raw)
			}
		}
		return nil
	})
	return vector.Complete(r, reply, found, err)
}

// item reads one element of data. index is the place of an element that does not name its own.
func item(r *fields.Reader, index int64) (at int64, raw []byte, err error) {
	at = index
	err = r.Object(func(name []byte) error {
		switch string(name) {
		case "index":
			at = gjson.ParseBytes(r.Skip()).Int()
		case "embedding":
			raw = r.Skip()
		}
		return nil
	})
	return at, raw, err
}
