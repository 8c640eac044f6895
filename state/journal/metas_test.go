package journal

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"go.etcd.io/bbolt"
)

// TestTornCommitIsCutBackAndTold: bbolt cannot tell a commit that a power cut tore
// from one that the disk damaged. Either way the one before is in force, and
// Stats say so; a store without any whole commit is refused.
func TestTornCommitIsCutBackAndTold(t *testing.T) {
	origin, page := t.TempDir(), pageSize
	b := openBolt(t, origin, Options{bare: true})
	const records = 20
	for i := range records {
		if err := write(b, Key, fmt.Sprintf("k%02d", i), "v"); err != nil {
			t.Fatal(err)
		}
	}
	last := int(b.txid.Load() % 2)
	abandon(t, b)
	good, err := os.ReadFile(filepath.Join(origin, FileName))
	if err != nil {
		t.Fatal(err)
	}
	for name, c := range map[string]struct {
		pages   []int
		from    int // of the page
		n       int
		want    int // records; -1: refused
		cutBack bool
	}{
		"nothing":        {nil, 0, 0, records, false},
		"the last":       {[]int{last}, pageHeader + metaTxid, 1, records - 1, true},
		"the last, all":  {[]int{last}, 0, page, -1, false},
		"its checksum":   {[]int{last}, pageHeader + metaSum, 8, records - 1, true},
		"the one before": {[]int{1 - last}, pageHeader + metaTxid, 1, records, true},
		"both":           {[]int{0, 1}, pageHeader + metaTxid, 1, -1, false},
		"behind the sum": {[]int{0, 1}, pageHeader + metaSize, 100, records, false},
	} {
		t.Run(name, func(t *testing.T) {
			data := clone(good)
			for _, p := range c.pages {
				for i := range c.n {
					data[p*page+c.from+i] ^= 0x55
				}
			}
			dir := t.TempDir()
			replace(t, dir, data)
			b, err := OpenBolt(dir, Options{LowWater: -1, Timeout: time.Millisecond})
			if c.want < 0 {
				if !errors.Is(err, ErrCorrupt) {
					t.Fatalf("got %v, want ErrCorrupt", err)
				}
				return
			}
			if err != nil {
				t.Fatal(err)
			}
			defer b.Close()
			n := 0
			if _, err := b.Load(ctx, []Table{Key}, func(Table, Record) error { n++; return nil }); err != nil || n != c.want {
				t.Errorf("%d records, %v, want %d", n, err, c.want)
			}
			if got := b.Stats().CutBack; got != c.cutBack {
				t.Errorf("CutBack is %v", got)
			}
			if err := write(b, Key, "next", "v"); err != nil {
				t.Error(err)
			}
			b.Close()
			if again := openBolt(t, dir, Options{}); again.Stats().CutBack {
				t.Error("CutBack is still set after a good commit")
			}
		})
	}
}

// TestFileThatWasCutOffSaysHowMuchIsLeft: what every commit built on is not there, so
// there is nothing to cut back to.
func TestFileThatWasCutOffSaysHowMuchIsLeft(t *testing.T) {
	origin, page := t.TempDir(), int64(pageSize)
	b := openBolt(t, origin, Options{bare: true})
	for i := range 20 {
		if err := write(b, Key, fmt.Sprintf("k%02d", i), "v"); err != nil {
			t.Fatal(err)
		}
	}
	m, err := b.metas()
	if err != nil {
		t.Fatal(err)
	}
	abandon(t, b)
	good, err := os.ReadFile(filepath.Join(origin, FileName))
	if err != nil {
		t.Fatal(err)
	}
	for size := 4 * page; size < m.size(); size += page {
		dir := t.TempDir()
		replace(t, dir, clone(good)[:size])
		_, err := OpenBolt(dir, Options{LowWater: -1, Timeout: time.Millisecond})
		if want := fmt.Sprintf("has %d bytes of %d", size, m.size()); !errors.Is(err, ErrCorrupt) || !strings.Contains(err.Error(), want) {
			t.Errorf("%d bytes: %v, want that the file %s", size, err, want)
		}
	}
}

// TestOlderPagesAreKeptUntilCompaction: files were made with the system's pages once.
func TestOlderPagesAreKeptUntilCompaction(t *testing.T) {
	dir := t.TempDir()
	path := filepath.Join(dir, FileName)
	db, err := bbolt.Open(path, 0o600, &bbolt.Options{PageSize: 4 << 10})
	if err != nil {
		t.Fatal(err)
	}
	if err := db.Close(); err != nil {
		t.Fatal(err)
	}
	pages := func() int {
		file, err := os.Open(path)
		if err != nil {
			t.Fatal(err)
		}
		defer file.Close()
		return pageSizeOf(file)
	}
	b := openBolt(t, dir, Options{})
	for i := range 100 {
		if err := write(b, Key, fmt.Sprintf("k%02d", i), "v"); err != nil {
			t.Fatal(err)
		}
	}
	if got := pages(); got != 4<<10 {
		t.Errorf("pages of %d bytes after writes", got)
	}
	if err := b.Close(); err != nil {
		t.Fatal(err)
	}
	if _, err := Compact(t.Context(), dir, Options{LowWater: -1}); err != nil {
		t.Fatal(err)
	}
	if got := pages(); got != pageSize {
		t.Errorf("pages of %d bytes after compaction", got)
	}
	b = openBolt(t, dir, Options{})
	n := 0
	if _, err := b.Load(ctx, []Table{Key}, func(Table, Record) error { n++; return nil }); err != nil || n != 100 {
		t.Errorf("%d records, %v", n, err)
	}
}
