package money

import (
	"encoding/json"
	"strconv"
	"time"
)

// jsonObject appends the JSON of records that are written with every request, for which encoding/json would cost more
// than the rest of the command. encoding/json reads what it writes. Members with the zero value are left out, as
// omitempty and omitzero do.
type jsonObject struct {
	b     []byte
	first bool
}

func newJSONObject(capacity int) jsonObject {
	return jsonObject{append(make([]byte, 0, capacity), '{'), true}
}

// arena is memory for the records of a group of commands. It is allocated in pieces that are larger than one record,
// because a group has a thousand of them. The next group uses the last piece again.
type arena struct{ b []byte }

const (
	arenaPiece = 16 << 10
	arenaKept  = 256 << 10
	// arenaRoom is enough for most records. A longer one moves to a piece of its own, which costs time only.
	arenaRoom = 1 << 10
)

// free returns an empty slice to append a record to. The result is given to keep.
func (a *arena) free() []byte { return a.freeFor(arenaRoom) }

// freeFor is free with room for that many bytes.
func (a *arena) freeFor(room int) []byte {
	if cap(a.b)-len(a.b) < room {
		a.b = make([]byte, 0, max(arenaPiece, room))
	}
	return a.b[len(a.b):]
}

// keep takes what was appended to a slice of free, and returns it without further room, so that later records do not
// overwrite it.
func (a *arena) keep(written []byte) []byte {
	n := len(written)
	if n <= cap(a.b)-len(a.b) {
		a.b = a.b[:len(a.b)+n]
	}
	return written[:n:n]
}

// reset gives up all records, of which no one may be in use any more.
func (a *arena) reset() {
	if a.b = a.b[:0]; cap(a.b) > arenaKept {
		a.b = nil
	}
}

func (o *jsonObject) key(name string) {
	if !o.first {
		o.b = append(o.b, ',')
	}
	o.first = false
	o.b = append(append(append(o.b, '"'), name...), '"', ':')
}

func (o *jsonObject) text(name, v string) {
	if v != "" {
		o.key(name)
		o.b = appendText(o.b, v)
	}
}

func (o *jsonObject) number(name string, v int64) {
	if v != 0 {
		o.key(name)
		o.b = strconv.AppendInt(o.b, v, 10)
	}
}

func (o *jsonObject) time(name string, v time.Time) {
	o.key(name)
	o.b = appendTime(o.b, v)
}

func appendTime(b []byte, v time.Time) []byte {
	return append(v.AppendFormat(append(b, '"'), time.RFC3339Nano), '"')
}

func (o *jsonObject) end() []byte { return append(o.b, '}') }

// appendText appends a JSON string. What is not plain is left to encoding/json.
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
