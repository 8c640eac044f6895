package draw

import (
	"errors"
	"hash/fnv"
	"image"
	"math/rand/v2"
	"strconv"
)

// Spec says everything about a drawing.
type Spec struct {
	Prompt        string
	Seed          int64
	Width, Height int
	// Caption is written below the drawing; "": nothing is.
	Caption string
	// Transparent cuts the drawing out of its background.
	Transparent bool
	// Phase turns the drawing into a frame: it moves once around while Phase goes
	// from 0 to 1.
	Phase float64
	// Motif chooses what is drawn, where the prompt shall not: 1 to Motifs.
	Motif int
}

// Bounds of pictures, drawn or decoded. They let every size of the image routes
// through, and what they upscale to.
const (
	MaxEdge   = 8192
	MaxPixels = 16 << 20
)

// ErrSize is returned for a picture out of bounds.
var ErrSize = errors.New("the picture is too large, or has no size")

// Fits reports whether a picture may have the size.
func Fits(width, height int) bool {
	return width > 0 && height > 0 && width <= MaxEdge && height <= MaxEdge && width*height <= MaxPixels
}

// Picture draws. The error is ErrSize.
func Picture(s Spec) (*image.NRGBA, error) {
	if !Fits(s.Width, s.Height) {
		return nil, ErrSize
	}
	r := s.dice()
	c := &canvas{NRGBA: image.NewNRGBA(image.Rect(0, 0, s.Width, s.Height)), colours: newPalette(r), phase: s.Phase}
	motif := r.IntN(Motifs)
	if s.Motif > 0 {
		motif = (s.Motif - 1) % Motifs
	}
	motifs[motif](c, r)
	if s.Transparent {
		c.cutOut()
	}
	c.caption(s.Caption)
	return c.NRGBA, nil
}

// Hash is a number that stands for a prompt and a seed.
func Hash(prompt string, seed int64) uint64 {
	h := fnv.New64a()
	h.Write([]byte(prompt))
	h.Write([]byte{0})
	h.Write(strconv.AppendInt(nil, seed, 10))
	return h.Sum64()
}

// dice are the drawing's only source of chance. The size is not in them: the
// same prompt in another size is the same scene.
func (s *Spec) dice() *rand.Rand { return rand.New(rand.NewPCG(Hash(s.Prompt, s.Seed), 0x5eed)) }
