package mp4

import (
	"encoding/binary"
	"errors"
	"io"
	"math"
	"math/bits"
	"time"
)

// Errors of files that are not what they should be.
var (
	ErrFormat  = errors.New("file is no MP4")
	ErrCorrupt = errors.New("the header of the MP4 cannot be read")
)

// Header is what a video says of itself.
type Header struct {
	// Width and Height are in pixels, as it is shown.
	Width, Height int
	// Duration is the longest that the header tells: whoever pays by it does not
	// pay less for a header that contradicts itself.
	Duration time.Duration
}

// Seconds is how long the video is, with the last second that has begun.
func (h Header) Seconds() int {
	whole := h.Duration / time.Second
	if h.Duration%time.Second > 0 {
		whole++
	}
	return int(whole)
}

// Sniff reports whether a file begins as an MP4 does: with a box that names its
// brand. QuickTime's is not one.
func Sniff(head []byte) bool {
	return len(head) >= 12 && string(head[4:8]) == "ftyp" && string(head[8:12]) != "qt  "
}

// Inspect reads the header of a file of size bytes. Errors are ErrFormat,
// ErrCorrupt or what r says.
func Inspect(r io.ReaderAt, size int64) (Header, error) {
	var head [12]byte
	if n, err := r.ReadAt(head[:], 0); err != nil && err != io.EOF {
		return Header{}, err
	} else if !Sniff(head[:n]) {
		return Header{}, ErrFormat
	}
	moov, err := find(r, size, "moov")
	if err != nil {
		return Header{}, err
	}
	return movie(moov)
}

// Bounds of what is looked at: of a header, and of boxes beside it.
const (
	maxMovie = 8 << 20
	maxBoxes = 1 << 10
)

// find reads the body of a box at the outermost level, wherever it stands: what
// was not made for streaming has its header last.
func find(r io.ReaderAt, size int64, kind string) ([]byte, error) {
	at := int64(0)
	for range maxBoxes {
		var head [16]byte
		n, err := r.ReadAt(head[:min(16, max(0, size-at))], at)
		if err != nil && err != io.EOF {
			return nil, err
		}
		body, length, ok := boxHead(head[:n], size-at)
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

// boxHead reads the head of a box that begins rest bytes before the end: where its
// body begins, and its whole length (ISO/IEC 14496-12 4.2).
func boxHead(head []byte, rest int64) (body, length int64, ok bool) {
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

// child is the body of the first box of a kind in another's; nil if there is none.
func child(b []byte, kind string) (found []byte) {
	each(b, func(k string, body []byte) bool {
		if k == kind {
			found = body
		}
		return k != kind
	})
	return found
}

// each visits the boxes side by side in b until visit says no, or they end.
func each(b []byte, visit func(kind string, body []byte) bool) {
	for len(b) > 0 {
		body, length, ok := boxHead(b[:min(16, len(b))], int64(len(b)))
		if !ok || !visit(string(b[4:8]), b[body:length]) {
			return
		}
		b = b[length:]
	}
}

// movie reads a header: that of the movie, and that of its first video.
func movie(moov []byte) (h Header, err error) {
	found := false
	each(moov, func(kind string, trak []byte) bool {
		found = kind == "trak" && h.track(trak)
		return !found
	})
	if !found {
		return Header{}, ErrCorrupt
	}
	h.longer(span(child(moov, "mvhd")))
	if h.Width <= 0 || h.Height <= 0 || h.Duration <= 0 {
		return Header{}, ErrCorrupt
	}
	return h, nil
}

// track reads a track; it reports whether it is one of a video.
func (h *Header) track(trak []byte) bool {
	media := child(trak, "mdia")
	if handler := child(media, "hdlr"); len(handler) < 12 || string(handler[8:12]) != "vide" {
		return false
	}
	h.Width, h.Height = shown(child(trak, "tkhd"))
	units, scale := span(child(media, "mdhd"))
	h.longer(units, scale)
	h.longer(samples(child(child(child(media, "minf"), "stbl"), "stts")), scale)
	return true
}

// longer has the video be units long at least, of which scale are a second.
func (h *Header) longer(units, scale uint64) {
	if scale == 0 {
		return
	}
	// Of a header that tells more than fits it is enough to know that it is long.
	d := time.Duration(math.MaxInt64)
	if hi, lo := bits.Mul64(units, uint64(time.Second)); hi < scale {
		if q, _ := bits.Div64(hi, lo, scale); q < math.MaxInt64 {
			d = time.Duration(q)
		}
	}
	h.Duration = max(h.Duration, d)
}

// span is the length in mvhd and mdhd, which begin alike (ISO/IEC 14496-12 8.2.2,
// 8.4.2): zero if it is not known.
func span(b []byte) (units, scale uint64) {
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

// samples is how long all pictures are together (ISO/IEC 14496-12 8.6.1.2).
func samples(stts []byte) (units uint64) {
	if len(stts) < 8 {
		return 0
	}
	const entry = 8
	for b := stts[8:]; len(b) >= entry; b = b[entry:] {
		// A product fits; a sum that does not is held at the most there can be.
		more := uint64(binary.BigEndian.Uint32(b)) * uint64(binary.BigEndian.Uint32(b[4:]))
		sum, carry := bits.Add64(units, more, 0)
		if carry != 0 {
			return math.MaxUint64
		}
		units = sum
	}
	return units
}

// shown is the size in tkhd, turned as its matrix says: phones film upright by
// turning (ISO/IEC 14496-12 8.3.2).
func shown(tkhd []byte) (width, height int) {
	const least = 84 // of version 0
	var wide int
	if len(tkhd) > 0 && tkhd[0] == 1 {
		wide = 12 // three times of 64 bits
	}
	if len(tkhd) < least+wide {
		return 0, 0
	}
	matrix, size := tkhd[40+wide:], tkhd[76+wide:]
	width, height = int(binary.BigEndian.Uint16(size)), int(binary.BigEndian.Uint16(size[4:]))
	if binary.BigEndian.Uint32(matrix) == 0 && binary.BigEndian.Uint32(matrix[16:]) == 0 {
		width, height = height, width
	}
	return width, height
}
