package upstream

import (
	"bytes"
	"errors"
	"io"
)

// MaxEvent is the largest server-sent event that is read, in bytes. Images and
// signatures of several megabytes do come in one event.
const MaxEvent = 32 << 20

// ErrEventTooLarge is returned by EventReader.Next for an event over MaxEvent.
var ErrEventTooLarge = errors.New("server-sent event is too large")

// An idle stream holds firstBuffer, which nearly all events fit in. One that
// fills it is fast, and reads up to fastBuffer at once.
const (
	firstBuffer = 2 << 10
	fastBuffer  = 16 << 10
)

// An Event is one server-sent event. Its slices are valid until the next call
// of Next.
type Event struct {
	Name string // the event field, "" if there was none
	Data []byte // data lines joined by LF
	// Raw is the event as it arrived, blank line included, and Plain says that
	// it can be forwarded as it is: LF line ends, one data line, no comment and
	// no field but event and data.
	Raw   []byte
	Plain bool
}

// EventReader reads server-sent events by the WHATWG rules: any of the three
// line ends (also mixed, also split between reads), one optional space after
// the colon, several data lines, comments, unknown fields, a byte order mark.
// An unfinished event at the end of the body is returned too, since servers
// that forget the last blank line put their finish into it.
type EventReader struct {
	src io.Reader
	buf []byte
	err error // what src returned last, kept until the buffer is used up
	// grown, if set, may refuse that buf grows to hold a large event.
	grown func(from, to int) error

	start  int // where the event being read began
	line   int // where the line being read began
	seen   int // up to where that line was searched for its end
	end    int // end of what has been read
	skipLF bool
	bom    bool

	name  string
	names map[string]string
	data  []byte // points into buf or at joined
	lines int
	// joined is the scratch space for events of several data lines.
	joined []byte
	odd    bool
}

// NewEventReader reads events from src.
func NewEventReader(src io.Reader) *EventReader {
	return &EventReader{src: src, buf: make([]byte, firstBuffer)}
}

// Buffered reports whether bytes are at hand that no event was made of yet, so
// that the next call of Next may not have to wait.
func (r *EventReader) Buffered() bool {
	// A trailing blank line or comment is no reason to hold back what is ready.
	return bytes.IndexByte(r.buf[r.line:r.end], '\n') >= 0 && r.end-r.line > 2
}

// Next returns the next event that has data, or an error: io.EOF at a clean
// end, else what the source said.
func (r *EventReader) Next() (Event, error) {
	r.start = r.line
	r.begin()
	for {
		line, ok := r.nextLine()
		if !ok {
			if r.err != nil {
				return r.tail()
			}
			if err := r.fill(); err != nil {
				return Event{}, err
			}
			continue
		}
		if len(line) > 0 {
			r.field(line)
			continue
		}
		if r.hasData() {
			return r.event(), nil
		}
		r.start = r.line
		r.begin()
	}
}

func (r *EventReader) begin() {
	r.name, r.data, r.lines, r.odd = "", nil, 0, false
}

// hasData tells an event from a keep-alive, which some servers write as one
// without anything in it.
func (r *EventReader) hasData() bool { return len(bytes.TrimSpace(r.data)) > 0 }

func (r *EventReader) event() Event {
	return Event{Name: r.name, Data: r.data, Raw: r.buf[r.start:r.line], Plain: !r.odd}
}

// tail makes an event of what is left when the body has ended.
func (r *EventReader) tail() (Event, error) {
	if r.line < r.end && errors.Is(r.err, io.EOF) {
		rest := r.buf[r.line:r.end]
		r.line, r.seen = r.end, r.end
		r.field(bytes.TrimSuffix(rest, []byte{'\r'}))
	}
	if r.hasData() && errors.Is(r.err, io.EOF) {
		r.odd = true
		return r.event(), nil
	}
	return Event{}, r.err
}

// nextLine returns the next whole line without its end, or false if none is at
// hand.
func (r *EventReader) nextLine() ([]byte, bool) {
	if r.skipLF && r.line < r.end {
		r.skipLF = false
		if r.buf[r.line] == '\n' {
			if r.start == r.line {
				r.start++
			}
			r.line++
			r.seen = max(r.seen, r.line)
		}
	}
	rest := r.buf[r.seen:r.end]
	n := bytes.IndexByte(rest, '\n')
	if n >= 0 {
		rest = rest[:n]
	}
	if c := bytes.IndexByte(rest, '\r'); c >= 0 {
		n = c
		r.odd = true
		r.skipLF = true
	}
	if n < 0 {
		r.seen = r.end
		return nil, false
	}
	line := r.buf[r.line : r.seen+n]
	r.line = r.seen + n + 1
	r.seen = r.line
	if r.skipLF && r.line < r.end {
		r.skipLF = false
		if r.buf[r.line] == '\n' {
			r.line++
			r.seen = r.line
		}
	}
	return line, true
}

func (r *EventReader) field(line []byte) {
	if v, ok := bytes.CutPrefix(line, []byte("data:")); ok {
		v, spaced := bytes.CutPrefix(v, []byte{' '})
		r.odd = r.odd || !spaced
		r.addData(v)
		return
	}
	if v, ok := bytes.CutPrefix(line, []byte("event:")); ok {
		v, _ = bytes.CutPrefix(v, []byte{' '})
		r.name = r.intern(v)
		return
	}
	if string(line) == "data" {
		r.addData(nil)
	}
	r.odd = true
}

func (r *EventReader) addData(v []byte) {
	r.lines++
	switch r.lines {
	case 1:
		r.data = v
	case 2:
		r.odd = true
		r.joined = append(append(append(r.joined[:0], r.data...), '\n'), v...)
		r.data = r.joined
	default:
		r.joined = append(append(r.joined, '\n'), v...)
		r.data = r.joined
	}
}

// longestName is the longest name of an event that is kept. Those of the shapes are shorter.
const longestName = 64

// intern keeps the few names a stream uses, so that they are allocated once.
func (r *EventReader) intern(v []byte) string {
	if s, ok := r.names[string(v)]; ok {
		return s
	}
	s := string(v)
	if len(r.names) < 64 && len(s) <= longestName {
		if r.names == nil {
			r.names = make(map[string]string, 8)
		}
		r.names[s] = s
	}
	return s
}

// fill reads more, making room first. Offsets into buf that belong to the event
// being read move with it.
func (r *EventReader) fill() error {
	full := r.end == len(r.buf)
	if r.start > 0 && (r.start == r.end || full) {
		r.shift()
	}
	if full && len(r.buf) < fastBuffer {
		r.move(make([]byte, 2*len(r.buf)), 0)
	}
	if r.end == len(r.buf) {
		if len(r.buf) >= MaxEvent {
			r.err = ErrEventTooLarge
			return r.err
		}
		more := min(2*len(r.buf), MaxEvent)
		if r.grown != nil {
			if r.err = r.grown(len(r.buf), more); r.err != nil {
				return r.err
			}
		}
		r.move(make([]byte, more), 0)
	}
	for range 100 {
		n, err := r.src.Read(r.buf[r.end:])
		r.end += n
		r.err = err
		if n > 0 && !r.bom {
			r.skipBOM()
		}
		if n > 0 || err != nil {
			return nil
		}
	}
	r.err = io.ErrNoProgress
	return r.err
}

// shift moves the event being read to the front of buf.
func (r *EventReader) shift() {
	by := r.start
	r.move(r.buf, by)
	r.start, r.line, r.seen, r.end = 0, r.line-by, r.seen-by, r.end-by
}

// move copies buf[by:end] to the front of to. data may point into buf.
func (r *EventReader) move(to []byte, by int) {
	at := -1
	if r.lines == 1 && len(r.data) > 0 {
		at = cap(r.buf) - cap(r.data) // its offset: data is a slice of buf
	}
	n := len(r.data)
	copy(to, r.buf[by:r.end])
	r.buf = to
	if at >= 0 {
		r.data = to[at-by : at-by+n]
	}
}

func (r *EventReader) skipBOM() {
	const bom = "\ufeff"
	if r.end < len(bom) && bytes.HasPrefix([]byte(bom), r.buf[:r.end]) && r.err == nil {
		return // could still become one
	}
	r.bom = true
	if bytes.HasPrefix(r.buf[:r.end], []byte(bom)) {
		r.start, r.line, r.seen = len(bom), len(bom), len(bom)
		r.odd = true
	}
}
