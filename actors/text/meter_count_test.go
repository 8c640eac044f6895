package text

import (
	"strings"
	"testing"

	"stagedoor/providers/shapes/chat"
	"stagedoor/providers/tokens"
)

// What a client that left is charged rests on this count.
func TestPiecesAreCountedAsAboutTheirTokens(t *testing.T) {
	const text = "Costumes hang in the order in which they will be needed, and no one touches them before the second bell has rung. "
	whole := strings.Repeat(text, 10)
	real := tokens.Count(whole)
	cut := func(n int) (pieces []string) {
		for s := whole; s != ""; s = s[min(n, len(s)):] {
			pieces = append(pieces, s[:min(n, len(s))])
		}
		return pieces
	}
	for _, c := range []struct {
		name   string
		pieces []string
	}{
		{"a token each", tokens.Split(whole)},
		{"a word each", strings.SplitAfter(whole, " ")},
		{"lines", cut(80)},
		{"all at once", []string{whole}},
	} {
		var read, unread counter
		for _, p := range c.pieces {
			read.text(p)
			unread.event(chat.Shape, []byte(`{"id":"chatcmpl-1","object":"chat.completion.chunk","choices":[{"index":0,"delta":{"content":"`+p+`"}}]}`))
		}
		for way, n := range map[string]int64{"read": read.output, "unread": unread.output} {
			if n < real*7/10 || n > real*14/10 {
				t.Errorf("%s, %s: %d tokens were counted, there are %d", c.name, way, n, real)
			}
		}
	}
}
