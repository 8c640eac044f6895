//go:build ignore

// Generate makes the loops that package clip embeds. It needs ffmpeg with libx264 and is run by hand in this directory:
//
//	go run generate.go
//
// Every loop has no sound, no frames that depend on later ones, and a picture that needs no other in each second. Video
// relies on this when it repeats one.
package main

import (
	"fmt"
	"log"
	"os/exec"
	"strings"

	"stagedoor/providers/sandbox/clip"
)

func main() {
	for _, size := range clip.Sizes {
		if err := makeLoop(size[0], size[1]); err != nil {
			log.Fatal(err)
		}
	}
}

// makeLoop draws the frames of one size and has ffmpeg encode them, with flags that make the same bytes each time.
func makeLoop(width, height int) error {
	args := fmt.Sprintf("-loglevel error -y -f rawvideo -pixel_format rgba -video_size %[1]dx%[2]d -framerate %[3]d "+
		"-i - "+
		"-c:v libx264 -profile:v high -pix_fmt yuv420p -preset veryslow -tune animation -crf 42 "+
		"-bf 0 -g %[3]d -keyint_min %[3]d -sc_threshold 0 -flags +cgop+bitexact "+
		"-colorspace bt709 -color_primaries bt709 -color_trc bt709 -vf scale=out_color_matrix=bt709 "+
		"-map_metadata -1 -fflags +bitexact -movflags +faststart loops/%[1]dx%[2]d.mp4", width, height, clip.Rate)
	encoder := exec.Command("ffmpeg", strings.Fields(args)...)
	in, err := encoder.StdinPipe()
	if err != nil {
		return err
	}
	if err := encoder.Start(); err != nil {
		return err
	}
	const frames = clip.LoopSeconds * clip.Rate
	for i := range frames {
		m, err := clip.Frame(width, height, float64(i)/frames, "")
		if err != nil {
			return err
		}
		if _, err := in.Write(m.Pix); err != nil {
			return err
		}
	}
	if err := in.Close(); err != nil {
		return err
	}
	return encoder.Wait()
}
