package telemetry

import (
	"strings"
	"testing"
	"unicode/utf8"
)

func TestNamesOfLossesArePlain(t *testing.T) {
	for name, want := range map[string]bool{"top_k": true, "stop:truncated": true, "generationConfig.topK": true, "tools:web_search": true,
		"": false, "sk-secret": false, "please tell me": false, "a\xff": false,
		strings.Repeat("a", maxPlain+1): false} {
		if plain(name) != want {
			t.Errorf("%q is plain: %t, want %t", name, !want, want)
		}
	}
}

func TestTextHasWholeCharactersOnly(t *testing.T) {
	for _, c := range []struct{ name, in, want string }{
		{"short", "gpt-x", "gpt-x"},
		{"as long as there is room", strings.Repeat("a", maxText), strings.Repeat("a", maxText)},
		{"too long", strings.Repeat("a", maxText+1), strings.Repeat("a", maxText)},
		{"cut between characters", strings.Repeat("é", maxText), strings.Repeat("é", maxText/2)},
		{"cut inside of two bytes", "a" + strings.Repeat("é", maxText), "a" + strings.Repeat("é", maxText/2-1)},
		{"cut inside of three bytes", strings.Repeat("日", maxText), strings.Repeat("日", maxText/3)},
		{"cut inside of four bytes", "ab" + strings.Repeat("𝄞", maxText), "ab" + strings.Repeat("𝄞", maxText/4-1)},
		{"broken", "a\xff\xfeb", "a\ufffdb"},
		{"broken and too long", strings.Repeat("\xff", 2*maxText), "\ufffd"},
	} {
		if got := Text(c.in); got != c.want || !utf8.ValidString(got) {
			t.Errorf("%s: %q, want %q", c.name, got, c.want)
		}
	}
}
