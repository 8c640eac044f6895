package mp4

import (
	"encoding/binary"
	"errors"
	"io"
	"math"
	"math/bits"
	"time"
)

// Errors for files that are not MP4 videos.
var (
	ErrFormat  = errors.New("file is not an MP4 video")
	ErrCorrupt = errors.New("the header of the MP4 cannot be read")
)

// Header is the size and the length of a video, from its header.
type Header struct {
	// Width and Height are in pixels, after the rotation that the header asks for.
	Width, Height int
	// Duration is the longest of the lengths in the header, so that a header that contradicts
	// itself does not lower the price of a job.
	Duration time.Duration
}

// Seconds returns the length of the video, rounded up.
func (h Header) Seconds() int {
	whole := h.Duration / time.Second
	if h.Duration%time.Second > 0 {
		whole++
	}
	return int(whole)
}

// Sniff reports whether head, at least 12 bytes, is the beginning of an MP4: a box that names
// its brand. A QuickTime file is not an MP4.
func Sniff(head []byte) bool {
	return len(head) >= 12 && string(head[4:8]) == "ftyp" && string(head[8:12]) != "qt  "
}

// Inspect reads the header of a file of size bytes. The error is ErrFormat or ErrCorrupt, or an
// error of r.
func Inspect(r io.ReaderAt, size int64) (Header, error) {
	var head [12]byte
	if n, err := r.ReadAt(head[:], 0); err != nil && err != io.EOF {
		return Header{}, err
	} else if !Sniff(head[:n]) {
		return Header{}, ErrFormat
	}
	moov, err := findBox(r, size, "moov")
	if err != nil {
		return Header{}, err
	}
	return readMovie(moov)
}

// Bounds of the header's size and of the number of boxes before it.
const (
	maxMovie = 8 << 20
	maxBoxes = 1 << 10
)

// findBox returns the body of the first box of a kind at the outermost level. It skips other
// boxes, because files that were not made for streaming have their header at the end.
func findBox(r io.ReaderAt, size int64, kind string) ([]byte, error) {
	at := int64(0)
	for range maxBoxes {
		var head [16]byte
		n, err := r.ReadAt(head[:min(16, max(0, size-at))], at)
		if err != nil && err != io.EOF {
			return nil, err
		}
		body, length, ok := readBoxHead(head[:n], size-at)
		switch {
		case !ok:
			return nil, ErrCorrupt
		case string(head[4:8]) != kind:
			at += length
			continue
		case length > maxMovie:
			return nil, ErrCorrupt
		}
		b := make([]byte, length-body)
		if _, err := r.ReadAt(b, at+body); err != nil && err != io.EOF {
			return nil, err
		}
		return b, nil
	}
	return nil, ErrCorrupt
}

// readBoxHead reads the head of a box that begins rest bytes before the end. body is the offset
// of its body and length its whole length (ISO/IEC 14496-12 4.2).
func readBoxHead(head []byte, rest int64) (body, length int64, ok bool) {
	if len(head) < 8 {
		return 0, 0, false
	}
	body, length = 8, int64(binary.BigEndian.Uint32(head))
	switch {
	case length == 0: // to the end
		length = rest
	case length == 1 && len(head) >= 16:
		large := binary.BigEndian.Uint64(head[8:])
		if large > math.MaxInt64 {
			return 0, 0, false
		}
		body, length = 16, int64(large)
	}
	return body, length, length >= body && length <= rest
}

// child returns the body of the first box of a kind inside b, or nil.
func child(b []byte, kind string) (found []byte) {
	visitBoxes(b, func(k string, body []byte) bool {
		if k == kind {
			found = body
		}
		return k != kind
	})
	return found
}

// visitBoxes calls visit for the boxes at the outermost level of b until it returns false.
func visitBoxes(b []byte, visit func(kind string, body []byte) bool) {
	for len(b) > 0 {
		body, length, ok := readBoxHead(b[:min(16, len(b))], int64(len(b)))
		if !ok || !visit(string(b[4:8]), b[body:length]) {
			return
		}
		b = b[length:]
	}
}

// readMovie reads the header of the movie and the header of its first video track.
func readMovie(moov []byte) (h Header, err error) {
	found := false
	visitBoxes(moov, func(kind string, trak []byte) bool {
		found = kind == "trak" && h.readTrack(trak)
		return !found
	})
	if !found {
		return Header{}, ErrCorrupt
	}
	h.extendTo(readSpan(child(moov, "mvhd")))
	if h.Width <= 0 || h.Height <= 0 || h.Duration <= 0 {
		return Header{}, ErrCorrupt
	}
	return h, nil
}

// readTrack reads the header of a track. It reports whether the track is a video.
func (h *Header) readTrack(trak []byte) bool {
	media := child(trak, "mdia")
	if handler := child(media, "hdlr"); len(handler) < 12 || string(handler[8:12]) != "vide" {
		return false
	}
	h.Width, h.Height = displaySize(child(trak, "tkhd"))
	units, scale := readSpan(child(media, "mdhd"))
	h.extendTo(units, scale)
	h.extendTo(sampleUnits(child(child(child(media, "minf"), "stbl"), "stts")), scale)
	return true
}

// extendTo makes the video at least units long. A second has scale units.
func (h *Header) extendTo(units, scale uint64) {
	if scale == 0 {
		return
	}
	// A length that does not fit saturates: every limit refuses it.
	d := time.Duration(math.MaxInt64)
	if hi, lo := bits.Mul64(units, uint64(time.Second)); hi < scale {
		if q, _ := bits.Div64(hi, lo, scale); q < math.MaxInt64 {
			d = time.Duration(q)
		}
	}
	h.Duration = max(h.Duration, d)
}

// readSpan returns the length in an mvhd or mdhd box, which begin alike (ISO/IEC 14496-12 8.2.2,
// 8.4.2). It is zero if the box has none.
func readSpan(b []byte) (units, scale uint64) {
	switch {
	case len(b) >= 32 && b[0] == 1:
		if units = binary.BigEndian.Uint64(b[24:]); units == math.MaxUint64 {
			units = 0
		}
		return units, uint64(binary.BigEndian.Uint32(b[20:]))
	case len(b) >= 20 && b[0] == 0:
		if units = uint64(binary.BigEndian.Uint32(b[16:])); units == math.MaxUint32 {
			units = 0
		}
		return units, uint64(binary.BigEndian.Uint32(b[12:]))
	}
	return 0, 0
}

// sampleUnits returns the sum of the lengths of all pictures (ISO/IEC 14496-12 8.6.1.2).
func sampleUnits(stts []byte) (units uint64) {
	if len(stts) < 8 {
		return 0
	}
	const entry = 8
	for b := stts[8:]; len(b) >= entry; b = b[entry:] {
		// The product always fits. A sum that does not fit saturates.
		more := uint64(binary.BigEndian.Uint32(b)) * uint64(binary.BigEndian.Uint32(b[4:]))
		sum, carry := bits.Add64(units, more, 0)
		if carry != 0 {
			return math.MaxUint64
		}
		units = sum
	}
	return units
}

// displaySize returns the size in a tkhd box, rotated as its matrix says. Phones film upright
// videos as rotated ones (ISO/IEC 14496-12 8.3.2).
func displaySize(tkhd []byte) (width, height int) {
	const minSize = 84 // of version 0
	var extra int
	if len(tkhd) > 0 && tkhd[0] == 1 {
		extra = 12 // three times of 64 bits
	}
	if len(tkhd) < minSize+extra {
		return 0, 0
	}
	matrix, size := tkhd[40+extra:], tkhd[76+extra:]
	width, height = int(binary.BigEndian.Uint16(size)), int(binary.BigEndian.Uint16(size[4:]))
	if binary.BigEndian.Uint32(matrix) == 0 && binary.BigEndian.Uint32(matrix[16:]) == 0 {
		width, height = height, width
	}
	return width, height
}
