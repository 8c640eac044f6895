package meter

import (
	"encoding/base64"
	"strings"
	"testing"
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
