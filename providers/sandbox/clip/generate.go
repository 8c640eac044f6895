//go:build ignore

// Generate makes the loops that are embedded in this package. It needs ffmpeg
// with libx264 and is run by hand, in this directory:
//
//	go run generate.go
//
// Every loop is one round of a scene, so that a player sees no seam where it
// begins again: one closed group of pictures in one chunk, no sound, the index
// in front, which is what Video needs in order to repeat it.
package main

import (
	"fmt"
	"io"
	"log"
	"os/exec"
	"strconv"

	"stagedoor/providers/sandbox/clip/scene"
)

func main() {
	for number := range scene.Count {
		for _, size := range scene.Sizes {
			if err := loop(number, size[0], size[1]); err != nil {
				log.Fatal(err)
			}
		}
	}
}

func loop(number, width, height int) error {
	size, frames := fmt.Sprintf("%dx%d", width, height), strconv.Itoa(scene.LoopFrames)
	encoder := exec.Command("ffmpeg", "-loglevel", "error", "-y",
		"-f", "rawvideo", "-pixel_format", "rgba", "-video_size", size, "-framerate", strconv.Itoa(scene.Rate), "-i", "-",
		"-c:v", "libx264", "-profile:v", "high", "-pix_fmt", "yuv420p", "-preset", "veryslow", "-tune", "animation", "-crf", "42",
		"-g", frames, "-keyint_min", frames, "-sc_threshold", "0", "-flags", "+cgop+bitexact", "-bf", "2",
		"-colorspace", "bt709", "-color_primaries", "bt709", "-color_trc", "bt709", "-vf", "scale=out_color_matrix=bt709",
		"-map_metadata", "-1", "-fflags", "+bitexact", "-movflags", "+faststart", fmt.Sprintf("loops/%d-%s.mp4", number+1, size))
	in, err := encoder.StdinPipe()
	if err != nil {
		return err
	}
	if err := encoder.Start(); err != nil {
		return err
	}
	if err := film(in, number, width, height); err != nil {
		return err
	}
	return encoder.Wait()
}

func film(to io.WriteCloser, number, width, height int) error {
	for i := range scene.LoopFrames {
		m, err := scene.Frame(number, width, height, float64(i)/scene.LoopFrames, "")
		if err != nil {
			return err
		}
		if _, err := to.Write(m.Pix); err != nil {
			return err
		}
	}
	return to.Close()
}
