package clip_test

import (
	"bytes"
	"encoding/binary"
	"errors"
	"image"
	"slices"
	"testing"

	"stagedoor/providers/sandbox/clip"

	_ "image/jpeg"

	_ "golang.org/x/image/webp"
)

// box finds a box by its path and returns its body and where that begins.
func box(t *testing.T, b []byte, path ...string) (body []byte, at int) {
	t.Helper()
	for off := 0; off+8 <= len(b); {
		n := int(binary.BigEndian.Uint32(b[off:]))
		if n < 8 || off+n > len(b) {
			break
		}
		if string(b[off+4:off+8]) == path[0] {
			if len(path) == 1 {
				return b[off+8 : off+n], off + 8
			}
			body, at := box(t, b[off+8:off+n], path[1:]...)
			return body, off + 8 + at
		}
		off += n
	}
	t.Fatalf("no box %v", path)
	return nil, 0
}

func number(b []byte, at int) int { return int(binary.BigEndian.Uint32(b[at:])) }

func kinds(b []byte) (out []string) {
	for len(b) >= 8 {
		out = append(out, string(b[4:8]))
		b = b[number(b, 0):]
	}
	return out
}

func TestVideoIsWellFormedInEverySizeAndLength(t *testing.T) {
	for _, size := range clip.Sizes {
		for _, seconds := range []int{1, 4, 5, 8, 12, 16, 20, 120} {
			s := clip.Spec{Width: size[0], Height: size[1], Seconds: seconds}
			file, err := clip.Video(s)
			if err != nil {
				t.Fatal(err)
			}
			checkVideo(t, s, file)
		}
	}
}

func checkVideo(t *testing.T, s clip.Spec, file []byte) {
	t.Helper()
	if got, want := kinds(file), []string{"ftyp", "moov", "mdat", "free"}; !slices.Equal(got, want) {
		t.Fatalf("%+v: boxes %v, want %v", s, got, want)
	}
	movie, _ := box(t, file, "moov", "mvhd")
	if number(movie, 16) != s.Seconds*number(movie, 12) {
		t.Errorf("%+v: the movie lasts %d of %d", s, number(movie, 16), number(movie, 12))
	}
	media, _ := box(t, file, "moov", "trak", "mdia", "mdhd")
	times, _ := box(t, file, "moov", "trak", "mdia", "minf", "stbl", "stts")
	if number(times, 8)*number(times, 12) != s.Seconds*number(media, 12) ||
		number(media, 16) != s.Seconds*number(media, 12) {
		t.Errorf("%+v: %d samples of %d in a scale of %d", s, number(times, 8), number(times, 12), number(media, 12))
	}
	track, _ := box(t, file, "moov", "trak", "tkhd")
	if number(track, 76)>>16 != s.Width || number(track, 80)>>16 != s.Height {
		t.Errorf("%+v: the track is %dx%d", s, number(track, 76)>>16, number(track, 80)>>16)
	}
	checkSamples(t, s, file)
}

// checkSamples follows the tables to every sample, which must consist of whole NAL units and follow the one before.
func checkSamples(t *testing.T, s clip.Spec, file []byte) {
	t.Helper()
	sizes, _ := box(t, file, "moov", "trak", "mdia", "minf", "stbl", "stsz")
	places, _ := box(t, file, "moov", "trak", "mdia", "minf", "stbl", "stco")
	data, start := box(t, file, "mdat")
	samples, chunks, at := number(sizes, 8), number(places, 4), start
	if samples != s.Seconds*clip.Rate {
		t.Fatalf("%+v: %d samples", s, samples)
	}
	for i := range samples {
		if i%clip.Rate == 0 && number(places, 8+4*(i/clip.Rate)) != at {
			t.Fatalf("%+v: chunk %d is not at %d", s, i/clip.Rate, at)
		}
		end := at + number(sizes, 12+4*i)
		for at < end {
			at += 4 + number(file, at)
		}
		if at != end {
			t.Fatalf("%+v: sample %d is cut", s, i)
		}
	}
	if at != start+len(data) || chunks != s.Seconds {
		t.Errorf("%+v: %d bytes of data, %d chunks", s, len(data), chunks)
	}
}

func TestVideosWithOtherMarksDiffer(t *testing.T) {
	a, err := clip.Video(clip.Spec{Width: 720, Height: 1280, Seconds: 4, Mark: 1})
	if err != nil {
		t.Fatal(err)
	}
	b, err := clip.Video(clip.Spec{Width: 720, Height: 1280, Seconds: 4, Mark: 2})
	if err != nil || bytes.Equal(a, b) {
		t.Errorf("same bytes: %v, %v", bytes.Equal(a, b), err)
	}
}

func TestThumbnailAndSpritesheetArePictures(t *testing.T) {
	s := clip.Spec{Width: 1280, Height: 720, Seconds: 8, Mark: 5}
	rows := []struct {
		make   func(clip.Spec) ([]byte, error)
		format string
		w, h   int
	}{
		{clip.Thumbnail, "webp", 640, 360},
		{clip.Spritesheet, "jpeg", 800, 360},
	}
	for _, row := range rows {
		data, err := row.make(s)
		if err != nil {
			t.Fatal(err)
		}
		m, format, err := image.Decode(bytes.NewReader(data))
		if err != nil || format != row.format || m.Bounds() != image.Rect(0, 0, row.w, row.h) {
			t.Errorf("%s: %s %v", row.format, format, err)
		}
	}
}

func TestOtherSizesAndLengthsAreErrors(t *testing.T) {
	for _, s := range []clip.Spec{{}, {Width: 720, Height: 720, Seconds: 4}, {Width: 720, Height: 1280},
		{Width: 720, Height: 1280, Seconds: clip.Longest + 1}} {
		for _, make := range []func(clip.Spec) ([]byte, error){clip.Video, clip.Thumbnail, clip.Spritesheet} {
			if _, err := make(s); !errors.Is(err, clip.ErrSpec) {
				t.Errorf("%+v: %v", s, err)
			}
		}
	}
}
