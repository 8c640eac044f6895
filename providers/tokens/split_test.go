package tokens_test

import (
	"strings"
	"testing"
	"unicode/utf8"

	"stagedoor/providers/tokens"
)

func TestPiecesJoinToTheText(t *testing.T) {
	for _, s := range []string{"", "hello world", "  two\n\nlines ", "Grüße an 你好 🙂🏳️‍🌈", "{\"a\":1}"} {
		pieces := tokens.Split(s)
		if got := strings.Join(pieces, ""); got != s {
			t.Errorf("pieces of %q join to %q", s, got)
		}
		for _, p := range pieces {
			if !utf8.ValidString(p) {
				t.Errorf("%q of %q is a part of a character", p, s)
			}
		}
	}
	if n := len(tokens.Split("hello world")); n != 2 {
		t.Errorf("hello world has %d pieces, want 2", n)
	}
}
