package schema

import (
	"encoding/json"
	"slices"
)

// strictLacks lists the keywords that strict schemas of the chat and responses shapes must not
// have.
var strictLacks = []string{
	"allOf", "oneOf", "not", "dependentRequired", "dependentSchemas", "if", "then", "else", "patternProperties",
	"unevaluatedProperties", "propertyNames", "contains", "uniqueItems", "prefixItems", "minLength", "maxLength",
}

const (
	strictDepth      = 10
	strictProperties = 5000
)

// SupportsStrict reports whether a schema may be sent with strict true to the chat and responses
// shapes: every object is closed, every property is required, and no keyword is one that strict
// mode refuses. For other schemas strict would change the meaning, so it must not be turned on.
func SupportsStrict(raw json.RawMessage) bool {
	root, ok := parse(raw)
	if !ok || root.get("type").str() != "object" || root.get("anyOf") != nil {
		return false
	}
	count := 0
	return root.resolves(root) && root.strict(0, &count)
}

// Strict returns a schema that may be sent with strict true: raw itself, or raw with its open objects closed. ok is
// false if that is not enough, because a property is optional or a keyword is refused. Only the answer of a model is
// bound by a closed object, and a model adds no properties that it was not asked for.
// Optional properties are not made required, although that would be strict too: the model would
// then have to invent a value for each.
func Strict(raw json.RawMessage) (closed json.RawMessage, ok bool) {
	if SupportsStrict(raw) {
		return raw, true
	}
	root, ok := parse(raw)
	if !ok {
		return raw, false
	}
	root.closeObjects()
	if closed = root.encode(); SupportsStrict(closed) {
		return closed, true
	}
	return raw, false
}

// closeObjects closes the objects that do not say whether they are open. Call it only on a tree that was just parsed.
// It returns true, which makes children go on to the next one.
func (n *node) closeObjects() bool {
	n.children((*node).closeObjects)
	if n.kind == '{' && n.isObject() && n.get("additionalProperties") == nil {
		n.add("additionalProperties", boolean(false))
	}
	return true
}

// strict reports whether a schema is one that strict upstreams accept as it is: objects are closed, they require all
// of their properties, and they are not nested too deeply. count counts the properties of the whole schema.
func (n *node) strict(depth int, count *int) bool {
	if n.kind != '{' {
		return false
	}
	for _, m := range n.members {
		if slices.Contains(strictLacks, m.name) {
			return false
		}
	}
	if n.isObject() {
		depth++
		closed, properties := n.get("additionalProperties"), n.get("properties")
		if closed == nil || closed.kind != 'f' || depth > strictDepth {
			return false
		}
		if properties != nil && !n.requiresAll(properties, count) {
			return false
		}
	}
	for _, m := range n.members {
		if m.name == "additionalProperties" {
			continue // checked above; it is not a schema here
		}
		only := object(m)
		if !only.children(func(sub *node) bool { return sub.strict(depth, count) }) {
			return false
		}
	}
	return true
}

// requiresAll reports whether an object requires each of its properties, within the number that upstreams accept.
func (n *node) requiresAll(properties *node, count *int) bool {
	*count += len(properties.members)
	required := n.get("required").strings()
	for _, m := range properties.members {
		if !slices.Contains(required, m.name) {
			return false
		}
	}
	return *count <= strictProperties
}
