package schema

import (
	"encoding/json"
	"slices"
	"strings"
)

// FromGemini converts a schema of Gemini's OpenAPI subset to JSON Schema: types in lower case,
// nullable as the type null, properties in the order of propertyOrdering. It also reads the
// snake_case spelling of keywords. Parts that are JSON Schema already stay as they are. A schema
// beyond the limits becomes one that allows any object.
func FromGemini(raw json.RawMessage) json.RawMessage {
	root, ok := parse(raw)
	if !ok {
		return json.RawMessage(`{"type":"object"}`)
	}
	return fromGemini(root).encode()
}

// camel has the keywords that Google also writes in snake_case.
var camel = map[string]string{
	"any_of":            "anyOf",
	"min_items":         "minItems",
	"max_items":         "maxItems",
	"min_length":        "minLength",
	"max_length":        "maxLength",
	"min_properties":    "minProperties",
	"max_properties":    "maxProperties",
	"property_ordering": "propertyOrdering",
}

// counts lists the keywords that are int64 in the vendor's protocol, which writes them as strings.
var counts = []string{"minItems", "maxItems", "minLength", "maxLength", "minProperties", "maxProperties"}

// fromGemini returns JSON Schema for a schema in Gemini's own form. It accepts both spellings of members, because
// clients of the vendor's two APIs send either. Names of types are in capitals there, and null is a flag beside the
// type.
func fromGemini(n *node) *node {
	if n.kind != '{' {
		return n
	}
	out, nullable := object(), false
	for _, m := range n.members {
		if name, snake := camel[m.name]; snake {
			m.name = name
		}
		switch {
		case m.name == "nullable":
			nullable = m.value.kind == 't'
		case m.name == "type" && m.value.kind == '"':
			if name := strings.ToLower(m.value.str()); name != "type_unspecified" {
				out.add("type", text(name))
			}
		case m.name == "format" && slices.Contains([]string{"enum", "int32", "int64", "float", "double"}, m.value.str()):
			// The format has no meaning in JSON Schema, and strict upstreams refuse it.
		case slices.Contains(counts, m.name) && m.value.number() < 0:
			out.add(m.name, unquoted(m.value))
		case m.name != "propertyOrdering" && m.name != "example":
			out.add(m.name, replaced(m.value, positions[m.name], fromGemini))
		}
	}
	reorder(out, n)
	if nullable {
		allowNull(out)
	}
	return out
}

// unquoted returns the number in a string, or the node itself.
func unquoted(n *node) *node {
	if inner, ok := parse([]byte(n.str())); ok && inner.kind == '0' {
		return inner
	}
	return n
}

// reorder sorts the properties as propertyOrdering says. JSON Schema has no such keyword, but
// upstreams generate members in the sequence of the properties.
func reorder(out, n *node) {
	order := n.get("propertyOrdering")
	if order == nil {
		order = n.get("property_ordering")
	}
	properties := out.get("properties")
	if order == nil || properties == nil || properties.kind != '{' {
		return
	}
	names := order.strings()
	sorted := slices.Clone(properties.members)
	place := make(map[string]int, len(names))
	for i, name := range names {
		place[name] = i - len(names)
	}
	slices.SortStableFunc(sorted, func(a, b member) int { return place[a.name] - place[b.name] })
	out.put("properties", object(sorted...))
}

// allowNull adds null to the types, alternatives and enumerated values of a schema that was
// nullable.
// null is added to an enumeration as well, because in JSON Schema enum and type must both allow a
// value.
func allowNull(n *node) {
	null := text("null")
	if t := n.get("type"); t != nil && t.kind == '"' && t.str() != "null" {
		n.put("type", array(t, null))
	} else if branches := n.get("anyOf"); branches != nil && branches.kind == '[' {
		n.put("anyOf", array(append(slices.Clone(branches.items), object(member{"type", null}))...))
	}
	if e := n.get("enum"); e != nil && e.kind == '[' && !slices.ContainsFunc(e.items, isNullValue) {
		n.put("enum", array(append(slices.Clone(e.items), &node{kind: 'n', raw: []byte("null")})...))
	}
}

// isNullValue reports whether a node is null.
func isNullValue(n *node) bool { return n.kind == 'n' }
