// Package scene is what the sandbox's clips show. It is apart from package clip
// because that embeds what is generated from this.
package scene

import (
	"image"

	"stagedoor/providers/sandbox/draw"
)

// Count is how many scenes there are.
const Count = len(scenes)

// scenes are the motifs that compress to little when they move; the prompts give
// them their colours.
var scenes = [...]struct {
	prompt string
	motif  int
}{
	{"dawn over ridges", 1},
	{"lanterns adrift", 2},
	{"rings on water", 4},
}

// Frame draws a moment of a scene, from 0 to below Count. Phase goes from 0 to 1
// in LoopSeconds.
func Frame(number, width, height int, phase float64, caption string) (*image.NRGBA, error) {
	s := scenes[number]
	return draw.Picture(draw.Spec{Prompt: s.prompt, Motif: s.motif, Width: width, Height: height, Phase: phase, Caption: caption})
}

// How long a scene is until it is where it began.
const (
	LoopSeconds = 4
	Rate        = 24 // frames a second
	LoopFrames  = LoopSeconds * Rate
)

// Sizes are those clips are made in (wire/videos.md 2).
var Sizes = [][2]int{{720, 1280}, {1280, 720}, {1024, 1792}, {1792, 1024}, {1080, 1920}, {1920, 1080}}
