package schema

import (
	"bytes"
	"encoding/json"
	"io"
	"slices"
	"strconv"

	"github.com/go-json-experiment/json/jsontext"

	"stagedoor/providers/jsonw"
)

// Limits of a schema that comes from a client, and of what a rewrite makes of it. References can make a small schema
// large.
const (
	maxDepth = 64      // levels of nesting, of the input and of the output
	maxNodes = 10_000  // nodes, of the input and of the output
	maxBytes = 4 << 20 // bytes of copies of the same value
)

// node is a JSON value with the order of its members and the spelling of its scalars. A node does
// not change once it is part of a tree, because the result of a rewrite shares nodes with its
// source.
// encoding/json is no help here: maps lose the order of the members, which is the order in which a
// model writes its answer, and float64 loses the spelling of numbers.
type node struct {
	kind    jsontext.Kind // '{', '[', '"', '0', 't', 'f', 'n'
	members []member      // of an object
	items   []*node       // of an array
	raw     []byte        // of a scalar
	size    int           // number of bytes in the input; 0 for nodes that a rewrite made
}

type member struct {
	name  string
	value *node
}

// parse reads one JSON value within the limits.
func parse(raw []byte) (*node, bool) {
	d := jsontext.NewDecoder(bytes.NewBuffer(raw))
	left := maxNodes
	n, ok := read(d, 0, &left)
	if !ok {
		return nil, false
	}
	_, err := d.ReadToken()
	return n, err == io.EOF
}

// read reads one value, within limits of depth and of the number of values, so that a small document cannot take much
// memory. It returns false for a value that is not valid.
func read(d *jsontext.Decoder, depth int, left *int) (*node, bool) {
	*left--
	if depth > maxDepth || *left < 0 {
		return nil, false
	}
	n, start, ok := &node{kind: d.PeekKind()}, d.InputOffset(), false
	switch n.kind {
	case '{':
		ok = n.readMembers(d, depth, left)
	case '[':
		ok = n.readItems(d, depth, left)
	default:
		v, err := d.ReadValue()
		n.raw, ok = bytes.Clone(v), err == nil
	}
	n.size = int(d.InputOffset() - start)
	return n, ok
}

// readMembers reads the members of an object. Their order is kept, because it is the order in which models fill them
// in.
func (n *node) readMembers(d *jsontext.Decoder, depth int, left *int) bool {
	if _, err := d.ReadToken(); err != nil {
		return false
	}
	for d.PeekKind() != '}' {
		name, err := d.ReadToken()
		if err != nil {
			return false
		}
		key := name.String() // before the next read makes the token invalid
		value, ok := read(d, depth+1, left)
		if !ok {
			return false
		}
		n.members = append(n.members, member{key, value})
	}
	_, err := d.ReadToken()
	return err == nil
}

// readItems reads the items of an array.
func (n *node) readItems(d *jsontext.Decoder, depth int, left *int) bool {
	if _, err := d.ReadToken(); err != nil {
		return false
	}
	for d.PeekKind() != ']' {
		item, ok := read(d, depth+1, left)
		if !ok {
			return false
		}
		n.items = append(n.items, item)
	}
	_, err := d.ReadToken()
	return err == nil
}

// encode writes the tree without insignificant space.
func (n *node) encode() json.RawMessage { return n.append(nil) }

// append appends the node as JSON without spaces. Scalars are written as they were read.
func (n *node) append(dst []byte) []byte {
	switch n.kind {
	case '{':
		dst = append(dst, '{')
		for i, m := range n.members {
			if i > 0 {
				dst = append(dst, ',')
			}
			dst = append(jsonw.AppendString(dst, m.name), ':')
			dst = m.value.append(dst)
		}
		return append(dst, '}')
	case '[':
		dst = append(dst, '[')
		for i, item := range n.items {
			if i > 0 {
				dst = append(dst, ',')
			}
			dst = item.append(dst)
		}
		return append(dst, ']')
	}
	return append(dst, n.raw...)
}

func object(members ...member) *node { return &node{kind: '{', members: members} }
func array(items ...*node) *node     { return &node{kind: '[', items: items} }
func text(s string) *node            { return &node{kind: '"', raw: jsonw.AppendString(nil, s)} }

// boolean returns a node that is true or false.
func boolean(b bool) *node {
	raw := strconv.AppendBool(nil, b)
	return &node{kind: jsontext.Kind(raw[0]), raw: raw}
}

// str returns the value of a string, or "" for other kinds.
func (n *node) str() string {
	if n == nil || n.kind != '"' {
		return ""
	}
	s, err := jsontext.AppendUnquote(nil, n.raw)
	if err != nil {
		return ""
	}
	return string(s)
}

// get returns a member of an object, or nil.
func (n *node) get(name string) *node {
	if n == nil {
		return nil
	}
	for i := range n.members {
		if n.members[i].name == name {
			return n.members[i].value
		}
	}
	return nil
}

// add adds a member at the end.
func (n *node) add(name string, value *node) {
	n.members = append(n.members, member{name, value})
}

// put replaces a member in its place, or adds it. Call it only on a node that is not yet part of a
// tree.
func (n *node) put(name string, value *node) {
	for i := range n.members {
		if n.members[i].name == name {
			n.members[i].value = value
			return
		}
	}
	n.add(name, value)
}

// without returns a copy of an object that lacks some members.
func (n *node) without(names ...string) *node {
	out := object()
	for _, m := range n.members {
		if !slices.Contains(names, m.name) {
			out.members = append(out.members, m)
		}
	}
	return out
}

// strings returns the strings of an array, or a single string as a list.
func (n *node) strings() []string {
	if n == nil {
		return nil
	}
	if n.kind == '"' {
		return []string{n.str()}
	}
	var out []string
	for _, item := range n.items {
		if item.kind == '"' {
			out = append(out, item.str())
		}
	}
	return out
}

// texts returns an array of strings.
func texts(values []string) *node {
	out := array()
	for _, v := range values {
		out.items = append(out.items, text(v))
	}
	return out
}

// same reports whether two values are written in the same way.
// The comparison is of the spelling, so 1 and 1.0 differ. That is enough for its use: schemas that
// were written by one program and are merged again.
func (n *node) same(m *node) bool {
	if n.kind != m.kind || n == m {
		return n == m
	}
	if n.kind != '{' && n.kind != '[' {
		return bytes.Equal(n.raw, m.raw)
	}
	return bytes.Equal(n.encode(), m.encode())
}

// sizeBound returns about how many bytes a value takes.
// It is exact for nodes that were parsed and a lower bound for nodes that a rewrite made, which is
// enough to stop a schema that doubles at every level.
func (n *node) sizeBound() int {
	if n.size > 0 {
		return n.size
	}
	sum := len(n.raw)
	for _, m := range n.members {
		sum += len(m.name) + m.value.sizeBound()
	}
	for _, item := range n.items {
		sum += item.sizeBound()
	}
	return sum
}
