package chunks

import (
	"bytes"

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
		edits = append(edits, fields.Edit{Start: end, End: end, With: []byte(`,"stream_options":{"include_usage":true}`)})
	}
	return edits
}

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
