package tokens

import "unicode/utf8"

// Pieces cuts s into the pieces its tokens stand for; joined they are s again.
// Tokens that hold only a part of a character are put together, so a piece may
// count for more than one token, but every piece is valid UTF-8 if s is.
func Pieces(s string) []string {
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
