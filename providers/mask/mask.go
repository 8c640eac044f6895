package mask

import (
	"context"
	"fmt"
	"io"

	"stagedoor/providers/picture"
)

// Bounds of masks, looked at before a pixel is decoded. A PNG is read row by
// row, so only its time counts. What is decoded whole is smaller, and at most
// two at a time.
const (
	maxSide         = 16384
	maxPixels       = 8192 * 8192
	maxWholePixels  = 4096 * 4096
	wholeAtATime    = 2
	pixelsPerByte   = 512 // of JPEG: each block of 64 pixels takes at least a bit
	leastBlackShare = 10  // percent (imagegen-and-oauth.md 8)
)

// A Flaw says which rule a mask breaks, in words for whoever sent it, to be put
// behind the name of a field.
type Flaw string

func (f Flaw) Error() string { return string(f) }

// The flaws (imagegen-and-oauth.md 4.2).
const (
	Damaged   Flaw = "is damaged: it cannot be decoded"
	Truncated Flaw = "is damaged: it ends before its image does"
	TooLarge  Flaw = "has too many pixels"
	NotMono   Flaw = "must hold only black and white pixels"
	NotColour Flaw = "must be in RGB, RGBA or greyscale"
	SeeThru   Flaw = "must not be transparent where it is black"
	PureWhite Flaw = "must not be pure white: black marks the part to change"
	TooWhite  Flaw = "must be black in at least 10% of its area"
	Animated  Flaw = "must be a still image"
)

// Judge decides whether files are masks. It is safe for concurrent use.
type Judge struct {
	whole chan struct{} // places for files that are decoded whole
}

// NewJudge makes a Judge.
func NewJudge() *Judge { return &Judge{whole: make(chan struct{}, wholeAtATime)} }

// Check judges a mask for an image. The rules, and what they leave open:
//
//   - Both have the same dimensions, as stored: an orientation in their metadata
//     turns neither.
//   - Every pixel is black or white, in RGB, RGBA or greyscale of any depth. A
//     palette and CMYK are none of these.
//   - A pixel counts as what it is both to readers that drop alpha and to those
//     that put white behind it: black has to be opaque, white need not be.
//   - In PNG and lossless WebP black is 0 and white the largest value. JPEG and
//     lossy WebP blur: see lossy.go.
//   - At least a tenth of the area is black.
//
// Its errors are Flaws, the end of ctx, or those of reading the file.
func (j *Judge) Check(ctx context.Context, image, mask *picture.File) error {
	size := mask.Dimensions()
	switch {
	case size != image.Dimensions():
		return Flaw(fmt.Sprintf("must have the dimensions of the image, %s, and has %s", image.Dimensions(), size))
	case max(size.Width, size.Height) > maxSide || size.Pixels() > maxPixels:
		return TooLarge
	}
	var t tally
	var err error
	if mask.MediaType == "image/png" {
		err = t.png(ctx, mask.Reader())
	} else {
		err = j.decode(ctx, mask, &t)
	}
	if err != nil {
		return err
	}
	return t.verdict()
}

// tally counts the pixels of a mask.
type tally struct {
	black, white int64
	between      int64 // of a lossy format: neither
}

func (t *tally) verdict() error {
	all := t.black + t.white + t.between
	switch {
	case t.between*100 > all*maxBetween:
		return NotMono
	case t.black == 0:
		return PureWhite
	case t.black*100 < all*leastBlackShare:
		return TooWhite
	}
	return nil
}

// rowsPerLook is how often a judge looks whether anybody still waits for it.
const rowsPerLook = 256

// png counts a PNG, row by row.
func (t *tally) png(ctx context.Context, r io.Reader) error {
	rows, err := newPNGRows(r)
	if err != nil {
		return err
	}
	count := counter(rows.pngHeader)
	if count == nil {
		return NotColour
	}
	n := 0
	return rows.each(func(row []byte, pixels int) error {
		if n++; n%rowsPerLook == 0 && ctx.Err() != nil {
			return context.Cause(ctx)
		}
		return count(t, row, pixels)
	})
}

// counter chooses how to count the rows of a PNG; nil: its colours are not
// those of a mask.
func counter(h pngHeader) func(t *tally, row []byte, pixels int) error {
	wide := h.depth / 8
	switch h.colour {
	case grey:
		if wide == 0 {
			return func(t *tally, row []byte, pixels int) error { return t.packed(row, pixels, h.depth) }
		}
		return func(t *tally, row []byte, _ int) error { return t.samples(row, wide, 0) }
	case rgb:
		return func(t *tally, row []byte, _ int) error { return t.samples(row, 3*wide, 0) }
	case greyAlpha:
		return func(t *tally, row []byte, _ int) error { return t.samples(row, wide, wide) }
	case rgbAlpha:
		return func(t *tally, row []byte, _ int) error { return t.samples(row, 3*wide, wide) }
	}
	return nil
}

// samples counts pixels of colour bytes, which must all be 0 or all 255, and
// alpha bytes behind them.
func (t *tally) samples(row []byte, colour, alpha int) error {
	for ; len(row) >= colour+alpha; row = row[colour+alpha:] {
		value := row[0]
		for _, b := range row[1:colour] {
			if b != value {
				return NotMono
			}
		}
		switch value {
		case 0xff:
			t.white++
		case 0:
			for _, b := range row[colour : colour+alpha] {
				if b != 0xff {
					return SeeThru
				}
			}
			t.black++
		default:
			return NotMono
		}
	}
	return nil
}

// packed counts pixels of less than a byte.
func (t *tally) packed(row []byte, pixels, depth int) error {
	most := byte(1<<depth - 1)
	for i := range pixels {
		bit := i * depth
		switch row[bit/8] >> (8 - depth - bit%8) & most {
		case 0:
			t.black++
		case most:
			t.white++
		default:
			return NotMono
		}
	}
	return nil
}
