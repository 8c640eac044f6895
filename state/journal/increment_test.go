package journal

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"testing"
)

// restored is the export of a backup's store.
func restored(t *testing.T, backup string) string {
	t.Helper()
	dir := t.TempDir()
	if err := Restore(ctx, backup, dir, nil); err != nil {
		t.Fatal(err)
	}
	b := openBolt(t, dir, Options{LowWater: -1})
	defer b.Close()
	return export(t, b)
}

// backUp makes the nth backup on top of the one before.
func backUp(t *testing.T, b *Bolt, dir string, n int) (string, ChangesBackup) {
	t.Helper()
	path := func(n int) string { return filepath.Join(dir, fmt.Sprintf("%04d.backup", n)) }
	before := ""
	if n > 0 {
		before = path(n - 1)
	}
	made, err := BackupChanges(ctx, b, path(n), before)
	if err != nil {
		t.Fatal(err)
	}
	return path(n), made
}

// TestBackupsWriteOnlyWhatHasChanged: each is the whole store of its moment.
func TestBackupsWriteOnlyWhatHasChanged(t *testing.T) {
	b, dir := filled(t, t.TempDir()), t.TempDir()
	defer b.Close()
	var texts, paths []string
	first := int64(0)
	for n := range 6 {
		if err := write(b, User, fmt.Sprint("user", n), "anna"); err != nil {
			t.Fatal(err)
		}
		path, made := backUp(t, b, dir, n)
		if n == 0 {
			first = made.Written
		} else if made.Written > first/4 {
			t.Errorf("backup %d has %d bytes of %d", n, made.Written, made.Size)
		}
		paths, texts = append(paths, path), append(texts, export(t, b))
	}
	for n, path := range paths {
		if restored(t, path) != texts[n] {
			t.Errorf("%s is another store", path)
		}
	}
	if needs, err := BackupNeeds(paths[5]); err != nil || !slices.Contains(needs, "0000.backup") {
		t.Errorf("needs %v, %v", needs, err)
	}
}

// TestBackupsBeginAnew: where the files of the one before have become too many bytes, or are not there, the new one
// needs none of them.
func TestBackupsBeginAnew(t *testing.T) {
	b, dir := openBolt(t, t.TempDir(), Options{LowWater: -1}), t.TempDir()
	defer b.Close()
	alone := func(path string) bool {
		needs, err := BackupNeeds(path)
		if err != nil {
			t.Fatal(err)
		}
		return len(needs) == 0
	}
	anew := 0
	for n := range 12 {
		var ops []Op
		for i := n; i < 20; i++ { // what one changes last is needed for ever
			ops = append(ops, Op{Table: Body, Key: fmt.Appendf(nil, "%02d", i),
				Value: bytes.Repeat([]byte{byte('a' + n)}, 40<<10)})
		}
		if _, err := b.Commit(ctx, []Batch{{Ops: ops}}); err != nil {
			t.Fatal(err)
		}
		path, _ := backUp(t, b, dir, n)
		if n > 0 && alone(path) {
			anew++
		}
	}
	if anew == 0 {
		t.Error("no backup began anew")
	}
	if err := os.Remove(filepath.Join(dir, "0011.backup")); err != nil {
		t.Fatal(err)
	}
	if path, _ := backUp(t, b, dir, 12); !alone(path) {
		t.Error("one without the one before needs others")
	}
}

// TestDamagedBackupsAreNotRestored: neither is one whose earlier files are damaged or gone.
func TestDamagedBackupsAreNotRestored(t *testing.T) {
	for name, harm := range map[string]func(first, second string) error{
		"a chunk":         func(first, _ string) error { return flip(first, 40_000) },
		"the table":       func(_, second string) error { return flip(second, -200) },
		"the footer":      func(_, second string) error { return flip(second, -30) },
		"cut":             func(_, second string) error { return os.Truncate(second, 20_000) },
		"a file is gone":  func(first, _ string) error { return os.Remove(first) },
		"a file is short": func(first, _ string) error { return os.Truncate(first, 1000) },
	} {
		b, dir := filled(t, t.TempDir()), t.TempDir()
		first, _ := backUp(t, b, dir, 0)
		second, _ := backUp(t, b, dir, 1)
		b.Close()
		if err := harm(first, second); err != nil {
			t.Fatal(err)
		}
		into := t.TempDir()
		if err := Restore(ctx, second, into, nil); !errors.Is(err, ErrCorrupt) && !errors.Is(err, os.ErrNotExist) {
			t.Errorf("%s: got %v", name, err)
		}
		onlyStore(t, into)
	}
}

// flip changes a bit of a file, counted from its end if at is negative.
func flip(path string, at int) error {
	data, err := os.ReadFile(path)
	if err != nil {
		return err
	}
	if at < 0 {
		at += len(data)
	}
	data[at] ^= 4
	return os.WriteFile(path, data, 0o600)
}

// TestKilledBackupsLeaveTheOnesBefore kills a process that changes its store and backs it up all the time.
func TestKilledBackupsLeaveTheOnesBefore(t *testing.T) {
	const child = "STAGEDOOR_TEST_BACKUP_DIR"
	if dir := os.Getenv(child); dir != "" {
		b := openBolt(t, filepath.Join(dir, "data"), Options{LowWater: -1})
		for n := 0; ; n++ {
			if err := write(b, Body, fmt.Sprintf("%06d", n), string(bytes.Repeat([]byte{byte(n)}, 100<<10))); err != nil {
				t.Fatal(err)
			}
			backUp(t, b, filepath.Join(dir, "backups"), n)
			fmt.Println("backed up", n)
		}
	}
	dir := t.TempDir()
	cmd := exec.Command(os.Args[0], "-test.run=^TestKilledBackupsLeaveTheOnesBefore$")
	cmd.Env = append(os.Environ(), child+"="+dir)
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	said := 0
	for lines := bufio.NewScanner(out); lines.Scan(); said++ {
		if said == 8 { // it is in the middle of the next one
			if err := cmd.Process.Kill(); err != nil {
				t.Fatal(err)
			}
		}
	}
	if err := cmd.Wait(); err == nil {
		t.Error("the child ended by itself")
	}
	made, err := filepath.Glob(filepath.Join(dir, "backups", "*.backup"))
	if err != nil || len(made) < said {
		t.Fatalf("there are %d backups of %d that were reported, %v", len(made), said, err)
	}
	for n, path := range made {
		into := t.TempDir()
		if err := Restore(ctx, path, into, nil); err != nil {
			t.Fatal(err)
		}
		b := openBolt(t, into, Options{LowWater: -1})
		if _, err := b.Get(ctx, Body, fmt.Appendf(nil, "%06d", n)); err != nil {
			t.Errorf("%s: %v", path, err)
		}
		b.Close()
	}
}
