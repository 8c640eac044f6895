package schema

import (
	"encoding/json"
	"slices"
)

// noArguments is the schema of a tool that takes nothing.
const noArguments = `{"type":"object","properties":{}}`

// ToolForMessages makes a tool's schema fit input_schema, and parameters of the
// chat and responses shapes: its root is an object, alternatives at the root
// are merged into it, and every $ref resolves. Nothing is stripped. gemini says
// that raw is of Gemini's OpenAPI subset.
func ToolForMessages(raw json.RawMessage, gemini bool) json.RawMessage {
	if absent(raw) {
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
	return root.mendRefs(root).encode()
}

// ToolForGemini makes a tool's schema fit parameters of a function declaration.
// It is nil if the tool takes nothing: the vendor refuses an empty object.
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

// ToolForGeminiJSON makes a tool's schema fit parametersJsonSchema. It is nil
// if the tool takes nothing.
func ToolForGeminiJSON(raw json.RawMessage) (out json.RawMessage, lossy bool) {
	root := argumentsOf(raw)
	if root == nil {
		return nil, false
	}
	w := geminiJSONWalk{newWalk(root)}
	return w.schema(root, 0).encode(), w.lossy
}

// argumentsOf is a tool's schema with an object as its root, or nil if there
// is no argument in it.
func argumentsOf(raw json.RawMessage) *node {
	root, ok := parse(raw)
	if absent(raw) || !ok || root.kind != '{' {
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

// closed reports whether additionalProperties of this value leaves an object
// without properties nothing to hold.
func (n *node) closed() bool { return n == nil || n.kind != '{' }

// combined reports whether a root is more than one plain schema.
func (n *node) combined() bool {
	for _, m := range n.members {
		switch m.name {
		case "$ref", "anyOf", "oneOf", "allOf":
			return true
		}
	}
	return false
}

// resolves reports whether every $ref below n means something in root.
func (root *node) resolves(n *node) bool {
	if ref := n.get("$ref"); ref != nil && root.resolve(ref.str()) == nil {
		return false
	}
	return n.children(root.resolves)
}

// mendRefs takes every $ref away that means nothing: one of them makes the
// vendor refuse the whole request.
func (root *node) mendRefs(n *node) *node {
	if n.kind != '{' {
		return n
	}
	out := n.rewrite(root.mendRefs)
	if ref := n.get("$ref"); ref != nil && root.resolve(ref.str()) == nil {
		return out.without("$ref")
	}
	return out
}

// objectRoot merges what stands beside a root's properties into one object:
// $ref and allOf as they are, alternatives as the union of their properties, of
// which those are required that every alternative requires.
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

// typedObject puts the type in front where it is missing or another.
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

// united merges alternatives into one object that may be any of them.
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

func (w *walk) alternative(b *node) *node {
	if b.kind != '{' {
		return nil
	}
	return w.expand(b, 1, never)
}

// addAlternatives is the union of two sets of properties; one that both have
// may be as either says.
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
