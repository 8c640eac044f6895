package schema

import (
	"encoding/json"
	"slices"
)

// noArguments is the schema of a tool without arguments.
const noArguments = `{"type":"object","properties":{}}`

// ToolForMessages converts a tool's schema for input_schema, and for parameters of the chat and
// responses shapes: its root is an object, alternatives at the root are merged into it, and every
// $ref has a target. It removes no constraint. gemini says that raw is in Gemini's OpenAPI subset.
// A schema that needs no change is returned as it came. The vendor's prompt cache begins with the
// tools, and a schema that is spelled differently would miss it.
func ToolForMessages(raw json.RawMessage, gemini bool) json.RawMessage {
	if isAbsent(raw) {
		return json.RawMessage(noArguments)
	}
	if gemini {
		raw = FromGemini(raw)
	}
	root, ok := parse(raw)
	if !ok || root.kind != '{' {
		return json.RawMessage(noArguments)
	}
	if root.get("type").str() == "object" && !root.combined() && root.resolves(root) {
		return raw
	}
	root = root.objectRoot()
	return root.removeDanglingRefs(root).encode()
}

// ToolForGemini converts a tool's schema for parameters of a function declaration. It returns nil
// for a tool without arguments, because the vendor refuses an empty object.
func ToolForGemini(raw json.RawMessage) (out json.RawMessage, lossy bool) {
	root := argumentsOf(raw)
	if root == nil {
		return nil, false
	}
	w := geminiWalk{walk: newWalk(root)}
	n := w.schema(root, 0)
	if p := n.get("properties"); p == nil || len(p.members) == 0 {
		return nil, w.lossy
	}
	return n.encode(), w.lossy
}

// ToolForGeminiJSON converts a tool's schema for parametersJsonSchema. It returns nil for a tool
// without arguments.
func ToolForGeminiJSON(raw json.RawMessage) (out json.RawMessage, lossy bool) {
	root := argumentsOf(raw)
	if root == nil {
		return nil, false
	}
	w := geminiJSONWalk{newWalk(root)}
	return w.schema(root, 0).encode(), w.lossy
}

// argumentsOf returns a tool's schema with an object as its root, or nil if it has no argument.
func argumentsOf(raw json.RawMessage) *node {
	root, ok := parse(raw)
	if isAbsent(raw) || !ok || root.kind != '{' {
		return nil
	}
	if root.get("type").str() != "object" || root.combined() {
		root = root.objectRoot()
	}
	if p := root.get("properties"); (p == nil || len(p.members) == 0) && root.get("additionalProperties").closed() {
		return nil
	}
	return root
}

// closed reports whether an object without properties must be empty if this is the value of its
// additionalProperties.
func (n *node) closed() bool { return n == nil || n.kind != '{' }

// combined reports whether a root refers to other schemas or combines them.
func (n *node) combined() bool {
	for _, m := range n.members {
		switch m.name {
		case "$ref", "anyOf", "oneOf", "allOf":
			return true
		}
	}
	return false
}

// resolves reports whether every $ref below n has a target in root.
func (root *node) resolves(n *node) bool {
	if ref := n.get("$ref"); ref != nil && root.resolve(ref.str()) == nil {
		return false
	}
	return n.children(root.resolves)
}

// removeDanglingRefs removes every $ref without a target, because the vendor refuses a request with one.
func (root *node) removeDanglingRefs(n *node) *node {
	if n.kind != '{' {
		return n
	}
	out := n.rewrite(root.removeDanglingRefs)
	if ref := n.get("$ref"); ref != nil && root.resolve(ref.str()) == nil {
		return out.without("$ref")
	}
	return out
}

// objectRoot merges the schemas that a root refers to into one object. Of $ref and allOf it keeps
// all constraints. Of alternatives it keeps the union of their properties, and requires those
// that every alternative requires.
// The vendors require an object at the root because arguments are an object. A union of tools'
// arguments is common in generated schemas, so it is widened and not refused: a tool that checks
// its arguments refuses what the wider schema lets through.
func (n *node) objectRoot() *node {
	w := newWalk(n)
	plain := n.without("$defs", "definitions")
	out := w.expand(plain, 0, never)
	if out == nil {
		out = plain.without("$ref", "allOf")
	}
	for _, key := range []string{"anyOf", "oneOf"} {
		if branches := out.get(key); branches != nil {
			out = w.united(out.without(key), branches.items)
		}
	}
	for _, key := range []string{"$defs", "definitions"} {
		if defs := n.get(key); defs != nil {
			out.put(key, defs)
		}
	}
	return typedObject(out)
}

// typedObject returns n with the type object, at the front if it had none, and with the member properties, which may be
// empty.
func typedObject(n *node) *node {
	out := object(slices.Clone(n.members)...)
	if n.get("type") == nil {
		out.members = append([]member{{"type", text("object")}}, out.members...)
	} else {
		out.put("type", text("object"))
	}
	if out.get("properties") == nil {
		out.add("properties", object())
	}
	return out
}

// united returns an object that satisfies base and may be any of the alternatives.
func (w *walk) united(base *node, branches []*node) *node {
	properties, required, first := object(), []string(nil), true
	for _, b := range branches {
		mark := len(w.active)
		b = w.alternative(b)
		w.leave(mark)
		if b == nil || isNull(b) {
			continue
		}
		properties = addAlternatives(properties, b.get("properties"))
		if names := b.get("required").strings(); first {
			required, first = names, false
		} else {
			required = slices.DeleteFunc(required, func(name string) bool { return !slices.Contains(names, name) })
		}
	}
	if len(properties.members) > 0 {
		own := base.get("properties")
		if own == nil {
			own = object()
		}
		base = object(slices.Clone(base.members)...)
		base.put("properties", w.mergeProperties(own, properties))
	}
	if len(required) > 0 {
		names := texts(required)
		if have := base.get("required"); have != nil {
			names = union(have, names)
		}
		base = object(slices.Clone(base.members)...)
		base.put("required", names)
	}
	return base
}

// alternative returns one branch of a union with its references put in, or nil if it is not an object.
func (w *walk) alternative(b *node) *node {
	if b.kind != '{' {
		return nil
	}
	return w.expand(b, 1, never)
}

// addAlternatives returns the union of two sets of properties. A property that both have may
// satisfy either schema.
func addAlternatives(a, b *node) *node {
	if b == nil {
		return a
	}
	out := object(slices.Clone(a.members)...)
	for _, m := range b.members {
		have := out.get(m.name)
		switch {
		case have == nil:
			out.add(m.name, m.value)
		case !have.same(m.value):
			out.put(m.name, object(member{"anyOf", array(have, m.value)}))
		}
	}
	return out
}
