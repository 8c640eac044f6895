package responses

import (
	"bytes"
	"unicode/utf16"
	"unicode/utf8"
)

// unwrapper takes the free text of a custom tool out of the JSON object in which upstreams of other
// shapes write it. The object comes in pieces that are cut anywhere, and the text must stream on,
// so it is a state machine over bytes. The name of the member does not matter:
//
//	feed: {"inp   feed: ut": "ls -   feed: l /tmp"}
//	               returns "ls -"    returns "l /tmp"
//
// The zero value is ready for use.
type unwrapper struct {
	state unwrapState
	hex   []byte // digits of a \u escape so far
	high  rune   // first half of a surrogate pair, 0 if none waits
	// whole is all that came while it was not sure that there is a string to
	// unwrap; it is the input if there is none.
	whole []byte
}

// unwrapState is the place in the object that the next byte belongs to.
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

// feed reads the next piece and appends to dst what is now known of the text.
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

// rest appends, at the end of the call, what feed had to hold back. If the input was not such an
// object, that is all of it, because the model then wrote the text without the object.
func (u *unwrapper) rest(dst []byte) []byte {
	switch {
	case u.state >= inValue && u.state != notWrapped:
		return u.half(dst)
	case string(bytes.TrimSpace(u.whole)) == "{}":
		return dst
	}
	return append(dst, u.whole...)
}

// head reads a byte before the text: the brace, the name and the colon.
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

// punctuation checks a byte outside of strings. Any other than the expected one means that nothing
// is wrapped.
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

// value reads a byte of the text and appends it to dst, unescaped.
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

// unescape returns the character for the byte after a backslash.
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

// unicode reads a digit of a \u escape. Characters beyond 16 bits are written as two escapes, of
// which the first waits in high.
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

// half appends U+FFFD for the first half of a surrogate pair whose second half did not follow.
func (u *unwrapper) half(dst []byte) []byte {
	if u.high == 0 {
		return dst
	}
	u.high = 0
	return utf8.AppendRune(dst, utf8.RuneError)
}

// hexRune returns the value of four hexadecimal digits, or U+FFFD if one is not a digit.
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
