package mask_test

import (
	"bytes"
	"compress/zlib"
	"context"
	"encoding/binary"
	"errors"
	"hash/crc32"
	"image"
	"image/color"
	"image/jpeg"
	"image/png"
	"io"
	"reflect"
	"runtime"
	"testing"

	"stagedoor/providers/mask"
	"stagedoor/providers/picture"
)

// chunk returns a PNG chunk.
func chunk(name string, data []byte) []byte {
	b := binary.BigEndian.AppendUint32(nil, uint32(len(data)))
	b = append(append(b, name...), data...)
	return binary.BigEndian.AppendUint32(b, crc32.ChecksumIEEE(b[4:]))
}

// rawPNG returns a PNG with any header around any rows, which include the bytes of their filters.
func rawPNG(width, height uint32, depth, colour, interlace byte, rows io.Reader, extra ...[]byte) []byte {
	head := binary.BigEndian.AppendUint32(binary.BigEndian.AppendUint32(nil, width), height)
	head = append(head, depth, colour, 0, 0, interlace)
	var packed bytes.Buffer
	z := zlib.NewWriter(&packed)
	io.Copy(z, rows)
	z.Close()
	out := append([]byte("\x89PNG\r\n\x1a\n"), chunk("IHDR", head)...)
	for _, e := range extra {
		out = append(out, e...)
	}
	// Two chunks test that the data is read across chunks.
	data := packed.Bytes()
	out = append(append(out, chunk("IDAT", data[:len(data)/2])...), chunk("IDAT", data[len(data)/2:])...)
	return append(out, chunk("IEND", nil)...)
}

// rows repeats a row n times.
func rows(n int, row ...byte) io.Reader { return bytes.NewReader(bytes.Repeat(row, n)) }

func encode(t testing.TB, m image.Image) []byte {
	t.Helper()
	var b bytes.Buffer
	if err := png.Encode(&b, m); err != nil {
		t.Fatal(err)
	}
	return b.Bytes()
}

// paint gives the first n pixels of m, row by row, one colour and the others another.
func paint[M interface {
	Bounds() image.Rectangle
	Set(x, y int, c color.Color)
}](m M, n int, first, rest color.Color) M {
	r := m.Bounds()
	for i := range r.Dx() * r.Dy() {
		c := rest
		if i < n {
			c = first
		}
		m.Set(i%r.Dx(), i/r.Dx(), c)
	}
	return m
}

func gray(n int) image.Image {
	return paint(image.NewGray(image.Rect(0, 0, 20, 10)), n, color.Black, color.White)
}

func quality(t testing.TB, q int, m image.Image) []byte {
	t.Helper()
	var b bytes.Buffer
	if err := jpeg.Encode(&b, m, &jpeg.Options{Quality: q}); err != nil {
		t.Fatal(err)
	}
	return b.Bytes()
}

// Pictures of 20x10 pixels whose left half is black, made by ffmpeg's libwebp.
var (
	losslessWebP = []byte(
		"RIFF\x28\x00\x00\x00WEBPVP8L\x1b\x00\x00\x00\x2f\x13\x40\x02\x00\x0f\x30\xff\xf3\x3f\xff\xf3\x1f\x78\x10\x08\x10\x0e" +
			"\xfc\xbf\x1a\x70\x10\xd1\xff\x20\x17\x00",
	)
	lossyWebP = []byte(
		"RIFF\x3c\x00\x00\x00WEBPVP8 \x30\x00\x00\x00\x10\x03\x00\x9d\x01\x2a\x14\x00\x0a\x00\x3e\x91\x38\x97\x47\xa5\xa3" +
			"\x22\x21\x30\x08\x00\xb0\x12\x09\x69\x00\x00\x5a\x9f\xa2\x3e\x20\x00\xfe\xfc\x47\x6f\xb9\xbf\xfc\x5b\xdb\xff\x57\x40\x00\x00",
	)
)

func file(t testing.TB, data []byte) *picture.File {
	t.Helper()
	f, err := picture.NewFile("", data)
	if err != nil {
		t.Fatalf("the test's file is no picture: %v", err)
	}
	return f
}

func check(t testing.TB, data []byte, width, height int) error {
	t.Helper()
	return mask.Check(context.Background(), "ann", &picture.File{Width: width, Height: height}, file(t, data))
}

var box = image.Rect(0, 0, 20, 10)

func TestCheckAppliesTheRulesOfTheVendor(t *testing.T) {
	nearly := color.Gray{Y: 1}
	clear := color.NRGBA{}
	edge := paint(image.NewGray(image.Rect(0, 0, 160, 80)), 3007, color.Black,
		color.White) // an edge in the middle of blocks
	damaged := encode(t, gray(100))
	damaged[len(damaged)-20] ^= 0xff
	for _, tt := range []struct {
		name string
		data []byte
		want error
	}{
		{"grey", encode(t, gray(100)), nil},
		{"RGB", encode(t, opaque{paint(image.NewRGBA(box), 100, color.Black, color.White)}), nil},
		{"RGBA", encode(t, paint(image.NewNRGBA(box), 100, color.Black, color.NRGBA{255, 255, 255, 254})), nil},
		{"RGBA, white is transparent", encode(t,
			paint(image.NewNRGBA(box), 100, color.Black, color.NRGBA{255, 255, 255, 0})), nil},
		{"RGBA, black is transparent", encode(t, paint(image.NewNRGBA(box), 100, clear, color.White)),
			mask.Transparent},
		{"RGBA, black is nearly opaque",
			encode(t, paint(image.NewNRGBA(box), 100, color.NRGBA{0, 0, 0, 254}, color.White)), mask.Transparent},
		{"grey of 16 bits", encode(t, paint(image.NewGray16(box), 100, color.Black, color.White)), nil},
		{"grey of 16 bits, not quite white",
			encode(t, paint(image.NewGray16(box), 100, color.Black, color.Gray16{Y: 0xfffe})), mask.NotMono},
		{"RGB of 16 bits", encode(t, paint(image.NewNRGBA64(box), 100, color.Black, color.White)), nil},
		{"grey and alpha", rawPNG(20, 10, 8, 4, 0, rows(10, append([]byte{0}, bytes.Repeat([]byte{0, 255}, 20)...)...)),
			nil},
		{"one bit", rawPNG(20, 10, 1, 0, 0, rows(10, 0, 0xf0, 0x00, 0xff)), nil},
		{"two bits, a grey among them", rawPNG(4, 10, 2, 0, 0, rows(10, 0, 0x1f)), mask.NotMono},
		{"four bits", rawPNG(3, 10, 4, 0, 0, rows(10, 0, 0x0f, 0xf1)), nil}, // the last half byte is no pixel
		{"every filter", rawPNG(2, 5, 8, 0, 0,
			bytes.NewReader([]byte{0, 0, 255, 1, 0, 255, 2, 0, 0, 3, 0, 128, 4, 0, 0})), nil},
		{"palette", encode(t, paint(image.NewPaletted(box, color.Palette{color.Black, color.White}), 100, color.Black,
			color.White)), mask.NotColour},
		{"pure white", encode(t, gray(0)), mask.PureWhite},
		{"pure black", encode(t, gray(200)), nil},
		{"9.5% black", encode(t, gray(19)), mask.TooWhite},
		{"10% black", encode(t, gray(20)), nil},
		{"a grey pixel", encode(t, paint(image.NewGray(box), 1, color.Gray{Y: 128}, color.Black)), mask.NotMono},
		{"nearly black", encode(t, paint(image.NewGray(box), 199, color.Black, nearly)), mask.NotMono},
		{"red", encode(t, opaque{paint(image.NewRGBA(box), 100, color.RGBA{255, 0, 0, 255}, color.Black)}),
			mask.NotMono},
		{"JPEG", quality(t, 75, edge), nil},
		{"JPEG in colour", quality(t, 75,
			paint(image.NewRGBA(image.Rect(0, 0, 160, 80)), 3007, color.Black, color.White)), nil},
		{"JPEG, grey area", quality(t, 95, paint(image.NewGray(box), 100, color.Gray{Y: 90}, color.Black)),
			mask.NotMono},
		{"JPEG, red area", quality(t, 95, paint(image.NewRGBA(box), 100, color.RGBA{255, 0, 0, 255}, color.Black)),
			mask.NotMono},
		{"JPEG, pure white", quality(t, 95, gray(0)), mask.PureWhite},
		{"lossless WebP", losslessWebP, nil},
		{"lossy WebP", lossyWebP, nil},
		{"WebP cut off", lossyWebP[:60], mask.Truncated},
		{"interlaced", interlaced(9, 9, 0), nil},
		{"interlaced, a grey in the last pass", interlaced(9, 9, 7), mask.NotMono},
		{"other chunks", rawPNG(8, 1, 1, 0, 0, rows(1, 0, 0), chunk("tEXt", make([]byte, 100)),
			chunk("acTL", make([]byte, 8))), nil},
		{"too few rows", rawPNG(8, 9, 1, 0, 0, rows(8, 0, 0)), mask.Damaged},
		{"black that a chunk makes transparent",
			rawPNG(20, 10, 8, 0, 0, rows(10, make([]byte, 21)...), chunk("tRNS", []byte{0, 0})), mask.Transparent},
		{"too many rows", rawPNG(8, 9, 1, 0, 0, rows(10, 0, 0)), mask.Damaged},
		{"unknown filter", rawPNG(8, 9, 1, 0, 0, rows(9, 5, 0)), mask.Damaged},
		{"wrong checksum", damaged, mask.Damaged},
		{"cut off", encode(t, gray(100))[:50], mask.Damaged},
		{"JPEG cut off", quality(t, 95, edge)[:700], mask.Damaged},
	} {
		f := file(t, tt.data)
		got := mask.Check(context.Background(), "ann", f, f)
		if !errors.Is(got, tt.want) {
			t.Errorf("%s: got %v, want %v", tt.name, got, tt.want)
		}
	}
}

// opaque keeps the PNG encoder from writing alpha.
type opaque struct{ *image.RGBA }

func (opaque) Opaque() bool { return true }

// adam7 has the first column and row, and the steps to the next ones, of the passes of an
// interlaced picture.
var adam7 = [][4]int{{0, 0, 8, 8}, {4, 0, 8, 8}, {0, 4, 4, 8}, {2, 0, 4, 4}, {0, 2, 2, 4}, {1, 0, 2, 2}, {0, 1, 1, 2}}

// interlaced returns a greyscale picture in seven passes. It is black except for one grey pixel
// in the pass with the number grey.
func interlaced(width, height, grey int) []byte {
	var data []byte
	for i, p := range adam7 {
		w, h := (width-p[0]+p[2]-1)/p[2], (height-p[1]+p[3]-1)/p[3]
		if w == 0 {
			continue
		}
		for y := range h {
			row := make([]byte, 1+w)
			if i+1 == grey && y == 0 {
				row[w] = 7
			}
			data = append(data, row...)
		}
	}
	return rawPNG(uint32(width), uint32(height), 8, 0, 1, bytes.NewReader(data))
}

func TestMaskHasTheDimensionsOfTheImage(t *testing.T) {
	err := check(t, encode(t, gray(100)), 10, 20)
	if want := "must have the dimensions of the image, 10x20, and has 20x10"; err == nil || err.Error() != want {
		t.Errorf("got %v, want %s", err, want)
	}
}

func TestFilesThatAreTooLargeOrTooShortAreRefusedBeforeDecoding(t *testing.T) {
	liar := quality(t, 90, gray(100))
	at := bytes.Index(liar, []byte{0xff, 0xc0})
	binary.BigEndian.PutUint16(liar[at+5:], 4096)
	binary.BigEndian.PutUint16(liar[at+7:], 4096)
	// A lossless WebP that says it is 16384 pixels wide and high.
	huge := bytes.Clone(losslessWebP)
	copy(huge[21:], "\xff\xff\xff\x0f")
	short := bytes.Clone(huge)
	copy(short[21:], "\xff\xcf\xff\x03") // 4096x4096, in a container that ends too early
	short[4] = 0xff
	still := bytes.Clone(losslessWebP)
	copy(still[12:], "VP8X\x0a\x00\x00\x00\x02\x00\x00\x00\x00\x00\x00\x00\x00\x00")
	for _, tt := range []struct {
		name string
		data []byte
		want error
	}{
		{"100,000 pixels wide", rawPNG(100_000, 1, 8, 6, 0, rows(1, 0)), mask.TooLarge},
		{"two thousand million high", rawPNG(1, 1<<31-1, 8, 0, 0, rows(1, 0)), mask.TooLarge},
		{"16,000 by 16,000", rawPNG(16_000, 16_000, 1, 0, 0, rows(1, 0)), mask.TooLarge},
		{"8192 by 8192", rawPNG(8192, 8192, 1, 0, 0, rows(1, 0)), mask.TooLarge},
		{"4096 by 4096, but no rows", rawPNG(4096, 4096, 1, 0, 0, rows(0)), mask.Truncated},
		{"4096 by 4096 in 16 bits, but no rows", rawPNG(4096, 4096, 16, 6, 0, rows(0)), mask.Truncated},
		{"4096 by 4096 in RGB, but one row", rawPNG(4096, 4096, 8, 2, 0, rows(4096, 0, 0, 0)), mask.Truncated},
		{"palette of 4096 by 4096", rawPNG(4096, 4096, 8, 3, 0, rows(4096, 0),
			chunk("PLTE", make([]byte, 6))), mask.NotColour},
		{"JPEG of 600 bytes for 4096 by 4096", liar, mask.Truncated},
		{"WebP of 16384 by 16384", huge, mask.TooLarge},
		{"WebP that ends before it should", short, mask.Truncated},
		{"animated WebP", still, mask.Animated},
	} {
		f := file(t, tt.data)
		before := allocated()
		err := mask.Check(context.Background(), "ann", f, f)
		if !errors.Is(err, tt.want) {
			t.Errorf("%s: got %v, want %v", tt.name, err, tt.want)
		}
		if cost := allocated() - before; cost > 1<<20 {
			t.Errorf("%s: took %d bytes of memory, want less than 1 MiB", tt.name, cost)
		}
	}
}

// An interlaced picture with 16 bits takes the most memory. The bound of docs/limits.md is this
// one times the bound of pixels times the number of decodings at a time.
func TestDecodingTakesAtMostSixteenBytesForEachPixel(t *testing.T) {
	const side, perPixel = 512, 16
	var data []byte
	for _, p := range adam7 {
		w, h := (side-p[0]+p[2]-1)/p[2], (side-p[1]+p[3]-1)/p[3]
		for range h {
			data = append(data, opaqueBlackRow(w)...)
		}
	}
	f := file(t, rawPNG(side, side, 16, 6, 1, bytes.NewReader(data)))
	before := allocated()
	if err := mask.Check(context.Background(), "ann", f, f); err != nil {
		t.Fatal(err)
	}
	if cost := allocated() - before; cost > side*side*perPixel+1<<19 {
		t.Errorf("took %d bytes of memory, want at most %d for each pixel", cost, perPixel)
	}
}

func TestMasksAreConvertedBetweenTransparencyAndBlack(t *testing.T) {
	edited := paint(image.NewNRGBA(box), 100, color.NRGBA{R: 200, A: 0x7f}, color.NRGBA{B: 9, A: 0x80})
	black, err := mask.FromAlpha(t.Context(), "ann", file(t, encode(t, edited)))
	if err != nil {
		t.Fatal(err)
	}
	decoded, err := png.Decode(black.Reader())
	if err != nil {
		t.Fatal(err)
	}
	if got, want := decoded, gray(100); !reflect.DeepEqual(got, want) {
		t.Errorf("the mask of black and white differs: got %v at 0,0", got.At(0, 0))
	}
	clear, err := mask.ToAlpha(t.Context(), "ann", black)
	if err != nil {
		t.Fatal(err)
	}
	if decoded, err = png.Decode(clear.Reader()); err != nil {
		t.Fatal(err)
	}
	if want := paint(image.NewNRGBA(box), 100, color.NRGBA{}, color.White); !reflect.DeepEqual(decoded, want) {
		t.Errorf("the transparent mask differs: got %v at 0,0", decoded.At(0, 0))
	}
	for _, tt := range []struct {
		name string
		data []byte
		want error
	}{
		{"16 bits", encode(t, paint(image.NewNRGBA64(box), 100, color.NRGBA64{}, color.White)), nil},
		{"no alpha", encode(t, gray(100)), mask.NoAlpha},
		{"palette", encode(t, image.NewPaletted(box, color.Palette{color.Black})), mask.NoAlpha},
		{"JPEG", quality(t, 90, gray(100)), mask.NotPNG},
		{"too many pixels", rawPNG(8192, 8192, 8, 6, 0, rows(1, 0)), mask.TooLarge},
	} {
		if _, got := mask.FromAlpha(t.Context(), "ann", file(t, tt.data)); !errors.Is(got, tt.want) {
			t.Errorf("%s: got %v, want %v", tt.name, got, tt.want)
		}
	}
}

func allocated() uint64 {
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return m.TotalAlloc
}

func TestWorkOnMasksEndsWithItsContext(t *testing.T) {
	ctx, cancel := context.WithCancelCause(context.Background())
	gone := errors.New("gone")
	cancel(gone)
	f := file(t, rawPNG(8, 4096, 1, 0, 0, rows(4096, 0, 0)))
	_, from := mask.FromAlpha(ctx, "ann", f)
	_, to := mask.ToAlpha(ctx, "ann", f)
	for name, err := range map[string]error{"Check": mask.Check(ctx, "ann", f, f), "FromAlpha": from, "ToAlpha": to} {
		if !errors.Is(err, gone) {
			t.Errorf("%s: got %v, want the cause of the end", name, err)
		}
	}
}

func FuzzMask(f *testing.F) {
	f.Add(encode(f, gray(100)))
	f.Add(encode(f, paint(image.NewNRGBA(box), 100, color.Black, color.White)))
	f.Add(interlaced(9, 9, 0))
	f.Add(quality(f, 75, gray(100)))
	f.Add(losslessWebP)
	f.Fuzz(func(t *testing.T, data []byte) {
		p, err := picture.NewFile("", data)
		if err != nil {
			return
		}
		if p.Dimensions().Pixels() > 1<<20 {
			return // only slow
		}
		got := mask.Check(context.Background(), "ann", p, p)
		decoded, err := png.Decode(bytes.NewReader(data))
		if err != nil || got != nil {
			return
		}
		// The accepted mask has only black and white pixels.
		black, r := 0, decoded.Bounds()
		for y := r.Min.Y; y < r.Max.Y; y++ {
			for x := r.Min.X; x < r.Max.X; x++ {
				switch c := color.NRGBA64Model.Convert(decoded.At(x, y)).(color.NRGBA64); {
				case c.R|c.G|c.B == 0 && c.A != 0:
					black++
				case c.R&c.G&c.B != 0xffff && c.A != 0:
					t.Fatalf("pixel %d,%d is %v", x, y, c)
				}
			}
		}
		if black*10 < r.Dx()*r.Dy() {
			t.Fatalf("%d of %d pixels are black", black, r.Dx()*r.Dy())
		}
	})
}

// zeros reads an endless sequence of zeros.
type zeros struct{}

func (zeros) Read(b []byte) (int, error) { clear(b); return len(b), nil }

func bench(b *testing.B, data []byte, want error) {
	f := file(b, data)
	b.ReportAllocs()
	b.SetBytes(int64(len(data)))
	for b.Loop() {
		if err := mask.Check(context.Background(), "ann", f, f); !errors.Is(err, want) {
			b.Fatal(err)
		}
	}
}

// BenchmarkGrey4096 checks a mask of the largest size.
func BenchmarkGrey4096(b *testing.B) {
	bench(b, rawPNG(4096, 4096, 8, 0, 0, io.LimitReader(zeros{}, 4097*4096)), nil)
}

// BenchmarkBomb16BitRGBA4096 shows the memory and time of the most that a mask can expand to:
// 128 MiB from about 130 KiB.
func BenchmarkBomb16BitRGBA4096(b *testing.B) {
	bench(b, rawPNG(4096, 4096, 16, 6, 0, &repeated{row: opaqueBlackRow(4096), left: 4096}), nil)
}

// BenchmarkBombBehindSmallHeader checks 256 MiB of data for a picture of 64 by 64.
func BenchmarkBombBehindSmallHeader(b *testing.B) {
	bench(b, rawPNG(64, 64, 8, 0, 0, io.LimitReader(zeros{}, 256<<20)), mask.Damaged)
}

func BenchmarkTooWide(b *testing.B) {
	bench(b, rawPNG(100_000, 8, 8, 0, 0, rows(8, 0)), mask.TooLarge)
}

// opaqueBlackRow is a row of RGBA with 16 bits, and the byte of its filter.
func opaqueBlackRow(width int) []byte {
	return append([]byte{0}, bytes.Repeat([]byte{0, 0, 0, 0, 0, 0, 255, 255}, width)...)
}

// repeated reads a row a number of times.
type repeated struct {
	row  []byte
	at   int
	left int
}

func (r *repeated) Read(b []byte) (int, error) {
	if r.left == 0 {
		return 0, io.EOF
	}
	n := copy(b, r.row[r.at:])
	if r.at += n; r.at == len(r.row) {
		r.at, r.left = 0, r.left-1
	}
	return n, nil
}
