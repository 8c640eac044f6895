package chunks

import (
	"bytes"
	"errors"

	"stagedoor/providers/dialogue"
	"stagedoor/providers/fields"
	"stagedoor/providers/jsonw"
	"stagedoor/providers/shapes"
)

// Patch lists the edits that both shapes make to a client's bytes: the model's
// name, and usage asked for in streams, because the gateway accounts by it. No
// edit adds or removes a member of the list members but at the end.
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

// PatchPlain makes the same edits to a request whose head is Plain, without a
// look at the whole of it.
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
		if e, ok := renamed(body, t.Model); ok {
			edits = append(edits, e)
		}
	}
	return fields.Splice(body, edits)
}

// renamed is the edit that gives the object text another model, if it names one.
func renamed(text []byte, model string) (e fields.Edit, ok bool) {
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

// errFound ends a walk early.
var errFound = errors.New("found")

// withUsage sets include_usage in the client's stream_options, an object or null.
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
