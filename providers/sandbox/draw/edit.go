package draw

import (
	"image"
)

// Mask tells which pixels an edit may change.
type Mask struct {
	*image.NRGBA
	// Black: dark pixels are changed, as the image vendor has it. Otherwise
	// transparent ones are, as the images shape has it.
	Black bool
}

// marks reports whether a pixel of the mask, four bytes, is to be changed.
func (m *Mask) marks(p []uint8) bool {
	if m.Black {
		return p[3] >= 128 && int(p[0])+int(p[1])+int(p[2]) < 3*128
	}
	return p[3] < 128
}

// Edit draws a Spec where the mask says so. Every other pixel of base stays
// exactly what it was. A mask of another size is scaled; without a mask the
// whole picture is changed, and half of base shows through.
func Edit(base *image.NRGBA, mask *Mask, s Spec) (*image.NRGBA, error) {
	if mask == nil {
		return Remix(base, 50, s.sized(base))
	}
	over, err := Picture(s.sized(base))
	if err != nil {
		return nil, err
	}
	where, err := Scale(mask.NRGBA, base.Rect.Dx(), base.Rect.Dy())
	if err != nil {
		return nil, err
	}
	out := plain(base)
	for i := 0; i < len(out.Pix); i += 4 {
		if mask.marks(where.Pix[i : i+4]) {
			copy(out.Pix[i:i+4], over.Pix[i:i+4])
		}
	}
	return out, nil
}

// sized is the Spec in the size of a picture.
func (s Spec) sized(m *image.NRGBA) Spec {
	s.Width, s.Height = m.Rect.Dx(), m.Rect.Dy()
	return s
}

// Remix draws a Spec and lets weight percent of base show through.
func Remix(base *image.NRGBA, weight int, s Spec) (*image.NRGBA, error) {
	out, err := Picture(s)
	if err != nil {
		return nil, err
	}
	under, err := Cover(base, s.Width, s.Height)
	if err != nil {
		return nil, err
	}
	w := min(max(weight, 0), 100) * 256 / 100
	for i, p := range under.Pix {
		out.Pix[i] = blend(out.Pix[i], p, w)
	}
	return out, nil
}

// Reframe puts a picture, whole, into the middle of a larger or smaller one, and
// draws a Spec around it.
func Reframe(base *image.NRGBA, s Spec) (*image.NRGBA, error) {
	out, err := Picture(s)
	if err != nil {
		return nil, err
	}
	w, h := s.Width, base.Rect.Dy()*s.Width/base.Rect.Dx()
	if h > s.Height {
		w, h = base.Rect.Dx()*s.Height/base.Rect.Dy(), s.Height
	}
	inner, err := Scale(base, max(w, 1), max(h, 1))
	if err != nil {
		return nil, err
	}
	left, top := (s.Width-inner.Rect.Dx())/2, (s.Height-inner.Rect.Dy())/2
	for y := range inner.Rect.Dy() {
		copy(out.Pix[out.PixOffset(left, top+y):], inner.Pix[y*inner.Stride:(y+1)*inner.Stride])
	}
	return out, nil
}

// apart is how far, summed over the three colours, a pixel is from the
// background to belong to the foreground.
const apart = 72

// ReplaceBackground draws a Spec behind a picture. Background is what is
// transparent, or else what looks like the picture's border on average.
func ReplaceBackground(base *image.NRGBA, s Spec) (*image.NRGBA, error) {
	s = s.sized(base)
	s.Caption = "" // it would be written behind the foreground
	behind, err := Picture(s)
	if err != nil {
		return nil, err
	}
	out := plain(base)
	edge, cut := border(base), !base.Opaque()
	for i := 0; i < len(out.Pix); i += 4 {
		p, q := out.Pix[i:i+4], behind.Pix[i:i+4]
		switch {
		case cut:
			tint(p, nrgba(q), 256-int(p[3])*256/255)
			p[3] = 255
		case distance(p, edge) < apart:
			copy(p, q)
		}
	}
	return out, nil
}

// Upscale makes a picture twice as large, or as large as one may be.
func Upscale(base *image.NRGBA) (*image.NRGBA, error) {
	w, h := 2*base.Rect.Dx(), 2*base.Rect.Dy()
	if !Fits(w, h) {
		w, h = w/2, h/2
	}
	return Scale(base, w, h)
}
