package config

import (
	"bytes"
	"errors"
	"fmt"
	"reflect"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/go-json-experiment/json/jsontext"
	"github.com/goccy/go-yaml/ast"
	"github.com/goccy/go-yaml/parser"
	"github.com/goccy/go-yaml/token"

	"stagedoor/http/settings"
)

// Edit is one change of a file.
type Edit = settings.Edit

// maxNodes bounds the values that the aliases of a file unfold to.
const maxNodes = 200_000

// errShared refuses an edit whose place cannot be changed alone.
var errShared = errors.New("is written in a form that is changed by hand only, such as an anchor or several lines")

// ApplyEdits returns the text of a file with all edits made one after the other. All bytes outside of the edited values
// stay as they are: comments, blank lines, quotes and line ends. A removed setting takes its own lines with it. Each
// edit is verified by reading the result: an edit that would change another setting, too, is an error that names its
// path, and so is a path through a value that has no members.
// A library that writes YAML anew was not used, because all of them lose comments or change quotes
// and indentation, and the file belongs to an operator who keeps it under version control.
func ApplyEdits(text []byte, edits []Edit) ([]byte, error) {
	for _, edit := range edits {
		next, err := apply(string(text), edit)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", pathText(edit.Path), err)
		}
		text = []byte(next)
	}
	return text, nil
}

// pathText returns a path as messages name it: models.m.targets[0].weight.
func pathText(path []string) (text string) {
	for _, name := range path {
		if _, err := strconv.Atoi(name); err == nil && text != "" {
			text += "[" + name + "]"
		} else {
			text = join(text, name)
		}
	}
	return text
}

// apply makes one edit. It computes the values that the edited file must have (want) and compares them with those of
// the edited text, because positions in YAML are too subtle to be trusted: a wrong edit is refused instead of
// written.
// The cost is that the text is parsed twice for each edit. Edits are made by people, one at a time.
func apply(text string, edit Edit) (string, error) {
	if len(edit.Path) == 0 {
		return "", errors.New("expected the path of a setting")
	}
	var value any
	if edit.Value != nil {
		written, err := flowText(edit.Value, 0)
		if err != nil {
			return "", err
		}
		if value, err = plainText(written); err != nil {
			return "", err
		}
	}
	before, err := plainText(text)
	if err != nil {
		return "", err
	}
	want, err := edited(before, edit.Path, value, edit.Value == nil)
	if err != nil {
		return "", err
	}
	e, err := newEditor(text)
	if err != nil {
		return "", err
	}
	if edit.Value == nil {
		err = e.remove(edit.Path)
	} else {
		err = e.set(edit.Path, edit.Value)
	}
	if err != nil {
		return "", err
	}
	after, err := plainText(e.text)
	if err != nil || !reflect.DeepEqual(tidied(after), tidied(want)) {
		return "", errShared
	}
	return e.text, nil
}

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

// editor changes a text of YAML in place. The parser says where the keys are and what kind the values have; where a
// value ends, which the parser does not say, is found in the text. ApplyEdits verifies the result.
type editor struct {
	text  string
	lines []int // where each line begins
	eol   string
	body  ast.Node
}

// newEditor returns an editor of a text. Added lines end as the text's lines do.
func newEditor(text string) (*editor, error) {
	body, err := parseBody(text)
	if err != nil {
		return nil, err
	}
	e := &editor{text: text, lines: []int{0}, eol: "\n", body: body}
	for i := range len(text) {
		if text[i] == '\n' {
			e.lines = append(e.lines, i+1)
		}
	}
	if strings.Contains(text, "\r\n") {
		e.eol = "\r\n"
	}
	return e, nil
}

// offset returns the place of a token in bytes. The parser counts columns in runes.
// It returns -1 for a position outside of the text, which the callers turn into errShared. The
// parser gives such positions for some nodes that it made up, such as the value of an empty key.
func (e *editor) offset(p *token.Position) int {
	if p == nil || p.Line < 1 || p.Line > len(e.lines) {
		return -1
	}
	at := e.lines[p.Line-1]
	for range p.Column - 1 {
		_, size := utf8.DecodeRuneInString(e.text[at:])
		at += size
	}
	return at
}

// lineStart returns where the line of at begins.
func (e *editor) lineStart(at int) int { return strings.LastIndexByte(e.text[:at], '\n') + 1 }

// lineEnd returns the place behind the end of the line of at.
func (e *editor) lineEnd(at int) int {
	if i := strings.IndexByte(e.text[at:], '\n'); i >= 0 {
		return at + i + 1
	}
	return len(e.text)
}

// splice replaces the bytes from from to to. All spots behind from are wrong afterwards, so an edit ends with it.
func (e *editor) splice(from, to int, text string) { e.text = e.text[:from] + text + e.text[to:] }

// spot is the place of a value in the text. Spots are computed when they are needed and never kept across an
// edit, because every byte behind a splice moves. All places are offsets in bytes into editor.text.
type spot struct {
	node ast.Node
	key  int // of the member's name or of the element's dash; -1 for the document and for elements in brackets
	from int // of the value, behind the colon or the dash if there is none
	to   int
	flow bool // in brackets
	// below is set for a value that fills the lines below its key, or begins a mapping behind its dash.
	below bool
}

// children returns the members or elements of a value, by name or number.
func (e *editor) children(s spot) (names []string, spots []spot, err error) {
	switch t := s.node.(type) {
	case *ast.MappingNode:
		for _, v := range t.Values {
			names, spots = append(names, nameOf(v)), append(spots, e.member(v, s.flow || t.IsFlowStyle))
		}
	case *ast.MappingValueNode:
		names, spots = []string{nameOf(t)}, []spot{e.member(t, s.flow)}
	case *ast.SequenceNode:
		at := s.from + 1
		for i, v := range t.Values {
			child := spot{node: v, key: -1, flow: true}
			if t.IsFlowStyle {
				child.from = e.skipSpace(at)
				child.to = e.valueEnd(child.from, true)
				at = e.skipSpace(child.to) + 1 // behind the comma
			} else {
				if i >= len(t.Entries) || t.Entries[i].Start == nil {
					return nil, nil, errShared
				}
				child = e.behind(v, e.offset(t.Entries[i].Start.Position), 1, s.flow)
			}
			names, spots = append(names, strconv.Itoa(i)), append(spots, child)
		}
	}
	for _, c := range spots {
		if c.from < 0 || c.to < c.from || c.to > len(e.text) {
			return nil, nil, errShared
		}
	}
	return names, spots, nil
}

// member returns the spot of a mapping's member. The parser gives the place of the key and not that of the
// colon, which is searched for behind the key. A colon that a letter follows belongs to a plain word such as
// http://host. In brackets a comma, a bracket or a quote may follow it at once, as in JSON.
func (e *editor) member(v *ast.MappingValueNode, flow bool) spot {
	key := e.offset(v.Key.GetToken().Position)
	if key < 0 || key >= len(e.text) {
		return spot{from: -1}
	}
	at := key
	if c := e.text[at]; c == '"' || c == '\'' {
		at = e.quotedEnd(at)
	}
	for ; at < len(e.text); at++ {
		if e.text[at] == ':' && (at+1 == len(e.text) || strings.IndexByte(" \t\r\n", e.text[at+1]) >= 0 ||
			flow && strings.IndexByte(",[]{}\"'", e.text[at+1]) >= 0) {
			return e.behind(v.Value, key, at+1-key, flow)
		}
	}
	return spot{from: -1}
}

// behind returns the spot of a value whose key or dash is at key and has a length.
// Anchors and tags belong to the key and not to the value: they stay when the value is replaced,
// because an alias elsewhere may refer to the anchor.
func (e *editor) behind(n ast.Node, key, length int, flow bool) spot {
	s := spot{node: n, key: key, from: key + length, flow: flow}
	at := s.from
	skip := func() {
		for at < len(e.text) && (e.text[at] == ' ' || e.text[at] == '\t') {
			at++
		}
		if flow {
			at = e.skipSpace(at)
		}
	}
	for skip(); at < len(e.text) && (e.text[at] == '&' || e.text[at] == '!'); skip() {
		for at < len(e.text) && strings.IndexByte(" \t\r\n,]}", e.text[at]) < 0 {
			at++
		}
		switch t := s.node.(type) {
		case *ast.AnchorNode:
			s.node = t.Value
		case *ast.TagNode:
			s.node = t.Value
		}
		s.from = at
	}
	_, null := s.node.(*ast.NullNode)
	block := false
	switch t := s.node.(type) {
	case *ast.MappingNode:
		block = !t.IsFlowStyle
	case *ast.MappingValueNode:
		block = !flow
	case *ast.SequenceNode:
		block = !t.IsFlowStyle
	case *ast.LiteralNode:
		block = true
	}
	switch atEnd := at >= len(e.text) || strings.IndexByte("\r\n#", e.text[at]) >= 0; {
	case null && (atEnd || flow && strings.IndexByte(",]}", e.text[at]) >= 0):
		s.to = s.from
	case block || atEnd:
		s.below, s.to = true, e.blockEnd(key, s.node)
	default:
		s.from, s.to = at, e.valueEnd(at, flow)
	}
	return s
}

// blockEnd returns the place behind the last line of a block whose key or dash is at key. Comments and blank lines
// behind it that are not indented as its lines are do not belong to it.
// A comment after a block is ambiguous: it may belong to the block or to the next key. Its
// indentation decides, as it does for a reader.
func (e *editor) blockEnd(key int, n ast.Node) int {
	indent := key - e.lineStart(key)
	_, sequence := n.(*ast.SequenceNode)
	end := e.lineEnd(key)
	for at := end; at < len(e.text); at = e.lineEnd(at) {
		line := strings.TrimRight(e.text[at:e.lineEnd(at)], "\r\n")
		content := strings.TrimLeft(line, " ")
		deep := len(line) - len(content)
		switch {
		case strings.TrimSpace(content) == "":
			continue // it belongs to the block if more of it follows
		case deep > indent, sequence && deep == indent && strings.HasPrefix(content, "-") && e.text[key] != '-':
			end = e.lineEnd(at)
		case content[0] == '#':
			continue
		default:
			return end
		}
	}
	return end
}

// skipSpace returns the place of the next character that is no space, line end or comment.
func (e *editor) skipSpace(at int) int {
	for at < len(e.text) {
		switch c := e.text[at]; {
		case c == '#' && (at == 0 || strings.IndexByte(" \t\n", e.text[at-1]) >= 0):
			at = e.lineEnd(at)
		case strings.IndexByte(" \t\r\n", c) >= 0:
			at++
		default:
			return at
		}
	}
	return at
}

// quotedEnd returns the place behind the quoted text that begins at at. Double quotes are escaped with a backslash
// and single ones by doubling.
func (e *editor) quotedEnd(at int) int {
	quote := e.text[at]
	for i := at + 1; i < len(e.text); i++ {
		switch {
		case quote == '"' && e.text[i] == '\\':
			i++
		case e.text[i] == quote && quote == '\'' && i+1 < len(e.text) && e.text[i+1] == quote:
			i++
		case e.text[i] == quote:
			return i + 1
		}
	}
	return len(e.text)
}

// valueEnd returns the place behind a value that begins at at and is no block: a quoted text, brackets, or a plain text
// up to the end of its line or, in brackets (flow), up to the next comma or closing bracket. A # begins a comment only
// after white space.
func (e *editor) valueEnd(at int, flow bool) int {
	if at >= len(e.text) {
		return at
	}
	switch e.text[at] {
	case '"', '\'':
		return e.quotedEnd(at)
	// Brackets are counted, whichever kind they are. Quoted texts and comments are passed over, because they
	// may contain brackets.
	case '[', '{':
		// begins is true where a value may begin, because a quote inside a plain word ("don't") opens no quoted text.
		depth, begins := 0, true
		for i := at; i < len(e.text); i++ {
			switch c := e.text[i]; {
			case begins && (c == '"' || c == '\''):
				i = e.quotedEnd(i) - 1
				begins = false
			case c == '[' || c == '{':
				depth++
				begins = true
			case c == ']' || c == '}':
				if depth--; depth == 0 {
					return i + 1
				}
				begins = false
			case c == '#' && strings.IndexByte(" \t\n", e.text[i-1]) >= 0:
				i = e.lineEnd(i) - 1
				begins = true
			default:
				begins = c == ',' || begins && strings.IndexByte(" \t\r\n", c) >= 0 || c == ' ' && e.text[i-1] == ':'
			}
		}
		return len(e.text)
	}
	i := at
	for i < len(e.text) && strings.IndexByte("\r\n", e.text[i]) < 0 &&
		!(e.text[i] == '#' && i > at && strings.IndexByte(" \t", e.text[i-1]) >= 0) &&
		!(flow && strings.IndexByte(",]}", e.text[i]) >= 0) {
		i++
	}
	return at + len(strings.TrimRight(e.text[at:i], " \t"))
}

// root returns the spot of the document, also of one with an anchor or a tag before it.
func (e *editor) root() spot {
	s := spot{node: e.body, key: -1, to: len(e.text)}
	for wrapped := true; wrapped; {
		switch t := s.node.(type) {
		case *ast.AnchorNode:
			s.node = t.Value
		case *ast.TagNode:
			s.node = t.Value
		default:
			wrapped = false
		}
	}
	if m, ok := s.node.(*ast.MappingNode); ok && m.IsFlowStyle {
		s.from = e.offset(m.Start.Position)
		s.to = e.valueEnd(s.from, true)
	}
	return s
}

// find returns the spots along a path, the document first, as far as they exist. The length of the result
// says how much of the path exists, which is all of it if there are len(path)+1 spots. An alias has no
// children here, so a path through one ends at the alias.
func (e *editor) find(path []string) (found []spot, err error) {
	found = []spot{e.root()}
	for _, name := range path {
		names, spots, err := e.children(found[len(found)-1])
		if err != nil {
			return nil, err
		}
		i := slices.Index(names, name)
		if i < 0 {
			break
		}
		found = append(found, spots[i])
	}
	return found, nil
}

// set writes a value at path, and adds the member or element if it does not exist.
// A block is replaced by a value on one line. The last line end stays, so that the next key keeps
// its line.
func (e *editor) set(path []string, value jsontext.Value) error {
	found, err := e.find(path)
	if err != nil {
		return err
	}
	s := found[len(found)-1]
	if missing := path[len(found)-1:]; len(missing) > 0 {
		return e.insert(s, missing, len(path)-len(missing), value)
	}
	written, err := flowText(value, 0)
	switch {
	case err != nil:
		return err
	case s.below:
		end := s.to - len(e.text[:s.to]) + len(strings.TrimRight(e.text[:s.to], "\r\n"))
		e.splice(s.from, end, " "+written)
	case s.from == s.to:
		e.splice(s.from, s.to, " "+written)
	default:
		e.splice(s.from, s.to, written)
	}
	return nil
}

// blockDepth is the number of levels that are written as lines of their own: providers, and the settings of one.
const blockDepth = 2

// insert adds a member or an element that does not exist. depth is the number of names that do.
// The new member takes the form of its neighbours: inside brackets it is added to the brackets, in
// a block it gets lines of its own with the indentation of the first member.
func (e *editor) insert(s spot, missing []string, depth int, value jsontext.Value) error {
	_, spots, err := e.children(s)
	if err != nil {
		return err
	}
	inner, err := nested(missing[1:], value)
	if err != nil {
		return err
	}
	item := keyText(missing[0]) + ": " + inner
	sequence, isSequence := s.node.(*ast.SequenceNode)
	m, isMapping := s.node.(*ast.MappingNode)
	_, isPair := s.node.(*ast.MappingValueNode)
	if isSequence {
		item = inner
	}
	switch {
	case isSequence && sequence.IsFlowStyle, isMapping && m.IsFlowStyle, isPair && s.flow:
		if len(spots) == 0 {
			e.splice(s.from+1, s.from+1, item)
		} else {
			last := spots[len(spots)-1].to
			e.splice(last, last, ", "+item)
		}
	case isSequence:
		last := spots[len(spots)-1]
		e.addLines(e.entryEnd(last), e.text[e.lineStart(last.key):last.key]+"- "+item)
	case isMapping, isPair:
		first, last := spots[0].key, spots[len(spots)-1]
		lines, err := blockLines(strings.Repeat(" ", first-e.lineStart(first)), missing, depth, value)
		if err != nil {
			return err
		}
		e.addLines(e.entryEnd(last), lines...)
	case s.key < 0 && s.node == nil: // an empty file
		lines, err := blockLines("", missing, depth, value)
		if err != nil {
			return err
		}
		e.addLines(len(e.text), lines...)
	case s.from < s.to: // the word null
		e.splice(s.from, s.to, "{"+item+"}")
	case s.flow || e.text[s.key] == '-':
		e.splice(s.from, s.from, " {"+item+"}")
	default:
		lines, err := blockLines(strings.Repeat(" ", s.key-e.lineStart(s.key)+2), missing, depth, value)
		if err != nil {
			return err
		}
		e.addLines(e.lineEnd(s.key), lines...)
	}
	return nil
}

// addLines adds lines at the beginning of a line, or at the end of the text.
func (e *editor) addLines(at int, lines ...string) {
	text := strings.Join(lines, e.eol) + e.eol
	if at > 0 && e.text[at-1] != '\n' {
		text = e.eol + text
	}
	e.splice(at, at, text)
}

// entryEnd returns the place behind the last line of a member or an element that has lines of its own.
func (e *editor) entryEnd(s spot) int {
	if s.below {
		return s.to
	}
	return e.lineEnd(max(s.to-1, s.key))
}

// remove removes a setting with its lines. In brackets it takes a comma with it: the one behind the member, or, for the
// last member, the one before it. It returns errShared for a setting that belongs to an anchor, and for one whose key
// is not the first text on its line.
func (e *editor) remove(path []string) error {
	found, err := e.find(path)
	if err != nil {
		return err
	}
	if len(found) != len(path)+1 {
		return errShared // an alias has the value, and its anchor is elsewhere
	}
	s, parent := found[len(found)-1], found[len(found)-2]
	if !s.flow {
		start := e.lineStart(s.key)
		// Something stands before the key on its line, such as the dash of a list whose first member this is.
		if strings.TrimLeft(e.text[start:s.key], " ") != "" {
			return errShared
		}
		e.splice(start, e.entryEnd(s), "")
		return nil
	}
	names, spots, err := e.children(parent)
	if err != nil {
		return err
	}
	i := slices.Index(names, path[len(path)-1])
	begin := func(s spot) int {
		if s.key >= 0 {
			return s.key
		}
		return s.from
	}
	switch {
	case i+1 < len(spots):
		e.splice(begin(s), begin(spots[i+1]), "")
	case i > 0:
		e.splice(spots[i-1].to, s.to, "")
	default: // the only one
		end := s.to
		if e.text[end] == ',' {
			end++
		}
		e.splice(begin(s), end, "")
	}
	return nil
}

// blockLines returns a new member as lines. depth is the number of levels above it. At most blockDepth levels
// become lines of their own. What is deeper is written in brackets on one line, as in the example of the
// documentation.
func blockLines(indent string, names []string, depth int, value jsontext.Value) ([]string, error) {
	head := indent + keyText(names[0]) + ":"
	switch rest := names[1:]; {
	case len(rest) > 0 && depth+1 < blockDepth:
		lines, err := blockLines(indent+"  ", rest, depth+1, value)
		return append([]string{head}, lines...), err
	case len(rest) == 0 && depth+1 <= blockDepth && value.Kind() == '{':
		lines := []string{head}
		err := eachMember(value, func(name string, v jsontext.Value) error {
			below, err := blockLines(indent+"  ", []string{name}, depth+1, v)
			lines = append(lines, below...)
			return err
		})
		if len(lines) > 1 || err != nil {
			return lines, err
		}
		fallthrough
	default:
		inner, err := nested(rest, value)
		return []string{head + " " + inner}, err
	}
}

// nested returns a value in brackets, one for each name. The names a and b around 1 give {a: {b: 1}}.
func nested(names []string, value jsontext.Value) (string, error) {
	written, err := flowText(value, 0)
	for _, name := range slices.Backward(names) {
		written = "{" + keyText(name) + ": " + written + "}"
	}
	return written, err
}

var (
	// plainWord is a text that needs no quotes in YAML and is a string for every reader of it.
	plainWord = regexp.MustCompile(`^[A-Za-z][A-Za-z0-9_./-]*\*?$`)
	// timeWord is a duration.
	timeWord  = regexp.MustCompile(`^([0-9]+(ms|s|m|h|d))+$`)
	otherWord = regexp.MustCompile(`(?i)^(true|false|null|yes|no|on|off|y|n)$`)
)

// keyText returns a text as YAML, in quotes where a reader could take it for something else than a string.
// The rules are stricter than YAML 1.2 requires, because older readers take yes, on and 12e3 for
// something else than a text.
func keyText(name string) string {
	if (plainWord.MatchString(name) || timeWord.MatchString(name)) && !otherWord.MatchString(name) {
		return name
	}
	quoted, _ := jsontext.AppendQuote(nil, name)
	return string(quoted)
}

// maxDepth bounds the values in values.
const maxDepth = 100

// flowText writes JSON as YAML on one line, without the quotes that are not needed. depth is 0 for the outermost value.
func flowText(value jsontext.Value, depth int) (string, error) {
	if depth > maxDepth {
		return "", errors.New("expected fewer values in values")
	}
	switch value.Kind() {
	case '"':
		text, err := jsontext.AppendUnquote(nil, value)
		return keyText(string(text)), err
	case '{':
		var all []string
		err := eachMember(value, func(name string, v jsontext.Value) error {
			written, err := flowText(v, depth+1)
			all = append(all, keyText(name)+": "+written)
			return err
		})
		return "{" + strings.Join(all, ", ") + "}", err
	case '[':
		var all []string
		d := jsontext.NewDecoder(bytes.NewReader(value))
		if _, err := d.ReadToken(); err != nil {
			return "", err
		}
		for d.PeekKind() != ']' {
			v, err := d.ReadValue()
			if err != nil {
				return "", err
			}
			written, err := flowText(v, depth+1)
			if err != nil {
				return "", err
			}
			all = append(all, written)
		}
		return "[" + strings.Join(all, ", ") + "]", nil
	}
	if !value.IsValid() {
		return "", errors.New("expected a JSON value")
	}
	return strings.TrimSpace(string(value)), nil
}

// eachMember calls do for each member of a JSON object, in its order. A map would lose the order, and with it the
// order in which an administrator entered the settings.
func eachMember(value jsontext.Value, do func(name string, v jsontext.Value) error) error {
	d := jsontext.NewDecoder(bytes.NewReader(value))
	if _, err := d.ReadToken(); err != nil {
		return err
	}
	for d.PeekKind() != '}' {
		name, err := d.ReadToken()
		if err != nil {
			return err
		}
		text := name.String()
		v, err := d.ReadValue()
		if err == nil {
			err = do(text, v)
		}
		if err != nil {
			return err
		}
	}
	return nil
}
