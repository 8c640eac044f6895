package upstream

import (
	"bytes"
	"errors"
	"io"
	"math/bits"
	"sync"
)

// MaxEvent is the largest server-sent event that is read, in bytes. Events with images or signatures have
// several megabytes.
const MaxEvent = 32 << 20

// ErrEventTooLarge is returned by EventReader.Next for an event over MaxEvent.
var ErrEventTooLarge = errors.New("server-sent event is too large")

// An idle stream holds a buffer of firstBuffer, in which nearly all events fit. A stream that fills it is fast
// and then reads up to fastBuffer at once. The buffers between the two sizes are pooled, because a fast stream
// would otherwise allocate most of its memory for them.
const (
	firstBuffer = 1 << 10
	fastBuffer  = 16 << 10
)

// buffers pools buffers of twice, four times, eight times and sixteen times firstBuffer.
var buffers [4]sync.Pool

// newBuffer returns a buffer of size bytes for events.
func newBuffer(size int) []byte {
	if i := bits.Len(uint(size/firstBuffer)) - 2; i < len(buffers) {
		if b, ok := buffers[i].Get().(*[]byte); ok {
			return *b
		}
	}
	return make([]byte, size)
}

// freeBuffer gives a buffer back that newBuffer returned. No event may refer to it any more.
func freeBuffer(b []byte) {
	if i := bits.Len(uint(len(b)/firstBuffer)) - 2; i >= 0 && i < len(buffers) {
		buffers[i].Put(&b)
	}
}

// Event is one server-sent event. Its slices are valid until the next call of Next.
type Event struct {
	Name string // the event field, "" if there was none
	Data []byte // data lines joined by LF
	// Raw is the event as it arrived, including its blank line. Plain is set if Raw can be forwarded
	// unchanged, that is, if it has LF line ends, one data line, no comment and no field but event and
	// data.
	Raw   []byte
	Plain bool
}

// EventReader reads server-sent events by the rules of the WHATWG (HTML standard, "Server-sent
// events"). It accepts any of the three line ends (mixed, and split between reads), one optional
// space after the colon, several data lines, comments, unknown fields and a byte order mark. It
// also returns an unfinished event at the end of the body, because servers that omit the last blank
// line put the end of their reply there.
//
// Every token of every stream passes through it, so it copies nothing: events are slices of its
// buffer.
//
//	: comment                    skipped
//	event: delta                 Event{Name: "delta", Data: "a\nb"}
//	data: a
//	data: b
//	(blank line)
type EventReader struct {
	src io.Reader
	buf []byte
	err error // the last error of src, returned when the buffer is used up
	// grown, if set, may refuse that buf grows to hold a large event.
	grown func(from, to int) error

	start  int // offset of the event that is being read
	line   int // offset of the line that is being read
	seen   int // offset up to which that line has been searched for its end
	end    int // end of the bytes that have been read
	skipLF bool
	bom    bool
	waited bool // Wait has been called since the last Next
	whole  bool // by the lines up to line an event is whole

	name  string
	names map[string]string
	data  []byte // points into buf or joined
	lines int
	// joined has the lines of an event with several data lines.
	joined []byte
	odd    bool
}

// NewEventReader returns a reader of the events in src.
func NewEventReader(src io.Reader) *EventReader {
	return &EventReader{src: src, buf: make([]byte, firstBuffer)}
}

// Count calls grown with the old and the new size before the buffer grows for a large event. Next returns its error.
func (r *EventReader) Count(grown func(from, to int) error) { r.grown = grown }

// Release gives the reader's buffer back. The events that the reader has returned must not be used any more. Next
// returns an error from then on. A caller that does not call Release costs no more than an allocation. Release of a nil
// reader does nothing.
func (r *EventReader) Release() {
	if r == nil {
		return
	}
	freeBuffer(r.buf)
	*r = EventReader{err: io.ErrClosedPipe}
}

// Buffered reports whether the buffer has bytes of a further event, so that the next call of Next may not have
// to wait.
func (r *EventReader) Buffered() bool {
	// A trailing blank line or comment is no reason to delay what is ready.
	return bytes.IndexByte(r.buf[r.line:r.end], '\n') >= 0 && r.end-r.line > 2
}

// Next returns the next event that has data. Its error is io.EOF at a clean end, or else the error of the source.
func (r *EventReader) Next() (Event, error) {
	r.Wait()
	r.waited = false
	if !r.whole {
		return r.tail()
	}
	return r.event(), nil
}

// Wait returns once Next need not wait. A stream spends nearly all its life waiting, and a caller that calls Wait before
// Next, which it calls in another function, has less on its stack meanwhile.
func (r *EventReader) Wait() {
	if r.waited {
		return
	}
	r.waited = true
	r.start = r.line
	r.reset()
	for r.whole = r.advance(); !r.whole; r.whole = r.advance() {
		if r.err != nil || r.fill() != nil {
			return
		}
	}
}

// advance reads the lines in the buffer and reports whether they end an event that has data.
func (r *EventReader) advance() bool {
	for {
		line, ok := r.nextLine()
		switch {
		case !ok:
			return false
		case len(line) > 0:
			r.field(line)
		case r.hasData():
			return true
		default:
			r.start = r.line
			r.reset()
		}
	}
}

// reset forgets the fields of the last event.
func (r *EventReader) reset() {
	r.name, r.data, r.lines, r.odd = "", nil, 0, false
}

// hasData distinguishes an event from a keep-alive, which some servers write as an empty event.
func (r *EventReader) hasData() bool { return len(bytes.TrimSpace(r.data)) > 0 }

// event returns the event that the lines so far have made.
func (r *EventReader) event() Event {
	return Event{Name: r.name, Data: r.data, Raw: r.buf[r.start:r.line], Plain: !r.odd}
}

// tail makes an event of the bytes that are left when the body has ended.
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

// nextLine returns the next whole line without its end, or false if the buffer has none.
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

// field reads one line that is not blank. Comments, other fields and unusual spellings make the
// event odd, so that it is written anew instead of forwarded.
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

// addData adds a data line. The first is a slice of the buffer, and only further ones are copied.
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

// longestName is the longest name of an event that is kept. The shapes' names are shorter.
const longestName = 64

// intern returns v as a string and keeps the few names that a stream uses, so that each is allocated once.
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

// fill reads more bytes. A stream waits in it nearly all its life, so its frame is kept small.
func (r *EventReader) fill() error {
	if err := r.makeRoom(); err != nil {
		return err
	}
	for range 100 {
		n, err := r.src.Read(r.buf[r.end:])
		if n > 0 || err != nil {
			r.filled(n, err)
			return nil
		}
	}
	r.err = io.ErrNoProgress
	return r.err
}

// filled notes that n bytes were read.
func (r *EventReader) filled(n int, err error) {
	r.end += n
	r.err = err
	if n > 0 && !r.bom {
		r.skipBOM()
	}
}

// makeRoom makes room for at least one byte. It moves the offsets of the event that is being read.
func (r *EventReader) makeRoom() error {
	full := r.end == len(r.buf)
	if r.start > 0 && (r.start == r.end || full) {
		r.shift()
	}
	if full && len(r.buf) < fastBuffer {
		small := r.buf
		r.move(newBuffer(2*len(small)), 0)
		freeBuffer(small)
	}
	if r.end < len(r.buf) {
		return nil
	}
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
	return nil
}

// shift moves the event that is being read to the front of buf.
func (r *EventReader) shift() {
	by := r.start
	r.move(r.buf, by)
	r.start, r.line, r.seen, r.end = 0, r.line-by, r.seen-by, r.end-by
}

// move copies buf[by:end] to the front of to and repoints data if that is part of buf.
func (r *EventReader) move(to []byte, by int) {
	at := -1
	if r.lines == 1 && len(r.data) > 0 {
		at = cap(r.buf) - cap(r.data) // the offset of data, which is a slice of buf
	}
	n := len(r.data)
	copy(to, r.buf[by:r.end])
	r.buf = to
	if at >= 0 {
		r.data = to[at-by : at-by+n]
	}
}

// skipBOM removes a byte order mark at the beginning of the body.
func (r *EventReader) skipBOM() {
	const bom = "\ufeff"
	if r.end < len(bom) && bytes.HasPrefix([]byte(bom), r.buf[:r.end]) && r.err == nil {
		return // the next bytes may complete a byte order mark
	}
	r.bom = true
	if bytes.HasPrefix(r.buf[:r.end], []byte(bom)) {
		r.start, r.line, r.seen = len(bom), len(bom), len(bom)
		r.odd = true
	}
}
