package draw

import (
	"bytes"
	"errors"
	"fmt"
	"image"
	stddraw "image/draw"
	"image/jpeg"
	"image/png"
	"io"

	"github.com/HugoSmits86/nativewebp"
	_ "golang.org/x/image/webp" // lets image.Decode read WebP
)

// Format is a file format of pictures, as the image routes spell it.
type Format string

// The formats.
const (
	PNG  Format = "png"
	JPEG Format = "jpeg"
	WebP Format = "webp"
)

// MediaType returns the format's Content-Type.
func (f Format) MediaType() string { return "image/" + string(f) }

// Encode writes a picture. quality, 1 to 100, matters to JPEG only; WebP is lossless. JPEG has no transparency and gets
// a white background.
func Encode(m *image.NRGBA, f Format, quality int) ([]byte, error) {
	var b bytes.Buffer
	err := fmt.Errorf("unknown format %q", f)
	switch f {
	case PNG:
		fast := png.Encoder{CompressionLevel: png.BestSpeed} // compresses these pictures well in a fraction of the time
		err = fast.Encode(&b, m)
	case JPEG:
		opaque := image.NewRGBA(m.Rect)
		stddraw.Draw(opaque, m.Rect, image.White, image.Point{}, stddraw.Src)
		stddraw.Draw(opaque, m.Rect, m, image.Point{}, stddraw.Over)
		err = jpeg.Encode(&b, opaque, &jpeg.Options{Quality: min(max(quality, 1), 100)})
	case WebP:
		err = nativewebp.Encode(&b, m, nil)
	}
	return b.Bytes(), err
}

// ErrFormat is returned for a file that cannot be read as a picture.
var ErrFormat = errors.New("the file is not a PNG, JPEG or WebP picture")

// Decode reads a picture. It checks the size before it allocates the pixels. Colours behind transparency are kept.
func Decode(r io.ReadSeeker) (*image.NRGBA, error) {
	c, _, err := image.DecodeConfig(r)
	if err != nil {
		return nil, ErrFormat
	}
	if !Fits(c.Width, c.Height) {
		return nil, ErrSize
	}
	if _, err := r.Seek(0, io.SeekStart); err != nil {
		return nil, err
	}
	m, _, err := image.Decode(r)
	if err != nil {
		return nil, ErrFormat
	}
	if n, ok := m.(*image.NRGBA); ok {
		return n, nil
	}
	out := image.NewNRGBA(image.Rect(0, 0, c.Width, c.Height))
	stddraw.Draw(out, out.Rect, m, m.Bounds().Min, stddraw.Src)
	return out, nil
}
