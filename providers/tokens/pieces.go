package tokens

import "unicode/utf8"

// Split cuts s into the pieces its tokens stand for; joined they are s again.
// Tokens that hold only a part of a character are put together, so a piece may
// count for more than one token, but every piece is valid UTF-8 if s is.
//
// A text of more than maxPieced bytes is cut by length, because the vocabulary
// takes about a microsecond for each byte.
func Split(s string) []string {
	if len(s) > maxPieced {
		return cutByLength(s)
	}
	c, err := codec()
	if err != nil {
		return []string{s}
	}
	_, raw, err := c.Encode(s)
	if err != nil {
		return []string{s}
	}
	out := make([]string, 0, len(raw))
	open := ""
	for _, piece := range raw {
		open += piece
		if utf8.ValidString(open) {
			out, open = append(out, open), ""
		}
	}
	if open != "" {
		out = append(out, open)
	}
	return out
}

const (
	maxPieced = 256 << 10
	longPiece = 1 << 10
)

func cutByLength(s string) []string {
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
