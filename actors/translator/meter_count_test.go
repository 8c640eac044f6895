package translator

import (
	"strings"
	"testing"

	"stagedoor/providers/tokens"
)

// What a client that left is charged rests on this count.
func TestPiecesAreCountedAsAboutTheirTokens(t *testing.T) {
	const text = "Costumes hang in the order in which they will be needed, and nobody touches them before the second bell has rung. "
	whole := strings.Repeat(text, 10)
	real := tokens.Text(whole)
	cut := func(n int) (pieces []string) {
		for s := whole; s != ""; s = s[min(n, len(s)):] {
			pieces = append(pieces, s[:min(n, len(s))])
		}
		return pieces
	}
	for _, c := range []struct {
		name   string
		pieces []string
		uneven bool // the shortest piece tells what of an event is not text
	}{
		{"a token each", tokens.Pieces(whole), true},
		{"a word each", strings.SplitAfter(whole, " "), true},
		{"lines", cut(80), false},
		{"all at once", []string{whole}, false},
	} {
		var read, unread counter
		for _, p := range c.pieces {
			read.text(p)
			unread.event(200 + len(p))
		}
		ways := map[string]int64{"read": read.output}
		if c.uneven {
			ways["unread"] = unread.output
		}
		for way, n := range ways {
			if n < real*7/10 || n > real*14/10 {
				t.Errorf("%s, %s: %d tokens were counted, there are %d", c.name, way, n, real)
			}
		}
	}
}
