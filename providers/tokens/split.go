package tokens

import "unicode/utf8"

// Split returns the texts of the tokens of s in their order. Tokens that hold only a part of a
// character are joined, so that every piece is valid UTF-8 if s is; such a piece counts for
// more than one token. A text of more than maxPieced bytes is cut by length, because the
// vocabulary takes long for it.
func Split(s string) []string {
	if len(s) > maxPieced {
		return splitByLength(s)
	}
	e := newEncoder()
	var out []string
	for s != "" {
		var text string
		text, s = cutPiece(s)
		begin := 0 // of what has not been returned
		for at := 0; at < len(text); {
			word := text[at : at+wordEnd(text[at:])]
			for _, p := range e.cut(word)[1:] {
				if end := at + p.begin; utf8.ValidString(text[begin:end]) {
					out, begin = append(out, text[begin:end]), end
				}
			}
			at += len(word)
		}
		if begin < len(text) {
			out = append(out, text[begin:])
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
