package draw_test

import (
	"bytes"
	"errors"
	"image"
	"image/color"
	"image/png"
	"strconv"
	"strings"
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

func TestPictureDependsOnItsSpecOnly(t *testing.T) {
	spec := draw.Spec{Prompt: "a fox", Seed: 7, Width: 320, Height: 200, Caption: "a fox"}
	other := spec
	other.Seed = 8
	a, b, c := picture(t, spec), picture(t, spec), picture(t, other)
	if !bytes.Equal(a.Pix, b.Pix) {
		t.Error("the same spec gave two pictures")
	}
	if bytes.Equal(a.Pix, c.Pix) {
		t.Error("another seed gave the same picture")
	}
}

func TestPictureInEverySizeAndFormat(t *testing.T) {
	sizes := [][2]int{{1, 1}, {1, 40}, {64, 64}, {256, 256}, {1024, 1536}, {1792, 1024}, {512, 1536}}
	for _, size := range sizes {
		for motif := range draw.Motifs {
			m := picture(t, draw.Spec{Prompt: "ein Fuchs, \u72d0, " + strings.Repeat("long", 40), Width: size[0], Height: size[1], Motif: motif + 1, Caption: "ein Fuchs \u72d0"})
			if m.Rect.Dx() != size[0] || m.Rect.Dy() != size[1] || !m.Opaque() {
				t.Errorf("%v, motif %d: %v, opaque %v", size, motif+1, m.Rect, m.Opaque())
			}
		}
		for _, f := range []draw.Format{draw.PNG, draw.JPEG, draw.WebP} {
			data, err := draw.Encode(picture(t, draw.Spec{Width: size[0], Height: size[1]}), f, 80)
			if err != nil {
				t.Fatal(err)
			}
			c, name, err := image.DecodeConfig(bytes.NewReader(data))
			if err != nil || name != string(f) || c.Width != size[0] || c.Height != size[1] {
				t.Errorf("%v %s: %v %s %v", size, f, c, name, err)
			}
		}
	}
	for _, size := range [][2]int{{0, 5}, {5, -1}, {draw.MaxEdge + 1, 1}, {draw.MaxEdge, draw.MaxEdge}} {
		if _, err := draw.Picture(draw.Spec{Width: size[0], Height: size[1]}); err == nil {
			t.Errorf("%v was drawn", size)
		}
	}
}

func TestEncodedPictureIsTheDrawnOne(t *testing.T) {
	m := picture(t, draw.Spec{Prompt: "a fox", Width: 200, Height: 150, Transparent: true})
	if m.Opaque() || m.NRGBAAt(0, 0).A != 0 || m.NRGBAAt(100, 75).A != 255 {
		t.Fatal("the background is not cut out")
	}
	for _, f := range []draw.Format{draw.PNG, draw.WebP} {
		data, err := draw.Encode(m, f, 0)
		if err != nil {
			t.Fatal(err)
		}
		back, err := draw.Decode(bytes.NewReader(data))
		if err != nil {
			t.Fatal(err)
		}
		for i := 0; i < len(m.Pix); i += 4 {
			if a, b := m.Pix[i:i+4], back.Pix[i:i+4]; a[3] != b[3] || a[3] == 255 && !bytes.Equal(a, b) {
				t.Fatalf("%s: pixel %d is %v, was %v", f, i/4, b, a)
			}
		}
	}
	low, _ := draw.Encode(m, draw.JPEG, 10)
	high, _ := draw.Encode(m, draw.JPEG, 95)
	if len(low) >= len(high) {
		t.Errorf("JPEG of quality 10 has %d bytes, of 95 %d", len(low), len(high))
	}
}

// mask marks the pixels of a rectangle in one of the two ways.
func mask(w, h int, marked image.Rectangle, black bool) *draw.Mask {
	m := &draw.Mask{NRGBA: image.NewNRGBA(image.Rect(0, 0, w, h)), Black: black}
	for y := range h {
		for x := range w {
			c := color.NRGBA{255, 255, 255, 255}
			if in := image.Pt(x, y).In(marked); in && black {
				c = color.NRGBA{0, 0, 0, 255}
			} else if in {
				c.A = 0
			}
			m.SetNRGBA(x, y, c)
		}
	}
	return m
}

func TestEditChangesWhatTheMaskMarksAndNothingElse(t *testing.T) {
	marked := image.Rect(40, 30, 160, 90)
	bases := map[string]*image.NRGBA{
		"opaque":      picture(t, draw.Spec{Prompt: "before", Width: 240, Height: 130}),
		"transparent": picture(t, draw.Spec{Prompt: "before", Width: 240, Height: 130, Transparent: true}),
	}
	for name, base := range bases {
		for _, black := range []bool{true, false} {
			spec := draw.Spec{Prompt: "after", Seed: 3, Motif: 3}
			out, err := draw.Edit(base, mask(240, 130, marked, black), spec)
			if err != nil {
				t.Fatal(err)
			}
			spec.Width, spec.Height = 240, 130
			want := picture(t, spec)
			for y := range 130 {
				for x := range 240 {
					from := base
					if image.Pt(x, y).In(marked) {
						from = want
					}
					if got := out.NRGBAAt(x, y); got != from.NRGBAAt(x, y) {
						t.Fatalf("%s, black %v: pixel %d,%d is %v, want %v", name, black, x, y, got, from.NRGBAAt(x, y))
					}
				}
			}
		}
	}
}

func TestRemixShowsAsMuchOfThePictureAsItsWeightSays(t *testing.T) {
	base := picture(t, draw.Spec{Prompt: "before", Width: 120, Height: 80})
	far := func(weight int) (sum int) {
		out, err := draw.Remix(base, weight, draw.Spec{Prompt: "after", Width: 120, Height: 80})
		if err != nil {
			t.Fatal(err)
		}
		for i, p := range out.Pix {
			sum += max(int(p), int(base.Pix[i])) - min(int(p), int(base.Pix[i]))
		}
		return sum
	}
	if a, b, c := far(100), far(50), far(1); a != 0 || b <= a || c <= b {
		t.Errorf("distances at weights 100, 50, 1: %d, %d, %d", a, b, c)
	}
}

func TestOperationsKeepAndChangeSizes(t *testing.T) {
	base := picture(t, draw.Spec{Prompt: "before", Width: 120, Height: 80})
	spec := draw.Spec{Prompt: "after", Width: 200, Height: 200}
	rows := []struct {
		name string
		do   func() (*image.NRGBA, error)
		w, h int
	}{
		{"reframe", func() (*image.NRGBA, error) { return draw.Reframe(base, spec) }, 200, 200},
		{"remix", func() (*image.NRGBA, error) { return draw.Remix(base, 50, spec) }, 200, 200},
		{"replace background", func() (*image.NRGBA, error) { return draw.ReplaceBackground(base, spec) }, 120, 80},
		{"upscale", func() (*image.NRGBA, error) { return draw.Upscale(base) }, 240, 160},
		{"edit without a mask", func() (*image.NRGBA, error) { return draw.Edit(base, nil, spec) }, 120, 80},
		{"cover", func() (*image.NRGBA, error) { return draw.Cover(base, 30, 90) }, 30, 90},
	}
	for _, row := range rows {
		m, err := row.do()
		if err != nil || m.Rect.Dx() != row.w || m.Rect.Dy() != row.h || bytes.Equal(m.Pix, base.Pix) {
			t.Errorf("%s: %v %v", row.name, m, err)
		}
	}
}

func TestCoarsePicturesBecomeFiner(t *testing.T) {
	m := picture(t, draw.Spec{Prompt: "a fox", Width: 256, Height: 256})
	last := 1 << 62
	for step := range 3 {
		out, sum := draw.Coarse(m, step, 3), 0
		for i, p := range out.Pix {
			sum += max(int(p), int(m.Pix[i])) - min(int(p), int(m.Pix[i]))
		}
		if sum >= last || sum == 0 {
			t.Errorf("step %d is %d away, the one before %d", step, sum, last)
		}
		last = sum
	}
}

func TestDescribeTellsFormatAndColours(t *testing.T) {
	m := image.NewNRGBA(image.Rect(0, 0, 60, 30))
	for i := 0; i < len(m.Pix); i += 4 {
		copy(m.Pix[i:], []uint8{210, 45, 45, 255})
	}
	if got, want := draw.Describe(m), "A landscape-format picture of 60x30 pixels in red, evenly lit."; got != want {
		t.Errorf("got %q, want %q", got, want)
	}
}

func TestDecodeRefusesWhatIsTooLargeOrNoPicture(t *testing.T) {
	var huge bytes.Buffer
	if err := png.Encode(&huge, image.NewPaletted(image.Rect(0, 0, 8000, 4000), color.Palette{color.Black})); err != nil {
		t.Fatal(err)
	}
	if _, err := draw.Decode(bytes.NewReader(huge.Bytes())); !errors.Is(err, draw.ErrSize) {
		t.Errorf("8000x4000: %v", err)
	}
	if _, err := draw.Decode(strings.NewReader("GIF89a")); !errors.Is(err, draw.ErrFormat) {
		t.Errorf("GIF: %v", err)
	}
}
