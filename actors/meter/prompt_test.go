package meter

import (
	"bytes"
	"encoding/base64"
	"encoding/binary"
	"fmt"
	"image"
	"image/png"
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"
)

func encoded(file []byte) string { return base64.StdEncoding.EncodeToString(file) }

// pictureOf is a PNG file of at least 100 KB, whatever its pixels.
func pictureOf(t *testing.T, width, height int) string {
	t.Helper()
	var b bytes.Buffer
	if err := png.Encode(&b, image.NewGray(image.Rect(0, 0, width, height))); err != nil {
		t.Fatal(err)
	}
	return encoded(append(b.Bytes(), make([]byte, 100_000)...))
}

func TestPromptTokens(t *testing.T) {
	picture := pictureOf(t, 1500, 1000) // 2,000 tokens
	prose := strings.Repeat("lorem ipsum dolor ", 10_000)
	blankless := strings.Repeat("abcdefgh", 50_000) // 100,000 tokens
	wav := append([]byte("RIFF....WAVEfmt ................"), make([]byte, 320_000)...)
	binary.LittleEndian.PutUint32(wav[28:], 32_000)
	pdf := []byte(
		"%PDF-1.7\n" + strings.Repeat("1 0 obj <</Type /Page /Parent 2 0 R>> endobj\n", 40) + "<</Type/Pages /Kids[]>>",
	)
	tests := []struct {
		name      string
		body      string
		low, high int64
	}{
		{"nothing", "", 0, 0},
		{"short", `{"a":1}`, 2, 2},
		{"prose", prose, 45_000, 45_000},
		{"prose of another script", strings.Repeat("日本語の文章", 1000), 4500, 4500},
		{"text without blanks", `{"messages":[{"content":"` + blankless + `"}]}`, 100_000, 100_020},
		{
			"text without blanks in a part",
			`{"messages":[{"content":[{"type":"text","text":"` + blankless + `"}]}]}`,
			100_000,
			100_020,
		},
		{
			"text that says it is a picture",
			`{"messages":[{"content":"data:image/png;base64,` + picture + `"}]}`,
			33_000,
			40_000,
		},
		{"an unknown member", `{"messages":[{"data":"` + blankless + `"}]}`, 100_000, 100_020},
		{
			"the arguments of a call",
			`{"messages":[{"content":[{"type":"tool_use","input":{"source":{"data":"` + picture + `"}}}]}]}`,
			33_000,
			40_000,
		},
		{
			"the arguments of a function call",
			`{"contents":[{"parts":[{"functionCall":{"args":{"inlineData":{"data":"` + picture + `"}}}}]}]}`,
			33_000,
			40_000,
		},
		{
			"what is no media where media belong",
			`{"messages":[{"content":[{"source":{"data":"` + blankless + `"}}]}]}`,
			100_000,
			100_020,
		},
		{
			"a picture, chat",
			`{"messages":[{"content":[{"type":"image_url","image_url":{"url":"data:image/png;base64,` + picture +
				`"}}]}]}`,
			2000,
			2050,
		},
		{
			"a picture, messages",
			`{"messages":[{"content":[{"type":"image","source":{"type":"base64","data":"` + picture + `"}}]}]}`,
			2000,
			2050,
		},
		{
			"a picture, responses",
			`{"input":[{"content":[{"type":"input_image","image_url":"data:image/png;base64,` + picture + `"}]}]}`,
			2000,
			2050,
		},
		{
			"a picture, gemini",
			`{"contents":[{"parts":[{"inlineData":{"mimeType":"image/png","data":"` + picture + `"}}]}]}`,
			2000,
			2050,
		},
		{
			"two pictures and text",
			`{"contents":[{"parts":[{"inlineData":{"data":"` + picture + `"}},{"text":"` + blankless +
				`"},{"inlineData":{"data":"` + picture + `"}}]}]}`,
			104_000,
			104_050,
		},
		{
			"slashes escaped",
			`{"contents":[{"parts":[{"inlineData":{"data":"` + strings.ReplaceAll(picture, "/", `\/`) + `"}}]}]}`,
			2000,
			2050,
		},
		{
			"ten seconds of sound",
			`{"messages":[{"content":[{"input_audio":{"data":"` + encoded(wav) + `"}}]}]}`,
			10 * soundTokens,
			12*soundTokens + 30,
		},
		{
			"40 pages",
			`{"messages":[{"content":[{"file":{"file_data":"data:application/pdf;base64,` + encoded(pdf) + `"}}]}]}`,
			40 * pageTokens,
			40*pageTokens + 30,
		},
	}
	for _, tt := range tests {
		if got := promptTokens([]byte(tt.body)); got < tt.low || got > tt.high {
			t.Errorf("%s: got %d, want %d to %d", tt.name, got, tt.low, tt.high)
		}
	}
}

// Text that begins like a frame of sound is text. Sound has a second frame where the first
// one ends.
func TestSoundHasASecondFrame(t *testing.T) {
	frame := make([]byte, 417) // MPEG 1, layer III, 128 kbit/s, 44.1 kHz
	copy(frame, []byte{0xff, 0xfb, 0x90, 0x00})
	aac := make([]byte, 256)
	copy(aac, []byte{0xff, 0xf1, 0x50, 0x80, 0x20, 0x1f, 0xfc})
	for name, tt := range map[string]struct {
		file []byte
		want bool
	}{
		"MP3":              {bytes.Repeat(frame, 20), true},
		"AAC":              {bytes.Repeat(aac, 20), true},
		"one frame":        {append(slices.Clone(frame), bytes.Repeat([]byte("text"), 2000)...), false},
		"a picture's mark": {append([]byte{0xff, 0xd8}, make([]byte, 5000)...), false},
	} {
		if got := beginsWithTwoFrames(tt.file); got != tt.want {
			t.Errorf("%s: got %v, want %v", name, got, tt.want)
		}
	}
}

// TestTextIsNeverMedia: wherever a client puts a text, it counts as one.
func TestTextIsNeverMedia(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		name := rapid.SampledFrom(
			[]string{"data", "url", "image_url", "file_data", "source", "content", "text", "input"},
		)
		text := rapid.StringMatching(`(data:image/png;base64,)?[A-Za-z0-9+/=_-]{400,600}`).Draw(rt, "text")
		text = strings.Repeat(text, rapid.IntRange(1, 4).Draw(rt, "times"))
		body := fmt.Sprintf("%q", text)
		for range rapid.IntRange(1, 6).Draw(rt, "depth") {
			if body = fmt.Sprintf("{%q:%s}", name.Draw(rt, "name"), body); rapid.Bool().Draw(rt, "list") {
				body = "[" + body + "]"
			}
		}
		if got := promptTokens([]byte(body)); got < int64(len(text)/4) {
			rt.Fatalf("got %d tokens for %d bytes in %.60s", got, len(text), body)
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
