// Package jsonw appends JSON to a byte slice without building a tree first. It
// is for the hot path, where events of a few dozen bytes are written by the
// thousand; strings are quoted by jsontext. It does not check the grammar: the
// tests of its users do.
package jsonw

import (
	"bytes"
	"strconv"
	"unsafe"

	"github.com/go-json-experiment/json/jsontext"
)

// Writer appends JSON to Buf. Its zero value is ready; commas are its business.
// At most 64 levels may be open at once.
type Writer struct {
	Buf   []byte
	array uint64 // bit n: level n is an array
	more  uint64 // bit n: level n has a member already
	depth uint
	keyed bool // a key was written and waits for its value
}

func (w *Writer) value() {
	if w.keyed {
		w.keyed = false
		return
	}
	w.comma()
}

func (w *Writer) comma() {
	if w.depth == 0 {
		return
	}
	bit := uint64(1) << (w.depth & 63)
	if w.more&bit != 0 {
		w.Buf = append(w.Buf, ',')
	}
	w.more |= bit
}

func (w *Writer) open(c byte, array bool) *Writer {
	w.value()
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
func (w *Writer) Object() *Writer { return w.open('{', false) }

// Array opens an array; End closes it.
func (w *Writer) Array() *Writer { return w.open('[', true) }

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

// Key writes the name of the next member. It must need no escaping; use KeyOf
// for names that come from outside.
func (w *Writer) Key(name string) *Writer {
	w.comma()
	w.Buf = append(append(append(w.Buf, '"'), name...), '"', ':')
	w.keyed = true
	return w
}

// KeyOf writes a name that may need escaping.
func (w *Writer) KeyOf(name string) *Writer {
	w.comma()
	w.Buf = append(AppendString(w.Buf, name), ':')
	w.keyed = true
	return w
}

// String writes a string; invalid UTF-8 becomes U+FFFD.
func (w *Writer) String(s string) *Writer {
	w.value()
	w.Buf = AppendString(w.Buf, s)
	return w
}

// StringOrNull writes null for "".
func (w *Writer) StringOrNull(s string) *Writer {
	if s == "" {
		return w.Null()
	}
	return w.String(s)
}

// Int writes an integer.
func (w *Writer) Int(n int64) *Writer {
	w.value()
	w.Buf = strconv.AppendInt(w.Buf, n, 10)
	return w
}

// Float writes a number.
func (w *Writer) Float(f float64) *Writer {
	w.value()
	w.Buf = strconv.AppendFloat(w.Buf, f, 'g', -1, 64)
	return w
}

// Bool writes true or false.
func (w *Writer) Bool(b bool) *Writer {
	w.value()
	w.Buf = strconv.AppendBool(w.Buf, b)
	return w
}

// Null writes null.
func (w *Writer) Null() *Writer {
	w.value()
	w.Buf = append(w.Buf, "null"...)
	return w
}

// Raw writes a value that is JSON already; an empty one is written as null.
// Line ends in it, which can only be space between its parts, are left out: an
// event's data must be one line.
func (w *Writer) Raw(v []byte) *Writer {
	if len(v) == 0 {
		return w.Null()
	}
	w.value()
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

// RawString is Raw for a value held as a string.
func (w *Writer) RawString(v string) *Writer {
	return w.Raw(unsafe.Slice(unsafe.StringData(v), len(v)))
}

// AppendString appends s as a JSON string.
func AppendString(dst []byte, s string) []byte {
	// AppendQuote reports invalid UTF-8 as an error, but has written U+FFFD.
	dst, _ = jsontext.AppendQuote(dst, s)
	return dst
}
