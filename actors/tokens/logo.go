package tokens

import (
	"bytes"
	"image"
	"image/color"
	"image/jpeg"
	"image/png"
	"sync"
)

const (
	// MaxLogo is the number of bytes of a file that becomes a logo.
	MaxLogo = 256 << 10
	// logoSide is the side of a stored logo in pixels, twice that of the page that shows it largest.
	logoSide = 96
	// minLogoSide and maxLogoSide bound the sides of the picture in the file. They are read before it is decoded.
	minLogoSide, maxLogoSide = 16, 1024
)

// logoMaker turns files into logos, one after the other, so that many of them at once take the memory of one picture.
type logoMaker struct{ mu sync.Mutex }

// draw decodes a PNG or JPEG picture and returns it as a new PNG of logoSide pixels, without whatever else the file
// holds. A picture that is not square keeps its proportions and gets transparent edges. The error is a *FieldError.
func (l *logoMaker) draw(file []byte) ([]byte, error) {
	config, decode := png.DecodeConfig, png.Decode
	if bytes.HasPrefix(file, []byte("\xff\xd8")) {
		config, decode = jpeg.DecodeConfig, jpeg.Decode
	}
	if len(file) > MaxLogo {
		return nil, &FieldError{"logo", "must have at most 256 KB"}
	}
	c, err := config(bytes.NewReader(file))
	if err != nil {
		return nil, &FieldError{"logo", "must be a PNG or JPEG picture"}
	}
	if min(c.Width, c.Height) < minLogoSide || max(c.Width, c.Height) > maxLogoSide {
		return nil, &FieldError{"logo", "must have 16 to 1024 pixels a side"}
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	m, err := decode(bytes.NewReader(file))
	if err != nil {
		return nil, &FieldError{"logo", "must be a whole PNG or JPEG picture"}
	}
	var out bytes.Buffer
	e := png.Encoder{CompressionLevel: png.BestCompression}
	if err := e.Encode(&out, shrink(m)); err != nil {
		return nil, err // only a writer that fails makes the encoder fail
	}
	return out.Bytes(), nil
}

// shrink returns m on a square of logoSide pixels. Each pixel is the mean of the part of m that it covers.
func shrink(m image.Image) image.Image {
	from := m.Bounds()
	whole := max(from.Dx(), from.Dy())
	// The square around m has its corner here, in the coordinates of m.
	left, top := from.Min.X-(whole-from.Dx())/2, from.Min.Y-(whole-from.Dy())/2
	to := image.NewNRGBA(image.Rect(0, 0, logoSide, logoSide))
	for y := range logoSide {
		for x := range logoSide {
			part := image.Rect(left+x*whole/logoSide, top+y*whole/logoSide,
				left+max((x+1)*whole/logoSide, x*whole/logoSide+1), top+max((y+1)*whole/logoSide, y*whole/logoSide+1))
			to.Set(x, y, mean(m, part))
		}
	}
	return to
}

// mean returns the mean colour of a part of m. What is outside of m is transparent.
func mean(m image.Image, part image.Rectangle) color.Color {
	var sum [4]uint64
	inside := part.Intersect(m.Bounds())
	for y := inside.Min.Y; y < inside.Max.Y; y++ {
		for x := inside.Min.X; x < inside.Max.X; x++ {
			r, g, b, a := m.At(x, y).RGBA()
			for i, v := range [4]uint32{r, g, b, a} {
				sum[i] += uint64(v)
			}
		}
	}
	n := uint64(part.Dx() * part.Dy())
	return color.RGBA64{R: uint16(sum[0] / n), G: uint16(sum[1] / n), B: uint16(sum[2] / n), A: uint16(sum[3] / n)}
}
