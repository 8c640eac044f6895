package gemini

import (
	"bytes"
	"encoding/json"
	"slices"
	"strings"

	"github.com/tidwall/gjson"
	"github.com/tidwall/sjson"

	"stagedoor/providers/dialogue"
	"stagedoor/providers/fields"
	"stagedoor/providers/schema"
	"stagedoor/providers/shapes"
)

// Patch implements shapes.Passthrough. It changes only what the upstream would refuse: the model's
// name in the body, the form of the answer if the model cannot keep it, signatures that this
// gateway sealed or that another model gave, results that were sent twice, and missing signatures
// of calls.
// The checks with bytes.Count and bytes.Contains look for names in the raw body. They may find a
// name inside a text and cost a search that changes nothing, but they never miss one, and most
// requests need no search at all.
func (shape) Patch(
	body []byte, in shapes.Params, head shapes.Head, t dialogue.Target, rep *dialogue.Report, env *dialogue.Env,
) (shapes.Call, error) {
	body = renameModel(body, t)
	if head.Structured {
		body = degrade(body, t, rep)
	}
	if t.OwnReasoning || dialogue.HasSeal(body) {
		body = unseal(body, func(signature string) bool {
			return signature != "" && (dialogue.Sealed(signature) || !env.Accepts(t, signature))
		})
	}
	if bytes.Count(body, []byte(`functionResponse"`)) > bytes.Count(body, []byte(`functionCall"`)) {
		body = fields.Splice(body, editsOfParts(body, repeatedResponses))
	}
	calls := bytes.Contains(body, []byte(`functionCall"`)) || bytes.Contains(body, []byte(`function_call"`))
	if calls && t.Caps.CallSignatures {
		body = signCalls(body, rep)
	}
	return call(t.Model, in.Stream, body), nil
}

// signCalls gives the first call of each step the documented stand-in for a signature if it has
// none, because another model made the call. Steps that have one stay as they are.
func signCalls(body []byte, rep *dialogue.Report) []byte {
	edits := editsOfParts(body, signFirst)
	rep.LoseIf(len(edits) > 0, "thought_signature:placeholder")
	return fields.Splice(body, edits)
}

// editsOfParts returns the edits that edit makes of the parts of each content.
func editsOfParts(body []byte, edit func(parts []byte) []fields.Edit) (edits []fields.Edit) {
	for _, m := range fields.Members(body) {
		if m.Name != "contents" {
			continue
		}
		for _, content := range fields.Elements(body[m.Value:m.End]) {
			at := m.Value + content.Value
			for _, inner := range fields.Members(body[at : m.Value+content.End]) {
				if camel(inner.Name) != "parts" {
					continue
				}
				for _, e := range edit(body[at+inner.Value : at+inner.End]) {
					e.Start, e.End = e.Start+at+inner.Value, e.End+at+inner.Value
					edits = append(edits, e)
				}
			}
		}
	}
	return edits
}

// repeatedResponses returns the edits that remove responses to a call which an equal one before them answers. Gemini
// CLI sends each response twice after it has resumed a session, and the vendor wants as many responses as calls.
func repeatedResponses(parts []byte) []fields.Edit {
	if !fields.View(parts).IsArray() {
		return nil
	}
	all, seen := fields.Elements(parts), make(map[string]bool)
	return fields.Drop(all, func(i int) bool {
		p := readPart(fields.View(parts[all[i].Value:all[i].End]))
		if p.data != "functionResponse" || str(field(p.value, "id")) == "" {
			return false
		}
		repeated := seen[p.value.Raw]
		seen[p.value.Raw] = true
		return repeated
	})
}

// signFirst returns the edit that signs the first call among parts.
func signFirst(parts []byte) []fields.Edit {
	if fields.View(parts).IsArray() {
		for _, m := range fields.Elements(parts) {
			switch p := readPart(fields.View(parts[m.Value:m.End])); {
			case p.data != "functionCall":
			case p.signature != "":
				return nil
			default:
				after := m.Value + len("{")
				return []fields.Edit{{Start: after, End: after,
					With: []byte(`"thoughtSignature":"` + anySignature + `",`)}}
			}
		}
	}
	return nil
}

// edit returns changed, or body if the edit failed, because a member of an unexpected form is left
// as it is.
func edit(body []byte, changed []byte, err error) []byte {
	if err != nil {
		return body
	}
	return changed
}

// renameModel replaces the model in the body, which must be that of the path if it is given.
// Most bodies have no model, because it stands in the path. It is not added to those that lack it.
func renameModel(body []byte, t dialogue.Target) []byte {
	if !gjson.GetBytes(body, "model").Exists() {
		return body
	}
	changed, err := sjson.SetBytes(body, "model", strings.TrimPrefix(modelPath(t.Model), "/v1beta/"))
	return edit(body, changed, err)
}

// degrade removes the form of the answer if the target cannot keep it.
// The decision is the one that the encoder makes, from the same decoder and schema.DecideOutput, so
// that a request is degraded alike whether it passes through or is written anew.
func degrade(body []byte, t dialogue.Target, rep *dialogue.Report) []byte {
	d := decoder{req: &dialogue.Request{}}
	doc := fields.View(body)
	d.output(field(doc, "generationConfig"))
	if d.req.Output.Mode == dialogue.OutputText ||
		schema.DecideOutput(d.req.Output, schema.OpenAPI, t, rep).Mode != dialogue.OutputText {
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

// unseal removes the signatures that refused reports. On a thought the whole thought goes, on
// another part only the signature. A content that loses its last part goes too, because the vendor
// refuses an empty one.
func unseal(body []byte, refused func(signature string) bool) []byte {
	for _, m := range fields.Members(body) {
		if m.Name == "contents" {
			return fields.Splice(body,
				[]fields.Edit{{Start: m.Value, End: m.End, With: unsealedContents(body[m.Value:m.End], refused)}})
		}
	}
	return body
}

// unsealedContents changes all contents in one pass, however many there are.
func unsealedContents(contents []byte, refused func(string) bool) []byte {
	all := fields.Elements(contents)
	emptied := make(map[int]bool)
	var edits []fields.Edit
	for i, m := range all {
		content := contents[m.Value:m.End]
		if !bytes.Contains(content, []byte(`hought`)) {
			continue
		}
		for _, inner := range fields.Members(content) {
			parts := fields.View(content[inner.Value:inner.End])
			if camel(inner.Name) != "parts" || !parts.IsArray() {
				continue
			}
			kept := unsealedParts(parts, refused)
			if emptied[i] = len(kept) == 0; !emptied[i] {
				with := append([]byte{'['}, bytes.Join(bytesOf(kept), []byte{','})...)
				edits = append(edits,
					fields.Edit{Start: m.Value + inner.Value, End: m.Value + inner.End, With: append(with, ']')})
			}
		}
	}
	return fields.Splice(contents, append(edits, fields.Drop(all, func(i int) bool { return emptied[i] })...))
}

// bytesOf returns the values as byte slices, without copying them.
func bytesOf(list []json.RawMessage) [][]byte {
	out := make([][]byte, len(list))
	for i, v := range list {
		out[i] = v
	}
	return out
}

// unsealedParts returns the parts without sealed carriers. The increments of a thought, which are unsigned, go with the
// carrier that ends them. A sealed carrier on text or a call also ends the thought that stands before it.
func unsealedParts(parts gjson.Result, refused func(string) bool) (kept []json.RawMessage) {
	from, to := 0, 0 // the last unsigned thoughts in kept
	parts.ForEach(func(_, v gjson.Result) bool {
		p := readPart(v)
		drop := refused(p.signature)
		if drop && (p.thought && to == len(kept) || !p.thought && dialogue.Sealed(p.signature)) {
			kept = slices.Delete(kept, from, to)
		}
		switch {
		case !drop:
			kept = append(kept, raw(v))
		case !p.thought && (p.data != "text" || p.value.Str != ""):
			kept = append(kept, withoutSignature(v))
		}
		switch {
		case p.signature != "":
			from, to = len(kept), len(kept)
		case p.thought:
			if to != len(kept)-1 {
				from = len(kept) - 1
			}
			to = len(kept)
		}
		return true
	})
	return kept
}

// withoutSignature returns a part without its thoughtSignature.
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
