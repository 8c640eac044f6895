package schema

import "strings"

// longestNote bounds the value of a removed keyword that is repeated in a description.
const longestNote = 400

// notes holds removed keywords for the description, because a model may follow a rule that its
// provider does not enforce.
type notes []string

// add notes a removed keyword with its value, unless the value is too long to help.
func (ns *notes) add(keyword string, value *node) {
	if v := value.encode(); len(v) <= longestNote {
		*ns = append(*ns, keyword+": "+string(v))
	}
}

// describe appends the notes to the description of a schema.
func (ns notes) describe(n *node) {
	if len(ns) == 0 {
		return
	}
	note := "{" + strings.Join(ns, ", ") + "}"
	if have := n.get("description").str(); have != "" {
		note = have + "\n\n" + note
	}
	n.put("description", text(note))
}
