package schema

import "slices"

// position says where the value of a keyword contains schemas.
type position uint8

const (
	nowhere position = iota
	itself           // the value is a schema
	listed           // the value is an array of schemas
	named            // the members of the value are schemas
	either           // a schema, or an array of them (items before 2020-12)
)

// positions has the keywords of JSON Schema, of all drafts since 7, whose values contain schemas.
var positions = map[string]position{
	"properties":            named,
	"patternProperties":     named,
	"dependentSchemas":      named,
	"$defs":                 named,
	"definitions":           named,
	"anyOf":                 listed,
	"oneOf":                 listed,
	"allOf":                 listed,
	"prefixItems":           listed,
	"items":                 either,
	"additionalItems":       itself,
	"additionalProperties":  itself,
	"not":                   itself,
	"if":                    itself,
	"then":                  itself,
	"else":                  itself,
	"contains":              itself,
	"propertyNames":         itself,
	"unevaluatedItems":      itself,
	"unevaluatedProperties": itself,
	"contentSchema":         itself,
}

// children calls f for every schema directly below a schema, until f returns false.
func (n *node) children(f func(*node) bool) bool {
	for _, m := range n.members {
		at := positions[m.name]
		if at == either {
			at = itself
			if m.value.kind == '[' {
				at = listed
			}
		}
		switch {
		case at == itself && !f(m.value):
			return false
		case at == listed && !all(m.value.items, f):
			return false
		case at == named:
			for _, sub := range m.value.members {
				if !f(sub.value) {
					return false
				}
			}
		}
	}
	return true
}

// all reports whether f is true of every node.
func all(nodes []*node, f func(*node) bool) bool {
	return !slices.ContainsFunc(nodes, func(n *node) bool { return !f(n) })
}

// rewrite returns a copy of a schema in which every schema directly below it is replaced by the
// result of f.
func (n *node) rewrite(f func(*node) *node) *node {
	out := &node{kind: n.kind, raw: n.raw, items: n.items}
	for _, m := range n.members {
		out.add(m.name, replaced(m.value, positions[m.name], f))
	}
	return out
}

// replaced returns the value of a keyword with f applied to the schemas in it.
func replaced(v *node, at position, f func(*node) *node) *node {
	if at == either {
		at = itself
		if v.kind == '[' {
			at = listed
		}
	}
	switch {
	case at == itself:
		return f(v)
	case at == listed && v.kind == '[':
		out := array()
		for _, item := range v.items {
			out.items = append(out.items, f(item))
		}
		return out
	case at == named && v.kind == '{':
		out := object()
		for _, m := range v.members {
			out.add(m.name, f(m.value))
		}
		return out
	}
	return v
}

// annotations lists the keywords that describe a schema and do not constrain values.
var annotations = setOf(
	"title", "description", "default", "example", "examples", "deprecated", "readOnly", "writeOnly", "$comment",
	"$schema", "$id", "id", "$anchor", "$vocabulary", "$defs", "definitions", "propertyOrdering",
)

// constraints lists the keywords whose removal weakens a schema. Other keywords that a rewrite
// does not know are extensions, and their removal is not recorded.
var constraints = setOf(
	"minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum", "multipleOf", "minLength", "maxLength",
	"pattern", "format", "minItems", "maxItems", "uniqueItems", "contains", "minContains", "maxContains",
	"prefixItems", "additionalItems", "unevaluatedItems", "patternProperties", "propertyNames", "minProperties",
	"maxProperties", "dependentRequired", "dependentSchemas", "dependencies", "additionalProperties",
	"unevaluatedProperties", "not", "if", "then", "else", "allOf", "anyOf", "oneOf", "const", "enum",
	"contentEncoding", "contentMediaType", "contentSchema", "$dynamicRef", "$recursiveRef", "items",
)

// setOf returns the set of some keywords.
func setOf(keywords ...string) map[string]bool {
	set := make(map[string]bool, len(keywords))
	for _, k := range keywords {
		set[k] = true
	}
	return set
}

// hasType reports whether the type of a schema is name or a list with name.
func (n *node) hasType(name string) bool {
	return slices.Contains(n.get("type").strings(), name)
}

// isObject reports whether a schema describes objects.
func (n *node) isObject() bool {
	return n.hasType("object") || n.get("properties") != nil
}

// nameType adds the type that the keywords imply at the front, because vendors require it.
func (n *node) nameType() {
	implied := ""
	switch {
	case n.get("type") != nil:
		return
	case n.get("properties") != nil:
		implied = "object"
	case n.get("items") != nil || n.get("prefixItems") != nil:
		implied = "array"
	default:
		return
	}
	n.members = append([]member{{"type", text(implied)}}, n.members...)
}
