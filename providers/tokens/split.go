package tokens

import (
	"slices"
	"unicode/utf8"
)

// Split returns the texts of the tokens of s in their order. Tokens that hold only a part of a
// character are joined, so that every piece is valid UTF-8 if s is; such a piece counts for
// more than one token. A text of more than maxPieced bytes is cut by length, because the
// vocabulary takes about a microsecond for each byte.
func Split(s string) []string {
	if len(s) > maxPieced {
		return splitByLength(s)
	}
	c, err := codec()
	if err != nil {
		return []string{s}
	}
	var out []string
	for s != "" {
		var text string
		text, s = cutPiece(s)
		_, raw, err := c.Encode(text)
		if err != nil {
			return append(out, text+s)
		}
		out = slices.Grow(out, len(raw))
		pending := ""
		for _, piece := range raw {
			pending += piece
			if utf8.ValidString(pending) {
				out, pending = append(out, pending), ""
			}
		}
		if pending != "" {
			out = append(out, pending)
		}
	}
	return out
}

const (
	maxPieced = 256 << 10
	longPiece = 1 << 10
)

// splitByLength cuts a text into pieces of about longPiece bytes, between characters. The search
// for the beginning of a character is bounded, so that text which is not UTF-8 is cut as well.
func splitByLength(s string) []string {
	out := make([]string, 0, len(s)/longPiece+1)
	for len(s) > longPiece+utf8.UTFMax {
		end := longPiece
		for end < longPiece+utf8.UTFMax && !utf8.RuneStart(s[end]) {
			end++
		}
		out, s = append(out, s[:end]), s[end:]
	}
	return append(out, s)
}
