package spool

import (
	"bytes"
	"errors"
	"io"
	"os"
	"strings"
	"testing"
	"testing/iotest"
)

var errUseless = errors.New("of no use")

func TestOnlyWholeFilesWithinTheLimitAreRead(t *testing.T) {
	small, large := strings.Repeat("a", 100), strings.Repeat("b", maxInMemory+1)
	for _, c := range []struct {
		name, data string
		limit      int64
		check      error
		onDisk     bool
		want       error
	}{
		{"empty", "", 10, errUseless, false, nil},
		{"small", small, 100, errUseless, false, nil},
		{"a byte too many", small, 99, nil, false, ErrTooLarge},
		{"the largest size that is held in memory", large[1:], 1 << 20, errUseless, false, nil},
		{"large", large, maxInMemory + 1, nil, true, nil},
		{"large and too large", large + large, maxInMemory + 1, nil, false, ErrTooLarge},
		{"large and of no use", large, 1 << 20, errUseless, false, errUseless},
	} {
		dir := t.TempDir()
		f, err := Read(iotest.HalfReader(strings.NewReader(c.data)), c.limit, dir, func(head []byte) error {
			if !strings.HasPrefix(c.data, string(head)) || len(head) <= maxInMemory {
				t.Errorf("%s: checked %d bytes", c.name, len(head))
			}
			return c.check
		})
		if left, _ := os.ReadDir(dir); len(left) != 0 {
			t.Errorf("%s: %v is there under a name", c.name, left)
		}
		if !errors.Is(err, c.want) {
			t.Errorf("%s: %v, want %v", c.name, err, c.want)
		}
		if err != nil {
			continue
		}
		for range 2 {
			if got, err := io.ReadAll(
				f.Reader(),
			); err != nil || !bytes.Equal(got, []byte(c.data)) || f.Len() != int64(len(c.data)) ||
				(f.disk != nil) != c.onDisk {
				t.Errorf("%s: %d bytes, %v, on disk %v", c.name, len(got), err, f.disk != nil)
			}
		}
		if err := errors.Join(f.Close(), f.Close()); err != nil {
			t.Errorf("%s: %v", c.name, err)
		}
	}
}

func TestAnUploadThatBreaksLeavesNothing(t *testing.T) {
	dir, broken := t.TempDir(), errors.New("broken")
	r := io.MultiReader(strings.NewReader(strings.Repeat("a", 2*maxInMemory)), iotest.ErrReader(broken))
	if _, err := Read(r, 1<<20, dir, func([]byte) error { return nil }); !errors.Is(err, broken) {
		t.Errorf("%v", err)
	}
	if left, _ := os.ReadDir(dir); len(left) != 0 {
		t.Errorf("%v is left", left)
	}
}
