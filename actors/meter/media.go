package meter

import (
	"bytes"
	"encoding/base64"
	"encoding/binary"
	"io"

	"stagedoor/providers/picture"
	"stagedoor/providers/tokens"
)

// What media count in a prompt, on the high side of what vendors say.
const (
	pixelsPerToken = 750
	leastImage     = 85
	mostImage      = 20_000 // larger ones are scaled down
	pageTokens     = 2_500
	soundTokens    = 32      // a second
	soundBytes     = 8_000   // a second, where the file does not say
	videoTokens    = 300     // a second
	videoBytes     = 125_000 // a second
)

// mediaTokens returns what media in base64 count. known is false for base64 that is no known
// kind of media, which is text.
func mediaTokens(content []byte) (n int64, known bool) {
	file := decode(content)
	head := make([]byte, 64)
	read, _ := io.ReadFull(file, head)
	head = head[:read]
	size := int64(len(content)) / 4 * 3
	all := io.MultiReader(bytes.NewReader(head), file)
	switch {
	case bytes.HasPrefix(head, []byte("%PDF")):
		return pages(all, size) * pageTokens, true
	case bytes.HasPrefix(head, []byte("RIFF")) && len(head) >= 32 && string(head[8:12]) == "WAVE":
		rate := int64(binary.LittleEndian.Uint32(head[28:32]))
		if rate <= 0 || rate > soundBytes*1000 {
			rate = soundBytes
		}
		return (size/rate + 1) * soundTokens, true
	case bytes.HasPrefix(head, []byte("ID3")), bytes.HasPrefix(head, []byte("OggS")), bytes.HasPrefix(head, []byte("fLaC")),
		len(head) > 1 && head[0] == 0xff && head[1]&0xe0 == 0xe0 && head[1] != 0xff && head[1] != 0xd8:
		return (size/soundBytes + 1) * soundTokens, true
	case len(head) > 8 && string(head[4:8]) == "ftyp", bytes.HasPrefix(head, []byte{0x1a, 0x45, 0xdf, 0xa3}):
		return (size/videoBytes + 1) * videoTokens, true
	}
	if _, image, err := picture.Measure(all); err == nil {
		return min(max(int64(image.Width)*int64(image.Height)/pixelsPerToken, leastImage), mostImage), true
	}
	return tokens.Estimate(int(size)), picture.Sniff(head) != ""
}

// decode reads base64 of either alphabet, with or without padding and with slashes that are
// escaped, as JSON allows.
func decode(content []byte) io.Reader {
	return base64.NewDecoder(base64.RawStdEncoding, &alphabet{content})
}

type alphabet struct{ left []byte }

// Read implements io.Reader.
func (a *alphabet) Read(p []byte) (n int, err error) {
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

// pages counts the pages of a PDF. Those of a file whose objects are compressed can't be seen,
// so it has at least one for each bytesPerPage.
func pages(file io.Reader, size int64) int64 {
	const bytesPerPage = 200_000
	found := int64(0)
	b := make([]byte, 64<<10)
	kept := 0
	for {
		n, err := io.ReadFull(file, b[kept:])
		n += kept
		found += int64(pageObjects(b[:n]))
		if err != nil {
			break
		}
		kept = copy(b, b[max(0, n-len(pageMark)):n]) // a mark may be cut in two
	}
	return max(found, size/bytesPerPage, 1)
}

var pageMark = []byte("/Type/Page")

// pageObjects counts the names of page objects that end in b. /Pages is the name of their tree.
func pageObjects(b []byte) (n int) {
	for {
		at := bytes.Index(b, []byte("/Page"))
		if at < 0 || at+5 >= len(b) {
			return n
		}
		if typed := bytes.TrimRight(b[max(0, at-8):at], " \r\n"); b[at+5] != 's' && bytes.HasSuffix(typed, []byte("/Type")) {
			n++
		}
		b = b[at+5:]
	}
}
