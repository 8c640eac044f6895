package mp4_test

import (
	"bytes"
	"encoding/binary"
	"errors"
	"io"
	"math"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"stagedoor/providers/sandbox/clip"
	"stagedoor/providers/spool"
	"stagedoor/providers/video/mp4"
)

func clipOf(t testing.TB, width, height, seconds int) []byte {
	t.Helper()
	b, err := clip.Video(clip.Spec{Width: width, Height: height, Seconds: seconds})
	if err != nil {
		t.Fatal(err)
	}
	return b
}

func TestClipsOfTheSandbox(t *testing.T) {
	for _, c := range []struct{ width, height, seconds int }{{720, 1280, 4}, {1280, 720, 12}, {1920, 1080, 120}} {
		f, err := mp4.ReadFile("a.mp4", bytes.NewReader(clipOf(t, c.width, c.height, c.seconds)), 10<<20, t.TempDir())
		if err != nil {
			t.Fatal(err)
		}
		if f.Width != c.width || f.Height != c.height || f.Seconds() != c.seconds ||
			f.Duration != time.Duration(c.seconds)*time.Second {
			t.Errorf("%+v is read as %+v", c, f.Header)
		}
		if err := f.Close(); err != nil {
			t.Error(err)
		}
	}
}

func be(values ...uint32) (b []byte) {
	for _, v := range values {
		b = binary.BigEndian.AppendUint32(b, v)
	}
	return b
}

func box(kind string, bodies ...[]byte) []byte {
	body := bytes.Join(bodies, nil)
	return slices.Concat(be(uint32(8+len(body))), []byte(kind), body)
}

// header holds the metadata of a file of tests.
type header struct {
	handler            string // "": vide
	movie, media, stts []byte // bodies; nil: of 2.5 s
	tkhd               []byte // nil: 720x1280
}

// upright is a tkhd of version 0.
func upright(width, height uint32) []byte {
	return slices.Concat(make([]byte, 40), be(1<<16, 0, 0, 0, 1<<16, 0, 0, 0, 1<<30), be(width<<16, height<<16))
}

// turned is one of version 1 by 90 degrees.
func turned(width, height uint32) []byte {
	return slices.Concat([]byte{1}, make([]byte, 51), be(0, 1<<16, 0, 0xffff0000, 0, 0, 0, 0, 1<<30),
		be(width<<16, height<<16))
}

func or(b, standard []byte) []byte {
	if b == nil {
		return standard
	}
	return b
}

func (h header) moov() []byte {
	if h.handler == "" {
		h.handler = "vide"
	}
	track := func(handler string) []byte {
		return box("trak", box("tkhd", or(h.tkhd, upright(720, 1280))), box("mdia",
			box("mdhd", or(h.media, be(0, 0, 0, 10, 25))), box("hdlr", be(0, 0), []byte(handler), make([]byte, 12)),
			box("minf", box("stbl", box("stts", or(h.stts, be(0, 1, 25, 1)))))))
	}
	return box("moov", box("mvhd", or(h.movie, be(0, 0, 0, 1000, 2500))), track("soun"), track(h.handler))
}

var ftyp = box("ftyp", []byte("isom\x00\x00\x00\x00"))

func TestHeaders(t *testing.T) {
	const unknown = math.MaxUint32
	half := 2500 * time.Millisecond
	large := slices.Concat(be(1), []byte("mdat"), be(0, 20), make([]byte, 4)) // of a 64 bit length
	for name, c := range map[string]struct {
		file          []byte
		width, height int
		duration      time.Duration
		err           error
	}{
		"header first":          {slices.Concat(ftyp, header{}.moov(), box("mdat", make([]byte, 9))), 720, 1280, half, nil},
		"header last":           {slices.Concat(ftyp, large, box("free"), header{}.moov()), 720, 1280, half, nil},
		"the rest is pictures":  {slices.Concat(ftyp, header{}.moov(), be(0), []byte("mdat"), make([]byte, 9)), 720, 1280, half, nil},
		"turned":                {slices.Concat(ftyp, header{tkhd: turned(1280, 720)}.moov()), 720, 1280, half, nil},
		"movie says too little": {slices.Concat(ftyp, header{movie: be(0, 0, 0, 1000, 1)}.moov()), 720, 1280, half, nil},
		"only pictures tell": {slices.Concat(ftyp, header{movie: be(0, 0, 0, 1000, 1), media: be(0, 0, 0, 10, 1), stts: be(0, 2, 25, 1, 1, 50)}.moov()),
			720, 1280, 7500 * time.Millisecond, nil},
		"movie of version 1": {slices.Concat(ftyp, header{movie: slices.Concat(be(1<<24, 0, 0, 0, 0, 1000, 0, 9000))}.moov()), 720, 1280, 9 * time.Second, nil},
		"endless":            {slices.Concat(ftyp, header{movie: slices.Concat(be(1<<24, 0, 0, 0, 0, 1, unknown, unknown-1))}.moov()), 720, 1280, math.MaxInt64, nil},
		"longest pictures":   {slices.Concat(ftyp, header{stts: be(0, 2, unknown, unknown, unknown, unknown)}.moov()), 720, 1280, math.MaxInt64, nil},
		"length not known":   {slices.Concat(ftyp, header{movie: be(0, 0, 0, 1000, unknown), media: be(0, 0, 0, 10, unknown), stts: be(0, 0)}.moov()), 0, 0, 0, mp4.ErrCorrupt},
		"no units":           {slices.Concat(ftyp, header{movie: be(0, 0, 0, 0, 9), media: be(0, 0, 0, 0, 9)}.moov()), 0, 0, 0, mp4.ErrCorrupt},
		"no size":            {slices.Concat(ftyp, header{tkhd: upright(0, 0)}.moov()), 0, 0, 0, mp4.ErrCorrupt},
		"short boxes":        {slices.Concat(ftyp, header{tkhd: be(0), movie: be(0), media: be(0), stts: be(0)}.moov()), 0, 0, 0, mp4.ErrCorrupt},
		"sound":              {slices.Concat(ftyp, header{handler: "soun"}.moov()), 0, 0, 0, mp4.ErrCorrupt},
		"no header":          {slices.Concat(ftyp, box("mdat")), 0, 0, 0, mp4.ErrCorrupt},
		"cut off":            {slices.Concat(ftyp, header{}.moov()[:200]), 0, 0, 0, mp4.ErrCorrupt},
		"a box of no size":   {slices.Concat(ftyp, be(4), []byte("moov")), 0, 0, 0, mp4.ErrCorrupt},
		"many boxes":         {slices.Concat(ftyp, bytes.Repeat(box("free"), 2000), header{}.moov()), 0, 0, 0, mp4.ErrCorrupt},
		"a huge header":      {slices.Concat(ftyp, box("moov", make([]byte, 9<<20))), 0, 0, 0, mp4.ErrCorrupt},
		"QuickTime":          {slices.Concat(box("ftyp", []byte("qt  \x00\x00\x00\x00")), header{}.moov()), 0, 0, 0, mp4.ErrFormat},
		"a picture":          {[]byte("\x89PNG\r\n\x1a\n0000"), 0, 0, 0, mp4.ErrFormat},
		"nothing":            {nil, 0, 0, 0, mp4.ErrFormat},
	} {
		got, err := mp4.Inspect(bytes.NewReader(c.file), int64(len(c.file)))
		if !errors.Is(err, c.err) || got != (mp4.Header{Width: c.width, Height: c.height, Duration: c.duration}) {
			t.Errorf("%s: %+v, %v", name, got, err)
		}
	}
}

func TestFilesAreBounded(t *testing.T) {
	whole := slices.Concat(ftyp, header{}.moov(), box("mdat", make([]byte, 1<<20)))
	for _, c := range []struct {
		data  []byte
		limit int
		want  error
	}{
		{whole, len(whole), nil},
		{whole, len(whole) - 1, spool.ErrTooLarge},
		{bytes.Repeat([]byte("x"), 1<<20), 2 << 20, mp4.ErrFormat},
		{whole[:300], len(whole), mp4.ErrCorrupt},
	} {
		dir := t.TempDir()
		file, err := mp4.ReadFile("", bytes.NewReader(c.data), int64(c.limit), dir)
		if !errors.Is(err, c.want) {
			t.Errorf("%d bytes of %d: %v, want %v", len(c.data), c.limit, err, c.want)
		}
		if err == nil {
			if got, err := io.ReadAll(file.Reader()); err != nil || !bytes.Equal(got, c.data) || file.Seconds() != 3 {
				t.Errorf("%d bytes, %v, %d s", len(got), err, file.Seconds())
			}
			err = file.Close()
		}
		if left, _ := os.ReadDir(dir); len(left) != 0 {
			t.Errorf("%v is left: %v", left, err)
		}
	}
}

// Whatever is sent is read or refused; what is read has a size and a length.
func FuzzInspect(f *testing.F) {
	f.Add(slices.Concat(ftyp, header{}.moov()))
	f.Add(slices.Concat(ftyp, header{tkhd: turned(1, 1), movie: be(1<<24, 0, 0, 0, 0, 1, 0, 1)}.moov()))
	f.Add(slices.Concat(ftyp, be(1), []byte("moov"), be(math.MaxUint32, math.MaxUint32)))
	f.Fuzz(func(t *testing.T, data []byte) {
		h, err := mp4.Inspect(strings.NewReader(string(data)), int64(len(data)))
		switch {
		case err == nil && (h.Width <= 0 || h.Height <= 0 || h.Duration <= 0):
			t.Errorf("%+v", h)
		case err != nil && !errors.Is(err, mp4.ErrFormat) && !errors.Is(err, mp4.ErrCorrupt):
			t.Error(err)
		}
	})
}
