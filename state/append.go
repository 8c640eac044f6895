package state

import (
	"encoding/json"
	"strconv"
	"time"
)

// object appends the JSON of records that are written with every request, for
// which encoding/json costs more than all the rest of the command. What it writes
// encoding/json reads; members with the zero value are left out, as omitempty
// and omitzero do.
type object struct {
	b     []byte
	first bool
}

func newObject(capacity int) object { return object{append(make([]byte, 0, capacity), '{'), true} }

// paper is where a group of commands writes its records: pieces that are larger
// than one record, since a group has a thousand of them. The last piece is used
// again by the next group.
type paper struct{ b []byte }

const (
	paperPiece = 16 << 10
	paperKept  = 256 << 10
	// paperRoom is what a record takes that fits into what is left of a piece. A
	// longer one moves the piece, which costs time only.
	paperRoom = 1 << 10
)

// sheet is paper to append to, with room for a record; kept tells how much of it
// was used.
func (p *paper) sheet() []byte { return p.large(paperRoom) }

// large is a sheet with room for that many bytes.
func (p *paper) large(room int) []byte {
	if cap(p.b)-len(p.b) < room {
		p.b = make([]byte, 0, max(paperPiece, room))
	}
	return p.b[len(p.b):]
}

// keep takes a sheet that was written on. Nothing will be appended to what it
// returns.
func (p *paper) keep(written []byte) []byte {
	n := len(written)
	if n <= cap(p.b)-len(p.b) {
		p.b = p.b[:len(p.b)+n]
	}
	return written[:n:n]
}

// clear lets go of all that was written.
func (p *paper) clear() {
	if p.b = p.b[:0]; cap(p.b) > paperKept {
		p.b = nil
	}
}

func (o *object) key(name string) {
	if !o.first {
		o.b = append(o.b, ',')
	}
	o.first = false
	o.b = append(append(append(o.b, '"'), name...), '"', ':')
}

func (o *object) text(name, v string) {
	if v != "" {
		o.key(name)
		o.b = appendText(o.b, v)
	}
}

func (o *object) number(name string, v int64) {
	if v != 0 {
		o.key(name)
		o.b = strconv.AppendInt(o.b, v, 10)
	}
}

func (o *object) time(name string, v time.Time) {
	o.key(name)
	o.b = appendTime(o.b, v)
}

func appendTime(b []byte, v time.Time) []byte {
	return append(v.AppendFormat(append(b, '"'), time.RFC3339Nano), '"')
}

func (o *object) end() []byte { return append(o.b, '}') }

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
