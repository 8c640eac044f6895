package journal

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"stagedoor/state/journal/redo"
)

// filled is a store with records and holes.
func filled(t *testing.T, dir string) *Bolt {
	t.Helper()
	b := openBolt(t, dir, Options{})
	var ops []Op
	for i := range 3000 {
		ops = append(ops, Op{Table: []Table{Key, Body, Ledger}[i%3], Key: fmt.Appendf(nil, "%05d", i),
			Value: bytes.Repeat([]byte("v"), i%700)})
	}
	for i := range 2000 {
		ops = append(ops, Op{Kind: Delete, Table: []Table{Key, Body, Ledger}[i%3], Key: fmt.Appendf(nil, "%05d", i)})
	}
	if _, err := b.Commit(ctx, []Batch{{Ops: ops}}); err != nil {
		t.Fatal(err)
	}
	return b
}

func export(t *testing.T, s Store) string {
	t.Helper()
	var text strings.Builder
	if _, err := Export(ctx, s, &text); err != nil {
		t.Fatal(err)
	}
	return text.String()
}

// onlyStore fails if something else was left in the directory.
func onlyStore(t *testing.T, dir string, names ...string) {
	t.Helper()
	entries, err := os.ReadDir(dir)
	if err != nil || len(entries) != len(names) {
		t.Errorf("files: got %v, %v, want %v", entries, err, names)
	}
}

func TestCompactKeepsRecordsAndGivesBackSpace(t *testing.T) {
	dir := t.TempDir()
	b := filled(t, dir)
	for _, value := range []string{strings.Repeat("v", 16<<10), ""} { // pages that are free in the end
		for i := range 200 {
			if err := write(b, Key, fmt.Sprintf("large%03d", i), value); err != nil {
				t.Fatal(err)
			}
		}
	}
	want, lsn := export(t, b), b.Stats().LSN
	b.Close()
	sizes, err := Compact(ctx, dir, Options{LowWater: -1})
	if err != nil || sizes.After >= sizes.Before {
		t.Fatalf("got %+v, %v", sizes, err)
	}
	onlyStore(t, dir, FileName)
	b = openBolt(t, dir, Options{})
	if got := export(t, b); got != want || b.Stats().LSN != lsn || b.Stats().Size != sizes.After {
		t.Errorf("the compacted store differs: LSN %d, %d bytes", b.Stats().LSN, b.Stats().Size)
	}
	if _, err := Compact(ctx, dir, Options{Timeout: time.Millisecond}); !errors.Is(err, ErrLocked) {
		t.Errorf("while it is open: %v", err)
	}
	if _, err := Compact(ctx, t.TempDir(), Options{}); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("where there is none: %v", err)
	}
}

// TestNobodyWritesToAReplacedFile: who waited for the lock while the file was
// replaced gets the new one.
func TestNobodyWritesToAReplacedFile(t *testing.T) {
	for round := range 8 {
		dir := t.TempDir()
		filled(t, dir).Close()
		var wg sync.WaitGroup
		wg.Go(func() {
			if _, err := Compact(ctx, dir, Options{LowWater: -1}); err != nil {
				t.Error(err)
			}
		})
		wg.Go(func() {
			b, err := OpenBolt(dir, Options{LowWater: -1})
			if err != nil {
				t.Error(err)
				return
			}
			if err := errors.Join(write(b, User, "acknowledged", "v"), b.Close()); err != nil {
				t.Error(err)
			}
		})
		wg.Wait()
		if _, err := openBolt(t, dir, Options{}).Get(ctx, User, []byte("acknowledged")); err != nil {
			t.Fatalf("round %d: %v", round, err)
		}
	}
}

// TestBackupHasWhatOnlyTheLogHas: of a store that is only read, after its process was
// killed, and of one in use.
func TestBackupHasWhatOnlyTheLogHas(t *testing.T) {
	dir := t.TempDir()
	b := filled(t, dir)
	abandon(t, b)
	check := func(name string, s *Bolt, wantRecords int) {
		t.Helper()
		path := filepath.Join(t.TempDir(), "backup.db")
		if _, err := BackupFile(ctx, s, path); err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		onlyStore(t, filepath.Dir(path), "backup.db")
		copied, err := ReadBolt(path, Options{})
		if err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		defer copied.Close()
		got, want := export(t, copied), export(t, s)
		if got != want || copied.Stats().LSN != s.Stats().LSN || strings.Count(got, "\n") != wantRecords+1 {
			t.Errorf("%s: the copy differs: LSN %d, %d lines", name, copied.Stats().LSN, strings.Count(got, "\n"))
		}
		path = filepath.Join(t.TempDir(), "changes.backup")
		if _, err := BackupChanges(ctx, s, path, ""); err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		onlyStore(t, filepath.Dir(path), "changes.backup")
		if restored(t, path) != export(t, s) {
			t.Errorf("%s: the incremental backup differs", name)
		}
	}
	r, err := ReadBolt(filepath.Join(dir, FileName), Options{})
	if err != nil {
		t.Fatal(err)
	}
	check("only read", r, 1000)
	r.Close()
	b = openBolt(t, dir, Options{})
	if err := write(b, User, "more", "v"); err != nil {
		t.Fatal(err)
	}
	check("in use", b, 1001)
	beside := filepath.Join(dir, "backup.db")
	size, err := BackupFile(ctx, b, beside)
	if err != nil {
		t.Fatal(err)
	}
	if r, err = ReadBolt(beside, Options{}); err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	if got := r.Stats().Size; got != size {
		t.Errorf("beside the store's log a backup has %d bytes, want %d", got, size)
	}
}

// TestCompactLeavesTheLogOfItsSuccessor: who opens the new file as soon as it has its
// name has a log that is not Compact's to remove.
func TestCompactLeavesTheLogOfItsSuccessor(t *testing.T) {
	dir := t.TempDir()
	filled(t, dir).Close()
	old := openBolt(t, dir, Options{})
	if _, err := old.compact(ctx, filepath.Join(dir, FileName)); err != nil {
		t.Fatal(err)
	}
	successor := openBolt(t, dir, Options{})
	if err := errors.Join(write(successor, User, "acknowledged", "v"), old.Close()); err != nil {
		t.Fatal(err)
	}
	abandon(t, successor)
	if _, err := openBolt(t, dir, Options{}).Get(ctx, User, []byte("acknowledged")); err != nil {
		t.Error(err)
	}
}

func TestBackupIsAStoreMadeWhileOthersWrite(t *testing.T) {
	dir := t.TempDir()
	b := filled(t, dir)
	path := filepath.Join(t.TempDir(), "made", "backup.db")
	done, writing := make(chan struct{}), make(chan struct{})
	var wg sync.WaitGroup
	wg.Go(func() {
		for i := 0; ; i++ {
			select {
			case <-done:
				return
			default:
			}
			key := fmt.Appendf(nil, "%06d", i)
			_, err := b.Commit(ctx, []Batch{{Ops: []Op{{Table: Meta, Key: key}, {Table: User, Key: key}}}})
			if err != nil {
				t.Error(err)
			}
			if i == 3 {
				close(writing)
			}
		}
	})
	<-writing
	size, err := BackupFile(ctx, b, path)
	close(done)
	wg.Wait()
	if err != nil || size == 0 {
		t.Fatalf("%d bytes, %v", size, err)
	}
	onlyStore(t, filepath.Dir(path), "backup.db")
	r, err := ReadBolt(path, Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	counts := map[Table]int{}
	if _, err := r.Load(ctx, Tables(), func(table Table, _ Record) error { counts[table]++; return nil }); err != nil {
		t.Error(err)
	}
	if counts[Meta] < 4 || counts[Meta] != counts[User] || counts[Key]+counts[Body]+counts[Ledger] != 1000 {
		t.Errorf("half a commit is there: %v", counts)
	}
	if err := write(r, Key, "k", "v"); !errors.Is(err, ErrReadOnly) {
		t.Errorf("writing to it: %v", err)
	}
	if _, err := BackupFile(ctx, b, path); !errors.Is(err, os.ErrExist) {
		t.Errorf("over another one: %v", err)
	}
	memory := NewMemory()
	if _, err := BackupFile(ctx, memory, filepath.Join(dir, "m.db")); err == nil {
		t.Error("memory was backed up")
	}
	onlyStore(t, dir, FileName, redo.Names[0])
}

func TestOnlyReadMeansUnchanged(t *testing.T) {
	dir := t.TempDir()
	abandon(t, filled(t, dir))
	path := filepath.Join(dir, FileName)
	before, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	b, err := ReadBolt(path, Options{})
	if err != nil {
		t.Fatal(err)
	}
	if err := b.Close(); err != nil {
		t.Fatal(err)
	}
	if after, err := os.ReadFile(path); err != nil || !bytes.Equal(after, before) {
		t.Errorf("the file changed, %v", err)
	}
	for name, path := range map[string]string{"a directory": dir, "nothing": filepath.Join(dir, "none")} {
		if _, err := ReadBolt(path, Options{}); err == nil {
			t.Errorf("%s was read", name)
		}
	}
}

func TestImportMakesAWholeStoreOrNone(t *testing.T) {
	b := filled(t, t.TempDir())
	text := export(t, b)
	dir := filepath.Join(t.TempDir(), "new")
	if _, err := Import(ctx, dir, strings.NewReader(text[:len(text)/2]), nil); !errors.Is(err, ErrImport) {
		t.Errorf("half of it: %v", err)
	}
	onlyStore(t, dir)
	wrong := errors.New("wrong")
	if _, err := Import(ctx, dir, strings.NewReader(text), func(Store) error { return wrong }); !errors.Is(err, wrong) {
		t.Errorf("what is wrong with it: %v", err)
	}
	onlyStore(t, dir)
	h, err := Import(ctx, dir, strings.NewReader(text), nil)
	if err != nil || h.Records != 1000 {
		t.Fatalf("%+v, %v", h, err)
	}
	onlyStore(t, dir, FileName)
	if again := export(t, openBolt(t, dir, Options{})); again != text {
		t.Error("it exports other bytes")
	}
	if _, err := Import(ctx, dir, strings.NewReader(text), nil); err == nil {
		t.Error("into a directory that has a store")
	}
}

func FuzzImport(f *testing.F) {
	m := NewMemory()
	if _, err := m.Commit(ctx, []Batch{{Ops: []Op{{Table: Key, Key: []byte("k"), Value: []byte(`{}`)}, {Table: Ledger, Key: []byte{0, 1}, Value: []byte{0xff}}}}}); err != nil {
		f.Fatal(err)
	}
	var text bytes.Buffer
	if _, err := Export(ctx, m, &text); err != nil {
		f.Fatal(err)
	}
	f.Add(text.Bytes())
	f.Add([]byte("{}\n"))
	f.Fuzz(func(t *testing.T, text []byte) {
		m := NewMemory()
		if _, err := Fill(ctx, m, bytes.NewReader(text)); err != nil {
			return
		}
		if _, err := Export(ctx, m, &bytes.Buffer{}); err != nil {
			t.Error(err)
		}
	})
}
