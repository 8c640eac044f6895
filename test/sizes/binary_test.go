package sizes_test

import (
	"bytes"
	"context"
	"encoding/binary"
	"fmt"
	"hash/crc32"
	"image"
	"image/png"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"testing"

	"stagedoor/http/web/browser"
	"stagedoor/providers/mask"
	"stagedoor/providers/picture"
	"stagedoor/providers/video/mp4"
	"stagedoor/test/sizes"
)

// chunk is a part of a PNG.
func chunk(kind, data string) string {
	b := binary.BigEndian.AppendUint32(nil, uint32(len(data)))
	b = append(append(b, kind...), data...)
	return string(binary.BigEndian.AppendUint32(b, crc32.ChecksumIEEE(b[4:])))
}

// masks are PNG files whose chunks are large, many, or hold text that claims to be compressed.
var masks = []sizes.Form{
	{Name: "a long chunk", JSON: func(n int) string { return withChunks(chunk("teXt", strings.Repeat("x", n))) }},
	{Name: "many chunks", JSON: func(n int) string { return withChunks(strings.Repeat(chunk("teXt", "x"), n/13)) }},
	{Name: "many empty chunks of data", JSON: func(n int) string {
		return withChunks(strings.Repeat(chunk("IDAT", ""), n/12))
	}},
	{Name: "a chunk of text", JSON: func(n int) string {
		return withChunks(chunk("zTXt", "a\x00\x00"+strings.Repeat("x", n)))
	}},
	{Name: "a chunk that ends too early", JSON: func(n int) string {
		return withChunks("\x7f\xff\xff\xffIDAT" + strings.Repeat("x", n))
	}},
	{Name: "data behind the end", JSON: func(n int) string { return whiteMask() + strings.Repeat("x", n) }},
}

func whiteMask() string {
	var b bytes.Buffer
	if err := png.Encode(&b, image.NewGray(image.Rect(0, 0, 32, 32))); err != nil {
		panic(err)
	}
	return b.String()
}

// withChunks is a mask with chunks between its header and its data.
func withChunks(chunks string) string {
	m := whiteMask()
	const header = 8 + 25
	return m[:header] + chunks + m[header:]
}

func readMask(input string) {
	f, err := picture.NewFile("", []byte(input))
	if err == nil {
		_ = mask.Check(context.Background(), "ann", &picture.File{Width: 32, Height: 32}, f)
	}
}

// box is a part of an MP4 file.
func box(kind, body string) string {
	return string(binary.BigEndian.AppendUint32(nil, uint32(8+len(body)))) + kind + body
}

// videos are MP4 files whose boxes are deep, many or long, in the header and before it.
var videos = []sizes.Form{
	{Name: "deep boxes", JSON: func(n int) string {
		heads := make([]byte, 0, n)
		for left := n; left >= 8; left -= 8 {
			heads = append(binary.BigEndian.AppendUint32(heads, uint32(left)), "moov"...)
		}
		return box("ftyp", "isom") + string(heads)
	}},
	{Name: "many boxes before the header", JSON: func(n int) string {
		return box("ftyp", "isom") + strings.Repeat(box("free", ""), n/8)
	}},
	{Name: "many boxes", JSON: func(n int) string { return movie(strings.Repeat(box("free", ""), n/8)) }},
	{Name: "many tracks", JSON: func(n int) string {
		return movie(strings.Repeat(box("trak", box("mdia", box("hdlr", "xxxxxxxxxxxx"))), n/36))
	}},
	{Name: "a long track", JSON: func(n int) string { return movie(box("trak", strings.Repeat("x", n))) }},
	{Name: "many samples", JSON: func(n int) string {
		table := string(binary.BigEndian.AppendUint32(make([]byte, 4, 8), uint32(n/8))) +
			strings.Repeat("\x00\x00\x00\x01\x00\x00\x00\x01", n/8)
		media := box("hdlr", "\x00\x00\x00\x00\x00\x00\x00\x00vide") + box("minf", box("stbl", box("stts", table)))
		return movie(box("trak", box("mdia", media)))
	}},
	{Name: "a long box before the header", JSON: func(n int) string {
		return box("ftyp", "isom") + box("mdat", strings.Repeat("x", n))
	}},
}

func movie(body string) string { return box("ftyp", "isom") + box("moov", body) }

func readVideo(input string) { _, _ = mp4.Inspect(strings.NewReader(input), int64(len(input))) }

// forms are forms with many fields, long names and values, and many escapes.
var forms = []sizes.Form{
	{Name: "many fields", JSON: func(n int) string { return strings.Repeat("a=&", n/3) }},
	{Name: "many names", JSON: func(n int) string { return numberedFields(n / 10) }},
	{Name: "a long value", JSON: func(n int) string { return "a=" + strings.Repeat("x", n) }},
	{Name: "a long name", JSON: func(n int) string { return strings.Repeat("x", n) + "=1" }},
	{Name: "escapes", JSON: func(n int) string { return "a=" + strings.Repeat("%41", n/3) }},
	{Name: "separators", JSON: func(n int) string { return strings.Repeat("&", n) }},
	{Name: "escaped JSON", JSON: func(n int) string { return "a=" + url.QueryEscape(strings.Repeat("[", n/3)) }},
}

func numberedFields(n int) string {
	var b strings.Builder
	for i := range n {
		fmt.Fprintf(&b, "n%d=1&", i)
	}
	return b.String()
}

func readForm(input string) {
	r := httptest.NewRequest(http.MethodPost, "/", strings.NewReader(input))
	r.Header.Set("Content-Type", "application/x-www-form-urlencoded")
	_, _ = browser.ReadForm(httptest.NewRecorder(), r)
}

// TestFilesAndFormsCostWhatTheirSizeIsWorth: masks, videos and the forms of pages.
func TestFilesAndFormsCostWhatTheirSizeIsWorth(t *testing.T) {
	sizes.Table(t, sizes.Check(t, *size, []sizes.Subject{
		{Name: "masks", Input: in("%"), Forms: masks, Read: readMask},
		{Name: "videos", Input: in("%"), Forms: videos, Read: readVideo},
		{Name: "forms of pages", Input: in("%"), Forms: forms, Read: readForm},
	}))
}

// FuzzSizesOfFilesAndForms is the same for sizes that the fuzzer chooses.
func FuzzSizesOfFilesAndForms(f *testing.F) {
	for kind := range uint8(3) {
		for form := range uint8(len(videos)) {
			f.Add(kind, form, uint32(64<<10))
		}
	}
	kinds := []struct {
		forms []sizes.Form
		read  func(string)
	}{{masks, readMask}, {videos, readVideo}, {forms, readForm}}
	f.Fuzz(func(t *testing.T, kind, form uint8, length uint32) {
		k := kinds[int(kind)%len(kinds)]
		input := k.forms[int(form)%len(k.forms)].JSON(64 + int(length)%most)
		holdBounds(t, input, 0, k.read)
	})
}
