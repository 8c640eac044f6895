package meter

import (
	"encoding/base64"
	"strings"
	"testing"

	"pgregory.net/rapid"
)

func TestPromptTokens(t *testing.T) {
	picture := base64.StdEncoding.EncodeToString(make([]byte, 3<<20))
	prose := strings.Repeat("lorem ipsum dolor ", 10_000)
	tests := []struct {
		name      string
		body      string
		low, high int64
	}{
		{"nothing", "", 0, 0},
		{"short", `{"a":1}`, 2, 2},
		{"prose", prose, 45_000, 45_000},
		{"a picture", `{"url":"data:image/png;base64,` + picture + `"}`, 2000, 2020},
		{"two pictures", `{"a":"` + picture + `","b":"` + picture + `"}`, 4000, 4020},
		{"a picture at the end", prose + picture, 47_000, 47_000},
		{"prose of another script", strings.Repeat("日本語の文章", 1000), 4500, 4500},
		{"a short name of many letters", strings.Repeat("x", 1000), 250, 250},
	}
	for _, tt := range tests {
		if got := promptTokens([]byte(tt.body)); got < tt.low || got > tt.high {
			t.Errorf("%s: got %d, want %d to %d", tt.name, got, tt.low, tt.high)
		}
	}
}

// TestEveryRunOfMediaIsFound holds the look at some bytes against one at all of them.
func TestEveryRunOfMediaIsFound(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		lengths := rapid.SliceOfN(rapid.OneOf(rapid.IntRange(0, 3), rapid.IntRange(mediaRun-2, mediaRun+2), rapid.IntRange(0, 4*mediaRun)), 0, 6).Draw(rt, "runs")
		body, text, media := "", 0, int64(0)
		for _, n := range lengths {
			body += strings.Repeat("x", n) + " "
			if text += 1; n < mediaRun {
				text += n
			} else {
				media += mediaTokens
			}
		}
		if got, want := promptTokens([]byte(body)), int64(text+3)/4+media; got != want {
			rt.Fatalf("%v: got %d, want %d", lengths, got, want)
		}
	})
}

func BenchmarkPromptTokens(b *testing.B) {
	body := []byte(strings.Repeat("lorem ipsum dolor ", 64<<10/18))
	b.SetBytes(int64(len(body)))
	for b.Loop() {
		promptTokens(body)
	}
}
