package draw_test

import (
	"image"
	"strconv"
	"testing"

	"stagedoor/providers/sandbox/draw"
)

func picture(tb testing.TB, s draw.Spec) *image.NRGBA {
	tb.Helper()
	m, err := draw.Picture(s)
	if err != nil {
		tb.Fatal(err)
	}
	return m
}

func BenchmarkPicture(b *testing.B) {
	for motif := range draw.Motifs {
		b.Run(strconv.Itoa(motif+1), func(b *testing.B) {
			for b.Loop() {
				picture(b, draw.Spec{Prompt: "a lighthouse", Width: 1024, Height: 1024, Motif: motif + 1, Caption: "a lighthouse at dusk"})
			}
		})
	}
}

func BenchmarkEncode(b *testing.B) {
	m := picture(b, draw.Spec{Prompt: "a lighthouse", Width: 1024, Height: 1024, Motif: 1, Caption: "a lighthouse at dusk"})
	for _, f := range []draw.Format{draw.PNG, draw.JPEG, draw.WebP} {
		b.Run(string(f), func(b *testing.B) {
			for b.Loop() {
				if _, err := draw.Encode(m, f, 85); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}
