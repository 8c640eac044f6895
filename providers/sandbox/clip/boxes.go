package clip

import (
	"encoding/binary"
	"errors"
)

var errBox = errors.New("the embedded loop is not built as generate.go builds it")

// eachBox visits the boxes that lie side by side in b (ISO/IEC 14496-12 4.2).
// Boxes without a 32 bit size are in no loop.
func eachBox(b []byte, visit func(kind string, body []byte) error) error {
	for len(b) > 0 {
		if len(b) < 8 {
			return errBox
		}
		n := int(binary.BigEndian.Uint32(b))
		if n < 8 || n > len(b) {
			return errBox
		}
		if err := visit(string(b[4:8]), b[8:n]); err != nil {
			return err
		}
		b = b[n:]
	}
	return nil
}

func appendBox(dst []byte, kind string, body []byte) []byte {
	dst = binary.BigEndian.AppendUint32(dst, uint32(8+len(body)))
	return append(append(dst, kind...), body...)
}

// table is the body of a box that holds entries of 32 bit numbers behind version,
// flags and a count.
type table []byte

func newTable(prefix ...uint32) table {
	t := make(table, 4)
	return t.add(prefix...)
}

func (t table) add(values ...uint32) table {
	for _, v := range values {
		t = binary.BigEndian.AppendUint32(t, v)
	}
	return t
}

// at is the number at a place, counted behind version and flags; 0 if there is
// none.
func (t table) at(i int) uint32 {
	if 4*i+8 > len(t) {
		return 0
	}
	return binary.BigEndian.Uint32(t[4*i+4:])
}
