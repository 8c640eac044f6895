package schema

import (
	"encoding/json"
	"slices"
)

// ForGeminiJSON converts a JSON Schema for responseJsonSchema and parametersJsonSchema: references
// to $defs stay, all others are inlined, and keywords that the vendor does not list move to the
// description. lossy reports whether one of them was a constraint.
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

// schema converts one schema and everything below it.
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
	var removed notes
	for _, m := range withoutNull(n).members {
		w.member(out, m, depth, &removed)
	}
	out.nameType()
	out.requireKnown()
	if out.hasType("array") && out.get("items") == nil && out.get("prefixItems") == nil {
		out.add("items", object()) // the vendor refuses an array without
	}
	removed.describe(out)
	return out
}

// below returns the conversion of the schemas one level down.
func (w *geminiJSONWalk) below(depth int) func(*node) *node {
	return func(n *node) *node { return w.schema(n, depth+1) }
}

// geminiJSONKeywords are the keywords that the vendor lists for its two JSON Schema parameters.
var geminiJSONKeywords = []string{
	"$defs", "type", "format", "title", "description", "enum", "items", "prefixItems", "minItems", "maxItems",
	"minimum", "maximum", "anyOf", "oneOf", "properties", "additionalProperties", "required", "propertyOrdering",
}

// member converts one keyword into out, or drops it.
func (w *geminiJSONWalk) member(out *node, m member, depth int, removed *notes) {
	switch {
	case m.name == "additionalProperties" && m.value.kind != '{', m.name == "items" && m.value.kind == 'f':
		out.add(m.name, m.value)
	case m.name == "items" && m.value.kind == '[':
		out.add("prefixItems", replaced(m.value, listed, w.below(depth)))
	case m.name == "const" && scalar(m.value):
		out.put("enum", array(m.value))
	case m.name == "enum" && (out.get("enum") != nil || !all(m.value.items, scalar)):
		w.drop(m, removed)
	case slices.Contains(geminiJSONKeywords, m.name):
		out.add(m.name, replaced(m.value, positions[m.name], w.below(depth)))
	default:
		w.drop(m, removed)
	}
}

// drop notes that a keyword is left out, if it is a constraint.
func (w *geminiJSONWalk) drop(m member, removed *notes) {
	if constraints[m.name] {
		w.lossy = true
		removed.add(m.name, m.value)
	}
}

// withoutNull splits an enumeration with null into two alternatives: null, and an enumeration of
// the other values. The vendor allows only strings and numbers in an enumeration.
func withoutNull(n *node) *node {
	enum := n.get("enum")
	if enum == nil || n.get("anyOf") != nil || n.get("oneOf") != nil {
		return n
	}
	null := func(v *node) bool { return v.kind == 'n' }
	values := slices.DeleteFunc(slices.Clone(enum.items), null)
	if len(values) == len(enum.items) || len(values) == 0 || !all(values, scalar) {
		return n
	}
	types := n.get("type").strings()
	if n.get("type") != nil && !slices.Contains(types, "null") {
		n = n.without("enum")
		n.add("enum", array(values...))
		return n
	}
	value := n.without("enum", "type", "title", "description", "$defs")
	if types = slices.DeleteFunc(types, func(t string) bool { return t == "null" }); len(types) == 1 {
		value.add("type", text(types[0]))
	} else if len(types) > 1 {
		value.add("type", texts(types))
	}
	value.add("enum", array(values...))
	out := object()
	for _, name := range []string{"title", "description", "$defs"} {
		if v := n.get(name); v != nil {
			out.add(name, v)
		}
	}
	out.add("anyOf", array(value, object(member{"type", text("null")})))
	return out
}

// requireKnown removes names from required that are not properties, because the vendor refuses
// them.
func (n *node) requireKnown() {
	required, properties := n.get("required"), n.get("properties")
	if required == nil || properties == nil {
		return
	}
	known := slices.DeleteFunc(required.strings(), func(name string) bool { return properties.get(name) == nil })
	if len(known) < len(required.items) {
		n.put("required", texts(known))
	}
}

// scalar reports whether the vendor allows a value in an enum.
func scalar(n *node) bool { return n.kind == '"' || n.kind == '0' }
