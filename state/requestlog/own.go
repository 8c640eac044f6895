package requestlog

import (
	"encoding/binary"
	"slices"

	"github.com/go-json-experiment/json"
)

// ownFormat is the first byte of what AppendOwn writes. Earlier versions of the program wrote JSON.
const ownFormat = 1

// phases have a number in steps, so that a step takes a few bytes in place of about forty. Others are written as text.
// A number is never given to another phase, and a further phase needs a further version of the file, because programs
// of this one would take its number for a fault.
var phases = [...]string{"", "starting", "queued", "waiting", "replying", "in_progress", "resting", "ended"}

// AppendOwn appends what a record has for itself, without its id, its times and its amounts, for ReadOwn.
func (r *Record) AppendOwn(to []byte) []byte {
	to = appendText(append(to, ownFormat), r.Trace)
	for _, n := range [...]int64{r.Cached, r.Reasoning, r.Images, int64(len(r.Steps))} {
		to = binary.AppendVarint(to, n)
	}
	for i := range r.Steps {
		s := &r.Steps[i]
		phase := max(slices.Index(phases[:], s.Phase), 0)
		if to = binary.AppendVarint(to, int64(phase)); phase == 0 {
			to = appendText(to, s.Phase)
		}
		to = binary.AppendVarint(binary.AppendVarint(to, int64(s.Attempt)), s.AtUs)
	}
	return to
}

func appendText(to []byte, text string) []byte {
	return append(binary.AppendVarint(to, int64(len(text))), text...)
}

// ReadOwn reads what AppendOwn has written, also of an earlier version, into a record whose At is set. A record that
// cannot be read is shown as ReadEntry shows one.
func (r *Record) ReadOwn(own []byte) {
	if len(own) > 0 && own[0] == '{' {
		if json.Unmarshal(own, r) != nil {
			r.unreadable()
		}
		return
	}
	in := ownReader{left: own}
	in.broken = in.take(1) != string([]byte{ownFormat})
	r.Trace = in.text()
	r.Cached, r.Reasoning, r.Images = in.number(), in.number(), in.number()
	steps := in.number()
	in.broken = in.broken || steps < 0 || steps > int64(len(in.left)) // each takes more than a byte
	for ; steps > 0 && !in.broken; steps-- {
		var s Step
		if phase := in.number(); phase > 0 && phase < int64(len(phases)) {
			s.Phase = phases[phase]
		} else {
			s.Phase = in.text()
		}
		s.Attempt, s.AtUs = int(in.number()), in.number()
		r.Steps = append(r.Steps, s)
	}
	if in.broken || len(in.left) > 0 {
		r.unreadable()
	}
}

// ownReader reads numbers and texts. After a fault it returns zeros.
type ownReader struct {
	left   []byte
	broken bool
}

func (in *ownReader) number() int64 {
	n, size := binary.Varint(in.left)
	if in.broken = in.broken || size <= 0; in.broken {
		return 0
	}
	in.left = in.left[size:]
	return n
}

func (in *ownReader) text() string { return in.take(in.number()) }

func (in *ownReader) take(n int64) string {
	if in.broken = in.broken || n < 0 || n > int64(len(in.left)); in.broken {
		return ""
	}
	text := string(in.left[:n])
	in.left = in.left[n:]
	return text
}
