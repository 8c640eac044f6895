package fields

import (
	"bytes"
	"strconv"

	"stagedoor/providers/dialogue"
)

// Kind is the type of a JSON value.
type Kind uint8

// Kinds of values. Invalid is the end of the text or something that is no value.
const (
	Invalid Kind = iota
	Null
	Bool
	Number
	String
	Array
	Object
)

// Reader walks a JSON text once, from front to back. Every value must be
// consumed by exactly one call; what a callback leaves is skipped for it. The
// zero value reads the empty text. Not safe for concurrent use.
type Reader struct {
	buf  []byte
	pos  int
	name int // where the name of the member being read starts
	path []step
}

// step is one level of the path: a name, or an index if name is nil.
type step struct {
	name  []byte
	index int
}

// NewReader reads text, which it does not write to.
func NewReader(text []byte) *Reader {
	return &Reader{buf: text, path: make([]step, 0, 8)}
}

// Pos is the offset of the next unread byte.
func (r *Reader) Pos() int { return r.pos }

// Peek tells the kind of the next value without consuming it.
func (r *Reader) Peek() Kind {
	r.space()
	if r.pos >= len(r.buf) {
		return Invalid
	}
	switch c := r.buf[r.pos]; {
	case c == '"':
		return String
	case c == '{':
		return Object
	case c == '[':
		return Array
	case c == '-' || c >= '0' && c <= '9':
		return Number
	case c == 't' || c == 'f':
		return Bool
	case c == 'n':
		return Null
	}
	return Invalid
}

// Object calls member for each member of the object that comes next, with its
// name. The first error ends it.
func (r *Reader) Object(member func(name []byte) error) error {
	if r.Peek() != Object {
		return r.Broken("must be an object")
	}
	r.pos++
	for {
		r.space()
		if r.pos >= len(r.buf) || r.buf[r.pos] != '"' {
			break // '}', or damage
		}
		r.name = r.pos
		quoted := r.Skip()
		name := inner(quoted)
		if bytes.IndexByte(name, '\\') >= 0 { // "\u006e" is n: no way around a rule
			name = []byte(Unquote(quoted))
		}
		if !r.eat(':') {
			break
		}
		start := r.pos
		r.path = append(r.path, step{name: name})
		if err := member(name); err != nil {
			return err
		}
		r.path = r.path[:len(r.path)-1]
		if r.pos == start {
			r.Skip()
		}
		if !r.eat(',') {
			break
		}
	}
	r.eat('}')
	return nil
}

// Array calls item for each element of the array that comes next.
func (r *Reader) Array(item func(i int) error) error {
	if r.Peek() != Array {
		return r.Broken("must be an array")
	}
	r.pos++
	for i := 0; r.Peek() != Invalid; i++ {
		start := r.pos
		r.path = append(r.path, step{index: i})
		if err := item(i); err != nil {
			return err
		}
		r.path = r.path[:len(r.path)-1]
		if r.pos == start {
			r.Skip()
		}
		if !r.eat(',') {
			break
		}
	}
	r.eat(']')
	return nil
}

// Skip consumes the next value and returns it as written.
func (r *Reader) Skip() []byte {
	r.space()
	start := r.pos
	depth := 0
	for r.pos < len(r.buf) {
		switch c := r.buf[r.pos]; c {
		case '"':
			r.pos = stringEnd(r.buf, r.pos)
		case '{', '[':
			depth++
			r.pos++
		case '}', ']':
			if depth == 0 { // damage: a value is missing here
				return r.buf[start:r.pos]
			}
			depth--
			r.pos++
		case ' ', '\t', '\n', '\r', ',', ':':
			r.pos++
		default:
			r.scalar()
		}
		if depth == 0 {
			break
		}
	}
	return r.buf[start:r.pos]
}

// Null consumes a null, if that is what comes next.
func (r *Reader) Null() bool {
	if r.Peek() != Null {
		return false
	}
	r.scalar()
	return true
}

// Broken is the error of the field being read: it breaks rule.
func (r *Reader) Broken(rule string) error { return dialogue.Invalid(r.Field(), rule) }

// Lacks is the error of the object being read: its member name is missing.
func (r *Reader) Lacks(name string) error {
	if at := r.Field(); at != "" {
		return dialogue.Missing(at + "." + name)
	}
	return dialogue.Missing(name)
}

// Field names the value being read: "messages.0.role".
func (r *Reader) Field() string {
	var b []byte
	for i, s := range r.path {
		if i > 0 {
			b = append(b, '.')
		}
		if s.name == nil {
			b = strconv.AppendInt(b, int64(s.index), 10)
			continue
		}
		b = append(b, s.name[:min(len(s.name), 64)]...)
	}
	return string(bytes.ToValidUTF8(b, []byte("\uFFFD")))
}

func (r *Reader) space() {
	for r.pos < len(r.buf) {
		switch r.buf[r.pos] {
		case ' ', '\t', '\n', '\r':
			r.pos++
		default:
			return
		}
	}
}

// scalar consumes a number or a literal.
func (r *Reader) scalar() {
	for r.pos < len(r.buf) {
		switch r.buf[r.pos] {
		case ',', '}', ']', ' ', '\t', '\n', '\r', ':', '"', '{', '[':
			return
		}
		r.pos++
	}
}

func (r *Reader) eat(c byte) bool {
	r.space()
	if r.pos < len(r.buf) && r.buf[r.pos] == c {
		r.pos++
		return true
	}
	return false
}

// stringEnd is the offset behind the string that starts at i. Long strings are
// most of a prompt, so the search for their end is left to IndexByte.
func stringEnd(b []byte, i int) int {
	from := i + 1
	for {
		n := bytes.IndexByte(b[from:], '"')
		if n < 0 {
			return len(b)
		}
		end := from + n
		escapes := 0
		for k := end - 1; k > i && b[k] == '\\'; k-- {
			escapes++
		}
		if escapes%2 == 0 {
			return end + 1
		}
		from = end + 1
	}
}

// inner strips the quotes of a string. Damaged text may lack the second.
func inner(raw []byte) []byte {
	if len(raw) < 2 || raw[len(raw)-1] != '"' {
		return []byte{}
	}
	return raw[1 : len(raw)-1]
}
