package clip

import (
	"encoding/binary"
	"slices"
)

// loop is an embedded file taken apart: one track whose samples lie in one
// chunk.
type loop struct {
	ftyp, moov []byte // their bodies
	samples    []byte
	sizes      []uint32 // of the samples
	shifts     []uint32 // from the time a sample is decoded at to the one it is shown at
}

// nested are the boxes that hold boxes on the way to the sample tables.
var nested = []string{"trak", "edts", "mdia", "minf", "stbl"}

func parse(file []byte) (*loop, error) {
	l := &loop{}
	var first uint32
	err := eachBox(file, func(kind string, body []byte) error {
		switch kind {
		case "ftyp":
			l.ftyp = body
		case "moov":
			l.moov = body
		}
		return nil
	})
	if err == nil {
		first, err = l.index(l.moov)
	}
	if err != nil {
		return nil, err
	}
	total := 0
	for _, n := range l.sizes {
		total += int(n)
	}
	if total == 0 || int(first)+total > len(file) || len(l.shifts) != len(l.sizes) {
		return nil, errBox
	}
	l.samples = file[first : int(first)+total]
	return l, nil
}

// index reads the sample tables and returns where the chunk begins.
func (l *loop) index(boxes []byte) (first uint32, err error) {
	err = eachBox(boxes, func(kind string, body []byte) error {
		t := table(body)
		switch {
		case slices.Contains(nested, kind):
			found, err := l.index(body)
			first = max(first, found)
			return err
		case kind == "stsz":
			for i := range int(t.at(1)) {
				l.sizes = append(l.sizes, t.at(2+i))
			}
		case kind == "ctts":
			for i := range int(t.at(0)) {
				l.shifts = append(l.shifts, slices.Repeat([]uint32{t.at(2 + 2*i)}, int(min(t.at(1+2*i), maxSamples)))...)
			}
		case kind == "stco" && t.at(0) != 1, kind == "stts" && t.at(0) != 1:
			return errBox
		case kind == "stco":
			first = t.at(1)
		}
		return nil
	})
	return first, err
}

const maxSamples = 10_000

// repeat writes a file of the given length: the loop as often as it takes, the
// last time only as much of it as is needed. The index comes first, so that a
// player may begin before it has everything.
func (l *loop) repeat(seconds, rate int) []byte {
	p := plan{loop: l, seconds: seconds, frames: seconds * rate}
	head := appendBox(nil, "ftyp", l.ftyp)
	data := p.data()
	// The index says where the data begin, and is in front of them: it is written
	// once to know its length.
	p.start = len(head) + 8 + len(p.rewrite(l.moov)) + 8
	head = appendBox(head, "moov", p.rewrite(l.moov))
	return appendBox(head, "mdat", data)
}

// plan is a file in the making.
type plan struct {
	*loop
	seconds, frames int
	start           int // of the first sample, from the front of the file
}

// chunks is how often the loop is begun.
func (p *plan) chunks() int { return (p.frames + len(p.sizes) - 1) / len(p.sizes) }

// last is how many samples of the loop the last chunk has.
func (p *plan) last() int { return p.frames - (p.chunks()-1)*len(p.sizes) }

func (p *plan) data() []byte {
	out := slices.Repeat(p.samples, p.chunks()-1)
	n := 0
	for _, size := range p.sizes[:p.last()] {
		n += int(size)
	}
	return append(out, p.samples[:n]...)
}

// rewrite copies boxes; those that tell length, samples or places are written
// for the new file. Optional tables about single samples are left out.
func (p *plan) rewrite(boxes []byte) []byte {
	var out []byte
	// What is wrong with the boxes was found when they were read.
	_ = eachBox(boxes, func(kind string, body []byte) error {
		switch {
		case slices.Contains(nested, kind):
			out = appendBox(out, kind, p.rewrite(body))
		case p.table(kind, body) != nil:
			out = appendBox(out, kind, p.table(kind, body))
		case !slices.Contains(leftOut, kind):
			out = appendBox(out, kind, p.timed(kind, body))
		}
		return nil
	})
	return out
}

var leftOut = []string{"sdtp", "sbgp", "sgpd", "udta"}

// table is the new body of a table of samples; nil if kind is none.
func (p *plan) table(kind string, body []byte) table {
	chunks := p.chunks()
	switch kind {
	case "stts": // one entry: every sample lasts as long
		return newTable(1, uint32(p.frames), table(body).at(2))
	case "stss": // a loop's first sample needs no other
		t := newTable(uint32(chunks))
		for i := range chunks {
			t = t.add(uint32(1 + i*len(p.sizes)))
		}
		return t
	case "ctts":
		t := newTable(uint32(p.frames))
		for i := range p.frames {
			t = t.add(1, p.shifts[i%len(p.shifts)])
		}
		return t
	case "stsc":
		if chunks == 1 {
			return newTable(1, 1, uint32(p.last()), 1)
		}
		return newTable(2, 1, uint32(len(p.sizes)), 1, uint32(chunks), uint32(p.last()), 1)
	case "stsz":
		t := newTable(0, uint32(p.frames))
		for i := range p.frames {
			t = t.add(p.sizes[i%len(p.sizes)])
		}
		return t
	case "stco":
		t := newTable(uint32(chunks))
		for i := range chunks {
			t = t.add(uint32(p.start + i*len(p.samples)))
		}
		return t
	}
	return nil
}

// durations says where boxes have theirs, and the scale it is in; a scale of 0
// is the movie's, of milliseconds. All are of version 0.
var durations = map[string]struct{ scale, at int }{
	"mvhd": {12, 16}, "mdhd": {12, 16}, "tkhd": {0, 20}, "elst": {0, 8},
}

// timed is a body with the new length in it.
func (p *plan) timed(kind string, body []byte) []byte {
	d, ok := durations[kind]
	if !ok || len(body) < d.at+4 {
		return body
	}
	scale := uint32(1000)
	if d.scale > 0 {
		scale = binary.BigEndian.Uint32(body[d.scale:])
	}
	out := slices.Clone(body)
	binary.BigEndian.PutUint32(out[d.at:], uint32(p.seconds)*scale)
	return out
}
