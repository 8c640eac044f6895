package draw

import (
	"errors"
	"image"
	"image/draw"
	_ "image/jpeg" // for image.Decode
	_ "image/png"
	"io"

	_ "golang.org/x/image/webp"
)

// ErrFormat is returned for what is no picture that can be read.
var ErrFormat = errors.New("the file is not a PNG, JPEG or WebP picture")

// Decode reads a picture. It looks at the size before it makes room for pixels.
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
	return plain(m), nil
}

// plain copies a picture, so that its pixels may be changed. Pictures that hide
// colours behind transparency keep them.
func plain(m image.Image) *image.NRGBA {
	out := image.NewNRGBA(image.Rect(0, 0, m.Bounds().Dx(), m.Bounds().Dy()))
	n, ok := m.(*image.NRGBA)
	if !ok {
		draw.Draw(out, out.Rect, m, m.Bounds().Min, draw.Src)
		return out
	}
	for y := range out.Rect.Dy() {
		from := n.PixOffset(n.Rect.Min.X, n.Rect.Min.Y+y)
		copy(out.Pix[y*out.Stride:(y+1)*out.Stride], n.Pix[from:])
	}
	return out
}
