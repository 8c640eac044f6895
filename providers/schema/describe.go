package schema

import "strings"

// longestNote is how much of a removed keyword's value is worth repeating.
const longestNote = 400

// notes are keywords that had to go, kept for the description: a model that is
// not bound by a rule may still follow it.
type notes []string

func (ns *notes) add(keyword string, value *node) {
	if v := value.encode(); len(v) <= longestNote {
		*ns = append(*ns, keyword+": "+string(v))
	}
}

// describe writes the notes at the end of the schema's description.
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
