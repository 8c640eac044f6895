//go:build unix

package journal

import (
	"errors"
	"fmt"
	"strings"
	"syscall"
	"testing"
)

// limitFiles makes every file of this process as good as on a full disk beyond n
// bytes, until the test ends or free is called.
func limitFiles(t *testing.T, n uint64) (free func()) {
	t.Helper()
	var before syscall.Rlimit
	if err := syscall.Getrlimit(syscall.RLIMIT_FSIZE, &before); err != nil {
		t.Fatal(err)
	}
	if err := syscall.Setrlimit(syscall.RLIMIT_FSIZE, &syscall.Rlimit{Cur: n, Max: before.Max}); err != nil {
		t.Fatal(err)
	}
	free = func() {
		if err := syscall.Setrlimit(syscall.RLIMIT_FSIZE, &before); err != nil {
			t.Error(err)
		}
	}
	t.Cleanup(free)
	return free
}

// TestFullDiskLosesNothingAndIsNotForEver: writes fail as ErrReadOnly, reads go
// on, what was acknowledged is there, and with room again writes are too.
func TestFullDiskLosesNothingAndIsNotForEver(t *testing.T) {
	dir := t.TempDir()
	b := openBolt(t, dir, Options{})
	if err := write(b, Key, "first", "v"); err != nil {
		t.Fatal(err)
	}
	free := limitFiles(t, 16<<20) // the test's own log must fit in
	value := strings.Repeat("v", 200_000)
	var kept []string
	refused := 0
	for i := range 200 {
		key := fmt.Sprintf("k%03d", i)
		switch err := write(b, Body, key, value); {
		case err == nil:
			kept = append(kept, key)
		case errors.Is(err, ErrReadOnly) && !errors.Is(err, ErrPoisoned):
			refused++
		default:
			t.Fatalf("write %d: got %v, want ErrReadOnly", i, err)
		}
	}
	if len(kept) < 10 || refused < 10 {
		t.Fatalf("%d kept, %d refused: nothing was tested", len(kept), refused)
	}
	if r, err := b.Get(ctx, Body, []byte(kept[0])); err != nil || string(r.Value) != value {
		t.Errorf("reading: %v", err)
	}
	free()
	if err := write(b, Body, "later", value); err != nil {
		t.Errorf("with room again: %v", err)
	}
	abandon(t, b)
	b = openBolt(t, dir, Options{})
	for _, key := range append(kept, "later") {
		if r, err := b.Get(ctx, Body, []byte(key)); err != nil || string(r.Value) != value {
			t.Errorf("%s was acknowledged: %v", key, err)
		}
	}
	n := 0
	if err := b.Range(ctx, Body, nil, nil, 0, func(Record) error { n++; return nil }); err != nil || n != len(kept)+1 {
		t.Errorf("%d records, %v, want %d: a refused one is there", n, err, len(kept)+1)
	}
}
