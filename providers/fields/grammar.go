package fields

import (
	"bytes"
	"unicode/utf8"
)

// Valid reports whether text is one JSON value by the strict rules for client requests: the grammar of RFC 8259, UTF-8
// throughout, no lone surrogates, no repeated name in an object, and the limits MaxDepth and MaxNames. Within those
// limits it agrees with jsontext.Value.IsValid and takes about half the time of that on long conversations.
func Valid(text []byte) bool { return ValidWithin(text, MaxDepth) }

// ValidWithin is Valid with the limit depth in place of MaxDepth.
func ValidWithin(text []byte, depth int) bool {
	r := NewReader(text)
	defer r.Free()
	r.deepest = depth
	r.Skip()
	return r.Whole()
}

// ValidObject reports whether text is an object that is valid by the rules of Valid. names may be nil.
func ValidObject(text []byte, names *Names) bool {
	r := NewReader(text).Knowing(names)
	defer r.Free()
	if r.Peek() != Object {
		return false
	}
	r.Skip()
	return r.Whole()
}

// value reads the value at r.pos.
func (r *Reader) value() {
	if r.pos >= len(r.buf) {
		r.damage()
		return
	}
	switch r.buf[r.pos] {
	case '"':
		r.text()
	case '{':
		r.object()
	case '[':
		r.array()
	case 't':
		r.literal("true")
	case 'f':
		r.literal("false")
	case 'n':
		r.literal("null")
	default:
		r.number()
	}
}

// object reads past an object and checks its names: against Names, against the limits, and against
// each other. Each object has its own scope, and the names of all open objects share one slice, so
// that nesting costs no allocation.
func (r *Reader) object() {
	if !r.open('}') {
		return
	}
	in := scope{base: len(r.names)}
	for {
		name := r.member(&in)
		around := r.enter(name)
		if r.depth == 1 && r.known != nil && r.known.long != "" {
			r.inLong = string(name) == r.known.long
		}
		r.value()
		r.leave(around)
		if !r.more('}') {
			break
		}
	}
	r.names = r.names[:in.base]
}

// array reads past an array. Items are counted only in requests, because only a request is read
// into the neutral form, which takes much more memory than the text (MaxItems).
func (r *Reader) array() {
	if !r.open(']') {
		return
	}
	for {
		r.space()
		if r.known != nil {
			r.countItem()
		}
		r.value()
		if !r.more(']') {
			return
		}
	}
}

// countItem counts an item of a list if it is an object. It reports whether the request may have the item.
func (r *Reader) countItem() bool {
	if r.space(); r.free || r.pos >= len(r.buf) || r.buf[r.pos] != '{' {
		return true
	}
	if r.items++; r.inLong && r.depth == 2 {
		r.spare += 2 // the item and one below it, as a message with its block
	}
	return r.items-r.spare <= MaxItems || r.items <= len(r.buf)/bytesPerItem || r.refuse(TooManyItems)
}

// open enters an object or array and reports whether it is not empty.
func (r *Reader) open(end byte) bool {
	r.pos++
	if r.depth++; r.depth > r.deepest {
		return r.refuse(TooDeep)
	}
	if r.consume(end) {
		r.depth--
		return false
	}
	return r.pos < len(r.buf) || r.damage()
}

// more reports whether another value follows, and leaves the object or array if none does.
func (r *Reader) more(end byte) bool {
	if r.consume(',') {
		return true
	}
	if !r.consume(end) {
		return r.damage()
	}
	r.depth--
	return false
}

// member reads the name of a member and its colon, and returns the name.
func (r *Reader) member(in *scope) []byte {
	r.space()
	if r.pos >= len(r.buf) || r.buf[r.pos] != '"' {
		r.damage()
		return nil
	}
	start := r.pos
	plain := r.text()
	if r.pos-start > MaxNameBytes+2 {
		r.pos = start
		r.refuse(TooLongName)
		return nil
	}
	name := inner(r.buf[start:r.pos])
	if !plain && bytes.IndexByte(name, '\\') >= 0 { // "\u006e" is n, so escapes must not evade the rules for names
		name = []byte(Unquote(r.buf[start:r.pos]))
	}
	switch in.count++; {
	case !r.consume(':'):
		r.damage()
	case in.count > MaxNames:
		r.pos = start
		r.refuse(TooManyNames)
	case r.known != nil && !r.free && !(r.known.lower && plainLower(name)):
		as, ok := r.known.read(name)
		switch {
		case !ok:
			r.pos = start
			r.refuse(MisspelledName)
		case r.repeated(in, as):
			r.pos = start
			r.refuse(RepeatedName)
		}
	case !r.lenient && r.repeated(in, name):
		r.pos = start
		r.refuse(RepeatedName)
	}
	return name
}

// character returns the length of the character at the beginning of b, or 0 if a string may not contain it.
func (r *Reader) character(b []byte) int {
	switch c := b[0]; {
	case c < ' ':
		return 0
	case c < utf8.RuneSelf || r.lenient:
		return 1
	}
	if _, n := utf8.DecodeRune(b); n > 1 {
		return n
	}
	return 0
}

// escape returns the length of the escape at the beginning of b, or 0. A surrogate pair is one escape, and half of a
// pair is none.
func (r *Reader) escape(b []byte) int {
	if len(b) > 1 && short[b[1]] {
		return 2
	}
	switch unit := codeUnit(b); {
	case unit < 0:
		return 0
	case unit&^0x7FF != 0xD800 || r.lenient:
		return 6
	case unit < 0xDC00 && codeUnit(b[6:])&^0x3FF == 0xDC00:
		return 12
	}
	return 0
}

// short has the characters of escapes of two bytes.
var short = [256]bool{'"': true, '\\': true, '/': true, 'b': true, 'f': true, 'n': true, 'r': true, 't': true}

// codeUnit returns the value of an escape \uXXXX at the beginning of b, or a negative number.
func codeUnit(b []byte) int {
	if len(b) < 6 || b[0] != '\\' || b[1] != 'u' {
		return -1
	}
	return int(digits[b[2]])<<12 | int(digits[b[3]])<<8 | int(digits[b[4]])<<4 | int(digits[b[5]])
}

// digits has the values of hexadecimal digits, and -1 for all other bytes.
var digits = func() (t [256]int8) {
	for i := range t {
		t[i] = -1
	}
	for i, c := range "0123456789" {
		t[c] = int8(i)
	}
	for i := range 6 {
		t['a'+i], t['A'+i] = int8(10+i), int8(10+i)
	}
	return t
}()

// literal reads past word, which is true, false or null.
func (r *Reader) literal(word string) {
	end := r.pos + len(word)
	if end > len(r.buf) || string(r.buf[r.pos:end]) != word {
		r.damage()
		return
	}
	r.pos = end
}

// number reads past a number in the grammar of RFC 8259: no leading zeros, and a digit on both
// sides of the point. strconv would take more, such as hexadecimal digits and infinity, and the
// provider might then refuse the text.
func (r *Reader) number() {
	b, i := r.buf, r.pos
	if b[i] == '-' {
		i++
	}
	whole := digitsEnd(b, i)
	if whole == i || b[i] == '0' && whole > i+1 {
		r.damage()
		return
	}
	i = whole
	if i < len(b) && b[i] == '.' {
		end := digitsEnd(b, i+1)
		if end == i+1 {
			r.damage()
			return
		}
		i = end
	}
	if i < len(b) && (b[i] == 'e' || b[i] == 'E') {
		i++
		if i < len(b) && (b[i] == '+' || b[i] == '-') {
			i++
		}
		end := digitsEnd(b, i)
		if end == i {
			r.damage()
			return
		}
		i = end
	}
	r.pos = i
}

// digitsEnd returns the index after the digits that begin at i, which is i if there are none.
func digitsEnd(b []byte, i int) int {
	for i < len(b) && b[i]-'0' <= 9 {
		i++
	}
	return i
}

// damage ends the walk because the text is not JSON. It returns false.
func (r *Reader) damage() bool { return r.refuse(Malformed) }

// refuse ends the walk because the text breaks a rule. It returns false.
func (r *Reader) refuse(flaw Flaw) bool {
	if r.flaw == Sound {
		r.flaw, r.at = flaw, r.pos
	}
	r.pos = len(r.buf)
	return false
}
