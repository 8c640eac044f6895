package responses

import (
	"bytes"
	"unicode/utf16"
	"unicode/utf8"
)

// unwrapper takes the free-form input of a custom tool out of the JSON object
// that carries it through shapes without such tools: {"input": "..."}. The
// object comes in pieces, cut anywhere; the name of its one member does not
// matter. The zero value is ready.
type unwrapper struct {
	state unwrapState
	hex   []byte // digits of a \u escape so far
	high  rune   // first half of a surrogate pair, 0 if none waits
	// whole is all that came while it was not sure that there is a string to
	// unwrap; it is the input if there is none.
	whole []byte
}

type unwrapState uint8

const (
	beforeObject unwrapState = iota
	beforeName
	inName
	inNameEscape
	beforeColon
	beforeValue
	inValue
	inEscape
	inUnicode
	afterValue
	notWrapped
)

// feed takes a piece and appends what is known of the input to dst.
func (u *unwrapper) feed(dst []byte, piece string) []byte {
	if u.state < inValue || u.state == notWrapped {
		u.whole = append(u.whole, piece...)
	}
	for i := 0; i < len(piece); i++ {
		if u.state < inValue {
			u.head(piece[i])
			continue
		}
		if u.state >= afterValue {
			break
		}
		dst = u.value(dst, piece[i])
	}
	return dst
}

// rest returns what feed could not return: the object itself, if it was not a wrapper.
func (u *unwrapper) rest(dst []byte) []byte {
	switch {
	case u.state >= inValue && u.state != notWrapped:
		return u.half(dst)
	case string(bytes.TrimSpace(u.whole)) == "{}":
		return dst
	}
	return append(dst, u.whole...)
}

// head reads up to the quote that begins the value.
func (u *unwrapper) head(c byte) {
	space := c == ' ' || c == '\t' || c == '\n' || c == '\r'
	switch u.state {
	case inName:
		switch c {
		case '"':
			u.state = beforeColon
		case '\\':
			u.state = inNameEscape
		}
	case inNameEscape:
		u.state = inName
	default:
		if space {
			return
		}
		u.punctuation(c)
	}
}

func (u *unwrapper) punctuation(c byte) {
	want := [...]byte{beforeObject: '{', beforeName: '"', beforeColon: ':', beforeValue: '"'}
	if c != want[u.state] {
		u.state = notWrapped
		return
	}
	u.state++
	if u.state == inValue {
		u.whole = nil
	}
}

// value reads inside the string.
func (u *unwrapper) value(dst []byte, c byte) []byte {
	switch u.state {
	case inUnicode:
		return u.unicode(dst, c)
	case inEscape:
		if c == 'u' {
			u.state, u.hex = inUnicode, u.hex[:0]
			return dst
		}
		u.state = inValue
		return append(u.half(dst), unescape(c))
	}
	switch c {
	case '"':
		u.state = afterValue
		return u.half(dst)
	case '\\':
		u.state = inEscape
		return dst
	}
	return append(u.half(dst), c)
}

func unescape(c byte) byte {
	switch c {
	case 'n':
		return '\n'
	case 't':
		return '\t'
	case 'r':
		return '\r'
	case 'b':
		return '\b'
	case 'f':
		return '\f'
	}
	return c
}

func (u *unwrapper) unicode(dst []byte, c byte) []byte {
	if u.hex = append(u.hex, c); len(u.hex) < 4 {
		return dst
	}
	u.state = inValue
	r := hexRune(u.hex)
	switch {
	case u.high != 0 && r >= 0xDC00 && r <= 0xDFFF:
		r = utf16.DecodeRune(u.high, r)
		u.high = 0
		return utf8.AppendRune(dst, r)
	case r >= 0xD800 && r <= 0xDBFF:
		dst = u.half(dst)
		u.high = r
		return dst
	}
	return utf8.AppendRune(u.half(dst), r)
}

// half gives up waiting for the second half of a surrogate pair.
func (u *unwrapper) half(dst []byte) []byte {
	if u.high == 0 {
		return dst
	}
	u.high = 0
	return utf8.AppendRune(dst, utf8.RuneError)
}

func hexRune(digits []byte) rune {
	var r rune
	for _, c := range digits {
		switch {
		case c >= '0' && c <= '9':
			r = r<<4 | rune(c-'0')
		case c >= 'a' && c <= 'f':
			r = r<<4 | rune(c-'a'+10)
		case c >= 'A' && c <= 'F':
			r = r<<4 | rune(c-'A'+10)
		default:
			return utf8.RuneError
		}
	}
	return r
}
