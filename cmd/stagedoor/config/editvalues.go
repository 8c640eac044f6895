package config

import (
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/goccy/go-yaml/ast"
	"github.com/goccy/go-yaml/parser"
)

// mapping and list are a file's values without their form, with aliases unfolded. A scalar is its kind and text.
type (
	mapping []member
	member  struct {
		name  string
		value any
	}
	list []any
)

// plainText reads a text as values without their form.
func plainText(text string) (any, error) {
	body, err := parseBody(text)
	if err != nil || body == nil {
		return nil, err
	}
	anchors := make(map[string]ast.Node)
	ast.Walk(collector{&decoder{anchors: anchors}}, body)
	p := &plainer{anchors: anchors}
	value := p.plain(body, 0)
	if p.nodes > maxNodes {
		return nil, errors.New("the file unfolds to too many values")
	}
	return value, nil
}

// parseBody returns the only document of a text, or nil if it has none.
func parseBody(text string) (ast.Node, error) {
	// Lines and columns stay the same, and the parser counts them right.
	text = strings.ReplaceAll(text, "\r\n", "\n")
	f, err := parser.ParseBytes([]byte(text), 0, parser.AllowDuplicateMapKey())
	if err != nil {
		d := newDecoder("the file", nil)
		d.syntax(err)
		return nil, d.issues
	}
	var body ast.Node
	for _, doc := range f.Docs {
		if doc.Body != nil && body != nil {
			return nil, errors.New("expected one document")
		}
		if doc.Body != nil {
			body = doc.Body
		}
	}
	return body, nil
}

// plainer turns nodes into values without their form and counts them, since a few nested aliases can stand for
// millions of values.
// The values keep the order of members, since a reordered file is a changed file for its reader.
type plainer struct {
	anchors map[string]ast.Node
	nodes   int
}

// plain returns the value of a node. After maxNodes values it returns nil for all others, and its caller checks the
// count.
// A scalar is a text with the kind before it, so that two values can be compared with
// reflect.DeepEqual and nothing is lost by conversion: 1.0 stays different from 1.
func (p *plainer) plain(n ast.Node, depth int) any {
	if p.nodes++; p.nodes > maxNodes || depth > maxDepth {
		p.nodes = maxNodes + 1
		return nil
	}
	switch t := n.(type) {
	case nil, *ast.NullNode:
		return nil
	case *ast.MappingNode:
		m := mapping{}
		for _, v := range t.Values {
			m = append(m, member{nameOf(v), p.plain(v.Value, depth+1)})
		}
		return m
	case *ast.MappingValueNode:
		return mapping{{nameOf(t), p.plain(t.Value, depth+1)}}
	case *ast.SequenceNode:
		l := list{}
		for _, v := range t.Values {
			l = append(l, p.plain(v, depth+1))
		}
		return l
	case *ast.AnchorNode:
		return p.plain(t.Value, depth+1)
	case *ast.TagNode:
		return p.plain(t.Value, depth+1)
	case *ast.AliasNode:
		return p.plain(p.anchors[t.Value.GetToken().Value], depth+1)
	case *ast.StringNode:
		return "string " + t.Value
	case *ast.LiteralNode:
		return "string " + t.Value.Value
	}
	// The kind is part of the value, because "1" and 1 are different settings.
	return n.Type().String() + " " + n.GetToken().Value
}

// nameOf returns the name of a member without its quotes.
func nameOf(p *ast.MappingValueNode) string {
	if s, ok := p.Key.(*ast.StringNode); ok {
		return s.Value
	}
	return p.Key.GetToken().Value
}

// tidied drops the members of a mapping that are null or empty: a removed setting may leave its parent so.
// Empty elements of lists stay, because the number of an element is part of the path of those behind it.
func tidied(v any) any {
	switch t := v.(type) {
	case mapping:
		out := mapping{}
		for _, m := range t {
			if value := tidied(m.value); value != nil {
				out = append(out, member{m.name, value})
			}
		}
		if len(out) == 0 {
			return nil
		}
		return out
	case list:
		out := list{}
		for _, item := range t {
			out = append(out, tidied(item))
		}
		return out
	}
	return v
}

// edited returns the values with one of them changed or removed. It does not change its argument.
// It is the specification of an edit, on values, and knows nothing of text. What the editor does to
// the text must lead to the same values.
func edited(v any, path []string, value any, remove bool) (any, error) {
	name, last := path[0], len(path) == 1
	change := func(old any) (any, error) {
		if last {
			return value, nil
		}
		return edited(old, path[1:], value, remove)
	}
	if items, ok := v.(list); ok {
		i, err := strconv.Atoi(name)
		if err != nil || i < 0 || i > len(items) || i == len(items) && (remove || !last) {
			return nil, fmt.Errorf("expected the number of one of %d elements", len(items))
		}
		items = slices.Clone(items)
		if last && remove {
			return slices.Delete(items, i, i+1), nil
		}
		if i == len(items) {
			return append(items, value), nil
		}
		items[i], err = change(items[i])
		return items, err
	}
	m, ok := v.(mapping)
	if !ok && v != nil {
		return nil, errors.New("expected a setting that has members")
	}
	m = slices.Clone(m)
	i := slices.IndexFunc(m, func(x member) bool { return x.name == name })
	var err error
	switch {
	case i >= 0 && last && remove:
		return slices.Delete(m, i, i+1), nil
	case i >= 0:
		m[i].value, err = change(m[i].value)
		return m, err
	case remove:
		return nil, errors.New("is not in the file")
	}
	made, err := change(nil)
	return append(m, member{name, made}), err
}
