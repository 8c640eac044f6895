package draw

import (
	"fmt"
	"image"
)

// Mask marks the pixels that an edit may change.
type Mask struct {
	*image.NRGBA
	// Black says that dark pixels are marked, as in the image vendor's protocol. Otherwise transparent ones are, as in
	// the images protocol.
	Black bool
}

func (m *Mask) marks(p []uint8) bool {
	if m.Black {
		return p[3] >= 128 && int(p[0])+int(p[1])+int(p[2]) < 3*128
	}
	return p[3] < 128
}

// Edit draws s where the mask says so and leaves every other pixel exactly as it is in base. A mask of another size is
// scaled. Without a mask the whole picture changes, and half of base shows through.
func Edit(base *image.NRGBA, mask *Mask, s Spec) (*image.NRGBA, error) {
	s.Width, s.Height = base.Rect.Dx(), base.Rect.Dy()
	if mask == nil {
		return Remix(base, 50, s)
	}
	marked := resize(mask.NRGBA, mask.Rect, s.Width, s.Height)
	return replace(base, s, func(i int, _ []uint8) bool { return mask.marks(marked.Pix[i : i+4]) })
}

// replace draws s in the size of base and copies the pixels to base for which changes returns true. i is the pixel's
// place in base.Pix.
func replace(base *image.NRGBA, s Spec, changes func(i int, pixel []uint8) bool) (*image.NRGBA, error) {
	s.Width, s.Height = base.Rect.Dx(), base.Rect.Dy()
	drawn, err := Picture(s)
	if err != nil {
		return nil, err
	}
	out := resize(base, base.Rect, s.Width, s.Height)
	for i := 0; i < len(out.Pix); i += 4 {
		if changes(i, out.Pix[i:i+4]) {
			copy(out.Pix[i:i+4], drawn.Pix[i:i+4])
		}
	}
	return out, nil
}

// ReplaceBackground draws s behind the foreground of base. Transparent pixels and those that resemble the upper left
// corner are background.
func ReplaceBackground(base *image.NRGBA, s Spec) (*image.NRGBA, error) {
	const similar = 72 // summed over the three colours
	corner := base.Pix[:4]
	return replace(base, s, func(_ int, p []uint8) bool {
		distance := 0
		for k := range 3 {
			distance += max(int(p[k]), int(corner[k])) - min(int(p[k]), int(corner[k]))
		}
		return p[3] < 128 || distance < similar
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
	paste(out, inner, (s.Width-inner.Rect.Dx())/2, (s.Height-inner.Rect.Dy())/2)
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
	cut := m.Rect
	if keep := max(h*width/height, 1); keep < w {
		cut.Min.X = (w - keep) / 2
		cut.Max.X = cut.Min.X + keep
	} else {
		keep := max(w*height/width, 1)
		cut.Min.Y = (h - keep) / 2
		cut.Max.Y = cut.Min.Y + keep
	}
	return resize(m, cut, width, height), nil
}

// Coarse returns m as it looks before it is finished, in squares that become smaller with every step from 0 up to total.
// The last step is equally fine for every total.
func Coarse(m *image.NRGBA, step, total int) *image.NRGBA {
	w, h := m.Rect.Dx(), m.Rect.Dy()
	square := max(min(w, h)>>(3+min(max(step, 0), 8)+max(3-total, 0)), 2)
	return resize(
		resize(m, m.Rect, max(w/square, 1), max(h/square, 1)),
		image.Rect(0, 0, max(w/square, 1), max(h/square, 1)),
		w,
		h,
	)
}

// Describe returns a sentence about a picture's size and colour.
func Describe(m *image.NRGBA) string {
	var sum [3]int
	for i := 0; i < len(m.Pix); i += 4 {
		sum[0], sum[1], sum[2] = sum[0]+int(m.Pix[i]), sum[1]+int(m.Pix[i+1]), sum[2]+int(m.Pix[i+2])
	}
	n := len(m.Pix) / 4
	return fmt.Sprintf("A picture of %dx%d pixels whose average colour is #%02x%02x%02x.", m.Rect.Dx(), m.Rect.Dy(),
		sum[0]/n, sum[1]/n, sum[2]/n)
}

// resize scales the part cut of m to a size by taking the nearest pixels. In the same size it is an exact copy.
func resize(m *image.NRGBA, cut image.Rectangle, width, height int) *image.NRGBA {
	out := image.NewNRGBA(image.Rect(0, 0, width, height))
	for y := range height {
		from := m.Pix[m.PixOffset(cut.Min.X, cut.Min.Y+(2*y+1)*cut.Dy()/(2*height)):]
		row := out.Pix[y*out.Stride:]
		for x := range width {
			copy(row[4*x:4*x+4], from[4*((2*x+1)*cut.Dx()/(2*width)):])
		}
	}
	return out
}

// paste copies the whole of inner into m.
func paste(m, inner *image.NRGBA, left, top int) {
	for y := range inner.Rect.Dy() {
		copy(m.Pix[m.PixOffset(left, top+y):], inner.Pix[y*inner.Stride:(y+1)*inner.Stride])
	}
}
