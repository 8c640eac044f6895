package draw

import (
	"errors"
	"hash/fnv"
	"image"
	"image/color"
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

const discs = 9

// Picture draws s. The same prompt and seed show the same scene in every size. The error is ErrSize.
func Picture(s Spec) (*image.NRGBA, error) {
	if !Fits(s.Width, s.Height) {
		return nil, ErrSize
	}
	m := image.NewNRGBA(image.Rect(0, 0, s.Width, s.Height))
	r := rand.New(rand.NewPCG(Hash(s.Prompt, s.Seed), 0x5eed))
	top, bottom := randomColour(r), randomColour(r)
	if !s.Transparent {
		for y := range s.Height {
			fill(m, y, 0, s.Width, mix(top, bottom, y*256/s.Height))
		}
	}
	w, h, short := float64(s.Width), float64(s.Height), float64(min(s.Width, s.Height))
	disc(m, w/2, h/2, short*0.3, randomColour(r))
	for range discs {
		x, y, radius, orbit, start := r.Float64(), r.Float64(), r.Float64(), r.Float64(), r.Float64()
		sin, cos := math.Sincos(2 * math.Pi * (start + s.Phase))
		orbit *= short * 0.06
		disc(m, w*(0.2+0.6*x)+orbit*cos, h*(0.2+0.6*y)+orbit*sin, short*(0.03+0.09*radius), randomColour(r))
	}
	writeCaption(m, s.Caption)
	return m, nil
}

func randomColour(r *rand.Rand) color.NRGBA {
	n := r.Uint32()
	return color.NRGBA{uint8(n), uint8(n >> 8), uint8(n >> 16), 255}
}

// mix returns a blended with weight/256 of b.
func mix(a, b color.NRGBA, weight int) color.NRGBA {
	return color.NRGBA{blend(a.R, b.R, weight), blend(a.G, b.G, weight), blend(a.B, b.B, weight), 255}
}

func blend(a, b uint8, weight int) uint8 {
	return uint8((int(a)*(256-weight) + int(b)*weight + 128) >> 8)
}

// fill colours the pixels from x0 up to x1 of row y.
func fill(m *image.NRGBA, y, x0, x1 int, c color.NRGBA) {
	if x0 >= x1 {
		return
	}
	row := m.Pix[m.PixOffset(x0, y):m.PixOffset(x1, y)]
	row[0], row[1], row[2], row[3] = c.R, c.G, c.B, c.A
	for done := 4; done < len(row); done *= 2 {
		copy(row[done:], row[:done])
	}
}

func disc(m *image.NRGBA, cx, cy, radius float64, c color.NRGBA) {
	for y := max(0, int(cy-radius)); y < min(m.Rect.Dy(), int(cy+radius)+1); y++ {
		dy := float64(y) + 0.5 - cy
		half := math.Sqrt(max(radius*radius-dy*dy, 0))
		fill(m, y, max(0, int(cx-half)), min(m.Rect.Dx(), int(cx+half)), c)
	}
}

const (
	letterWidth, lineHeight = 7, 16
	captionLines            = 3
	captionScale            = 320 // pixels of the shorter edge for each pixel of a letter's dots
)

// writeCaption writes text in white on a dark strip at the bottom. A picture without room for it has none.
func writeCaption(m *image.NRGBA, text string) {
	w, h := m.Rect.Dx(), m.Rect.Dy()
	dot := max(min(w, h)/captionScale, 1)
	columns := w/dot/letterWidth - 2
	letters := []rune(strings.Join(strings.Fields(text[:min(len(text), 4*captionLines*max(columns, 0))]), " "))
	lines := min((len(letters)+columns-1)/max(columns, 1), captionLines)
	if columns < 8 || lines == 0 || h < 2*lines*lineHeight*dot {
		return
	}
	strip := image.NewNRGBA(image.Rect(0, 0, w/dot, lines*lineHeight))
	stddraw.Draw(strip, strip.Rect, image.NewUniform(color.NRGBA{16, 16, 24, 255}), image.Point{}, stddraw.Src)
	d := font.Drawer{Dst: strip, Src: image.White, Face: basicfont.Face7x13}
	for i := range lines {
		d.Dot = fixed.P(letterWidth, i*lineHeight+12)
		d.DrawString(string(letters[i*columns : min((i+1)*columns, len(letters))]))
	}
	paste(m, resize(strip, strip.Rect, w, strip.Rect.Dy()*dot), 0, h-strip.Rect.Dy()*dot)
}
