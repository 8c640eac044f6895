package clip

import (
	"embed"
	"encoding/binary"
	"errors"
	"fmt"
	"image"

	"stagedoor/providers/sandbox/clip/scene"
	"stagedoor/providers/sandbox/draw"
)

//go:embed loops/*.mp4
var loops embed.FS

// Longest is what a clip can be extended to, in seconds (wire/videos.md 1).
const Longest = 120

// ErrSpec is returned for a clip that there is none of.
var ErrSpec = errors.New("there is no clip of that size or length")

// Spec says which clip is meant.
type Spec struct {
	Width, Height, Seconds int
	// Mark stands for prompt and seed: it chooses what is shown, and two clips
	// with different marks differ.
	Mark uint64
}

// Fits reports whether there are clips of a size.
func Fits(width, height int) bool {
	for _, s := range scene.Sizes {
		if s == [2]int{width, height} {
			return true
		}
	}
	return false
}

func (s Spec) check() error {
	if !Fits(s.Width, s.Height) || s.Seconds < 1 || s.Seconds > Longest {
		return ErrSpec
	}
	return nil
}

func (s Spec) scene() int { return int(s.Mark % uint64(scene.Count)) }

// Video makes the MP4. The error is ErrSpec.
func Video(s Spec) ([]byte, error) {
	if err := s.check(); err != nil {
		return nil, err
	}
	file, err := loops.ReadFile(fmt.Sprintf("loops/%d-%dx%d.mp4", s.scene()+1, s.Width, s.Height))
	if err != nil {
		return nil, err
	}
	l, err := parse(file)
	if err != nil {
		return nil, err
	}
	out := l.repeat(s.Seconds, scene.Rate)
	// A box that players skip tells clips of the same scene apart.
	return appendBox(out, "free", binary.BigEndian.AppendUint64(nil, s.Mark)), nil
}

// Thumbnail makes a WebP picture of the clip, half its size. The error is
// ErrSpec.
func Thumbnail(s Spec) ([]byte, error) {
	if err := s.check(); err != nil {
		return nil, err
	}
	m, err := scene.Frame(s.scene(), s.Width/2, s.Height/2, 0, s.caption())
	if err != nil {
		return nil, err
	}
	return draw.Encode(m, draw.WebP, 0)
}

func (s Spec) caption() string {
	return fmt.Sprintf("%d s, %dx%d, take %04x", s.Seconds, s.Width, s.Height, s.Mark>>48)
}

// Of a spritesheet.
const (
	sheetColumns = 5
	sheetRows    = 4
	sheetScale   = 8 // of the clip's size
)

// Spritesheet makes a JPEG picture of 20 moments at even distances, row by row.
// The error is ErrSpec.
func Spritesheet(s Spec) ([]byte, error) {
	if err := s.check(); err != nil {
		return nil, err
	}
	w, h := s.Width/sheetScale, s.Height/sheetScale
	sheet := image.NewNRGBA(image.Rect(0, 0, w*sheetColumns, h*sheetRows))
	for i := range sheetColumns * sheetRows {
		at := float64(s.Seconds) * float64(i) / (sheetColumns * sheetRows * scene.LoopSeconds)
		m, err := scene.Frame(s.scene(), w, h, at-float64(int(at)), "")
		if err != nil {
			return nil, err
		}
		for y := range h {
			copy(sheet.Pix[sheet.PixOffset(i%sheetColumns*w, i/sheetColumns*h+y):], m.Pix[y*m.Stride:(y+1)*m.Stride])
		}
	}
	return draw.Encode(sheet, draw.JPEG, 80)
}
