package schema

import (
	"encoding/json"
	"slices"
	"strings"
)

// ForGemini converts a JSON Schema, or a schema that is Gemini's already, to Gemini's OpenAPI
// subset: references are inlined, conjunctions are merged, types are in upper case, and null
// becomes nullable. Keywords that the subset does not have are repeated in descriptions; lossy
// reports whether one of them was a constraint. A schema that contains itself or is beyond the
// limits ends in an object without properties.
func ForGemini(raw json.RawMessage) (out json.RawMessage, lossy bool) {
	root, ok := parse(raw)
	if !ok || root.kind != '{' {
		return openObject().encode(), true
	}
	w := geminiWalk{walk: newWalk(root), ordering: true}
	return w.schema(root, 0).encode(), w.lossy
}

// openObject returns a schema that allows every object, the end of a schema that cannot be
// expressed.
func openObject() *node { return object(member{"type", text("OBJECT")}) }

// geminiWalk converts a schema to Gemini's Schema object, the subset of OpenAPI that responseSchema and parameters
// take.
type geminiWalk struct {
	*walk
	ordering bool // write propertyOrdering, because a protobuf map loses the order
}

// schema converts one schema and everything below it.
func (w *geminiWalk) schema(n *node, depth int) *node {
	if n.kind != '{' {
		w.lossy = w.lossy || n.kind != 't'
		return object()
	}
	mark := len(w.active)
	defer w.leave(mark)
	n = w.expand(n, depth, never)
	if n == nil {
		w.lossy = true
		return openObject()
	}
	g := geminiNode{walk: w, in: n, out: object(), depth: depth}
	return g.convert()
}

// geminiNode is the conversion of one schema without $ref and allOf.
type geminiNode struct {
	walk     *geminiWalk
	in, out  *node
	depth    int
	nullable bool
	removed  notes
}

// convert converts the alternatives of a schema, or the schema itself if it has none.
// null among the alternatives becomes the flag nullable. If one alternative is left, it is merged
// into the schema, because an anyOf of one branch may not stand beside the other keywords.
func (g *geminiNode) convert() *node {
	branches, key := g.branches()
	if key == "" {
		return g.plain()
	}
	base := g.in.without(key)
	kept := slices.DeleteFunc(slices.Clone(branches), isNull)
	if len(kept) < len(branches) {
		base.put("nullable", boolean(true))
	}
	switch len(kept) {
	case 0:
		g.in = base
		return g.plain()
	case 1:
		return g.walk.schema(narrowed(base, kept[0]), g.depth+1)
	}
	// The vendor refuses other keywords beside anyOf, so they are repeated in every branch.
	out := array()
	g.walk.copies(base, len(kept))
	for _, b := range kept {
		out.items = append(out.items, g.walk.schema(narrowed(base, b), g.depth+1))
	}
	return object(member{"anyOf", out})
}

// branches returns the alternatives of a schema and their keyword. A list of types counts as a
// list of alternatives.
func (g *geminiNode) branches() ([]*node, string) {
	if branches, key := g.in.alternatives(); key != "" {
		return branches, key
	}
	t := g.in.get("type")
	if t == nil || t.kind != '[' {
		return nil, ""
	}
	var out []*node
	for _, name := range t.strings() {
		out = append(out, object(member{"type", text(name)}))
	}
	return out, "type"
}

// isNull reports whether a schema allows only null.
func isNull(n *node) bool {
	if c := n.get("const"); c != nil {
		return c.kind == 'n'
	}
	if e := n.get("enum"); e != nil && len(e.items) > 0 {
		return all(e.items, func(v *node) bool { return v.kind == 'n' })
	}
	return strings.EqualFold(n.get("type").str(), "null")
}

// plain converts a schema that has no alternatives.
func (g *geminiNode) plain() *node {
	for _, m := range g.in.members {
		g.member(m)
	}
	g.finish()
	return g.out
}

// member converts one keyword, or notes that it was removed.
func (g *geminiNode) member(m member) {
	if slices.Contains(geminiKept, m.name) {
		g.out.add(m.name, m.value)
		return
	}
	below := func(n *node) *node { return g.walk.schema(n, g.depth+1) }
	switch m.name {
	case "type":
		if name := strings.ToUpper(m.value.str()); slices.Contains(geminiTypes, name) {
			g.out.put("type", text(name))
		}
		return
	case "nullable":
		g.nullable = g.nullable || m.value.kind == 't'
		return
	case "properties":
		if m.value.kind == '{' {
			g.out.add(m.name, replaced(m.value, named, below))
		}
		return
	case "propertyOrdering":
		return // written anew
	case "items", "prefixItems":
		g.items(m.value, below)
		if m.name == "items" && m.value.kind != '[' {
			return
		}
	case "const":
		if g.in.get("enum") == nil {
			g.enum(array(m.value))
		}
		return
	case "enum":
		g.enum(m.value)
		return
	case "format":
		if slices.Contains(geminiFormats, m.value.str()) {
			g.out.add(m.name, m.value)
			return
		}
	case "additionalProperties":
		// The vendor's objects are closed by default, so only a schema here would be lost.
		if m.value.kind != '{' || len(m.value.members) == 0 {
			return
		}
	}
	if constraints[m.name] {
		g.walk.lossy = true
		g.removed.add(m.name, m.value)
	}
}

// geminiKept are the keywords that mean the same in the subset.
var geminiKept = []string{"title", "description", "default", "example", "pattern", "minimum", "maximum", "minLength",
	"maxLength", "minItems", "maxItems", "minProperties", "maxProperties", "required"}

// geminiTypes and geminiFormats are the vendor's closed sets. It refuses a schema with any other.
var geminiTypes = []string{"STRING", "NUMBER", "INTEGER", "BOOLEAN", "ARRAY", "OBJECT", "NULL"}

var geminiFormats = []string{"enum", "date-time", "int32", "int64", "float", "double"}

// items converts the schema of an array's items. The subset has no tuples, so every item of a
// tuple may have any of its schemas.
// A tuple whose places all have the same schema is an ordinary array and loses nothing but its
// length.
func (g *geminiNode) items(v *node, below func(*node) *node) {
	if v.kind != '[' {
		g.out.put("items", below(v))
		return
	}
	if g.out.get("items") != nil || len(v.items) == 0 {
		return
	}
	if all(v.items[1:], v.items[0].same) {
		g.out.add("items", below(v.items[0]))
		return
	}
	g.out.add("items", below(object(member{"anyOf", v})))
}

// enum converts an enumeration. The subset allows only strings that are not empty.
func (g *geminiNode) enum(v *node) {
	var words []string
	for _, item := range v.items {
		switch {
		case item.kind == 'n':
			g.nullable = true
		case item.kind == '"' && item.str() != "":
			words = append(words, item.str())
		default:
			g.walk.lossy = true
			g.removed.add("enum", v)
			g.typed(jsonType(item))
			return
		}
	}
	if len(words) > 0 {
		g.out.add("enum", texts(words))
		g.typed("STRING")
	}
}

// jsonType returns the vendor's type for a value.
func jsonType(n *node) string {
	switch n.kind {
	case '"':
		return "STRING"
	case '0':
		return "NUMBER"
	case 't', 'f':
		return "BOOLEAN"
	case '[':
		return "ARRAY"
	}
	return "OBJECT"
}

// typed adds a type if the schema has none.
func (g *geminiNode) typed(name string) {
	if g.out.get("type") == nil {
		g.out.add("type", text(name))
	}
}

// finish adds the keywords that the vendor requires and removes those that it refuses.
// Names in required without a property are legal in JSON Schema and refused by the vendor. Their
// removal is no loss, because the subset closes its objects.
func (g *geminiNode) finish() {
	properties := g.out.get("properties")
	if properties != nil {
		g.typed("OBJECT")
	}
	if g.out.get("items") != nil {
		g.typed("ARRAY")
	}
	if g.out.get("type").str() == "ARRAY" && g.out.get("items") == nil {
		g.out.add("items", object())
	}
	if required := g.out.get("required"); required != nil {
		names := slices.DeleteFunc(required.strings(), func(name string) bool { return properties.get(name) == nil })
		g.out = g.out.without("required")
		if len(names) > 0 {
			g.out.add("required", texts(names))
		}
	}
	if g.walk.ordering && properties != nil && len(properties.members) > 1 {
		g.out.add("propertyOrdering", ordering(properties))
	}
	if g.nullable {
		g.out.add("nullable", boolean(true))
	}
	g.removed.describe(g.out)
}

// ordering returns the names of the properties in their sequence.
func ordering(properties *node) *node {
	out := array()
	for _, m := range properties.members {
		out.items = append(out.items, text(m.name))
	}
	return out
}
