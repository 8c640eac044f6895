package draw

import (
	"fmt"
	"image"
	stddraw "image/draw"
)

// Mask marks the pixels that an edit may change.
type Mask struct {
	*image.NRGBA
	// Black says that dark pixels are marked, as in the image vendor's protocol. Otherwise transparent ones are, as in
	// the images protocol.
	Black bool
}

// Edit draws s where the mask says so and leaves every other pixel exactly as it is in base. A mask of another size is
// scaled. Without a mask the whole picture changes, and half of base shows through.
func Edit(base *image.NRGBA, mask *Mask, s Spec) (*image.NRGBA, error) {
	s.Width, s.Height = base.Rect.Dx(), base.Rect.Dy()
	if mask == nil {
		return Remix(base, 50, s)
	}
	marks := resize(mask.NRGBA, mask.Rect, s.Width, s.Height).Pix
	return replace(base, s, func(i int) bool {
		if dark := int(marks[i])+int(marks[i+1])+int(marks[i+2]) < 3*128; mask.Black {
			return dark && marks[i+3] >= 128
		}
		return marks[i+3] < 128
	})
}

// replace draws s over the pixels of base for whose place in Pix changes returns true.
func replace(base *image.NRGBA, s Spec, changes func(i int) bool) (*image.NRGBA, error) {
	s.Width, s.Height = base.Rect.Dx(), base.Rect.Dy()
	drawn, err := Picture(s)
	if err != nil {
		return nil, err
	}
	for i := 0; i < len(drawn.Pix); i += 4 {
		if !changes(i) {
			copy(drawn.Pix[i:i+4], base.Pix[i:])
		}
	}
	return drawn, nil
}

// ReplaceBackground draws s behind the foreground of base. Transparent pixels and those that resemble the upper left
// corner are background.
func ReplaceBackground(base *image.NRGBA, s Spec) (*image.NRGBA, error) {
	return replace(base, s, func(i int) bool {
		distance := 0
		for k := range 3 {
			d := int(base.Pix[i+k]) - int(base.Pix[k])
			distance += max(d, -d)
		}
		return base.Pix[i+3] < 128 || distance < 72
	})
}

// Remix draws s and lets weight percent of base show through.
func Remix(base *image.NRGBA, weight int, s Spec) (*image.NRGBA, error) {
	out, err := Picture(s)
	if err != nil {
		return nil, err
	}
	under, err := Cover(base, s.Width, s.Height)
	if err != nil {
		return nil, err
	}
	for i, p := range under.Pix {
		out.Pix[i] = blend(out.Pix[i], p, min(max(weight, 0), 100)*256/100)
	}
	return out, nil
}

// Reframe puts the whole of base into the middle of a picture of s.
func Reframe(base *image.NRGBA, s Spec) (*image.NRGBA, error) {
	out, err := Picture(s)
	if err != nil {
		return nil, err
	}
	w, h := s.Width, base.Rect.Dy()*s.Width/base.Rect.Dx()
	if h > s.Height {
		w, h = base.Rect.Dx()*s.Height/base.Rect.Dy(), s.Height
	}
	inner := resize(base, base.Rect, max(w, 1), max(h, 1))
	at := image.Pt((s.Width-inner.Rect.Dx())/2, (s.Height-inner.Rect.Dy())/2)
	stddraw.Draw(out, inner.Rect.Add(at), inner, image.Point{}, stddraw.Src)
	return out, nil
}

// Upscale returns base twice as large, or as it is if that would be out of bounds.
func Upscale(base *image.NRGBA) *image.NRGBA {
	w, h := 2*base.Rect.Dx(), 2*base.Rect.Dy()
	if !Fits(w, h) {
		w, h = w/2, h/2
	}
	return resize(base, base.Rect, w, h)
}

// Cover crops the middle of m to the proportions of a size and scales it to that. The error is ErrSize.
func Cover(m *image.NRGBA, width, height int) (*image.NRGBA, error) {
	if !Fits(width, height) {
		return nil, ErrSize
	}
	w, h := m.Rect.Dx(), m.Rect.Dy()
	keepW, keepH := min(w, max(h*width/height, 1)), min(h, max(w*height/width, 1))
	cut := image.Rect(0, 0, keepW, keepH).Add(image.Pt((w-keepW)/2, (h-keepH)/2))
	return resize(m, cut, width, height), nil
}

// Coarse returns m as it looks before it is finished, in squares that become smaller with every step from 0 up to total.
// The last step is equally fine for every total.
func Coarse(m *image.NRGBA, step, total int) *image.NRGBA {
	w, h := m.Rect.Dx(), m.Rect.Dy()
	square := max(min(w, h)>>(3+min(max(step, 0), 8)+max(3-total, 0)), 2)
	small := resize(m, m.Rect, max(w/square, 1), max(h/square, 1))
	return resize(small, small.Rect, w, h)
}

// Describe returns a sentence about a picture's size and colour.
func Describe(m *image.NRGBA) string {
	var sum [4]int
	for i, p := range m.Pix {
		sum[i%4] += int(p)
	}
	n := len(m.Pix) / 4
	return fmt.Sprintf("A picture of %dx%d pixels whose average colour is #%02x%02x%02x.", m.Rect.Dx(), m.Rect.Dy(),
		sum[0]/n, sum[1]/n, sum[2]/n)
}
