package gemini

import (
	"strconv"

	"github.com/tidwall/gjson"

	"stagedoor/providers/dialogue"
	"stagedoor/providers/fields"
	"stagedoor/providers/vector"
)

// embedUsage reads the usage of a reply. Older models report none.
func embedUsage(raw []byte) dialogue.Usage {
	u := dialogue.NoUsage
	take(&u.InputTotal, field(gjson.ParseBytes(raw), "promptTokenCount"))
	return u
}

// AppendStart implements vector.Inbound.
func (embedder) AppendStart(dst []byte, r *vector.Request) []byte {
	if r.Single {
		return append(dst, `{"embedding":`...)
	}
	return append(dst, `{"embeddings":[`...)
}

// AppendOpening implements vector.Inbound.
func (embedder) AppendOpening(dst []byte, _ *vector.Request, _ int) []byte {
	return append(dst, `{"values":`...)
}

// AppendEnd implements vector.Inbound.
func (embedder) AppendEnd(dst []byte, r *vector.Request, u dialogue.Usage) []byte {
	if !r.Single {
		dst = append(dst, ']')
	}
	dst = append(dst, `,"usageMetadata":{"promptTokenCount":`...)
	return append(strconv.AppendInt(dst, dialogue.CountOrZero(u.InputTotal), 10), "}}"...)
}

// Decode implements vector.Outbound.
func (embedder) Decode(body []byte, inputs int) (*vector.Reply, error) {
	r := fields.NewLenientReader(body)
	defer r.Free()
	reply := &vector.Reply{Vectors: make([][]byte, inputs), Usage: dialogue.NoUsage}
	found := 0
	one := func() error {
		return r.Object(func(name []byte) error {
			if string(name) != "values" {
				return nil
			}
			raw := r.Skip()
			if found >= inputs || !vector.IsVector(raw) || raw[0] != '[' {
				return dialogue.BadUpstream("a vector that no input has, or that is none")
			}
			reply.Vectors[found] = raw
			found++
			return nil
		})
	}
	err := r.Object(func(name []byte) error {
		switch string(name) {
		case "embedding":
			return one()
		case "embeddings":
			return r.Array(func(int) error { return one() })
		case "usageMetadata":
			reply.Usage = embedUsage(r.Skip())
		case "error":
			return vector.ErrorInReply(Embeddings, r.Skip())
		}
		return nil
	})
	return vector.Complete(r, reply, found, err)
}
