package fields

import (
	"bytes"
	"strconv"
	"sync"

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

// Reader walks a JSON text once, from front to back, and checks all of it on the
// way: Whole says at the end whether it was JSON. Where it was not, the walk ends
// and the text looks cut off. Every value must be consumed by exactly one call;
// what a callback leaves is skipped for it. Not safe for concurrent use.
type Reader struct {
	buf   []byte
	pos   int
	path  []step
	names [][]byte // of the objects being read, see scope
	depth int
	// lenient lets pass what no parser stumbles over: names that occur twice
	// and bytes that are not UTF-8.
	lenient bool
	deepest int  // levels that values may be nested
	flaw    Flaw // Sound until the text breaks a rule
	at      int  // where it does
	known   *Names
	place   *place // of the value being read, among those that known excepts
	free    bool   // the names in the value being read are the client's own
	items   int    // objects in lists, but not in those that are free
	spare   int    // items of the list that Names.WithLongList names
	inLong  bool
}

// step is one level of the path: a name, or an index if name is nil.
type step struct {
	name  []byte
	index int
}

var readers = sync.Pool{New: func() any { return &Reader{path: make([]step, 0, 8), names: make([][]byte, 0, 32)} }}

// NewReader reads text, which it does not write to, by the rules of Valid.
func NewReader(text []byte) *Reader {
	r := readers.Get().(*Reader)
	r.buf, r.deepest = text, MaxDepth
	return r
}

// Knowing makes the reader refuse names that only fold to one of names, and returns
// the reader.
func (r *Reader) Knowing(names *Names) *Reader {
	r.known = names
	if names != nil {
		r.place = names.root
	}
	return r
}

// surroundings is what a Reader knows of the place that it reads at.
type surroundings struct {
	place *place
	free  bool
}

// enter prepares the reader for the value of a member. The caller must give the result to leave
// when the value has been read.
func (r *Reader) enter(name []byte) (around surroundings) {
	around = surroundings{r.place, r.free}
	r.space()
	if r.known != nil && !r.free && r.pos < len(r.buf) && (r.buf[r.pos] == '{' || r.buf[r.pos] == '[') {
		r.place, r.free = r.known.step(r.place, name)
	}
	return around
}

func (r *Reader) leave(around surroundings) { r.place, r.free = around.place, around.free }

// NewLenientReader reads what others than clients have written: names may occur
// twice, strings may hold anything that ends at their quote, and values may be
// nested MaxReplyDepth levels deep.
func NewLenientReader(text []byte) *Reader {
	r := NewReader(text)
	r.lenient, r.deepest = true, MaxReplyDepth
	return r
}

// Free gives the reader back for the next text. Using it afterwards is a bug;
// not to call Free is none.
func (r *Reader) Free() {
	clear(r.path[:cap(r.path)])
	clear(r.names[:cap(r.names)])
	*r = Reader{path: r.path[:0], names: r.names[:0]}
	readers.Put(r)
}

// Whole reports whether everything was read, and was JSON.
func (r *Reader) Whole() bool {
	r.space()
	return r.flaw == Sound && r.pos == len(r.buf) && r.depth == 0 && len(r.buf) > 0
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

// Array calls item for each element of the array that comes next.
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

// each lets one callback consume the next value, and does so if it did not.
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

// Skip consumes the next value and returns it as written.
func (r *Reader) Skip() []byte {
	r.space()
	start := r.pos
	r.value()
	return r.buf[start:r.pos]
}

// Null consumes a null, if that is what comes next.
func (r *Reader) Null() bool {
	if r.Peek() != Null {
		return false
	}
	r.value()
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

func (r *Reader) eat(c byte) bool {
	r.space()
	if r.pos < len(r.buf) && r.buf[r.pos] == c {
		r.pos++
		return true
	}
	return false
}

// inner strips the quotes of a string. Damaged text may lack the second.
func inner(raw []byte) []byte {
	if len(raw) < 2 || raw[len(raw)-1] != '"' {
		return []byte{}
	}
	return raw[1 : len(raw)-1]
}
