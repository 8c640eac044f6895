package fields

import (
	"bytes"
	"iter"
)

// Mentioned returns the names of all members in a text, at any depth, without parsing the text. The second value is the
// text from the member's value on. Names are as they are written, and text inside of strings may look like a member, so
// a caller who finds a name of interest parses the text. Use it for the many events of a stream that have none.
func Mentioned(text []byte) iter.Seq2[[]byte, []byte] {
	return func(yield func(name, value []byte) bool) {
		// There are far fewer colons than quotes, and a search for a single byte is the fastest one.
		for from := 0; ; {
			at := bytes.IndexByte(text[from:], ':')
			if at < 0 {
				return
			}
			quote := skipBack(text, from+at) - 1
			from += at + 1
			if quote < 1 || text[quote] != '"' {
				continue
			}
			if first := bytes.LastIndexByte(text[:quote], '"') + 1; first > 0 {
				if !yield(text[first:quote], text[skip(text, from):]) {
					return
				}
			}
		}
	}
}

// skip returns the index of the first byte from at on that is not white space.
func skip(text []byte, at int) int {
	for at < len(text) && isSpace(text[at]) {
		at++
	}
	return at
}

// skipBack returns the index after the last byte before at that is not white space.
func skipBack(text []byte, at int) int {
	for at > 0 && isSpace(text[at-1]) {
		at--
	}
	return at
}

func isSpace(c byte) bool { return c == ' ' || c == '\t' || c == '\n' || c == '\r' }
