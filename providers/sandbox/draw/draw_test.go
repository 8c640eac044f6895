package draw_test

import (
	"bytes"
	"errors"
	"image"
	"image/color"
	"image/png"
	"strings"
	"testing"

	"stagedoor/providers/sandbox/draw"
)

func drawPicture(tb testing.TB, s draw.Spec) *image.NRGBA {
	tb.Helper()
	m, err := draw.Picture(s)
	if err != nil {
		tb.Fatal(err)
	}
	return m
}

func distance(a, b *image.NRGBA) (sum int) {
	for i, p := range a.Pix {
		sum += max(int(p), int(b.Pix[i])) - min(int(p), int(b.Pix[i]))
	}
	return sum
}

func TestPictureDependsOnlyOnItsSpec(t *testing.T) {
	spec := draw.Spec{Prompt: "a fox", Seed: 7, Width: 320, Height: 200, Caption: "a fox"}
	seed, caption := spec, spec
	seed.Seed, caption.Caption = 8, "a hound"
	a := drawPicture(t, spec)
	if !bytes.Equal(a.Pix, drawPicture(t, spec).Pix) {
		t.Error("the same spec gave two pictures")
	}
	for _, other := range []draw.Spec{seed, caption} {
		if bytes.Equal(a.Pix, drawPicture(t, other).Pix) {
			t.Errorf("%+v gave the same picture", other)
		}
	}
}

func TestPictureHasEverySizeAndFormat(t *testing.T) {
	for _, size := range [][2]int{{1, 1}, {1, 40}, {64, 64}, {256, 256}, {1024, 1536}, {1792, 1024}, {512, 1536}} {
		m := drawPicture(t,
			draw.Spec{Prompt: "x", Width: size[0], Height: size[1], Caption: strings.Repeat("Fuchs 狐", 90)})
		if m.Rect.Dx() != size[0] || m.Rect.Dy() != size[1] || !m.Opaque() {
			t.Errorf("%v: %v, opaque %v", size, m.Rect, m.Opaque())
		}
		for _, f := range []draw.Format{draw.PNG, draw.JPEG, draw.WebP} {
			data, err := draw.Encode(m, f, 80)
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
		if _, err := draw.Picture(draw.Spec{Width: size[0], Height: size[1]}); !errors.Is(err, draw.ErrSize) {
			t.Errorf("%v was drawn", size)
		}
	}
}

func TestEncodedPictureIsTheDrawnOne(t *testing.T) {
	m := drawPicture(t, draw.Spec{Prompt: "a fox", Width: 200, Height: 150, Transparent: true})
	if m.Opaque() || m.NRGBAAt(0, 0).A != 0 || m.NRGBAAt(100, 75).A != 255 {
		t.Fatal("the background is not transparent")
	}
	for _, f := range []draw.Format{draw.PNG, draw.WebP} {
		data, err := draw.Encode(m, f, 0)
		if err != nil {
			t.Fatal(err)
		}
		back, err := draw.Decode(bytes.NewReader(data))
		if err != nil || distance(m, back) != 0 {
			t.Fatalf("%s: another picture, %v", f, err)
		}
	}
	low, _ := draw.Encode(m, draw.JPEG, 10)
	high, _ := draw.Encode(m, draw.JPEG, 95)
	if len(low) >= len(high) {
		t.Errorf("JPEG of quality 10 has %d bytes, of 95 %d", len(low), len(high))
	}
}

func TestEditChangesOnlyWhatTheMaskMarks(t *testing.T) {
	marked := image.Rect(40, 30, 160, 90)
	for _, black := range []bool{true, false} {
		base := drawPicture(t, draw.Spec{Prompt: "before", Width: 240, Height: 130, Transparent: !black})
		mask := &draw.Mask{NRGBA: image.NewNRGBA(base.Rect), Black: black}
		for y := range 130 {
			for x := range 240 {
				c := color.NRGBA{255, 255, 255, 255}
				switch in := image.Pt(x, y).In(marked); {
				case in && black:
					c = color.NRGBA{A: 255}
				case in:
					c.A = 0
				}
				mask.SetNRGBA(x, y, c)
			}
		}
		spec := draw.Spec{Prompt: "after", Seed: 3}
		out, err := draw.Edit(base, mask, spec)
		if err != nil {
			t.Fatal(err)
		}
		spec.Width, spec.Height = 240, 130
		want := drawPicture(t, spec)
		for y := range 130 {
			for x := range 240 {
				from := base
				if image.Pt(x, y).In(marked) {
					from = want
				}
				if out.NRGBAAt(x, y) != from.NRGBAAt(x, y) {
					t.Fatalf("black %v: pixel %d,%d is %v, want %v", black, x, y, out.NRGBAAt(x, y), from.NRGBAAt(x, y))
				}
			}
		}
	}
}

func TestRemixShowsAsMuchOfThePictureAsItsWeightSays(t *testing.T) {
	base := drawPicture(t, draw.Spec{Prompt: "before", Width: 120, Height: 80})
	far := func(weight int) int {
		out, err := draw.Remix(base, weight, draw.Spec{Prompt: "after", Width: 120, Height: 80})
		if err != nil {
			t.Fatal(err)
		}
		return distance(out, base)
	}
	if a, b, c := far(100), far(50), far(1); a != 0 || b <= a || c <= b {
		t.Errorf("distances at weights 100, 50, 1: %d, %d, %d", a, b, c)
	}
}

func TestOperationsGiveTheExpectedSizes(t *testing.T) {
	base := drawPicture(t, draw.Spec{Prompt: "before", Width: 120, Height: 80})
	spec := draw.Spec{Prompt: "after", Width: 200, Height: 200}
	rows := map[string]struct {
		do   func() (*image.NRGBA, error)
		w, h int
	}{
		"reframe":             {func() (*image.NRGBA, error) { return draw.Reframe(base, spec) }, 200, 200},
		"remix":               {func() (*image.NRGBA, error) { return draw.Remix(base, 50, spec) }, 200, 200},
		"replace background":  {func() (*image.NRGBA, error) { return draw.ReplaceBackground(base, spec) }, 120, 80},
		"upscale":             {func() (*image.NRGBA, error) { return draw.Upscale(base), nil }, 240, 160},
		"edit without a mask": {func() (*image.NRGBA, error) { return draw.Edit(base, nil, spec) }, 120, 80},
		"cover":               {func() (*image.NRGBA, error) { return draw.Cover(base, 30, 90) }, 30, 90},
	}
	for name, row := range rows {
		m, err := row.do()
		if err != nil || m.Rect.Dx() != row.w || m.Rect.Dy() != row.h || bytes.Equal(m.Pix, base.Pix) {
			t.Errorf("%s: %v %v", name, m.Rect, err)
		}
	}
	last := 1 << 62
	for step := range 3 {
		away := distance(draw.Coarse(base, step, 3), base)
		if away >= last || away == 0 {
			t.Errorf("partial picture %d is %d away from the whole, the one before %d", step, away, last)
		}
		last = away
	}
}

func TestDescribeNamesSizeAndColour(t *testing.T) {
	m := image.NewNRGBA(image.Rect(0, 0, 60, 30))
	for i := 0; i < len(m.Pix); i += 4 {
		copy(m.Pix[i:], []uint8{210, 45, 45, 255})
	}
	if got, want := draw.Describe(m), "A picture of 60x30 pixels whose average colour is #d22d2d."; got != want {
		t.Errorf("got %q, want %q", got, want)
	}
}

func TestDecodeRefusesLargeAndUnknownFiles(t *testing.T) {
	var huge bytes.Buffer
	if err := png.Encode(&huge,
		image.NewPaletted(image.Rect(0, 0, 8000, 4000), color.Palette{color.Black})); err != nil {
		t.Fatal(err)
	}
	if _, err := draw.Decode(bytes.NewReader(huge.Bytes())); !errors.Is(err, draw.ErrSize) {
		t.Errorf("8000x4000: %v", err)
	}
	if _, err := draw.Decode(strings.NewReader("GIF89a")); !errors.Is(err, draw.ErrFormat) {
		t.Errorf("GIF: %v", err)
	}
}
