package mask

import (
	"image"
	"image/color"
)

// Tolerances of lossy formats. They ring and blur in every block that an edge runs through, so
// beside dark and light pixels a small share of the area may have any value. Edges are thin,
// and grey areas are not.
const (
	dark       = 16
	light      = 239
	maxBetween = 2 // percent
)

// addLossy counts a decoded JPEG or WebP. video says that luma is in the range of video, from 16
// to 235, as lossy WebP has it and its decoder leaves it (RFC 6386 9.2). The error is NotColour for other colours than
// those of a mask, and Transparent for a dark pixel that is not opaque.
func (n *pixelCount) addLossy(decoded image.Image, video bool) error {
	switch m := decoded.(type) {
	case *image.Gray:
		for y := range m.Rect.Dy() {
			for _, v := range m.Pix[y*m.Stride : y*m.Stride+m.Rect.Dx()] {
				n.addRange(v, v)
			}
		}
		return nil
	case *image.YCbCr:
		return n.addYCbCr(m, nil, video)
	case *image.NYCbCrA:
		return n.addYCbCr(&m.YCbCr, m, video)
	case *image.NRGBA: // of a lossless WebP
		return n.addExact(m)
	}
	return NotColour
}

// addRange counts a pixel by the smallest and the largest of its components.
func (n *pixelCount) addRange(least, most uint8) {
	switch {
	case most <= dark:
		n.black++
	case least >= light:
		n.white++
	default:
		n.between++
	}
}

// addYCbCr counts a picture in the colours of JPEG and lossy WebP. alpha is nil, or the same
// picture with transparency.
func (n *pixelCount) addYCbCr(m *image.YCbCr, alpha *image.NYCbCrA, video bool) error {
	for y := m.Rect.Min.Y; y < m.Rect.Max.Y; y++ {
		for x := m.Rect.Min.X; x < m.Rect.Max.X; x++ {
			c, luma := m.COffset(x, y), m.Y[m.YOffset(x, y)]
			if video {
				luma = expandLuma(luma)
			}
			r, g, b := color.YCbCrToRGB(luma, m.Cb[c], m.Cr[c])
			most := max(r, g, b)
			if alpha != nil && most < light && alpha.A[alpha.AOffset(x, y)] != 255 {
				return Transparent
			}
			n.addRange(min(r, g, b), most)
		}
	}
	return nil
}

// expandLuma maps luma from the range of video, 16 to 235, to the range 0 to 255.
func expandLuma(luma uint8) uint8 {
	return uint8((int(min(max(luma, 16), 235)) - 16) * 255 / 219)
}
