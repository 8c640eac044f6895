package schema

import (
	"encoding/json"
	"regexp"
	"slices"
	"strconv"
)

// ForMessages converts a schema for output_config.format of the messages shape: every object is
// closed, oneOf becomes anyOf, conjunctions are merged, and keywords that the vendor refuses are
// removed and repeated in the description. stripped reports whether a constraint was removed. ok
// is false if the schema cannot be converted, because it is recursive, refers to another document
// or is beyond the limits.
func ForMessages(raw json.RawMessage) (out json.RawMessage, stripped, ok bool) {
	root, ok := parse(raw)
	if !ok || root.kind != '{' || !root.refsHold() {
		return nil, false, false
	}
	m := messagesWalk{newWalk(root)}
	n := m.schema(root, 0)
	if m.spent {
		return nil, false, false
	}
	return n.encode(), m.lossy, true
}

type messagesWalk struct{ *walk }

// keepDefined reports whether a $ref may stay, because it leads to a definition at the root.
func keepDefined(ref string) bool { return defined(ref, "$defs", "definitions") }

// schema converts one schema and everything below it.
func (w *messagesWalk) schema(n *node, depth int) *node {
	if n.kind != '{' {
		w.lossy = w.lossy || n.kind != 't'
		return object()
	}
	mark := len(w.active)
	defer w.leave(mark)
	if n = w.expand(n, depth, keepDefined); n == nil {
		return object()
	}
	out := object()
	if ref := n.get("$ref"); ref != nil {
		// The vendor's own helper sends nothing beside a $ref but definitions.
		out.add("$ref", ref)
		w.definitions(out, n, depth)
		return out
	}
	if branches, key := n.alternatives(); key != "" && n.isObject() {
		n = w.distributed(n, branches, key)
	}
	var removed notes
	for _, m := range n.members {
		w.member(out, n, m, depth, &removed)
	}
	if n.isObject() {
		out.nameType()
		out.put("additionalProperties", boolean(false))
		w.trimRequired(out)
	}
	removed.describe(out)
	return out
}

// definitions converts the definitions of a schema into out.
func (w *messagesWalk) definitions(out, n *node, depth int) {
	for _, name := range []string{"$defs", "definitions"} {
		if defs := n.get(name); defs != nil {
			out.add(name, replaced(defs, named, w.below(depth)))
		}
	}
}

// distributed repeats the constraints of an object schema in each of its alternatives. Closed
// objects beside each other could not be satisfied by one value.
func (w *messagesWalk) distributed(n *node, branches []*node, key string) *node {
	base, out := object(), object()
	for _, m := range n.members {
		switch {
		case annotations[m.name]:
			out.members = append(out.members, m)
		case m.name != key:
			base.members = append(base.members, m)
		}
	}
	if base.get("properties") == nil {
		base = base.without("type", "additionalProperties")
	}
	w.copies(base, len(branches))
	merged := array()
	for _, b := range branches {
		merged.items = append(merged.items, narrowed(base, b))
	}
	out.add("anyOf", merged)
	return out
}

// below returns the function that translates a schema one level further down.
func (w *messagesWalk) below(depth int) func(*node) *node {
	return func(n *node) *node { return w.schema(n, depth+1) }
}

// member writes one keyword of a schema, or records that it was removed.
// additionalProperties is always written as false. true is a loss of its own, because the answer
// may have had members that the closed object forbids, and a schema there moves to the description.
func (w *messagesWalk) member(out, n *node, m member, depth int, removed *notes) {
	switch m.name {
	case "type", "title", "description", "default", "const", "required":
		out.add(m.name, m.value)
		return
	case "properties", "$defs", "definitions":
		out.add(m.name, replaced(m.value, named, w.below(depth)))
		return
	case "anyOf":
		out.add(m.name, replaced(m.value, listed, w.below(depth)))
		return
	case "oneOf":
		if n.get("anyOf") == nil {
			out.add("anyOf", replaced(m.value, listed, w.below(depth)))
			return
		}
	case "items":
		if m.value.kind != '[' {
			out.add(m.name, w.schema(m.value, depth+1))
			return
		}
	case "additionalProperties":
		out.add(m.name, boolean(false))
		if m.value.kind == 'f' {
			return
		}
		if m.value.kind == 't' {
			w.lossy = true
			return
		}
	default:
		if accepted := messagesAccepts[m.name]; accepted != nil && accepted(m.value) {
			out.add(m.name, m.value)
			return
		}
	}
	if constraints[m.name] {
		w.lossy = true
		removed.add(m.name, m.value)
	}
}

// trimRequired removes names from required that a closed object cannot have.
func (w *messagesWalk) trimRequired(out *node) {
	required := out.get("required")
	if required == nil {
		return
	}
	names, properties := required.strings(), out.get("properties")
	kept := slices.DeleteFunc(slices.Clone(names), func(name string) bool { return properties.get(name) == nil })
	if len(kept) < len(names) {
		w.lossy = true
		out.put("required", texts(kept))
	}
}

// messagesAccepts reports whether the vendor takes a value, for keywords of which it takes only
// some values.
var messagesAccepts = map[string]func(*node) bool{
	"enum":     func(v *node) bool { return all(v.items, func(n *node) bool { return n.kind != '{' && n.kind != '[' }) },
	"minItems": func(v *node) bool { return v.number() == 0 || v.number() == 1 },
	"format":   func(v *node) bool { return slices.Contains(messagesFormats, v.str()) },
	"pattern":  func(v *node) bool { return v.kind == '"' && !beyondPatterns.MatchString(v.str()) },
}

var messagesFormats = []string{
	"date-time", "time", "date", "duration", "email", "hostname", "uri", "ipv4", "ipv6", "uuid",
}

// beyondPatterns matches syntax that the vendor's regular expressions do not have: lookaround,
// back references, word boundaries and repetitions of four digits.
var beyondPatterns = regexp.MustCompile(`\(\?[=!<]|\\[1-9bBk]|\{\d*,?\d{4,}`)

// number returns the value of a number, or -1 for other kinds.
func (n *node) number() float64 {
	f, err := strconv.ParseFloat(string(n.raw), 64)
	if err != nil {
		return -1
	}
	return f
}

// bounds lists the keywords that the messages shape does not have.
var bounds = []string{"minimum", "maximum", "minLength", "maxLength"}

// StripBounds moves minimum, maximum, minLength and maxLength from a schema to its descriptions
// and changes nothing else. It returns raw and false if the schema has none of them or is beyond
// the limits.
// It is for clients of the messages shape, whose vendor removes these keywords as well. An upstream
// of another shape would enforce them, and answer differently from what the client is used to.
func StripBounds(raw json.RawMessage) (json.RawMessage, bool) {
	root, ok := parse(raw)
	if !ok {
		return raw, false
	}
	found := false
	var strip func(n *node) *node
	strip = func(n *node) *node {
		if n.kind != '{' {
			return n
		}
		var removed notes
		for _, m := range n.members {
			if slices.Contains(bounds, m.name) {
				removed.add(m.name, m.value)
				found = true
			}
		}
		out := n.without(bounds...).rewrite(strip)
		removed.describe(out)
		return out
	}
	out := strip(root)
	if !found {
		return raw, false
	}
	return out.encode(), true
}
