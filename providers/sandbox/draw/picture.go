// Package draw makes and edits the simulator's pictures. A picture depends on nothing but its Spec, so one prompt and
// seed give the same bytes on every machine: discs on a gradient, with the prompt written below them.
//
// It scales by the nearest pixel and handles whole pictures of bounded size, all of them *image.NRGBA, whose pixels an
// edit can leave exactly as they were (premultiplied colours could not).
//
// # Usage
//
// Picture draws a Spec. Edit, ReplaceBackground, Remix, Reframe and Upscale work on a picture that Decode has read, and
// Encode writes the result. Coarse makes the partial pictures of a stream, and Describe the sentence for a request that
// asks what a picture shows.
//
// # Bounds
//
// Fits bounds the edges and the number of pixels. Decode checks both in the header before it allocates, because a
// client of the simulator may send a small file that claims to be a large picture.
package draw

import (
	"errors"
	"hash/fnv"
	"image"
	stddraw "image/draw"
	"math"
	"math/rand/v2"
	"strconv"
	"strings"

	"golang.org/x/image/font"
	"golang.org/x/image/font/basicfont"
	"golang.org/x/image/math/fixed"
)

// Spec describes a picture completely.
type Spec struct {
	Prompt        string
	Seed          int64
	Width, Height int
	Caption       string  // is written at the bottom
	Transparent   bool    // leaves the background out
	Phase         float64 // of a video frame: the discs circle once while Phase goes from 0 to 1
}

// Bounds of pictures, drawn or decoded. They allow every size of the image routes, and what those upscale to.
const (
	MaxEdge   = 8192
	MaxPixels = 16 << 20
)

// ErrSize is returned for a picture that is out of bounds.
var ErrSize = errors.New("the picture is too large or has no size")

// Fits reports whether a picture may have the size.
func Fits(width, height int) bool {
	return width > 0 && height > 0 && width <= MaxEdge && height <= MaxEdge && width*height <= MaxPixels
}

// Hash returns a number that stands for a prompt and a seed.
func Hash(prompt string, seed int64) uint64 {
	h := fnv.New64a()
	h.Write(strconv.AppendInt([]byte(prompt+"\x00"), seed, 10))
	return h.Sum64()
}

// Picture draws s. The same prompt and seed show the same scene in every size. The error is ErrSize.
func Picture(s Spec) (*image.NRGBA, error) {
	if !Fits(s.Width, s.Height) {
		return nil, ErrSize
	}
	m := image.NewNRGBA(image.Rect(0, 0, s.Width, s.Height))
	r := rand.New(rand.NewPCG(Hash(s.Prompt, s.Seed), 0x5eed))
	colour := func() []uint8 { n := r.Uint32(); return []uint8{uint8(n), uint8(n >> 8), uint8(n >> 16), 255} }
	top, bottom := colour(), colour()
	for i := 0; i < len(m.Pix) && !s.Transparent; i++ {
		m.Pix[i] = blend(top[i%4], bottom[i%4], i/m.Stride*256/s.Height)
	}
	w, h, short := float64(s.Width), float64(s.Height), float64(min(s.Width, s.Height))
	drawDisc(m, w/2, h/2, short*0.3, colour())
	for range 9 {
		x, y, radius, orbit, start := r.Float64(), r.Float64(), r.Float64(), r.Float64(), r.Float64()
		sin, cos := math.Sincos(2 * math.Pi * (start + s.Phase))
		orbit *= short * 0.06
		drawDisc(m, w*(0.2+0.6*x)+orbit*cos, h*(0.2+0.6*y)+orbit*sin, short*(0.03+0.09*radius), colour())
	}
	writeCaption(m, s.Caption)
	return m, nil
}

// blend returns a with weight/256 of b.
func blend(a, b uint8, weight int) uint8 {
	return uint8((int(a)*(256-weight) + int(b)*weight + 128) >> 8)
}

// drawDisc fills a circle, cut at the borders of the picture.
func drawDisc(m *image.NRGBA, cx, cy, radius float64, colour []uint8) {
	for y := max(0, int(cy-radius)); y < min(m.Rect.Dy(), int(cy+radius)+1); y++ {
		for x := max(0, int(cx-radius)); x < min(m.Rect.Dx(), int(cx+radius)+1); x++ {
			if dx, dy := float64(x)+0.5-cx, float64(y)+0.5-cy; dx*dx+dy*dy < radius*radius {
				copy(m.Pix[m.PixOffset(x, y):], colour)
			}
		}
	}
}

// writeCaption writes text in white on a dark strip at the bottom. A picture without room for it has none.
func writeCaption(m *image.NRGBA, text string) {
	const letterWidth, lineHeight, mostLines = 7, 16, 3
	w, h := m.Rect.Dx(), m.Rect.Dy()
	dot := max(min(w, h)/320, 1) // pixels for each dot of a letter
	columns := w/dot/letterWidth - 2
	letters := []rune(strings.Join(strings.Fields(text[:min(len(text), 4*mostLines*max(columns, 0))]), " "))
	lines := min((len(letters)+columns-1)/max(columns, 1), mostLines)
	if columns < 8 || lines == 0 || h < 2*lines*lineHeight*dot {
		return
	}
	strip := image.NewNRGBA(image.Rect(0, 0, w/dot, lines*lineHeight))
	stddraw.Draw(strip, strip.Rect, image.Black, image.Point{}, stddraw.Src)
	d := font.Drawer{Dst: strip, Src: image.White, Face: basicfont.Face7x13}
	for i := range lines {
		d.Dot = fixed.P(letterWidth, i*lineHeight+12)
		d.DrawString(string(letters[i*columns : min((i+1)*columns, len(letters))]))
	}
	strip = resize(strip, strip.Rect, w, strip.Rect.Dy()*dot)
	stddraw.Draw(m, image.Rect(0, h-strip.Rect.Dy(), w, h), strip, image.Point{}, stddraw.Src)
}

// resize scales the part cut of m to a size by taking the nearest pixels. In the same size it is an exact copy.
func resize(m *image.NRGBA, cut image.Rectangle, width, height int) *image.NRGBA {
	out := image.NewNRGBA(image.Rect(0, 0, width, height))
	for y := range height {
		from := m.Pix[m.PixOffset(cut.Min.X, cut.Min.Y+(2*y+1)*cut.Dy()/(2*height)):]
		for x := range width {
			copy(out.Pix[out.PixOffset(x, y):][:4], from[4*((2*x+1)*cut.Dx()/(2*width)):])
		}
	}
	return out
}
