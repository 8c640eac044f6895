package vector

import (
	"net/http"
	"slices"

	"github.com/tidwall/gjson"

	"stagedoor/providers/dialogue"
	"stagedoor/providers/jsonw"
)

// Limits of what a Tap follows. Replies have four levels, and the members that it keeps have a few hundred bytes.
const (
	maxMember = 64 << 10
	maxLevels = 64
)

// Tap watches a reply that passes through unchanged, in pieces of any size. It checks that brackets and quotes match,
// learns the usage, and replaces the model's name if the client used another one. It holds nothing of the reply but
// these members, so that a reply of any length costs the same memory.
type Tap struct {
	dialect *Dialect
	model   []byte // JSON that replaces the model's name, or nil
	named   string // the model that the reply names
	usage   dialogue.Usage
	vectors bool // the member with the vectors has begun

	depth    int
	arrays   uint64 // bit n is set if level n is an array
	inString bool
	escaped  bool
	inValue  bool   // of a member at the top, else in its name
	began    bool   // the first byte of that value has been seen
	name     []byte // of that member, as it is written
	keep     bool   // the value is kept
	skip     bool   // the value is replaced
	kept     []byte
	ended    bool
	failed   *dialogue.Error
}

// NewTap returns the Tap of a reply in the dialect d. model replaces the name of the model, unless it is "".
func NewTap(d *Dialect, model string) *Tap {
	t := &Tap{dialect: d, usage: dialogue.NoUsage}
	if model != "" && d.Reply.Model != "" {
		t.model = jsonw.AppendString(nil, model)
	}
	return t
}

// Usage returns what the reply has reported so far.
func (t *Tap) Usage() dialogue.Usage { return t.usage }

// Model returns the model that the reply has named so far, or "". It is text of the provider.
func (t *Tap) Model() string { return t.named }

// Next appends to dst what the client gets of the next piece of the reply. After an error the reply is of no use.
func (t *Tap) Next(dst, piece []byte) ([]byte, *dialogue.Error) {
	from := 0
	for i, c := range piece {
		skipped := t.skip
		t.read(c)
		switch {
		case t.failed != nil:
			return dst, t.failed
		case t.skip && !skipped:
			dst = append(append(dst, piece[from:i]...), t.model...)
		case skipped && !t.skip:
			from = i
		}
	}
	if t.skip {
		return dst, nil
	}
	return append(dst, piece[from:]...), nil
}

// End returns the error of a reply that has ended too early or has no vectors, or nil.
func (t *Tap) End() *dialogue.Error {
	switch {
	case t.failed != nil:
		return t.failed
	case !t.ended:
		return dialogue.Incomplete()
	case !t.vectors:
		return dialogue.BadUpstream("a reply without vectors")
	}
	return nil
}

// read takes note of one byte.
func (t *Tap) read(c byte) {
	if t.inString {
		t.readString(c)
		return
	}
	switch c {
	case ' ', '\t', '\r', '\n':
		return
	case '"':
		t.inString = true
	case '{', '[':
		t.open(c == '[')
		return
	case '}', ']':
		t.close(c == ']')
		return
	}
	switch {
	case t.depth == 0:
		t.fail("a reply that is not a JSON object")
	case t.depth > 1 || t.inValue && c != ',':
		t.note(c)
	case c == ':' && !t.inValue:
		t.inValue = true
	case c == ',':
		t.endMember()
	}
}

// readString takes note of a byte inside a string.
func (t *Tap) readString(c byte) {
	switch {
	case t.escaped:
		t.escaped = false
	case c == '\\':
		t.escaped = true
	case c == '"':
		t.inString = false
	}
	switch {
	case t.inValue:
		t.note(c)
	case t.inString && len(t.name) < maxLevels:
		t.name = append(t.name, c)
	}
}

// open takes note of an opening bracket. The kind of each open level is one bit of arrays, which
// maxLevels bounds.
func (t *Tap) open(array bool) {
	if t.ended || t.depth == 0 && array || t.depth >= maxLevels {
		t.fail("a reply that is not a JSON object, or nested too deeply")
		return
	}
	if t.depth++; t.depth > 1 {
		bracket := byte('{')
		if t.arrays &^= 1 << (t.depth - 1); array {
			t.arrays |= 1 << (t.depth - 1)
			bracket = '['
		}
		t.note(bracket)
	}
}

// close takes note of a closing bracket, which must be of the kind that was opened last.
func (t *Tap) close(array bool) {
	if t.depth == 0 || array != (t.depth > 1 && t.arrays>>(t.depth-1)&1 == 1) {
		t.fail("a reply whose brackets do not match")
		return
	}
	if t.depth == 1 {
		t.endMember()
		t.ended = true
	} else if array {
		t.note(']')
	} else {
		t.note('}')
	}
	t.depth--
}

// note takes note of a byte of a member's value.
func (t *Tap) note(c byte) {
	if !t.began {
		t.began = true
		names := &t.dialect.Reply
		isModel := names.Model != "" && string(t.name) == names.Model
		t.keep = isModel || string(t.name) == names.Usage || string(t.name) == names.Error
		t.skip = isModel && t.model != nil
		t.vectors = t.vectors || (c == '[' || c == '{') && slices.Contains(names.Vectors, string(t.name))
	}
	if !t.keep {
		return
	}
	if t.kept = append(t.kept, c); len(t.kept) > maxMember {
		t.fail("a reply with a member that is too long")
	}
}

// endMember reads the value of a member that is kept.
func (t *Tap) endMember() {
	switch {
	case !t.keep:
	case string(t.name) == t.dialect.Reply.Usage:
		t.usage = t.dialect.Usage(t.kept)
	case string(t.name) == t.dialect.Reply.Model:
		t.named = gjson.ParseBytes(t.kept).String()
	case string(t.kept) != "null":
		t.failed = ErrorInReply(t.dialect, t.kept)
	}
	t.inValue, t.began, t.keep, t.skip = false, false, false, false
	t.name, t.kept = t.name[:0], t.kept[:0]
}

// fail keeps the first error, as later ones only follow from it.
func (t *Tap) fail(detail string) {
	if t.failed == nil {
		t.failed = dialogue.BadUpstream(detail)
	}
}

// ErrorInReply returns the error of a reply that has the status 200 and the member error with this value.
func ErrorInReply(d *Dialect, value []byte) *dialogue.Error {
	return d.DecodeError(http.StatusBadGateway, nil, slices.Concat([]byte(`{"`+d.Reply.Error+`":`), value, []byte{'}'}))
}
