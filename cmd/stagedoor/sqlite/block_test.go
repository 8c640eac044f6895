package sqlite

import (
	"bytes"
	"errors"
	"math"
	"testing"
)

func TestABlockHasWhatWasAdded(t *testing.T) {
	var b block
	want := []row{{at: 1 << 60, kind: 1, id: 3, entry: 2}, {at: 5, kind: math.MaxInt64, entry: 2},
		{at: 1<<60 + 7, amounts: [len(amounts)]int64{1, 64, 1 << 40, math.MaxInt64, -1}, id: 3, entry: 2}}
	for i := range want {
		b.add(&want[i], "id-"[:want[i].id], []byte("{}"))
	}
	if b.first != 5 || b.last != 1<<60+7 || b.count != 3 || string(b.ids) != "id-id-" || string(b.entries) != "{}{}{}" {
		t.Errorf("%+v", b)
	}
	n := 0
	err := b.each(func(r *row, id, entry int) error {
		if *r != want[n] || id != []int{0, 3, 3}[n] || entry != 2*n {
			t.Errorf("row %d is %+v at %d, %d", n, *r, id, entry)
		}
		n++
		return nil
	})
	if err != nil || n != len(want) {
		t.Errorf("%d rows, %v", n, err)
	}
	for cut := range len(b.rows) {
		short := block{base: b.base, rows: b.rows[:cut]}
		if err := short.each(func(*row, int, int) error { return nil }); err != nil && !errors.Is(err, errBlock) {
			t.Errorf("cut at %d: %v", cut, err)
		}
	}
}

// A file that was damaged may have anything in a block.
func FuzzABlockIsReadOrRefused(f *testing.F) {
	f.Add(bytes.Repeat([]byte{2}, 22))
	f.Add(bytes.Repeat([]byte{0xff}, 30))
	f.Fuzz(func(t *testing.T, rows []byte) {
		b := block{rows: rows}
		n := 0
		err := b.each(func(r *row, id, entry int) error {
			n++
			_, err := part(b.ids, id, r.id)
			return err
		})
		if err != nil && !errors.Is(err, errBlock) || n > len(rows)/11 {
			t.Errorf("%d rows, %v", n, err)
		}
	})
}
