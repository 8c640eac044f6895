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
	o.b = append(v.AppendFormat(append(o.b, '"'), time.RFC3339Nano), '"')
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
