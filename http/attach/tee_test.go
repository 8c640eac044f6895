package attach

import (
	"slices"
	"strings"
	"testing"
)

// TestEventsAreNumbered: in pieces of any length, with either kind of line end. Comments between events and events that
// have not ended get no number.
func TestEventsAreNumbered(t *testing.T) {
	for _, c := range []struct {
		in, out string
		ends    []int // after the n-th event
	}{
		{"data: a\n\n", "data: a\nid: 1\n\n", []int{15}},
		{"event: x\r\ndata: a\r\n\r\n: beat\r\n\r\ndata: b\n\n",
			"event: x\r\ndata: a\r\nid: 1\n\r\n: beat\r\n\r\ndata: b\nid: 2\n\n", []int{27, 52}},
		{": beat\n\n\n\n", ": beat\n\n\n\n", nil},
		{"data: a\n: in it\n\ndata: b", "data: a\n: in it\nid: 1\n\ndata: b", []int{23}},
	} {
		for size := 1; size <= len(c.in); size++ {
			if strings.Contains(c.in, "\r") && size < len(c.in) {
				continue // the gateway writes whole lines
			}
			f := framer{ids: true}
			var out strings.Builder
			var ends []int
			for piece := range slices.Chunk([]byte(c.in), size) {
				framed, at := f.frame(piece)
				for _, end := range at {
					ends = append(ends, out.Len()+end)
				}
				out.Write(framed)
			}
			if out.String() != c.out || !slices.Equal(ends, c.ends) {
				t.Errorf("%q in pieces of %d: got %q, %v", c.in, size, out.String(), ends)
			}
		}
		f := framer{}
		if out, ends := f.frame([]byte(c.in)); string(out) != c.in || len(ends) != len(c.ends) {
			t.Errorf("%q without ids: got %q, %v", c.in, out, ends)
		}
	}
}
