package schema

import "slices"

// walk is the state of one rewrite of one document.
// left and bytes bound two different attacks. A chain of references of which each doubles the last
// makes many nodes from few bytes. A long enum under many references makes few nodes with many
// bytes.
type walk struct {
	root   *node
	left   int     // nodes that may still be made
	bytes  int     // bytes that may still be copied
	active []*node // targets of the $refs that are being expanded, outermost first
	lossy  bool    // a constraint was removed or changed
	spent  bool    // a limit was hit
}

// newWalk returns the state of a rewrite of the document with this root.
func newWalk(root *node) *walk {
	return &walk{root: root, left: maxNodes, bytes: maxBytes, active: []*node{root}}
}

// enter counts a node against the limits and reports whether it may be made.
func (w *walk) enter(depth int) bool {
	w.left--
	if depth > maxDepth || w.left < 0 {
		w.spent, w.lossy = true, true
		return false
	}
	return true
}

// copies counts a value that is written times times against the limit of bytes.
// An exhausted limit of bytes uses up the limit of nodes as well, so that every later enter fails
// and one check is enough.
func (w *walk) copies(n *node, times int) {
	w.bytes -= n.sizeBound() * times
	if w.bytes < 0 {
		w.left = -1
	}
}

// expand merges the allOf of a schema into it, and its $ref unless keep accepts that. It returns
// nil if the schema contains itself. The targets of the references stay in w.active, so that the
// schemas below can find cycles; the caller removes them with leave(mark).
func (w *walk) expand(n *node, depth int, keep func(ref string) bool) *node {
	if !w.enter(depth) {
		return nil
	}
	ref, parts := n.get("$ref"), n.get("allOf")
	if ref == nil && parts == nil {
		return n
	}
	if ref != nil && n.onlyAnnotates() && keep(ref.str()) {
		return n
	}
	out := n.without("$ref", "allOf")
	if ref != nil {
		if parts != nil {
			keep = never
		}
		target := w.target(ref.str())
		if target == nil {
			return out
		}
		if slices.Contains(w.active, target) {
			return nil
		}
		w.active = append(w.active, target)
		w.copies(target, 1)
		if out = w.join(out, target, depth, keep); out == nil {
			return nil
		}
	}
	if parts == nil {
		return out
	}
	if len(parts.items) > 1 {
		keep = never // a schema that is merged with others cannot stay a reference
	}
	for _, part := range parts.items {
		if out = w.join(out, part, depth, keep); out == nil {
			return nil
		}
	}
	return out
}

// join expands other and merges it into out.
// false as a member of allOf allows nothing. No dialect has a schema for that, so it counts as a
// loss.
func (w *walk) join(out, other *node, depth int, keep func(ref string) bool) *node {
	if other.kind != '{' {
		w.lossy = w.lossy || other.kind != 't'
		return out
	}
	// A $ref that may stay on its own cannot stay inside a merged schema, unless the schema has
	// nothing else.
	if len(out.members) > 0 {
		keep = never
	}
	other = w.expand(other, depth+1, keep)
	if other == nil {
		return nil
	}
	return w.merge(out, other)
}

// never is the keep function of a dialect, or of a place, in which no $ref may stay.
func never(string) bool { return false }

// target returns the schema that a reference leads to, or nil after it has noted a loss.
func (w *walk) target(ref string) *node {
	t := w.root.resolve(ref)
	if t == nil {
		w.lossy = true
	}
	return t
}

// leave forgets the references that were followed since len(w.active) was mark.
func (w *walk) leave(mark int) { w.active = w.active[:mark] }

// onlyAnnotates reports whether a $ref has no constraints beside it.
func (n *node) onlyAnnotates() bool {
	for _, m := range n.members {
		if m.name != "$ref" && constraints[m.name] || m.name == "type" || m.name == "properties" ||
			m.name == "required" {
			return false
		}
	}
	return true
}

// alternatives returns the schemas of anyOf or oneOf and the keyword.
func (n *node) alternatives() ([]*node, string) {
	for _, key := range []string{"anyOf", "oneOf"} {
		if v := n.get(key); v != nil && v.kind == '[' && len(v.items) > 0 {
			return v.items, key
		}
	}
	return nil, ""
}

// narrowed returns a schema with the constraints of base and of one of its branches. The
// description of the branch takes precedence, because it is more specific.
// It returns an allOf and does not merge at once, because the branch may be a $ref that is expanded
// only where its depth is counted.
func narrowed(base, branch *node) *node {
	if branch.get("description") != nil || branch.get("$ref") != nil {
		base = base.without("description", "title")
	}
	if len(base.members) == 0 {
		return branch
	}
	return object(member{"allOf", array(base, branch)})
}

// merge returns a schema with the constraints of a and b. Where no keyword can express both, it
// keeps that of a.
// Two different values of one bound are a loss, although the stricter could be found for numbers:
// such schemas are rare, and a wrong choice would bind the answer to something that the client did
// not ask for.
func (w *walk) merge(a, b *node) *node {
	out := object(slices.Clone(a.members)...)
	w.left -= len(b.members)
	for _, m := range b.members {
		have := out.get(m.name)
		switch {
		case m.name == "$defs" || m.name == "definitions":
			// References start at the root, which keeps its definitions.
		case have == nil:
			out.add(m.name, m.value)
		case m.name == "properties":
			out.put(m.name, w.mergeProperties(have, m.value))
		case m.name == "required":
			w.left -= len(m.value.items)
			out.put(m.name, union(have, m.value))
		case m.name == "items" && have.kind == '{' && m.value.kind == '{':
			out.put(m.name, both(have, m.value))
		case m.name == "enum":
			out.put(m.name, w.intersect(have, m.value))
		case m.name == "type":
			out.put(m.name, w.narrower(have, m.value))
		case m.name == "additionalProperties":
			if m.value.kind == 'f' {
				out.put(m.name, m.value)
			}
		case constraints[m.name] && !have.same(m.value):
			w.lossy = true
		}
	}
	return out
}

// both returns a schema that demands a and b.
func both(a, b *node) *node {
	if a.same(b) {
		return a
	}
	return object(member{"allOf", array(a, b)})
}

// mergeProperties returns the properties of both schemas. One that both have must satisfy both.
func (w *walk) mergeProperties(a, b *node) *node {
	out := object(slices.Clone(a.members)...)
	w.left -= len(b.members)
	for _, m := range b.members {
		if have := out.get(m.name); have != nil {
			out.put(m.name, both(have, m.value))
			continue
		}
		out.add(m.name, m.value)
	}
	return out
}

// union returns the names that are in either list, each once.
func union(a, b *node) *node {
	names := a.strings()
	for _, name := range b.strings() {
		if !slices.Contains(names, name) {
			names = append(names, name)
		}
	}
	return texts(names)
}

// intersect returns the values that both enums allow.
// An empty intersection would forbid every answer, which vendors refuse. The first list is kept
// then, and the loss is reported.
func (w *walk) intersect(a, b *node) *node {
	out := array()
	w.left -= len(a.items)
	for _, v := range a.items {
		if slices.ContainsFunc(b.items, v.same) {
			out.items = append(out.items, v)
		}
	}
	if len(out.items) == 0 {
		w.lossy = true
		return a
	}
	return out
}

// narrower returns the types that both allow. An integer is a number.
func (w *walk) narrower(a, b *node) *node {
	var out []string
	wide := b.strings()
	for _, t := range a.strings() {
		if slices.Contains(wide, t) || t == "integer" && slices.Contains(wide, "number") {
			out = append(out, t)
		} else if t == "number" && slices.Contains(wide, "integer") {
			out = append(out, "integer")
		}
	}
	switch len(out) {
	case 0:
		w.lossy = true
		return a
	case 1:
		return text(out[0])
	}
	return texts(out)
}
