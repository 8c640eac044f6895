package config

import (
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/goccy/go-yaml/ast"
	"github.com/goccy/go-yaml/token"
)

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
