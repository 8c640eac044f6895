package dialogue

import "strings"

// DescriptionAsFunction returns the description of a tool for an upstream that has functions only. For a custom tool it
// adds, in words for the model, what a function cannot express: that the property of that name holds the whole input,
// and the grammar of the input.
func (t *Tool) DescriptionAsFunction(property string) string {
	if t.Kind != CustomTool {
		return t.Description
	}
	lines := []string{t.Description, `Put the whole input of this tool, as it is, into "` + property + `".`}
	grammar := view(t.Format)
	if inner := grammar.Get("grammar"); inner.IsObject() {
		grammar = inner
	}
	if definition := grammar.Get("definition").String(); definition != "" {
		lines = append(lines, "It must follow this "+strings.TrimSpace(grammar.Get("syntax").String()+" grammar")+":",
			definition)
	}
	return strings.TrimSpace(strings.Join(lines, "\n"))
}
