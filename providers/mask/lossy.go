package mask

import (
	"context"
	"errors"
	"image"
	"image/color"
	"image/jpeg"
	"io"

	"github.com/sourcegraph/conc/panics"
	"golang.org/x/image/webp"

	"stagedoor/providers/picture"
)

// What lossy formats make of black and white. Within a block that an edge runs
// through they ring and blur, so besides darker than dark and lighter than light
// a small share of the area may be anything: edges are thin, grey areas are not.
const (
	dark       = 16
	light      = 239
	maxBetween = 2 // percent
)

// decode counts a JPEG or WebP. Their decoders hold the whole picture, so such
// files are smaller and wait for a place.
func (j *Judge) decode(ctx context.Context, mask *picture.File, t *tally) error {
	if mask.Dimensions().Pixels() > maxWholePixels {
		return TooLarge
	}
	read, err := decoder(mask)
	if err != nil {
		return err
	}
	select {
	case j.whole <- struct{}{}:
		defer func() { <-j.whole }()
	case <-ctx.Done():
		return context.Cause(ctx)
	}
	decoded, err := guarded(read, mask.Reader())
	if err != nil {
		return err
	}
	if decoded.Bounds().Size() != image.Pt(mask.Width, mask.Height) {
		return Damaged // the header and the picture disagree
	}
	return t.whole(decoded, mask.MediaType == "image/webp")
}

// decoder chooses how to read a file, once its header has been believed.
func decoder(mask *picture.File) (func(io.Reader) (image.Image, error), error) {
	if mask.MediaType != "image/jpeg" {
		return webp.Decode, checkWebP(mask.Reader(), mask.Size)
	}
	if mask.Dimensions().Pixels() > mask.Size*pixelsPerByte {
		return nil, Truncated
	}
	return jpeg.Decode, nil
}

// guarded decodes a stranger's file with a decoder that may not be up to it.
func guarded(read func(io.Reader) (image.Image, error), r io.Reader) (decoded image.Image, err error) {
	if p := panics.Try(func() { decoded, err = read(r) }); p != nil {
		return nil, Damaged
	}
	var path interface{ Timeout() bool } // of the file system, not of the file
	switch {
	case err == nil:
		return decoded, nil
	case errors.As(err, &path):
		return nil, err
	case errors.Is(err, io.ErrUnexpectedEOF), errors.Is(err, io.EOF):
		return nil, Truncated
	}
	return nil, Damaged
}

// whole counts a decoded picture. video: its luma is in the range of video, from
// 16 to 235, as lossy WebP has it and its decoder leaves it (RFC 6386 9.2).
func (t *tally) whole(decoded image.Image, video bool) error {
	switch m := decoded.(type) {
	case *image.Gray:
		for y := m.Rect.Min.Y; y < m.Rect.Max.Y; y++ {
			for _, v := range m.Pix[m.PixOffset(m.Rect.Min.X, y):m.PixOffset(m.Rect.Max.X, y)] {
				t.value(v, v)
			}
		}
		return nil
	case *image.YCbCr:
		return t.ycbcr(m, nil, video)
	case *image.NYCbCrA:
		return t.ycbcr(&m.YCbCr, m, video)
	case *image.NRGBA:
		return t.nrgba(m)
	}
	return NotColour
}

// value counts a pixel of a lossy format by its smallest and largest component.
func (t *tally) value(least, most uint8) {
	switch {
	case most <= dark:
		t.black++
	case least >= light:
		t.white++
	default:
		t.between++
	}
}

// ycbcr counts a picture in the colours of JPEG and lossy WebP. alpha is nil, or
// the same picture with transparency.
func (t *tally) ycbcr(m *image.YCbCr, alpha *image.NYCbCrA, video bool) error {
	for y := m.Rect.Min.Y; y < m.Rect.Max.Y; y++ {
		for x := m.Rect.Min.X; x < m.Rect.Max.X; x++ {
			c, luma := m.COffset(x, y), m.Y[m.YOffset(x, y)]
			if video {
				luma = stretch(luma)
			}
			r, g, b := color.YCbCrToRGB(luma, m.Cb[c], m.Cr[c])
			most := max(r, g, b)
			if alpha != nil && most < light && alpha.A[alpha.AOffset(x, y)] != 255 {
				return SeeThru
			}
			t.value(min(r, g, b), most)
		}
	}
	return nil
}

// stretch takes luma from the range of video to that of pictures.
func stretch(luma uint8) uint8 {
	return uint8((int(min(max(luma, 16), 235)) - 16) * 255 / 219)
}

// nrgba counts a picture of lossless WebP, the only one that is decoded to this.
func (t *tally) nrgba(m *image.NRGBA) error {
	for y := m.Rect.Min.Y; y < m.Rect.Max.Y; y++ {
		if err := t.samples(m.Pix[m.PixOffset(m.Rect.Min.X, y):m.PixOffset(m.Rect.Max.X, y)], 3, 1); err != nil {
			return err
		}
	}
	return nil
}
