package config

import (
	"fmt"
	"reflect"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"github.com/goccy/go-yaml/ast"
	"github.com/goccy/go-yaml/parser"
	"github.com/goccy/go-yaml/token"

	"stagedoor/cmd/stagedoor/cli"
	"stagedoor/providers/catalog"
	"stagedoor/providers/shapes/registry"
	"stagedoor/state/work"
)

// decoder fills structs from the syntax tree. The library's own decoder stops at the first mistake; an
// operator wants to hear of all of them. Paths are those of messages, such as models.m.targets[0].weight.
// anchors has the values of the anchors of the document, collected before the first alias is read.
type decoder struct {
	file    string
	env     func(string) (string, bool)
	issues  Issues
	advice  Issues                     // of what is no mistake and probably not meant
	places  map[string]*token.Position // of every setting that was given
	broken  map[string]bool            // paths with a mistake
	anchors map[string]ast.Node
}

// newDecoder returns a decoder whose issues name file. env looks up the variables that the text refers to.
func newDecoder(file string, env func(string) (string, bool)) *decoder {
	return &decoder{file: file, env: env, places: make(map[string]*token.Position), broken: make(map[string]bool),
		anchors: make(map[string]ast.Node)}
}

// document fills into, a pointer to a struct, from a text. Values that the text does not give stay as they are, so
// the caller sets the defaults first.
func (d *decoder) document(text []byte, into any) {
	// Names given twice are this package's to report, with the other mistakes.
	f, err := parser.ParseBytes(text, 0, parser.AllowDuplicateMapKey())
	if err != nil {
		d.syntax(err)
		return
	}
	var bodies []ast.Node
	for _, doc := range f.Docs {
		if doc.Body != nil {
			bodies = append(bodies, doc.Body)
		}
	}
	for i, body := range bodies {
		if i > 0 {
			d.fail(body, "", "expected one document, here begins another")
			break
		}
		ast.Walk(collector{d}, body)
		d.value(body, reflect.ValueOf(into).Elem(), "")
	}
}

// collector finds the anchors of a document.
type collector struct{ d *decoder }

// Visit implements ast.Visitor.
func (c collector) Visit(n ast.Node) ast.Visitor {
	if a, ok := n.(*ast.AnchorNode); ok && a.Name != nil {
		c.d.anchors[a.Name.GetToken().Value] = a.Value
	}
	return c
}

var positioned = regexp.MustCompile(`^\[(\d+):(\d+)\] ([^\n]*)`)

// syntax keeps the position and the first line of the parser's message; the
// rest quotes the source, which may hold secrets.
func (d *decoder) syntax(err error) {
	issue := Issue{File: d.file, Line: 1, Column: 1, Message: "expected valid YAML"}
	if m := positioned.FindStringSubmatch(err.Error()); m != nil {
		issue.Line, _ = strconv.Atoi(m[1])
		issue.Column, _ = strconv.Atoi(m[2])
		issue.Message += ": " + m[3]
	}
	d.issues = append(d.issues, issue)
}

// fail records a mistake at a node.
func (d *decoder) fail(n ast.Node, path, format string, args ...any) {
	d.record(position(n), path, fmt.Sprintf(format, args...))
}

// at records a mistake at the place a setting was read from, or the nearest
// place above it, unless the setting is known to be wrong already.
func (d *decoder) at(path, format string, args ...any) {
	if !d.broken[path] {
		d.record(d.place(path), path, fmt.Sprintf(format, args...))
	}
}

// warn records a warning at the place of a setting. Warnings do not keep the file from being used.
func (d *decoder) warn(path, format string, args ...any) {
	d.advice = append(d.advice, d.issue(d.place(path), path, fmt.Sprintf(format, args...)))
}

// place returns where a setting was read from, or the nearest place above it. It returns nil if there is none.
func (d *decoder) place(path string) *token.Position {
	for {
		if pos, ok := d.places[path]; ok {
			return pos
		}
		cut := strings.LastIndexAny(path, ".[")
		if cut < 0 {
			return nil
		}
		path = path[:cut]
	}
}

// record adds a mistake of the setting at path, and remembers that path has one.
func (d *decoder) record(pos *token.Position, path, message string) {
	d.broken[path] = true
	d.issues = append(d.issues, d.issue(pos, path, message))
}

// issue returns a message about the setting at path. A missing position stands for the beginning of the file.
func (d *decoder) issue(pos *token.Position, path, message string) Issue {
	issue := Issue{File: d.file, Line: 1, Column: 1, Path: path, Message: message}
	if pos != nil {
		issue.Line, issue.Column = pos.Line, pos.Column
	}
	return issue
}

// position returns the position of a node's first token. For a mapping the parser
// reports that of its first colon instead.
func position(n ast.Node) *token.Position {
	switch m := n.(type) {
	case *ast.MappingNode:
		if !m.IsFlowStyle && len(m.Values) > 0 {
			return position(m.Values[0])
		}
	case *ast.MappingValueNode:
		return position(m.Key)
	case *ast.AnchorNode:
		return position(m.Value)
	}
	if t := n.GetToken(); t != nil {
		return t.Position
	}
	return nil
}

// value fills v from a node. What the type says decides how the node is read, so a list is never guessed from
// its form. It never stops at a mistake: the field keeps its value, and its path is marked as broken.
func (d *decoder) value(n ast.Node, v reflect.Value, path string) {
	d.places[path] = position(n)
	n, ok := d.resolve(n, path)
	if !ok {
		return
	}
	if _, null := n.(*ast.NullNode); null {
		return // a name without a value is a name not given
	}
	if v.Kind() == reflect.Pointer {
		// A pointer tells a setting that was given from one that was not, where zero has a meaning.
		v.Set(reflect.New(v.Type().Elem()))
		v = v.Elem()
	}
	if s, ok := v.Addr().Interface().(scalar); ok {
		d.parsed(n, s, path)
		return
	}
	switch v.Kind() {
	case reflect.Struct:
		d.object(n, v, path)
	case reflect.Slice:
		d.list(n, v, path)
	case reflect.String:
		if text, ok := d.text(n, path); ok {
			v.SetString(d.expand(n, path, text, v.Type() == reflect.TypeFor[Secret]()))
		}
	case reflect.Bool:
		if b, ok := n.(*ast.BoolNode); ok {
			v.SetBool(b.Value)
			return
		}
		d.fail(n, path, "expected true or false")
	case reflect.Int:
		d.integer(n, v, path)
	}
}

// integer fills v with a whole number. Underscores are allowed, so that operators can write 1_000_000.
func (d *decoder) integer(n ast.Node, v reflect.Value, path string) {
	if i, ok := n.(*ast.IntegerNode); ok {
		if num, err := strconv.Atoi(strings.ReplaceAll(i.GetToken().Value, "_", "")); err == nil {
			v.SetInt(int64(num))
			return
		}
	}
	d.fail(n, path, "expected a whole number")
}

// maxHops bounds how many anchors may lead to one another.
const maxHops = 16

// resolve returns the node behind tags, anchors and aliases. The types bound the depth of a document that uses aliases,
// because none of them contains itself.
func (d *decoder) resolve(n ast.Node, path string) (ast.Node, bool) {
	at := n
	for range maxHops {
		switch t := n.(type) {
		case *ast.TagNode:
			n = t.Value
		case *ast.AnchorNode:
			n = t.Value
		case *ast.AliasNode:
			n = d.anchors[t.Value.GetToken().Value]
		default:
			if n == nil {
				d.fail(at, path, "expected a value, or the name of an anchor of this file")
			}
			return n, n != nil
		}
	}
	d.fail(at, path, "expected a value, not a circle of anchors")
	return nil, false
}

// parsed fills a type that reads itself, such as a duration, from the text as it was written: 1.10 as a number would
// have lost its last digit.
func (d *decoder) parsed(n ast.Node, s scalar, path string) {
	text, ok := scalarText(n)
	if !ok {
		d.fail(n, path, "expected %s", s.expected())
		return
	}
	if s.parse(d.expand(n, path, text, false)) != nil && !d.broken[path] {
		d.fail(n, path, "expected %s", s.expected())
	}
}

// text returns the text of a string, or records a mistake and returns false. A value that YAML does not take for a
// string is a mistake, because a key 0123 or a model 1.10 would mean something else to the next program that reads the
// file.
func (d *decoder) text(n ast.Node, path string) (string, bool) {
	switch t := n.(type) {
	case *ast.StringNode:
		return t.Value, true
	case *ast.LiteralNode:
		return t.Value.Value, true
	case *ast.IntegerNode, *ast.FloatNode, *ast.BoolNode, *ast.InfinityNode, *ast.NanNode:
		d.fail(n, path, "expected a string: put it in quotes")
		return "", false
	}
	d.fail(n, path, "expected a string")
	return "", false
}

// scalarText returns the text of a string or a number as it was written, or false for another value.
func scalarText(n ast.Node) (string, bool) {
	switch t := n.(type) {
	case *ast.StringNode:
		return t.Value, true
	case *ast.LiteralNode:
		return t.Value.Value, true
	case *ast.IntegerNode, *ast.FloatNode:
		return n.GetToken().Value, true
	}
	return "", false
}

// pairs returns the members of a mapping, which the parser represents in two forms, or records a mistake and returns
// false.
func (d *decoder) pairs(n ast.Node, path string) ([]*ast.MappingValueNode, bool) {
	switch m := n.(type) {
	case *ast.MappingNode:
		return m.Values, true
	case *ast.MappingValueNode:
		return []*ast.MappingValueNode{m}, true
	}
	d.fail(n, path, "expected a mapping (name: value)")
	return nil, false
}

// name returns the name of a member. It records a mistake and returns false for a name that cannot be used or that is
// given twice, and adds the name to seen otherwise.
func (d *decoder) name(p *ast.MappingValueNode, path string, seen map[string]bool) (string, bool) {
	if _, merge := p.Key.(*ast.MergeKeyNode); merge {
		d.fail(p.Key, path, "expected names; merging (<<) is not supported")
		return "", false
	}
	name := p.Key.GetToken().Value
	if s, ok := p.Key.(*ast.StringNode); ok {
		name = s.Value
	}
	if seen[name] {
		d.fail(p.Key, join(path, name), "is given twice, expected once")
		return "", false
	}
	seen[name] = true
	return name, true
}

// object fills a struct from a mapping. Every unknown, repeated or missing name is a mistake of its own, since an
// unknown name is most often a typing mistake that would leave a limit unset.
func (d *decoder) object(n ast.Node, v reflect.Value, path string) {
	pairs, ok := d.pairs(n, path)
	if !ok {
		return
	}
	fields, names := fieldsOf(v.Type())
	seen := make(map[string]bool)
	for _, p := range pairs {
		name, ok := d.name(p, path, seen)
		if !ok {
			continue
		}
		index, known := fields[name]
		if !known {
			d.fail(p.Key, join(path, name), "is not known, expected one of %s%s", strings.Join(names, ", "),
				cli.DidYouMean(name, names))
			continue
		}
		d.value(p.Value, v.Field(index), join(path, name))
		d.enum(p.Value, v.Type().Field(index), v.Field(index), join(path, name))
	}
	for _, name := range names {
		f := v.Type().Field(fields[name])
		if f.Tag.Get("required") == "" {
			continue
		}
		value := v.Field(fields[name])
		switch {
		// The doc of a setting is written so that it completes this sentence.
		case !seen[name]:
			d.fail(n, join(path, name), "is missing, expected %s", f.Tag.Get("doc"))
		case value.Kind() == reflect.String && value.String() == "":
			d.at(join(path, name), "is empty, expected %s", f.Tag.Get("doc"))
		}
	}
}

// wordsOf returns the words that a field takes, or nil if it takes any. "@shapes" in the tag stands
// for the names of all shapes, "@conditions" for those of all conditions of a fallback, and "@alerts" for the types of
// alerts.
func wordsOf(f reflect.StructField) []string {
	tag := f.Tag.Get("enum")
	if tag == "" {
		return nil
	}
	return strings.Split(strings.NewReplacer("@shapes", strings.Join(registry.Names(), ","),
		"@conditions", strings.Join(catalog.ConditionNames(), ","),
		"@alerts", strings.Join(work.AlertTypes(), ",")).Replace(tag), ",")
}

// enum checks a field that takes a closed set of words. A value that has a mistake already is not checked.
func (d *decoder) enum(n ast.Node, f reflect.StructField, v reflect.Value, path string) {
	set := wordsOf(f)
	if len(set) == 0 || d.broken[path] {
		return
	}
	expected := strings.Join(set, ", ")
	if v.Kind() == reflect.Pointer && !v.IsNil() {
		v = v.Elem()
	}
	if list, ok := v.Interface().(Strings); ok {
		for i, w := range list {
			if !slices.Contains(set, w) {
				d.at(fmt.Sprintf("%s[%d]", path, i), "%q is not known here, expected one of %s%s", w, expected,
					cli.DidYouMean(w, set))
			}
		}
		return
	}
	if w := v.String(); w != "" && !slices.Contains(set, w) {
		d.fail(n, path, "%q is not known here, expected one of %s%s", w, expected, cli.DidYouMean(w, set))
	}
}

// list fills a slice: a Map from a mapping, any other slice from a sequence. One string may stand for a list of one.
func (d *decoder) list(n ast.Node, v reflect.Value, path string) {
	elem := v.Type().Elem()
	if isMapping(v.Type()) {
		d.mapping(n, v, path)
		return
	}
	seq, ok := n.(*ast.SequenceNode)
	if !ok {
		if elem.Kind() != reflect.String {
			d.fail(n, path, "expected a list")
			return
		}
		item := reflect.New(elem).Elem() // one string stands for a list of one
		if d.value(n, item, path); d.broken[path] {
			return
		}
		v.Set(reflect.Append(reflect.MakeSlice(v.Type(), 0, 1), item))
		return
	}
	out := reflect.MakeSlice(v.Type(), len(seq.Values), len(seq.Values))
	for i, item := range seq.Values {
		d.value(item, out.Index(i), fmt.Sprintf("%s[%d]", path, i))
	}
	v.Set(out)
}

// mapping fills a Map.
func (d *decoder) mapping(n ast.Node, v reflect.Value, path string) {
	pairs, ok := d.pairs(n, path)
	if !ok {
		return
	}
	out := reflect.MakeSlice(v.Type(), 0, len(pairs))
	seen := make(map[string]bool)
	for _, p := range pairs {
		name, ok := d.name(p, path, seen)
		if !ok {
			continue
		}
		e := reflect.New(v.Type().Elem()).Elem()
		e.Field(0).SetString(name)
		d.value(p.Value, e.Field(1), join(path, name))
		if _, null := p.Value.(*ast.NullNode); null && e.Field(1).Kind() == reflect.Struct {
			d.fail(p.Key, join(path, name), "is empty, expected a mapping (name: value)")
		}
		out = reflect.Append(out, e)
	}
	v.Set(out)
}

// fieldsOf returns the fields of a struct by their names in the file, and the names in the order of the
// fields. A field without a name in the file is not a setting. The tag yaml is the only source of names, for
// reading, for the reference and for messages.
func fieldsOf(t reflect.Type) (map[string]int, []string) {
	fields := make(map[string]int)
	var names []string
	for i := range t.NumField() {
		if name := t.Field(i).Tag.Get("yaml"); name != "" {
			fields[name] = i
			names = append(names, name)
		}
	}
	return fields, names
}

// join returns the path of a member of path.
func join(path, name string) string {
	if path == "" {
		return name
	}
	return path + "." + name
}
