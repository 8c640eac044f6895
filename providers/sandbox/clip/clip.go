// Package clip makes the simulator's videos: real H.264 in MP4 that browsers play, in the sizes of the video routes and
// any whole number of seconds, with their thumbnails and spritesheets.
//
// Nothing is encoded at run time. Loops of four seconds were made once by generate.go and are embedded. Video repeats
// their samples as often as the length needs and writes new sample tables (ISO/IEC 14496-12). The package reads no
// other MP4 files.
//
// # Usage
//
// Check says whether there is a clip of a size and length, before a job is accepted. Video, Thumbnail and Spritesheet
// return whole files: a clip is small, and a test of ranges and repeated downloads needs the same bytes each time. The
// same Spec gives the same bytes on every machine and in every version of the program that has the same loops.
package clip

import (
	"embed"
	"encoding/binary"
	"errors"
	"fmt"
	"image"
	"image/draw"
	"slices"

	sandboxdraw "stagedoor/providers/sandbox/draw"
)

//go:embed loops/*.mp4
var loops embed.FS

// Properties of every loop. Each second begins with a picture that needs no other, and each sample lasts one frame.
const (
	LoopSeconds = 4
	Rate        = 24 // frames a second
)

// Longest is the number of seconds that a clip can be extended to.
const Longest = 120

// Sizes lists the sizes of clips, which are those of the vendor.
var Sizes = [][2]int{{720, 1280}, {1280, 720}, {1024, 1792}, {1792, 1024}, {1080, 1920}, {1920, 1080}}

// ErrSpec is returned for a size or length that no clip has.
var ErrSpec = errors.New("there is no clip of that size or length")

// Spec selects a clip.
type Spec struct {
	Width, Height, Seconds int
	Mark                   uint64 // stands for prompt and seed: clips with different marks differ
}

// Fits reports whether there are clips of a size.
func Fits(width, height int) bool { return slices.Contains(Sizes, [2]int{width, height}) }

// Check returns ErrSpec if there is no such clip.
func (s Spec) Check() error {
	if !Fits(s.Width, s.Height) || s.Seconds < 1 || s.Seconds > Longest {
		return ErrSpec
	}
	return nil
}

// Frame draws a moment of the scene that all clips show. phase goes from 0 to 1 in LoopSeconds.
func Frame(width, height int, phase float64, caption string) (*image.NRGBA, error) {
	return sandboxdraw.Picture(sandboxdraw.Spec{Prompt: "lanterns adrift", Width: width, Height: height, Phase: phase,
		Caption: caption})
}

// Video returns the MP4. The error is ErrSpec.
func Video(s Spec) ([]byte, error) {
	if err := s.Check(); err != nil {
		return nil, err
	}
	file, err := loops.ReadFile(fmt.Sprintf("loops/%dx%d.mp4", s.Width, s.Height))
	if err != nil {
		return nil, err
	}
	// Players skip the last box. It makes clips with different marks differ.
	return appendBox(repeatLoop(file, s.Seconds), "free", binary.BigEndian.AppendUint64(nil, s.Mark)), nil
}

// Thumbnail returns a WebP picture of the clip at half its size. The error is ErrSpec.
func Thumbnail(s Spec) ([]byte, error) {
	if err := s.Check(); err != nil {
		return nil, err
	}
	caption := fmt.Sprintf("%d s, %dx%d, take %04x", s.Seconds, s.Width, s.Height, s.Mark>>48)
	m, err := Frame(s.Width/2, s.Height/2, 0, caption)
	if err != nil {
		return nil, err
	}
	return sandboxdraw.Encode(m, sandboxdraw.WebP, 0)
}

// Spritesheet returns a JPEG picture of 20 moments at even distances, row by row. The error is ErrSpec.
func Spritesheet(s Spec) ([]byte, error) {
	if err := s.Check(); err != nil {
		return nil, err
	}
	const columns, rows, scale = 5, 4, 8
	w, h := s.Width/scale, s.Height/scale
	sheet := image.NewNRGBA(image.Rect(0, 0, w*columns, h*rows))
	for i := range columns * rows {
		m, err := Frame(w, h, float64(s.Seconds*i)/(columns*rows*LoopSeconds), "")
		if err != nil {
			return nil, err
		}
		draw.Draw(sheet, m.Rect.Add(image.Pt(i%columns*w, i/columns*h)), m, image.Point{}, draw.Src)
	}
	return sandboxdraw.Encode(sheet, sandboxdraw.JPEG, 80)
}
