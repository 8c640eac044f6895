package fields

import (
	"bytes"
	"strconv"
	"sync"

	"stagedoor/providers/dialogue"
)

// Kind is the type of a JSON value.
type Kind uint8

// Kinds of values. Invalid is the end of the text, or something that is not a value.
const (
	Invalid Kind = iota
	Null
	Bool
	Number
	String
	Array
	Object
)

// Reader reads a JSON text once from its beginning to its end and checks it on the way. Whole reports at the end
// whether the text was JSON. If it was not, the text looks as if it ended early. Every value must be consumed by
// exactly one call; values that a callback leaves are skipped. A Reader is not safe for concurrent use.
type Reader struct {
	buf   []byte
	pos   int
	path  []step
	names [][]byte // of the objects that are being read; see scope
	depth int
	// lenient permits what parsers accept, which is repeated names and bytes that are not UTF-8.
	lenient bool
	deepest int  // permitted levels of nesting
	flaw    Flaw // Sound until the text breaks a rule
	at      int  // the offset at which it breaks the rule
	known   *Names
	place   *place // of the current value, within known's exceptions
	free    bool   // the client may choose the names in the current value
	items   int    // objects in lists, without those in free values
	spare   int    // items that do not count, because of Names.WithLongList
	inLong  bool
}

// step is one level of the path, which is a name, or an index if name is nil.
type step struct {
	name  []byte
	index int
}

var readers = sync.Pool{New: func() any { return &Reader{path: make([]step, 0, 8), names: make([][]byte, 0, 32)} }}

// NewReader returns a reader of text by the rules of Valid. It does not write to text.
func NewReader(text []byte) *Reader {
	r := readers.Get().(*Reader)
	r.buf, r.deepest = text, MaxDepth
	return r
}

// Knowing makes the reader refuse names that are other spellings of names, and returns the reader.
func (r *Reader) Knowing(names *Names) *Reader {
	r.known = names
	if names != nil {
		r.place = names.root
	}
	return r
}

// surroundings has the state of a Reader around a value.
type surroundings struct {
	place *place
	free  bool
}

// enter prepares the reader for the value of a member. The caller passes the result to leave after the value.
func (r *Reader) enter(name []byte) (around surroundings) {
	around = surroundings{r.place, r.free}
	r.space()
	if r.known != nil && !r.free && r.pos < len(r.buf) && (r.buf[r.pos] == '{' || r.buf[r.pos] == '[') {
		r.place, r.free = r.known.step(r.place, name)
	}
	return around
}

// leave restores the state from before the value of a member.
func (r *Reader) leave(around surroundings) { r.place, r.free = around.place, around.free }

// NewLenientReader returns a reader of texts of upstreams. Names may be repeated, strings may hold any bytes up to
// their quote, and values may be nested MaxReplyDepth levels deep.
func NewLenientReader(text []byte) *Reader {
	r := NewReader(text)
	r.lenient, r.deepest = true, MaxReplyDepth
	return r
}

// Free returns the reader to a pool. It must not be used afterwards. Calling Free is optional.
func (r *Reader) Free() {
	clear(r.path[:cap(r.path)])
	clear(r.names[:cap(r.names)])
	*r = Reader{path: r.path[:0], names: r.names[:0]}
	readers.Put(r)
}

// Whole reports whether the whole text was read and was JSON.
func (r *Reader) Whole() bool {
	r.space()
	return r.flaw == Sound && r.pos == len(r.buf) && r.depth == 0 && len(r.buf) > 0
}

// Pos returns the offset of the next unread byte.
func (r *Reader) Pos() int { return r.pos }

// Peek returns the kind of the next value without consuming it.
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

// Object calls member with the name of each member of the next value, which is an object. The first error ends it.
func (r *Reader) Object(member func(name []byte) error) error {
	if r.Peek() != Object {
		return r.Broken("must be an object")
	}
	if !r.open('}') {
		return nil
	}
	in := scope{base: len(r.names)}
	for {
		name := r.member(&in)
		if r.flaw != Sound {
			return nil
		}
		around := r.enter(name)
		if err := r.each(step{name: name}, func() error { return member(name) }); err != nil {
			return err
		}
		r.leave(around)
		if !r.more('}') {
			break
		}
	}
	r.names = r.names[:in.base]
	return nil
}

// Array calls item for each element of the next value, which is an array.
func (r *Reader) Array(item func(i int) error) error {
	if r.Peek() != Array {
		return r.Broken("must be an array")
	}
	if !r.open(']') {
		return nil
	}
	for i := 0; ; i++ {
		if r.known != nil && !r.countItem() {
			return nil
		}
		if err := r.each(step{index: i}, func() error { return item(i) }); err != nil {
			return err
		}
		if !r.more(']') {
			return nil
		}
	}
}

// each calls consume for the next value and skips the value if consume did not read it.
func (r *Reader) each(at step, consume func() error) error {
	r.space()
	start := r.pos
	r.path = append(r.path, at)
	if err := consume(); err != nil {
		return err
	}
	r.path = r.path[:len(r.path)-1]
	if r.pos == start {
		r.value()
	}
	return nil
}

// Skip consumes the next value and returns its text.
func (r *Reader) Skip() []byte {
	r.space()
	start := r.pos
	r.value()
	return r.buf[start:r.pos]
}

// Null consumes the next value if it is null, and reports whether it was.
func (r *Reader) Null() bool {
	if r.Peek() != Null {
		return false
	}
	r.value()
	return true
}

// Broken returns the error for the current field, which breaks rule.
func (r *Reader) Broken(rule string) error { return dialogue.Invalid(r.Field(), rule) }

// Lacks returns the error for the current object, which lacks the member name.
func (r *Reader) Lacks(name string) error {
	if at := r.Field(); at != "" {
		return dialogue.Missing(at + "." + name)
	}
	return dialogue.Missing(name)
}

// Field returns the path of the current value, such as "messages.0.role".
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

// space reads past the white space that JSON permits, which is less than what unicode.IsSpace
// takes.
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

// consume reads past white space and then past c, and reports whether c was there.
func (r *Reader) consume(c byte) bool {
	r.space()
	if r.pos < len(r.buf) && r.buf[r.pos] == c {
		r.pos++
		return true
	}
	return false
}

// inner removes the quotes of a string. The second one may be missing in a text that is not JSON.
func inner(raw []byte) []byte {
	if len(raw) < 2 || raw[len(raw)-1] != '"' {
		return []byte{}
	}
	return raw[1 : len(raw)-1]
}
