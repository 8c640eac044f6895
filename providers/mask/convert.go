package mask

import (
	"bytes"
	"context"
	"errors"
	"image"
	"image/color"
	"image/png"

	"stagedoor/providers/picture"
)

// half is the least alpha of an opaque pixel, and the least grey of a white one.
const half = 0x80

// FromAlpha converts a mask of the images shape to one of black and white. The result is a
// greyscale PNG that is black where the mask is transparent and white where it is opaque. It
// waits for the owner's turn until ctx ends, see Concurrency. Its errors are Flaws, errors of the file system, or the
// cause of ctx.
func FromAlpha(ctx context.Context, owner string, f *picture.File) (*picture.File, error) {
	if f.MediaType != "image/png" {
		return nil, NotPNG
	}
	converted, err := convert(ctx, owner, f, func(decoded image.Image) (image.Image, error) {
		out := image.NewGray(decoded.Bounds())
		switch m := decoded.(type) {
		case *image.NRGBA:
			writeOpaque(out, m.Pix, m.Stride, 4, 3)
		case *image.NRGBA64:
			writeOpaque(out, m.Pix, m.Stride, 8, 6)
		default:
			return nil, NoAlpha
		}
		return out, nil
	})
	if errors.Is(err, NotColour) {
		return nil, NoAlpha // a palette has no alpha channel
	}
	return converted, err
}

// writeOpaque makes out white where the alpha of pix is at least half. A pixel of pix has size
// bytes, and alpha is the offset of the high byte of its alpha.
func writeOpaque(out *image.Gray, pix []byte, stride, size, alpha int) {
	for y := range out.Rect.Dy() {
		for x := range out.Rect.Dx() {
			if pix[y*stride+x*size+alpha] >= half {
				out.Pix[y*out.Stride+x] = 0xff
			}
		}
	}
}

// ToAlpha converts a mask of black and white, in any format, to one of the images shape. The
// result is a PNG that is transparent where the mask is black and opaque white elsewhere. It
// waits for the owner's turn until ctx ends, see Concurrency. Its errors are Flaws, errors of the file system, or the
// cause of ctx.
func ToAlpha(ctx context.Context, owner string, f *picture.File) (*picture.File, error) {
	return convert(ctx, owner, f, func(decoded image.Image) (image.Image, error) {
		out := image.NewNRGBA(decoded.Bounds())
		for y := out.Rect.Min.Y; y < out.Rect.Max.Y; y++ {
			for x := out.Rect.Min.X; x < out.Rect.Max.X; x++ {
				g, _ := color.GrayModel.Convert(decoded.At(x, y)).(color.Gray)
				if g.Y >= half {
					out.SetNRGBA(x, y, color.NRGBA{R: 0xff, G: 0xff, B: 0xff, A: 0xff})
				}
			}
		}
		return out, nil
	})
}

// convert returns a PNG of the picture that change makes of f.
func convert(ctx context.Context, owner string, f *picture.File,
	change func(image.Image) (image.Image, error)) (*picture.File, error) {
	var b bytes.Buffer
	err := withPicture(ctx, owner, f, func(decoded image.Image) error {
		changed, err := change(decoded)
		if err != nil {
			return err
		}
		return png.Encode(&b, changed)
	})
	if err != nil {
		return nil, err
	}
	return picture.NewFile("", b.Bytes())
}
