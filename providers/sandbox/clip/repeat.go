package clip

import (
	"encoding/binary"
	"slices"
)

// movie is an MP4 file that repeats the samples of a loop.
type movie struct {
	seconds int
	sizes   []uint32 // of the loop's samples, in bytes
	start   uint32   // of the first sample in the file
}

// repeatLoop returns a file of the given length. The index precedes the samples, so that a player may begin before it
// has the whole file. The loop is one of those that generate.go makes: one track, its samples in one piece.
func repeatLoop(loop []byte, seconds int) []byte {
	v := &movie{seconds: seconds}
	var head, index []byte
	var first uint32
	eachBox(loop, func(kind string, body []byte) {
		switch kind {
		case "ftyp":
			head = appendBox(head, kind, body)
		case "moov":
			index = body
			first = v.readTables(body)
		}
	})
	length := uint32(len(appendBox(nil, "moov", v.rewrite(index))))
	v.start = uint32(len(head)) + length + 8
	head = appendBox(head, "moov", v.rewrite(index))
	samples := loop[first : first+v.bytes(len(v.sizes))]
	data := slices.Repeat(samples, v.frames()/len(v.sizes))
	return appendBox(head, "mdat", append(data, samples[:v.bytes(v.frames()%len(v.sizes))]...))
}

func (v *movie) frames() int { return v.seconds * Rate }

// bytes returns the length of the first n samples of the repeated loop.
func (v *movie) bytes(n int) (sum uint32) {
	for i := range n {
		sum += v.sizes[i%len(v.sizes)]
	}
	return sum
}

// readTables reads the sizes of the samples and returns the place of the first one.
func (v *movie) readTables(boxes []byte) (first uint32) {
	eachBox(boxes, func(kind string, body []byte) {
		switch kind {
		case "trak", "mdia", "minf", "stbl":
			first = max(first, v.readTables(body))
		case "stsz":
			for i := 12; i < len(body); i += 4 {
				v.sizes = append(v.sizes, binary.BigEndian.Uint32(body[i:]))
			}
		case "stco":
			first = binary.BigEndian.Uint32(body[8:])
		}
	})
	return first
}

// rewrite copies the boxes of an index and adapts the durations and the tables of samples. Each second is one chunk.
// Optional boxes about single samples are left out.
func (v *movie) rewrite(boxes []byte) (out []byte) {
	seconds, frames := uint32(v.seconds), uint32(v.frames())
	eachBox(boxes, func(kind string, body []byte) {
		body = slices.Clone(body)
		switch kind {
		case "trak", "mdia", "minf", "stbl":
			body = v.rewrite(body)
		case "mvhd", "mdhd": // the time scale is at 12, the duration at 16
			binary.BigEndian.PutUint32(body[16:], seconds*binary.BigEndian.Uint32(body[12:]))
		case "tkhd": // in the time scale of mvhd, which ffmpeg sets to milliseconds
			binary.BigEndian.PutUint32(body[20:], seconds*1000)
		case "stts":
			body = table(1, frames, binary.BigEndian.Uint32(body[12:]))
		case "stsc":
			body = table(1, 1, Rate, 1)
		case "stss":
			body = table(seconds)
			for i := range seconds {
				body = binary.BigEndian.AppendUint32(body, 1+i*Rate)
			}
		case "stsz":
			body = table(0, frames)
			for i := range v.frames() {
				body = binary.BigEndian.AppendUint32(body, v.sizes[i%len(v.sizes)])
			}
		case "stco":
			body = table(seconds)
			for i := range v.seconds {
				body = binary.BigEndian.AppendUint32(body, v.start+v.bytes(i*Rate))
			}
		case "edts", "sdtp", "sbgp", "sgpd", "udta":
			return
		}
		out = appendBox(out, kind, body)
	})
	return out
}

// eachBox calls visit for each box of an MP4 file.
func eachBox(boxes []byte, visit func(kind string, body []byte)) {
	for len(boxes) > 0 {
		n := binary.BigEndian.Uint32(boxes)
		visit(string(boxes[4:8]), boxes[8:n])
		boxes = boxes[n:]
	}
}

// appendBox appends a box with its size and kind.
func appendBox(dst []byte, kind string, body []byte) []byte {
	dst = binary.BigEndian.AppendUint32(dst, uint32(8+len(body)))
	return append(append(dst, kind...), body...)
}

// table returns the beginning of a box of numbers, which are preceded by four bytes of version and flags.
func table(values ...uint32) []byte {
	t := make([]byte, 4)
	for _, v := range values {
		t = binary.BigEndian.AppendUint32(t, v)
	}
	return t
}
