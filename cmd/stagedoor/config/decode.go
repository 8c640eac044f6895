package config

import (
	"fmt"
	"os"
	"reflect"
	"regexp"
	"sort"
	"strconv"
	"strings"

	"github.com/goccy/go-yaml/ast"
	"github.com/goccy/go-yaml/parser"
	"github.com/goccy/go-yaml/token"
)

// Issue is one mistake in a file.
type Issue struct {
	File         string
	Line, Column int
	Path         string
	Message      string
}

func (i Issue) String() string {
	where := fmt.Sprintf("%s:%d:%d: ", i.File, i.Line, i.Column)
	if i.Path != "" {
		where += i.Path + ": "
	}
	return where + i.Message
}

// Issues are all mistakes of a file, in its order.
type Issues []Issue

func (is Issues) Error() string {
	lines := make([]string, len(is))
	for i, issue := range is {
		lines[i] = issue.String()
	}
	return strings.Join(lines, "\n")
}

// decoder fills structs from the syntax tree. The library's own decoder stops
// at the first mistake; an operator wants to hear of all of them.
type decoder struct {
	file   string
	env    func(string) (string, bool)
	issues Issues
	places map[string]*token.Position
}

func (d *decoder) document(text []byte, into any) {
	d.places = make(map[string]*token.Position)
	f, err := parser.ParseBytes(text, 0)
	if err != nil {
		d.syntax(err)
		return
	}
	for _, doc := range f.Docs {
		if doc.Body == nil {
			continue
		}
		d.value(doc.Body, reflect.ValueOf(into).Elem(), "")
	}
	sort.SliceStable(d.issues, func(i, j int) bool { return d.issues[i].Line < d.issues[j].Line })
}

var positioned = regexp.MustCompile(`^\[(\d+):(\d+)\] ([^\n]*)`)

// syntax keeps the position and the first line of the parser's message; the
// rest quotes the source, which may hold secrets.
func (d *decoder) syntax(err error) {
	issue := Issue{File: d.file, Line: 1, Column: 1, Message: "not valid YAML"}
	if m := positioned.FindStringSubmatch(err.Error()); m != nil {
		issue.Line, _ = strconv.Atoi(m[1])
		issue.Column, _ = strconv.Atoi(m[2])
		issue.Message += ": " + m[3]
	}
	d.issues = append(d.issues, issue)
}

// fail records a mistake at a node.
func (d *decoder) fail(n ast.Node, path, format string, args ...any) {
	issue := Issue{File: d.file, Line: 1, Column: 1, Path: path, Message: fmt.Sprintf(format, args...)}
	if t := n.GetToken(); t != nil && t.Position != nil {
		issue.Line, issue.Column = t.Position.Line, t.Position.Column
	}
	d.issues = append(d.issues, issue)
}

// at records a mistake at the place a path was read from, or the nearest place
// above it.
func (d *decoder) at(path, format string, args ...any) {
	issue := Issue{File: d.file, Line: 1, Column: 1, Path: path, Message: fmt.Sprintf(format, args...)}
	for p := path; ; {
		if pos, ok := d.places[p]; ok {
			issue.Line, issue.Column = pos.Line, pos.Column
			break
		}
		cut := strings.LastIndexAny(p, ".[")
		if cut < 0 {
			break
		}
		p = p[:cut]
	}
	d.issues = append(d.issues, issue)
}

func (d *decoder) value(n ast.Node, v reflect.Value, path string) {
	if t := n.GetToken(); t != nil && path != "" {
		d.places[path] = t.Position
	}
	n = d.resolve(n)
	if _, null := n.(*ast.NullNode); null && v.Kind() != reflect.String {
		return // a name without a value is a name not given
	}
	if v.Kind() == reflect.Pointer {
		v.Set(reflect.New(v.Type().Elem()))
		d.value(n, v.Elem(), path)
		return
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
		if text, ok := d.text(n, path, "a string"); ok {
			v.SetString(d.expand(n, path, text, v.Type() == reflect.TypeFor[Secret]()))
		}
	case reflect.Bool:
		if b, ok := n.(*ast.BoolNode); ok {
			v.SetBool(b.Value)
			return
		}
		d.fail(n, path, "expected true or false")
	case reflect.Int:
		if i, ok := n.(*ast.IntegerNode); ok {
			if num, err := strconv.Atoi(strings.ReplaceAll(i.GetToken().Value, "_", "")); err == nil {
				v.SetInt(int64(num))
				return
			}
		}
		d.fail(n, path, "expected a whole number")
	}
}

// resolve looks through tags, anchors and aliases.
func (d *decoder) resolve(n ast.Node) ast.Node {
	switch t := n.(type) {
	case *ast.TagNode:
		return d.resolve(t.Value)
	case *ast.AnchorNode:
		return d.resolve(t.Value)
	}
	return n
}

func (d *decoder) parsed(n ast.Node, s scalar, path string) {
	text, ok := d.text(n, path, s.expected())
	if !ok {
		return
	}
	if s.parse(d.expand(n, path, text, false)) != nil {
		d.fail(n, path, "expected %s", s.expected())
	}
}

// text is the text of a scalar as it was written.
func (d *decoder) text(n ast.Node, path, expected string) (string, bool) {
	switch t := n.(type) {
	case *ast.StringNode:
		return t.Value, true
	case *ast.LiteralNode:
		return t.Value.Value, true
	case *ast.IntegerNode, *ast.FloatNode:
		return n.GetToken().Value, true
	case *ast.NullNode:
		return "", true
	}
	d.fail(n, path, "expected %s", expected)
	return "", false
}

var variable = regexp.MustCompile(`\$\{([A-Za-z_][A-Za-z0-9_]*)\}`)

// expand fills in ${NAME} from the environment and, for secrets, file:PATH.
func (d *decoder) expand(n ast.Node, path, text string, secret bool) string {
	text = variable.ReplaceAllStringFunc(text, func(m string) string {
		v, ok := d.env(m[2 : len(m)-1])
		if !ok {
			d.fail(n, path, "the environment variable %s is not set", m[2:len(m)-1])
		}
		return v
	})
	file, ok := strings.CutPrefix(text, "file:")
	if !secret || !ok {
		return text
	}
	b, err := os.ReadFile(file)
	if err != nil {
		d.fail(n, path, "the file of the secret cannot be read: %v", err)
		return ""
	}
	return strings.TrimSpace(string(b))
}

// pairs are the members of a mapping, which the parser shows in two forms.
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

func keyOf(p *ast.MappingValueNode) string {
	if s, ok := p.Key.(*ast.StringNode); ok {
		return s.Value
	}
	return p.Key.GetToken().Value
}

func (d *decoder) object(n ast.Node, v reflect.Value, path string) {
	pairs, ok := d.pairs(n, path)
	if !ok {
		return
	}
	fields, names := fieldsOf(v.Type())
	seen := make(map[string]bool)
	for _, p := range pairs {
		name := keyOf(p)
		index, known := fields[name]
		switch {
		case !known:
			d.fail(p.Key, join(path, name), "unknown name, expected one of %s", strings.Join(names, ", "))
			continue
		case seen[name]:
			d.fail(p.Key, join(path, name), "is given twice")
			continue
		}
		seen[name] = true
		d.value(p.Value, v.Field(index), join(path, name))
		d.enum(p.Value, v.Type().Field(index), v.Field(index), join(path, name))
	}
	for _, name := range names {
		f := v.Type().Field(fields[name])
		if f.Tag.Get("required") != "" && !seen[name] {
			d.fail(n, join(path, name), "is required: %s", f.Tag.Get("doc"))
		}
	}
}

// enum checks a field that takes a closed set of words.
func (d *decoder) enum(n ast.Node, f reflect.StructField, v reflect.Value, path string) {
	set := f.Tag.Get("enum")
	if set == "" {
		return
	}
	words := []string{}
	if v.Kind() == reflect.String {
		words = append(words, v.String())
	} else if list, ok := v.Interface().(Strings); ok {
		words = list
	}
	for _, w := range words {
		if !strings.Contains(","+set+",", ","+w+",") {
			d.fail(n, path, "%q is not known here, expected one of %s", w, strings.ReplaceAll(set, ",", ", "))
		}
	}
}

func (d *decoder) list(n ast.Node, v reflect.Value, path string) {
	elem := v.Type().Elem()
	if elem.Kind() == reflect.Struct && elem.NumField() == 2 && elem.Field(0).Name == "Name" && elem.Field(1).Name == "Value" {
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
		d.value(n, item, path)
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
		name := keyOf(p)
		if seen[name] {
			d.fail(p.Key, join(path, name), "is given twice")
			continue
		}
		seen[name] = true
		e := reflect.New(v.Type().Elem()).Elem()
		e.Field(0).SetString(name)
		d.value(p.Value, e.Field(1), join(path, name))
		out = reflect.Append(out, e)
	}
	v.Set(out)
}

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

func join(path, name string) string {
	if path == "" {
		return name
	}
	return path + "." + name
}
