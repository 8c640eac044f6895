package images

import (
	"bytes"
	"image"
	"image/color"
	"image/png"

	"stagedoor/providers/dialogue"
	"stagedoor/providers/picture"
)

// maxMaskPixels bounds what a mask takes in memory once it is decoded.
const maxMaskPixels = 17 << 20

// decoders bounds how many masks are in memory at once.
var decoders = make(chan struct{}, 2)

// transparentMask turns a mask of black and white into this shape's: what was
// black, and so to be changed, is transparent.
func transparentMask(mask *picture.File) (*picture.File, error) {
	if mask.Dimensions().Pixels() > maxMaskPixels {
		return nil, dialogue.Invalid("mask", "has too many pixels")
	}
	decoders <- struct{}{}
	defer func() { <-decoders }()
	in, _, err := image.Decode(mask.Reader())
	if err != nil {
		return nil, dialogue.Invalid("mask", "is a damaged picture")
	}
	b := in.Bounds()
	out := image.NewNRGBA(image.Rect(0, 0, b.Dx(), b.Dy()))
	for y := range b.Dy() {
		for x := range b.Dx() {
			g, _ := color.GrayModel.Convert(in.At(b.Min.X+x, b.Min.Y+y)).(color.Gray)
			if g.Y >= 0x80 {
				out.SetNRGBA(x, y, color.NRGBA{R: 0xff, G: 0xff, B: 0xff, A: 0xff})
			}
		}
	}
	var buf bytes.Buffer
	if err := png.Encode(&buf, out); err != nil {
		return nil, err
	}
	return picture.NewFile("", buf.Bytes())
}
