package mask

import (
	"context"
	"encoding/binary"
	"errors"
	"image"
	"image/color"
	"image/jpeg"
	"image/png"
	"io"

	"github.com/sourcegraph/conc/panics"
	"golang.org/x/image/webp"

	"stagedoor/providers/picture"
	"stagedoor/providers/turns"
)

// Bounds that are checked before a pixel is decoded.
const (
	maxSide       = 16384
	maxPixels     = 4096 * 4096
	bytesPerPixel = 16 // most that a decoder takes: PNG with 16 bits, interlaced

	maxDecodings = 2

	jpegPixelsPerByte = 512  // a block of 64 pixels takes at least a bit
	deflateRatio      = 1032 // of the best compression that PNG has
)

// decodings grants the decodings of the process, and not of a caller, because it bounds the
// memory of the process.
var decodings = turns.New(maxDecodings)

// withPicture decodes a picture, after it has checked the header, and calls use with it. It waits
// for the owner's turn until ctx ends. The room is kept until use returns, because the picture is in memory
// until then.
func withPicture(ctx context.Context, owner string, f *picture.File, use func(image.Image) error) error {
	if size := f.Dimensions(); max(size.Width, size.Height) > maxSide || size.Pixels() > maxPixels {
		return TooLarge
	}
	switch f.MediaType {
	case "image/png":
		if err := checkPNG(f); err != nil {
			return err
		}
		return decodeWith(ctx, owner, f, png.Decode, use)
	case "image/jpeg":
		if f.Dimensions().Pixels() > f.Size*jpegPixelsPerByte {
			return Truncated
		}
		return decodeWith(ctx, owner, f, jpeg.Decode, use)
	}
	if err := checkWebP(f); err != nil {
		return err
	}
	return decodeWith(ctx, owner, f, webp.Decode, use)
}

// decoder decodes a picture of one format.
type decoder func(io.Reader) (image.Image, error)

// decodeWith decodes a file and passes the picture to use while it holds a slot, since a decoded
// picture takes far more memory than its file. use must not keep the picture.
func decodeWith(ctx context.Context, owner string, f *picture.File, decode decoder, use func(image.Image) error) error {
	if err := decodings.Acquire(ctx, owner); err != nil {
		return err
	}
	defer decodings.Release(owner)
	decoded, err := decodeSafely(decode, f.Reader())
	if err != nil {
		return err
	}
	if decoded.Bounds().Size() != image.Pt(f.Width, f.Height) {
		return Damaged // the header and the picture disagree
	}
	return use(decoded)
}

// decodeSafely turns panics and errors of a decoder into Flaws. Errors of the file system stay
// as they are.
func decodeSafely(decode decoder, r io.Reader) (decoded image.Image, err error) {
	if p := panics.Try(func() { decoded, err = decode(r) }); p != nil {
		return nil, Damaged
	}
	var fileSystem interface{ Timeout() bool }
	switch {
	case err == nil:
		return decoded, nil
	case errors.As(err, &fileSystem):
		return nil, err
	case errors.Is(err, io.ErrUnexpectedEOF), errors.Is(err, io.EOF):
		return nil, Truncated
	}
	return nil, Damaged
}

// leastBits has the fewest bits that a pixel takes in the rows of a PNG, by the colour model
// that its decoder reports. Other models, which are palettes, are not of a mask.
var leastBits = map[color.Model]int64{color.GrayModel: 1, color.Gray16Model: 16, color.NRGBAModel: 16,
	color.RGBAModel: 24, color.NRGBA64Model: 32, color.RGBA64Model: 48}

// checkPNG refuses palettes, and files that are too short for their dimensions: the decoder
// allocates the whole picture before it reads the first row.
func checkPNG(f *picture.File) error {
	c, err := png.DecodeConfig(f.Reader())
	if err != nil {
		return Damaged
	}
	if _, palette := c.ColorModel.(color.Palette); palette {
		return NotColour
	}
	if f.Dimensions().Pixels()*leastBits[c.ColorModel]/8 > f.Size*deflateRatio {
		return Truncated
	}
	return nil
}

// checkWebP reads the header of the container and of its first chunk (RFC 9649 2.4 to 2.7). It
// refuses animations, and files that are shorter than their header says.
func checkWebP(f *picture.File) error {
	var b [21]byte
	if _, err := io.ReadFull(f.Reader(), b[:]); err != nil {
		return Truncated
	}
	riff, chunk := int64(binary.LittleEndian.Uint32(b[4:])), int64(binary.LittleEndian.Uint32(b[16:]))
	switch {
	case riff+8 > f.Size || chunk+20 > f.Size:
		return Truncated
	case string(b[12:16]) == "VP8X" && b[20]&0x02 != 0:
		return Animated
	}
	return nil
}
