package meter

import (
	"bytes"
	"encoding/base64"
	"encoding/binary"
	"io"

	"stagedoor/providers/picture"
	"stagedoor/providers/tokens"
)

// The tokens that media count in a prompt, at the high end of what vendors document.
const (
	pixelsPerToken = 750
	leastImage     = 85
	mostImage      = 20_000 // larger ones are scaled down
	pageTokens     = 2_500
	bytesPerPage   = 200_000 // of a PDF, where the pages cannot be counted
	soundTokens    = 32      // a second
	soundBytes     = 8_000   // a second, where the file does not say
	videoTokens    = 300     // a second
	videoBytes     = 125_000 // a second
)

// mediaTokens returns the tokens that media in base64 count: images by their pixels, PDF files by
// their pages, and sound and video by their seconds, which are estimated from the bytes. It does not
// decode more than it needs for that. known is false if the content is no known kind of media and
// counts as text. An image whose size cannot be read is known, and counts as if it were text.
func mediaTokens(content []byte) (n int64, known bool) {
	file := decodeBase64(content)
	head := make([]byte, longestFrame+4)
	read, _ := io.ReadFull(file, head)
	head = head[:read]
	size := int64(len(content)) / 4 * 3
	all := io.MultiReader(bytes.NewReader(head), file)
	switch {
	case bytes.HasPrefix(head, []byte("%PDF")):
		return countPages(all, size) * pageTokens, true
	case bytes.HasPrefix(head, []byte("RIFF")) && len(head) >= 32 && string(head[8:12]) == "WAVE":
		rate := int64(binary.LittleEndian.Uint32(head[28:32]))
		if rate <= 0 || rate > soundBytes*1000 {
			rate = soundBytes
		}
		return (size/rate + 1) * soundTokens, true
	case bytes.HasPrefix(head, []byte("ID3")), bytes.HasPrefix(head, []byte("OggS")),
		bytes.HasPrefix(head, []byte("fLaC")), beginsWithTwoFrames(head):
		return (size/soundBytes + 1) * soundTokens, true
	case len(head) > 8 && string(head[4:8]) == "ftyp", bytes.HasPrefix(head, []byte{0x1a, 0x45, 0xdf, 0xa3}):
		return (size/videoBytes + 1) * videoTokens, true
	}
	if _, image, err := picture.Measure(all); err == nil {
		return min(max(int64(image.Width)*int64(image.Height)/pixelsPerToken, leastImage), mostImage), true
	}
	return tokens.Estimate(int(size)), picture.Sniff(head) != ""
}

// longestFrame is at least the length of any frame of MPEG audio: layer II with 384 kbit/s
// at 32 kHz has 1,729 bytes.
const longestFrame = 2048

// beginsWithTwoFrames reports whether b begins with a frame of MPEG audio or AAC that
// another frame follows. A frame is marked only by eleven set bits, which text in base64 can
// contain as well, so one frame proves nothing. A file of a single frame counts as text.
func beginsWithTwoFrames(b []byte) bool {
	n := frameLength(b)
	return n > 0 && n < len(b) && frameLength(b[n:]) > 0 && b[1] == b[n+1]
}

// Bit rates of MPEG audio in kbit/s, by version, layer and index.
var bitRates = map[bool][3][16]int{
	true: { // MPEG 1
		{0, 32, 64, 96, 128, 160, 192, 224, 256, 288, 320, 352, 384, 416, 448},
		{0, 32, 48, 56, 64, 80, 96, 112, 128, 160, 192, 224, 256, 320, 384},
		{0, 32, 40, 48, 56, 64, 80, 96, 112, 128, 160, 192, 224, 256, 320},
	},
	false: { // MPEG 2 and 2.5
		{0, 32, 48, 56, 64, 80, 96, 112, 128, 144, 160, 176, 192, 224, 256},
		{0, 8, 16, 24, 32, 40, 48, 56, 64, 80, 96, 112, 128, 144, 160},
		{0, 8, 16, 24, 32, 40, 48, 56, 64, 80, 96, 112, 128, 144, 160},
	},
}

// frameLength returns the length in bytes of the audio frame at the beginning of b, as its
// header says (ISO 11172-3 2.4.1.3, ISO 13818-7 6.2), or 0 if there is no frame.
func frameLength(b []byte) int {
	if len(b) < 6 || b[0] != 0xff || b[1]&0xe0 != 0xe0 {
		return 0
	}
	if b[1]&0xf6 == 0xf0 { // AAC in ADTS
		n := int(b[3]&3)<<11 | int(b[4])<<3 | int(b[5])>>5
		if b[2]>>2&15 > 12 || n < 7 {
			return 0
		}
		return n
	}
	version, layer, rate := int(b[1]>>3&3), 4-int(b[1]>>1&3), int(b[2]>>2&3)
	if version == 1 || layer == 4 || rate == 3 {
		return 0
	}
	bits := bitRates[version == 3][layer-1][b[2]>>4] * 1000
	hertz := []int{44100, 48000, 32000}[rate] >> []int{2, 0, 1, 0}[version]
	padding := int(b[2] >> 1 & 1)
	switch {
	case bits == 0:
		return 0
	case layer == 1:
		return (12*bits/hertz + padding) * 4
	case layer == 3 && version != 3:
		return 72*bits/hertz + padding
	}
	return 144*bits/hertz + padding
}

// decodeBase64 returns a reader that decodes base64 of either alphabet, with or without padding and
// with slashes that are escaped, as JSON allows.
func decodeBase64(content []byte) io.Reader {
	return base64.NewDecoder(base64.RawStdEncoding, &base64Normalizer{content})
}

// base64Normalizer reads base64 in the standard alphabet, without padding and escapes, from base64 in
// any of its forms.
type base64Normalizer struct{ left []byte }

// Read implements io.Reader.
func (a *base64Normalizer) Read(p []byte) (n int, err error) {
	for len(a.left) > 0 && n < len(p) {
		c := a.left[0]
		a.left = a.left[1:]
		switch c {
		case '\\', '=':
			continue
		case '-':
			c = '+'
		case '_':
			c = '/'
		}
		p[n] = c
		n++
	}
	if n == 0 && len(a.left) == 0 {
		return 0, io.EOF
	}
	return n, nil
}

// countPages returns the number of pages of a PDF of size bytes. It cannot see pages in compressed
// objects, so it returns at least one page for each bytesPerPage, and at least one.
func countPages(file io.Reader, size int64) int64 {
	found := int64(0)
	b := make([]byte, 64<<10)
	kept := 0
	for {
		n, err := io.ReadFull(file, b[kept:])
		n += kept
		found += int64(countPageObjects(b[:n]))
		if err != nil {
			break
		}
		kept = copy(b, b[max(0, n-len(pageMark)):n]) // a mark may be cut in two
	}
	return max(found, size/bytesPerPage, 1)
}

var pageMark = []byte("/Type/Page")

// countPageObjects returns how often b contains /Type/Page, also with white space before /Page. The
// byte after it must be in b, because /Pages marks the tree of pages and not a page. A mark that
// ends with b is counted when the caller passes it again with the bytes after it.
func countPageObjects(b []byte) (n int) {
	for {
		at := bytes.Index(b, []byte("/Page"))
		if at < 0 || at+5 >= len(b) {
			return n
		}
		if typed := bytes.TrimRight(b[max(0, at-8):at], " \r\n"); b[at+5] != 's' &&
			bytes.HasSuffix(typed, []byte("/Type")) {
			n++
		}
		b = b[at+5:]
	}
}
