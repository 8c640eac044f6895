package mask

import "image"

// addExact counts a picture of a lossless format.
func (n *pixelCount) addExact(decoded image.Image) error {
	switch m := decoded.(type) {
	case *image.Gray:
		return n.addRows(m.Pix, m.Stride, m.Rect, 1, 0)
	case *image.Gray16:
		return n.addRows(m.Pix, m.Stride, m.Rect, 2, 0)
	case *image.RGBA: // of a PNG without alpha
		return n.addRows(m.Pix, m.Stride, m.Rect, 3, 1)
	case *image.NRGBA:
		return n.addRows(m.Pix, m.Stride, m.Rect, 3, 1)
	case *image.RGBA64: // of a PNG without alpha
		return n.addRows(m.Pix, m.Stride, m.Rect, 6, 2)
	case *image.NRGBA64:
		return n.addRows(m.Pix, m.Stride, m.Rect, 6, 2)
	}
	return NotColour
}

// addRows counts pixels of colour bytes, which must all be 0 or all be 255, and alpha bytes
// after them.
func (n *pixelCount) addRows(pix []byte, stride int, r image.Rectangle, colour, alpha int) error {
	for y := range r.Dy() {
		row := pix[y*stride : y*stride+r.Dx()*(colour+alpha)]
		for ; len(row) > 0; row = row[colour+alpha:] {
			if err := n.addPixel(row[:colour], row[colour:colour+alpha]); err != nil {
				return err
			}
		}
	}
	return nil
}

// addPixel counts a pixel with its bytes of colour and of alpha, or refuses it. Only black must be
// opaque: a white pixel counts as white however transparent it is.
func (n *pixelCount) addPixel(colour, alpha []byte) error {
	value := colour[0]
	for _, b := range colour[1:] {
		if b != value {
			return NotMono
		}
	}
	switch value {
	case 0xff:
		n.white++
	case 0:
		for _, b := range alpha {
			if b != 0xff {
				return Transparent
			}
		}
		n.black++
	default:
		return NotMono
	}
	return nil
}
