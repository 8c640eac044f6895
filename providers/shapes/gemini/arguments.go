package gemini

import (
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/tidwall/gjson"

	"stagedoor/providers/jsonw"
)

// partialCall is a functionCall that is not complete. Most come whole. Upstreams that stream
// arguments send values with the JSON path of each, and strings in pieces:
//
//	{"jsonPath":"$.city","stringValue":"Be"}  {"jsonPath":"$.city","stringValue":"rn"}   gives {"city":"Bern"}
type partialCall struct {
	id, name  string
	args      gjson.Result
	root      *argument
	size      int
	signature string
}

// Limits of what an upstream can build with streamed arguments: the number of values, and their
// depth.
const (
	maxArguments = 10_000
	maxArgDepth  = 64
)

// take adds streamed pieces of the arguments, and the signature of the call if it came.
func (c *partialCall) take(pieces gjson.Result, signature string) {
	if signature != "" {
		c.signature = signature
	}
	if !pieces.IsArray() {
		return
	}
	pieces.ForEach(func(_, piece gjson.Result) bool {
		c.piece(piece)
		return true
	})
}

// piece adds one value at its path. A piece that does not fit what came before is ignored.
func (c *partialCall) piece(v gjson.Result) {
	steps, ok := pathSteps(str(field(v, "jsonPath")))
	if !ok {
		return
	}
	if c.root == nil {
		c.root = &argument{kind: '{'}
	}
	at := c.root
	for _, s := range steps {
		if at = at.child(s, &c.size); at == nil {
			return
		}
	}
	eachMember(v, func(name string, v gjson.Result) bool {
		switch name {
		case "stringValue":
			at.kind = '"'
			at.text = append(at.text, str(v)...)
		case "numberValue", "boolValue":
			at.kind, at.text = 'v', []byte(v.Raw)
		case "nullValue":
			at.kind, at.text = 'v', []byte("null")
		}
		return true
	})
}

// arguments returns the JSON text of the arguments: {} if there are none, and the text itself if
// the upstream sent a string.
func (c *partialCall) arguments() string {
	if c.root != nil {
		var w jsonw.Writer
		c.root.write(&w)
		return string(w.Buf)
	}
	switch {
	case !c.args.Exists():
		return "{}"
	case c.args.Type == gjson.String:
		return c.args.Str
	case utf8.ValidString(c.args.Raw):
		return c.args.Raw
	}
	return strings.ToValidUTF8(c.args.Raw, "\ufffd")
}

// argument is a node in the tree of streamed arguments: an object, an array or a value.
type argument struct {
	kind     byte // '{', '[', '"', 'v' for a finished value, 0 for nothing yet
	text     []byte
	names    []string
	children []*argument
}

// step is one step of a JSON path: a name, or an index into an array.
type step struct {
	name  string
	index int // -1: a name
}

// child returns the node one step below, and creates it if it is missing, or nil if the step does
// not fit. An index may at most be the next one, so that a large number cannot allocate memory.
// size counts all nodes.
func (a *argument) child(s step, size *int) *argument {
	want := byte('{')
	if s.index >= 0 {
		want = '['
	}
	if a.kind == 0 {
		a.kind = want
	}
	if a.kind != want {
		return nil
	}
	at := s.index
	if s.index < 0 {
		if at = slices.Index(a.names, s.name); at < 0 {
			at = len(a.names)
		}
	}
	if at < len(a.children) {
		return a.children[at]
	}
	if at > len(a.children) || *size >= maxArguments {
		return nil
	}
	*size++
	made := new(argument)
	a.children, a.names = append(a.children, made), append(a.names, s.name)
	return made
}

// write writes the argument with what was streamed below it.
func (a *argument) write(w *jsonw.Writer) {
	switch a.kind {
	case '{':
		w.Object()
		for i, child := range a.children {
			child.write(w.KeyOf(a.names[i]))
		}
		w.End()
	case '[':
		w.Array()
		for _, child := range a.children {
			child.write(w)
		}
		w.End()
	case '"':
		w.Text(a.text)
	default:
		w.Raw(a.text)
	}
}

// pathSteps returns the steps of a JSON path that names one place: $.a.b[0]['c d']. ok is false for
// other paths.
func pathSteps(path string) (steps []step, ok bool) {
	rest, ok := strings.CutPrefix(path, "$")
	for ok && rest != "" && len(steps) < maxArgDepth {
		var s step
		s, rest, ok = nextStep(rest)
		steps = append(steps, s)
	}
	return steps, ok && rest == "" && len(steps) > 0
}

// nextStep returns the first step of a path, and the rest of the path.
func nextStep(path string) (s step, rest string, ok bool) {
	if path[0] == '.' {
		end := strings.IndexAny(path[1:], ".[")
		if end < 0 {
			end = len(path) - 1
		}
		return step{name: path[1 : 1+end], index: -1}, path[1+end:], end > 0
	}
	if len(path) > 2 && path[0] == '[' && (path[1] == '\'' || path[1] == '"') {
		end := strings.Index(path[2:], path[1:2]+"]")
		if end < 0 {
			return s, "", false
		}
		return step{name: path[2 : 2+end], index: -1}, path[4+end:], true
	}
	end := strings.IndexByte(path, ']')
	if path[0] != '[' || end < 0 {
		return s, "", false
	}
	n, err := strconv.Atoi(path[1:end])
	return step{index: n}, path[end+1:], err == nil && n >= 0
}
