// Package jsonw appends JSON to a byte slice without building a tree first. Use it where many
// small events are written: a value costs no allocation beyond the growth of the buffer.
// Strings are quoted by jsontext. The package does not check the grammar, so the tests of its
// callers must parse what they write.
//
// # Usage
//
//	w := jsonw.Writer{Buf: dst}
//	w.Object().Key("id").String(id).Key("items").Array()
//	for _, n := range items {
//		w.Int(n)
//	}
//	w.End().End()
//	return w.Buf
package jsonw

import (
	"bytes"
	"strconv"
	"unsafe"

	"github.com/go-json-experiment/json/jsontext"
)

// Writer appends JSON to Buf and writes the commas between values. The zero value is ready for
// use. At most 64 levels may be open at a time. A Writer is not safe for concurrent use.
type Writer struct {
	Buf   []byte
	array uint64 // bit n is set if level n is an array
	more  uint64 // bit n is set if level n has a member already
	depth uint
	keyed bool // the last thing written was a key
}

// beginValue writes the comma before a value, unless a key has just been written.
func (w *Writer) beginValue() {
	if w.keyed {
		w.keyed = false
		return
	}
	w.appendComma()
}

// appendComma writes a comma unless the next value is the first one of its level. Outside of all
// levels there is none.
func (w *Writer) appendComma() {
	if w.depth == 0 {
		return
	}
	bit := uint64(1) << (w.depth & 63)
	if w.more&bit != 0 {
		w.Buf = append(w.Buf, ',')
	}
	w.more |= bit
}

// openLevel opens an object or an array. Its bits may still be set from an earlier level of the
// same depth.
func (w *Writer) openLevel(c byte, array bool) *Writer {
	w.beginValue()
	w.Buf = append(w.Buf, c)
	w.depth++
	bit := uint64(1) << (w.depth & 63)
	w.more &^= bit
	w.array &^= bit
	if array {
		w.array |= bit
	}
	return w
}

// Object opens an object; End closes it.
func (w *Writer) Object() *Writer { return w.openLevel('{', false) }

// Array opens an array; End closes it.
func (w *Writer) Array() *Writer { return w.openLevel('[', true) }

// End closes the innermost object or array.
func (w *Writer) End() *Writer {
	c := byte('}')
	if w.array&(1<<(w.depth&63)) != 0 {
		c = ']'
	}
	w.Buf = append(w.Buf, c)
	w.depth--
	return w
}

// Key writes the name of the next member without escaping it. Use KeyOf for names that come
// from outside.
func (w *Writer) Key(name string) *Writer {
	w.appendComma()
	w.Buf = append(append(append(w.Buf, '"'), name...), '"', ':')
	w.keyed = true
	return w
}

// KeyOf writes the name of the next member and escapes it.
func (w *Writer) KeyOf(name string) *Writer {
	w.appendComma()
	w.Buf = append(AppendString(w.Buf, name), ':')
	w.keyed = true
	return w
}

// String writes a string. Invalid UTF-8 becomes U+FFFD.
func (w *Writer) String(s string) *Writer {
	w.beginValue()
	w.Buf = AppendString(w.Buf, s)
	return w
}

// Text is String for text that is held in bytes.
func (w *Writer) Text(text []byte) *Writer {
	return w.String(unsafe.String(unsafe.SliceData(text), len(text)))
}

// StringOrNull writes a string, or null for "".
func (w *Writer) StringOrNull(s string) *Writer {
	if s == "" {
		return w.Null()
	}
	return w.String(s)
}

// Int writes an integer.
func (w *Writer) Int(n int64) *Writer {
	w.beginValue()
	w.Buf = strconv.AppendInt(w.Buf, n, 10)
	return w
}

// Float writes a number.
func (w *Writer) Float(f float64) *Writer {
	w.beginValue()
	w.Buf = strconv.AppendFloat(w.Buf, f, 'g', -1, 64)
	return w
}

// Bool writes true or false.
func (w *Writer) Bool(b bool) *Writer {
	w.beginValue()
	w.Buf = strconv.AppendBool(w.Buf, b)
	return w
}

// Null writes null.
func (w *Writer) Null() *Writer {
	w.beginValue()
	w.Buf = append(w.Buf, "null"...)
	return w
}

// Raw writes a value that is JSON already, or null if v is empty. It leaves out line ends, which
// in valid JSON are only space between tokens, because the data of an event must be one line.
func (w *Writer) Raw(v []byte) *Writer {
	if len(v) == 0 {
		return w.Null()
	}
	w.beginValue()
	if bytes.IndexByte(v, '\n') < 0 && bytes.IndexByte(v, '\r') < 0 {
		w.Buf = append(w.Buf, v...)
		return w
	}
	for _, c := range v {
		if c != '\n' && c != '\r' {
			w.Buf = append(w.Buf, c)
		}
	}
	return w
}

// RawString writes a value as Raw does, without copying the string first.
func (w *Writer) RawString(v string) *Writer {
	return w.Raw(unsafe.Slice(unsafe.StringData(v), len(v)))
}

// AppendString appends s as a JSON string.
func AppendString(dst []byte, s string) []byte {
	if len(s) >= longString {
		dst = reserve(dst, quotedLen(s))
	}
	// AppendQuote reports invalid UTF-8 as an error, but has written U+FFFD.
	dst, _ = jsontext.AppendQuote(dst, s)
	return dst
}

// longString is the length from which on a string is measured before it is written. A buffer
// that grows step by step is there twice, and a little more, at each step.
const longString = 64 << 10

// spare is for what follows a long string, such as the end of its object.
const spare = 4 << 10

// reserve makes room for n bytes, with some to spare. append would double a large buffer instead.
func reserve(dst []byte, n int) []byte {
	if cap(dst)-len(dst) >= n {
		return dst
	}
	grown := make([]byte, len(dst), len(dst)+n+spare)
	copy(grown, dst)
	return grown
}

// quotedLen returns the length of valid UTF-8 as a JSON string.
func quotedLen(s string) int {
	n := len(s) + len(`""`)
	for i := range len(s) {
		switch c := s[i]; {
		case c == '"' || c == '\\' || c == '\n' || c == '\r' || c == '\t' || c == '\b' || c == '\f':
			n++
		case c < ' ':
			n += len(`\u0000`) - 1
		}
	}
	return n
}
