package money

import (
	"encoding/json"
	"strconv"
	"time"
)

// jsonObject appends the JSON of records that every request writes. encoding/json can read it, but
// would take longer to write it than the rest of the command takes. Zero values are left out, as
// with omitempty and omitzero.
type jsonObject struct {
	b     []byte
	first bool
}

// newJSONObject begins an object. With enough capacity, the whole record is one allocation.
func newJSONObject(capacity int) jsonObject {
	return jsonObject{append(make([]byte, 0, capacity), '{'), true}
}

// arena is memory for the records of a group of commands. It allocates pieces larger than one
// record, because a group has up to a thousand records. The next group reuses the last piece.
type arena struct{ b []byte }

const (
	arenaPiece = 16 << 10
	arenaKept  = 256 << 10
	arenaRoom  = 1 << 10 // enough for most records; a longer one moves to its own piece, which costs only time
)

// free returns an empty slice for one record. After appending, pass it to keep.
func (a *arena) free() []byte { return a.freeFor(arenaRoom) }

// freeFor is like free and has room for that many bytes.
func (a *arena) freeFor(room int) []byte {
	if cap(a.b)-len(a.b) < room {
		a.b = make([]byte, 0, max(arenaPiece, room))
	}
	return a.b[len(a.b):]
}

// keep reserves what was appended to a slice from free. It returns the slice without spare
// capacity, so that later records do not overwrite it.
func (a *arena) keep(written []byte) []byte {
	n := len(written)
	if n <= cap(a.b)-len(a.b) {
		a.b = a.b[:len(a.b)+n]
	}
	return written[:n:n]
}

// reset releases all records. None of them may be in use any more.
func (a *arena) reset() {
	if a.b = a.b[:0]; cap(a.b) > arenaKept {
		a.b = nil
	}
}

// key appends a member's name. It must be a name that needs no escapes.
func (o *jsonObject) key(name string) {
	if !o.first {
		o.b = append(o.b, ',')
	}
	o.first = false
	o.b = append(append(append(o.b, '"'), name...), '"', ':')
}

// text writes a member, or nothing if it is empty: records are written for every charge, and most members are empty.
func (o *jsonObject) text(name, v string) {
	if v != "" {
		o.key(name)
		o.b = appendText(o.b, v)
	}
}

// number writes a member, or nothing if it is zero.
func (o *jsonObject) number(name string, v int64) {
	if v != 0 {
		o.key(name)
		o.b = strconv.AppendInt(o.b, v, 10)
	}
}

// time writes a member, also for the zero time.
func (o *jsonObject) time(name string, v time.Time) {
	o.key(name)
	o.b = appendTime(o.b, v)
}

// appendTime appends a time as encoding/json would, so that records of both encoders are read by one decoder.
func appendTime(b []byte, v time.Time) []byte {
	return append(v.AppendFormat(append(b, '"'), time.RFC3339Nano), '"')
}

// end closes the object and returns its bytes.
func (o *jsonObject) end() []byte { return append(o.b, '}') }

// appendText appends a JSON string. Strings that need escaping are encoded by encoding/json.
func appendText(b []byte, s string) []byte {
	for i := range len(s) {
		if c := s[i]; c < ' ' || c >= 0x7f || c == '"' || c == '\\' {
			quoted, err := json.Marshal(s)
			if err != nil {
				return append(b, `""`...) // a string always has a JSON form
			}
			return append(b, quoted...)
		}
	}
	return append(append(append(b, '"'), s...), '"')
}
