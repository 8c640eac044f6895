//go:build linux || darwin

package journal

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
)

// alone runs a test in a process of its own, since a limit on files is one on those of
// the go tool, too, and tells whether this is that process.
func alone(t *testing.T) bool {
	t.Helper()
	const mark = "STAGEDOOR_TEST_ALONE"
	if os.Getenv(mark) != "" {
		return true
	}
	test := exec.Command(os.Args[0], "-test.run=^"+t.Name()+"$", "-test.v")
	test.Env = append(os.Environ(), mark+"=1")
	out, err := test.CombinedOutput()
	if err != nil || !strings.Contains(string(out), "--- PASS: "+t.Name()) {
		t.Errorf("%v\n%s", err, out)
	}
	return false
}

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
	if !alone(t) {
		return
	}
	dir := t.TempDir()
	b := openBolt(t, dir, Options{})
	if err := write(b, Key, "first", "v"); err != nil {
		t.Fatal(err)
	}
	free := limitFiles(t, 16<<20)
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

// TestCheckpointWithoutRoomIsNoLoss: commits go on in the log until that is full, and
// nothing is lost by closing and opening meanwhile.
func TestCheckpointWithoutRoomIsNoLoss(t *testing.T) {
	if !alone(t) {
		return
	}
	for _, closes := range []bool{false, true} {
		dir := t.TempDir()
		o := Options{checkpointAfter: 256 << 10, redoSize: 2 << 20}
		b := openBolt(t, dir, o)
		value := strings.Repeat("v", 32<<10)
		var kept []string
		put := func() error {
			key := fmt.Sprintf("k%04d", len(kept))
			err := write(b, Body, key, value)
			if err == nil {
				kept = append(kept, key)
			}
			return err
		}
		free := limitFiles(t, 8<<20)
		before, refused := 0, 0
		for refused < 5 {
			err := put()
			switch {
			case errors.Is(err, ErrReadOnly) && !errors.Is(err, ErrPoisoned):
				refused++
			case err != nil || refused > 0:
				t.Fatalf("after %d commits, %d refused: %v", len(kept), refused, err)
			case b.running != nil && b.running.ended() && b.running.err != nil:
				before++
			}
		}
		if before == 0 { // how many more there are is up to the speed of the machine
			t.Error("no commit went on in the log after the checkpoint had failed")
		}
		if r, err := b.Get(ctx, Body, []byte(kept[len(kept)-1])); err != nil || string(r.Value) != value {
			t.Errorf("reading: %v", err)
		}
		if closes {
			if err := b.Close(); !errors.Is(err, ErrReadOnly) {
				t.Errorf("Close: %v", err)
			}
			b = openBolt(t, dir, o)
			n := 0
			if _, err := b.Load(ctx, []Table{Body}, func(Table, Record) error { n++; return nil }); err != nil || n != len(kept) {
				t.Errorf("opened without room: %d records, %v, want %d", n, err, len(kept))
			}
			for range 3 {
				if err := put(); !errors.Is(err, ErrReadOnly) || errors.Is(err, ErrPoisoned) {
					t.Errorf("writing to it: %v", err)
				}
			}
		}
		free()
		for range 100 {
			if err := put(); err != nil {
				t.Fatalf("with room again: %v", err)
			}
		}
		abandon(t, b)
		b = openBolt(t, dir, Options{})
		for _, key := range kept {
			if r, err := b.Get(ctx, Body, []byte(key)); err != nil || string(r.Value) != value {
				t.Errorf("%s was acknowledged: %v", key, err)
			}
		}
		if err := b.Close(); err != nil {
			t.Error(err)
		}
		onlyStore(t, dir, FileName)
	}
}

// TestCompactWithoutRoomForTheLog leaves the file and the log as they are: a copy of
// the file alone, of as many records, would take the place of both.
func TestCompactWithoutRoomForTheLog(t *testing.T) {
	if !alone(t) {
		return
	}
	dir := t.TempDir()
	o := Options{checkpointAfter: 1 << 20, redoSize: 2 << 20}
	b := openBolt(t, dir, o)
	value := strings.Repeat("v", 300<<10)
	for _, v := range []string{"old" + value, "new" + value} {
		if err := write(b, Body, "k", v); err != nil {
			t.Fatal(err)
		}
		if v[:3] == "new" {
			continue
		}
		b.writing.Lock()
		if err := b.flush(); err != nil {
			t.Fatal(err)
		}
		b.writing.Unlock()
	}
	abandon(t, b)
	info, err := os.Stat(filepath.Join(dir, FileName))
	if err != nil {
		t.Fatal(err)
	}
	free := limitFiles(t, uint64(info.Size()))
	if _, err := Compact(ctx, dir, Options{LowWater: -1}); !errors.Is(err, ErrReadOnly) {
		t.Errorf("got %v, want ErrReadOnly", err)
	}
	free()
	if r, err := openBolt(t, dir, o).Get(ctx, Body, []byte("k")); err != nil || string(r.Value) != "new"+value {
		t.Errorf("got %.3q, %v", r.Value, err)
	}
}
