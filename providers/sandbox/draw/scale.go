package draw

import "image"

// Scale makes a picture of another size, without keeping its proportions. The
// error is ErrSize.
func Scale(m *image.NRGBA, width, height int) (*image.NRGBA, error) {
	if !Fits(width, height) {
		return nil, ErrSize
	}
	if m.Rect.Dx() == width && m.Rect.Dy() == height {
		return plain(m), nil
	}
	return sample(m, m.Rect, width, height), nil
}

// Cover crops the middle of a picture to the proportions of a size, and scales
// it to that. The error is ErrSize.
func Cover(m *image.NRGBA, width, height int) (*image.NRGBA, error) {
	if !Fits(width, height) {
		return nil, ErrSize
	}
	w, h := m.Rect.Dx(), m.Rect.Dy()
	cut := m.Rect
	if w*height > h*width {
		keep := max(h*width/height, 1)
		cut.Min.X += (w - keep) / 2
		cut.Max.X = cut.Min.X + keep
	} else {
		keep := max(w*height/width, 1)
		cut.Min.Y += (h - keep) / 2
		cut.Max.Y = cut.Min.Y + keep
	}
	if cut.Dx() == width && cut.Dy() == height {
		return plain(m.SubImage(cut)), nil
	}
	return sample(m, cut, width, height), nil
}

// stop is where a destination column or row looks in the source: between two
// neighbours, w/256 of the way.
type stop struct{ a, b, w int }

// stops spreads n places evenly over the source's from up to to.
func stops(n, from, to int) []stop {
	out := make([]stop, n)
	for i := range out {
		at := (2*i+1)*(to-from)*128/n - 128 // in 256ths of a pixel
		at = min(max(at, 0), (to-from-1)*256)
		a := from + at/256
		out[i] = stop{a, min(a+1, to-1), at % 256}
	}
	return out
}

// sample interpolates between the four nearest pixels. Reduced to less than half
// a picture loses detail to chance, which is good enough for what this is for.
func sample(m *image.NRGBA, cut image.Rectangle, width, height int) *image.NRGBA {
	out := image.NewNRGBA(image.Rect(0, 0, width, height))
	columns := stops(width, cut.Min.X, cut.Max.X)
	for y, s := range stops(height, cut.Min.Y, cut.Max.Y) {
		upper, lower := m.Pix[m.PixOffset(m.Rect.Min.X, s.a):], m.Pix[m.PixOffset(m.Rect.Min.X, s.b):]
		row := out.Pix[y*out.Stride:]
		for x, c := range columns {
			i, j := 4*(c.a-m.Rect.Min.X), 4*(c.b-m.Rect.Min.X)
			for k := range 4 {
				row[4*x+k] = blend(blend(upper[i+k], upper[j+k], c.w), blend(lower[i+k], lower[j+k], c.w), s.w)
			}
		}
	}
	return out
}

// Coarse makes what is seen of a picture before it is finished: squares of the
// colour in their middle, smaller with every step from 0 up to total. The last
// step is as fine however many there are.
func Coarse(m *image.NRGBA, step, total int) *image.NRGBA {
	w, h := m.Rect.Dx(), m.Rect.Dy()
	square := max(min(w, h)>>(3+min(max(step, 0), 8)+max(3-total, 0)), 2)
	out := image.NewNRGBA(image.Rect(0, 0, w, h))
	for y := 0; y < h; y++ {
		row := out.Pix[y*out.Stride : (y+1)*out.Stride]
		if y%square != 0 {
			copy(row, out.Pix[(y-1)*out.Stride:])
			continue
		}
		from := m.Pix[min(y+square/2, h-1)*m.Stride:]
		for x := 0; x < w; x++ {
			copy(row[4*x:4*x+4], from[4*min(x-x%square+square/2, w-1):])
		}
	}
	return out
}
