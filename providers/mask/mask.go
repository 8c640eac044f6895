package mask

import (
	"context"
	"fmt"
	"image"

	"stagedoor/providers/picture"
)

// A Flaw says which rule a mask breaks. It is written after the name of the field.
type Flaw string

func (f Flaw) Error() string { return string(f) }

// The flaws that Check can find.
const (
	Damaged     Flaw = "is damaged: it cannot be decoded"
	Truncated   Flaw = "is damaged: it ends before its image does"
	TooLarge    Flaw = "has too many pixels"
	NotMono     Flaw = "must hold only black and white pixels"
	NotColour   Flaw = "must be in RGB, RGBA or greyscale"
	Transparent Flaw = "must not be transparent where it is black"
	PureWhite   Flaw = "must not be pure white: black marks the part to change"
	TooWhite    Flaw = "must be black in at least 10% of its area"
	Animated    Flaw = "must be a still image"

	// NotPNG and NoAlpha are flaws of masks that mark with transparency.
	NotPNG  Flaw = "must be a PNG, the only format whose masks can be translated for this model's provider"
	NoAlpha Flaw = "must have an alpha channel: what is transparent is changed"
)

// leastBlackShare is in percent of the area.
const leastBlackShare = 10

// Check returns the Flaw for which the vendor would refuse mask as a mask of source, or nil. These are
// the rules, with the decisions where the documents leave something open:
//
//   - Both have the same dimensions as stored. An orientation in their metadata is ignored.
//   - Every pixel is black or white, in RGB, RGBA or greyscale of any depth. Palettes and CMYK
//     are refused.
//   - A pixel means the same to readers that drop alpha and to readers that put white behind
//     it. So black must be opaque, and white may be transparent.
//   - In PNG and lossless WebP, black is 0 and white is the largest value. JPEG and lossy WebP
//     blur, so they have a tolerance (see lossy.go).
//   - At least a tenth of the area is black.
//
// Other errors are the cause of the end of ctx and errors of the file system.
func Check(ctx context.Context, owner string, source, mask *picture.File) error {
	if size := mask.Dimensions(); size != source.Dimensions() {
		return Flaw(fmt.Sprintf("must have the dimensions of the image, %s, and has %s", source.Dimensions(), size))
	}
	var n pixelCount
	err := withPicture(ctx, owner, mask, func(decoded image.Image) error {
		if mask.MediaType == "image/png" {
			return n.addExact(decoded)
		}
		return n.addLossy(decoded, mask.MediaType == "image/webp")
	})
	if err != nil {
		return err
	}
	return n.flaw()
}

// pixelCount counts the pixels of a mask by their colour.
type pixelCount struct {
	black, white int64
	between      int64 // neither; only in lossy formats
}

// flaw returns the rule that the counts break, or nil.
func (n *pixelCount) flaw() error {
	all := n.black + n.white + n.between
	switch {
	case n.between*100 > all*maxBetween:
		return NotMono
	case n.black == 0:
		return PureWhite
	case n.black*100 < all*leastBlackShare:
		return TooWhite
	}
	return nil
}
