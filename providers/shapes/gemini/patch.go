package gemini

import (
	"bytes"
	"encoding/json"
	"strconv"
	"strings"

	"github.com/tidwall/gjson"
	"github.com/tidwall/sjson"

	"stagedoor/providers/dialogue"
	"stagedoor/providers/schema"
	"stagedoor/providers/shapes"
)

// Patch sends a client's own bytes on. Only three things in them ever change:
// a redundant model name, an answer's form the model does not know, and the
// carriers this gateway made (translation.md 3).
func (shape) Patch(body []byte, in shapes.Inbound, head shapes.Head, t dialogue.Target, rep *dialogue.Report, env *dialogue.Env) (shapes.Call, error) {
	body = renameModel(body, t)
	if head.Structured {
		body = degrade(body, t, rep)
	}
	if bytes.Contains(body, []byte(`"sd1.`)) {
		body = unseal(body)
	}
	return call(t.Model, in.Stream, body), nil
}

// edit applies a change; sjson never writes to the bytes it is given. A path
// that does not fit leaves everything as it was.
func edit(body []byte, changed []byte, err error) []byte {
	if err != nil {
		return body
	}
	return changed
}

func renameModel(body []byte, t dialogue.Target) []byte {
	if !gjson.GetBytes(body, "model").Exists() {
		return body
	}
	changed, err := sjson.SetBytes(body, "model", strings.TrimPrefix(modelPath(t.Model), "/v1beta/"))
	return edit(body, changed, err)
}

// degrade takes the constraint on the answer out if the target cannot keep it.
func degrade(body []byte, t dialogue.Target, rep *dialogue.Report) []byte {
	d := decoder{req: &dialogue.Request{}}
	doc := gjson.ParseBytes(body)
	d.output(field(doc, "generationConfig"))
	if d.req.Output.Mode == dialogue.OutputText || schema.Decide(d.req.Output, t, rep).Mode != dialogue.OutputText {
		return body
	}
	doc.ForEach(func(key, v gjson.Result) bool {
		if camel(key.Str) != "generationConfig" {
			return true
		}
		v.ForEach(func(inner, _ gjson.Result) bool {
			switch camel(inner.Str) {
			case "responseMimeType", "responseSchema", "responseJsonSchema":
				changed, err := sjson.DeleteBytes(body, gjson.Escape(key.Str)+"."+gjson.Escape(inner.Str))
				body = edit(body, changed, err)
			}
			return true
		})
		return true
	})
	return body
}

// unseal removes the carriers of other vendors' reasoning: the thought they
// stand on with them, of other parts only the signature. A content that loses
// its last part goes whole, for an empty one is refused.
func unseal(body []byte) []byte {
	doc := gjson.ParseBytes(body)
	contents := doc.Get("contents")
	if !contents.IsArray() {
		return body
	}
	list := contents.Array()
	for i := len(list) - 1; i >= 0; i-- {
		parts := field(list[i], "parts")
		if !parts.IsArray() || !strings.Contains(parts.Raw, `"sd1.`) {
			continue
		}
		body = setParts(body, "contents."+strconv.Itoa(i), unsealedParts(parts))
	}
	return body
}

func setParts(body []byte, content string, parts []json.RawMessage) []byte {
	if len(parts) == 0 {
		changed, err := sjson.DeleteBytes(body, content)
		return edit(body, changed, err)
	}
	joined := append([]byte{'['}, bytes.Join(bytesOf(parts), []byte{','})...)
	changed, err := sjson.SetRawBytes(body, content+".parts", append(joined, ']'))
	return edit(body, changed, err)
}

func bytesOf(list []json.RawMessage) [][]byte {
	out := make([][]byte, len(list))
	for i, v := range list {
		out[i] = v
	}
	return out
}

// unsealedParts are the parts without sealed carriers. The increments of a
// thought go with the carrier that ends them.
func unsealedParts(parts gjson.Result) (kept []json.RawMessage) {
	thought := 0 // unsigned thoughts at the end of kept
	parts.ForEach(func(_, v gjson.Result) bool {
		p := readPart(v)
		if !dialogue.Sealed(p.signature) {
			kept = append(kept, raw(v))
			thought++
			if !p.thought || p.signature != "" {
				thought = 0
			}
			return true
		}
		if p.thought {
			kept = kept[:len(kept)-thought]
		} else if bare := withoutSignature(v); p.data != "text" || p.value.Str != "" {
			kept = append(kept, bare)
		}
		thought = 0
		return true
	})
	return kept
}

func withoutSignature(v gjson.Result) json.RawMessage {
	out := v.Raw
	v.ForEach(func(key, _ gjson.Result) bool {
		if camel(key.Str) == "thoughtSignature" {
			if cut, err := sjson.Delete(out, gjson.Escape(key.Str)); err == nil {
				out = cut
			}
		}
		return true
	})
	return json.RawMessage(out)
}
