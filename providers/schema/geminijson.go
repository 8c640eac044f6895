package schema

import (
	"encoding/json"
	"slices"
)

// ForGeminiJSON rewrites a JSON Schema for responseJsonSchema and
// parametersJsonSchema: references to $defs stay, all others are inlined, and
// keywords the vendor does not list move to the description. lossy reports
// whether one of them was a constraint.
func ForGeminiJSON(raw json.RawMessage) (out json.RawMessage, lossy bool) {
	root, ok := parse(raw)
	if !ok || root.kind != '{' {
		return json.RawMessage(`{"type":"object"}`), true
	}
	w := geminiJSONWalk{newWalk(root)}
	return w.schema(root, 0).encode(), w.lossy
}

type geminiJSONWalk struct{ *walk }

// keep reports whether a $ref may stay as it is.
func (w *geminiJSONWalk) keep(ref string) bool {
	return defined(ref, "$defs") && w.root.resolve(ref) != nil
}

func (w *geminiJSONWalk) schema(n *node, depth int) *node {
	if n.kind != '{' {
		w.lossy = w.lossy || n.kind != 't'
		return object()
	}
	mark := len(w.active)
	defer w.leave(mark)
	n = w.expand(n, depth, w.keep)
	if n == nil {
		w.lossy = true
		return object(member{"type", text("object")})
	}
	if ref := n.get("$ref"); ref != nil {
		out := object(member{"$ref", ref})
		if defs := n.get("$defs"); defs != nil {
			out.add("$defs", replaced(defs, named, w.below(depth)))
		}
		return out
	}
	out := object()
	var gone notes
	for _, m := range n.members {
		w.member(out, m, depth, &gone)
	}
	out.nameType()
	if out.hasType("array") && out.get("items") == nil && out.get("prefixItems") == nil {
		out.add("items", object()) // the vendor refuses an array without
	}
	gone.describe(out)
	return out
}

func (w *geminiJSONWalk) below(depth int) func(*node) *node {
	return func(n *node) *node { return w.schema(n, depth+1) }
}

var geminiJSONKeywords = []string{"$defs", "type", "format", "title", "description", "enum", "items", "prefixItems", "minItems", "maxItems",
	"minimum", "maximum", "anyOf", "oneOf", "properties", "additionalProperties", "required", "propertyOrdering"}

func (w *geminiJSONWalk) member(out *node, m member, depth int, gone *notes) {
	switch {
	case m.name == "additionalProperties" && m.value.kind != '{', m.name == "items" && m.value.kind == 'f':
		out.add(m.name, m.value)
	case m.name == "items" && m.value.kind == '[':
		out.add("prefixItems", replaced(m.value, listed, w.below(depth)))
	case m.name == "const" && scalar(m.value):
		out.put("enum", array(m.value))
	case m.name == "enum" && (out.get("enum") != nil || !all(m.value.items, scalar)):
		w.drop(m, gone)
	case slices.Contains(geminiJSONKeywords, m.name):
		out.add(m.name, replaced(m.value, positions[m.name], w.below(depth)))
	default:
		w.drop(m, gone)
	}
}

func (w *geminiJSONWalk) drop(m member, gone *notes) {
	if constraints[m.name] {
		w.lossy = true
		gone.add(m.name, m.value)
	}
}

// scalar reports whether a value may stand in an enum there.
func scalar(n *node) bool { return n.kind == '"' || n.kind == '0' }
