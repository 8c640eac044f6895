package draw

import (
	"bytes"
	"fmt"
	"image"
	"image/color"
	"image/jpeg"
	"image/png"

	"github.com/HugoSmits86/nativewebp"
)

// Format is a file format of pictures.
type Format string

// The formats, as the image routes spell them.
const (
	PNG  Format = "png"
	JPEG Format = "jpeg"
	WebP Format = "webp"
)

// MediaType is its Content-Type.
func (f Format) MediaType() string { return "image/" + string(f) }

// fastPNG is half as large as none at all for what is drawn here, in a fraction
// of the time of the default.
var fastPNG = png.Encoder{CompressionLevel: png.BestSpeed}

// Encode writes a picture. quality, 1 to 100, is JPEG's; WebP is lossless
// whatever it says. JPEG has no transparency: white is put behind it.
func Encode(m *image.NRGBA, f Format, quality int) ([]byte, error) {
	var b bytes.Buffer
	var err error
	switch f {
	case PNG:
		err = fastPNG.Encode(&b, m)
	case JPEG:
		err = jpeg.Encode(&b, opaque(m), &jpeg.Options{Quality: min(max(quality, 1), 100)})
	case WebP:
		err = nativewebp.Encode(&b, m, nil)
	default:
		err = fmt.Errorf("unknown format %q", f)
	}
	return b.Bytes(), err
}

// opaque puts white behind a picture, in the form that image/jpeg reads fastest.
func opaque(m *image.NRGBA) *image.RGBA {
	out := image.NewRGBA(m.Rect)
	copy(out.Pix, m.Pix)
	if m.Opaque() {
		return out
	}
	white := color.NRGBA{255, 255, 255, 255}
	for i := 0; i < len(out.Pix); i += 4 {
		tint(out.Pix[i:], white, 256-int(out.Pix[i+3])*256/255)
		out.Pix[i+3] = 255
	}
	return out
}
