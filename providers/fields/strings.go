package fields

import (
	"encoding/binary"
	"math/bits"
)

// Strings are most of what clients send, so they are read by an automaton that takes the same time for every text. A
// branch for each escape and each character that is not ASCII would be mispredicted again and again.
//
// A state is a bit offset. A row of the table has the next state for each state, in the six bits at the offset of that
// state. A shift is therefore one step.
const (
	plainText   = 6 * iota // between two characters
	escaping               // after a backslash
	oneMore                // bytes of a character are to come, whose values are not restricted further
	twoMore                //
	threeMore              //
	afterE0                // the next byte excludes encodings that are too long, and surrogates
	afterED                //
	afterF0                // it excludes encodings that are too long, and code points above U+10FFFF
	afterF4                //
	stringStops            // at the quote, at an escape with a code, or because the text is not valid
	stateBits   = 63
)

// stepTable has the row of each byte.
type stepTable [256]uint64

// strictSteps are the rules for requests. lenientSteps take any bytes for characters, see NewLenientReader.
var strictSteps, lenientSteps = newSteps(false), newSteps(true)

func newSteps(lenient bool) *stepTable {
	t := new(stepTable)
	for c := range t {
		for from := plainText; from <= stringStops; from += 6 {
			t[c] |= uint64(stringStops) << from
		}
	}
	// set makes to the next state for the bytes from first to last.
	set := func(from, first, last int, to uint64) {
		for c := first; c <= last; c++ {
			t[c] = t[c]&^(stateBits<<from) | to<<from
		}
	}
	set(plainText, ' ', 0x7F, plainText)
	set(plainText, '"', '"', stringStops)
	set(plainText, '\\', '\\', escaping)
	for c, ok := range short {
		if ok {
			set(escaping, c, c, plainText)
		}
	}
	if lenient {
		set(plainText, 0x80, 0xFF, plainText)
		return t
	}
	set(plainText, 0xC2, 0xDF, oneMore)
	set(plainText, 0xE1, 0xEF, twoMore)
	set(plainText, 0xE0, 0xE0, afterE0)
	set(plainText, 0xED, 0xED, afterED)
	set(plainText, 0xF1, 0xF3, threeMore)
	set(plainText, 0xF0, 0xF0, afterF0)
	set(plainText, 0xF4, 0xF4, afterF4)
	set(oneMore, 0x80, 0xBF, plainText)
	set(twoMore, 0x80, 0xBF, oneMore)
	set(threeMore, 0x80, 0xBF, twoMore)
	set(afterE0, 0xA0, 0xBF, oneMore)
	set(afterED, 0x80, 0x9F, oneMore)
	set(afterF0, 0x90, 0xBF, twoMore)
	set(afterF4, 0x80, 0x8F, twoMore)
	return t
}

// Words whose eight bytes have the same value.
const (
	ones   = 0x0101010101010101
	tops   = 0x80 * ones
	spaces = 0x20 * ones
	slash  = '\\' * ones
	flip   = 0x02 * ones // swaps quote and space and keeps smaller bytes below them
)

// oddBytes returns 0 if the eight bytes of w are plain ASCII. Otherwise the lowest bit that is set is the top bit of
// the first byte that is not: a quote or a control character (first term), a backslash (second term), or not ASCII. A
// borrow may set further bits, but only above one that is set correctly.
func oddBytes(w uint64) uint64 {
	return ((w ^ flip - spaces - ones) | (w ^ slash - ones) | w) & tops
}

// text reads past a string and reports whether it is plain ASCII without escapes, as most names and words are.
func (r *Reader) text() (plain bool) {
	b, start := r.buf, r.pos+1
	at := start
	for ; at+8 <= len(b); at += 8 {
		odd := oddBytes(binary.LittleEndian.Uint64(b[at:]))
		if odd == 0 {
			continue
		}
		if i := at + bits.TrailingZeros64(odd)/8; b[i] == '"' {
			r.pos = i + 1
			return true
		}
		break
	}
	r.automaton(start, at)
	return false
}

// automaton reads past the string that begins at start and is plain ASCII up to at.
func (r *Reader) automaton(start, at int) {
	steps := strictSteps
	if r.lenient {
		steps = lenientSteps
	}
	for b := r.buf; at >= 0; {
		state := uint64(plainText)
		for ; at+8 <= len(b); at += 8 {
			w := b[at : at+8 : at+8]
			if state == plainText && oddBytes(binary.LittleEndian.Uint64(w)) == 0 {
				continue
			}
			s := steps[w[0]] >> (state & stateBits)
			s = steps[w[1]] >> (s & stateBits)
			s = steps[w[2]] >> (s & stateBits)
			s = steps[w[3]] >> (s & stateBits)
			s = steps[w[4]] >> (s & stateBits)
			s = steps[w[5]] >> (s & stateBits)
			s = steps[w[6]] >> (s & stateBits)
			s = steps[w[7]] >> (s & stateBits) & stateBits
			if s == stringStops {
				break
			}
			state = s
		}
		at = r.stop(steps, start, at, state)
	}
}

// stop reads on from at, where the automaton of the string that begins at start has the given state, to the place at
// which it stops. It reads past escapes with codes and returns the index after them, or a negative number if the string
// has ended.
func (r *Reader) stop(steps *stepTable, start, at int, state uint64) int {
	for ; at < len(r.buf); at++ {
		next := steps[r.buf[at]] >> (state & stateBits) & stateBits
		if next == stringStops {
			break
		}
		state = next
	}
	switch {
	case at == len(r.buf):
	case state == plainText && r.buf[at] == '"':
		r.pos = at + 1
		return -1
	case state == escaping && r.buf[at] == 'u':
		n := r.escape(r.buf[at-1:])
		for at--; n > 0; n = r.escape(r.buf[at:]) {
			at += n
			if at+1 >= len(r.buf) || r.buf[at] != '\\' || r.buf[at+1] != 'u' {
				return at
			}
		}
	}
	r.fault(start)
	return -1
}

// fault ends the walk at the first character of a string that is not valid, or at the end of the text. The characters
// of the string begin at start.
func (r *Reader) fault(start int) {
	for r.pos = start; r.pos < len(r.buf); {
		n := 0
		if r.buf[r.pos] == '\\' {
			n = r.escape(r.buf[r.pos:])
		} else {
			n = r.character(r.buf[r.pos:])
		}
		if n == 0 {
			break
		}
		r.pos += n
	}
	r.damage()
}
