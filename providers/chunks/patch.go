package chunks

import (
	"bytes"
	"errors"

	"stagedoor/providers/dialogue"
	"stagedoor/providers/fields"
	"stagedoor/providers/jsonw"
	"stagedoor/providers/shapes"
)

// Patch returns the edits of a client's body that both shapes need: the model's name at the
// provider, and include_usage in streams, because the bill depends on the usage. The edits add
// a member only after the last of members.
func Patch(body []byte, members []fields.Member, head shapes.Head, t dialogue.Target) []fields.Edit {
	var edits []fields.Edit
	ask := head.Stream && !head.IncludeUsage
	for _, m := range members {
		value := body[m.Value:m.End]
		switch {
		case m.Name == "model" && head.Model != t.Model:
			edits = append(edits, fields.Edit{Start: m.Value, End: m.End, With: jsonw.AppendString(nil, t.Model)})
		case m.Name == "stream_options" && ask:
			edits = append(edits, fields.Edit{Start: m.Value, End: m.End, With: withUsage(value)})
			ask = false
		}
	}
	if ask && len(members) > 0 {
		end := members[len(members)-1].End
		edits = append(
			edits,
			fields.Edit{Start: end, End: end, With: []byte(`,"stream_options":{"include_usage":true}`)},
		)
	}
	return edits
}

// PatchPlain makes the same edits in a request whose head is Plain, without reading all of it.
func PatchPlain(body []byte, head shapes.Head, t dialogue.Target) []byte {
	var edits []fields.Edit
	if head.Stream && !head.IncludeUsage {
		first := bytes.IndexByte(body, '{') + 1
		edits = append(
			edits,
			fields.Edit{Start: first, End: first, With: []byte(`"stream_options":{"include_usage":true},`)},
		)
	}
	if head.Model != t.Model {
		if e, ok := modelEdit(body, t.Model); ok {
			edits = append(edits, e)
		}
	}
	return fields.Splice(body, edits)
}

// modelEdit returns the edit that replaces the model in an object, if it has one.
func modelEdit(text []byte, model string) (e fields.Edit, ok bool) {
	r := fields.NewLenientReader(text)
	defer r.Free()
	if r.Peek() != fields.Object {
		return e, false
	}
	_ = r.Object(func(name []byte) error {
		if string(name) != "model" || r.Peek() != fields.String {
			return nil
		}
		start := r.Pos()
		r.Skip()
		e, ok = fields.Edit{Start: start, End: r.Pos(), With: jsonw.AppendString(nil, model)}, true
		return errFound
	})
	return e, ok
}

// errFound ends a walk over an object early.
var errFound = errors.New("found")

// withUsage returns the client's stream_options, an object or null, with include_usage true.
func withUsage(options []byte) []byte {
	if !bytes.HasPrefix(options, []byte("{")) {
		return []byte(`{"include_usage":true}`)
	}
	members := fields.Members(options)
	for _, m := range members {
		if m.Name == "include_usage" {
			return fields.Splice(options, []fields.Edit{{Start: m.Value, End: m.End, With: []byte("true")}})
		}
	}
	added := []byte(`"include_usage":true`)
	if len(members) > 0 {
		added = append(added, ',')
	}
	return fields.Splice(options, []fields.Edit{{Start: 1, End: 1, With: added}})
}
