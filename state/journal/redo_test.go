package journal

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"stagedoor/state/journal/redo"
)

// TestWhatIsDurableIsThereWhereverItIs compares the store with one in memory while
// its changes go into the file, are on their way or are in the redo log only, and
// over ends of the process.
func TestWhatIsDurableIsThereWhereverItIs(t *testing.T) {
	for seed := range uint64(6) {
		random := rand.New(rand.NewPCG(seed, 7))
		dir, o := t.TempDir(), Options{checkpointAfter: 2 << 10, redoSize: 8 << 10}
		if seed%3 == 0 {
			o = Options{} // nothing reaches the file before the end
		}
		b, model := openBolt(t, dir, o), NewMemory()
		key := func() []byte { return fmt.Appendf(nil, "%d", random.IntN(200)) }
		for step := range 400 {
			var batch Batch
			table := tables[random.IntN(3)]
			for range 1 + random.IntN(6) {
				op := Op{Kind: OpKind(random.IntN(2)), Table: table, Key: key(),
					Value: []byte(strings.Repeat("v", random.IntN(300)))}
				if random.IntN(40) == 0 {
					op.Kind, op.Key = DeletePrefix, op.Key[:1]
				}
				batch.Ops = append(batch.Ops, op)
			}
			if random.IntN(3) == 0 {
				batch.Pre = []Cond{{Table: table, Key: key(), Rev: uint64(random.IntN(3))}}
			}
			got, err := b.Commit(ctx, []Batch{batch})
			want, wantErr := model.Commit(ctx, []Batch{batch})
			if got != want || !errors.Is(err, ErrConflict) && err != nil || (err == nil) != (wantErr == nil) {
				t.Fatalf("seed %d, step %d: %d, %v, want %d, %v", seed, step, got, err, want, wantErr)
			}
			if from, to := key(), key(); random.IntN(4) == 0 {
				same(t, b, model, table, from, to, random.IntN(20))
			}
			switch random.IntN(50) {
			case 0:
				abandon(t, b)
				b = openBolt(t, dir, o)
			case 1:
				if err := b.Close(); err != nil {
					t.Fatal(err)
				}
				onlyStore(t, dir, FileName)
				b = openBolt(t, dir, o)
			}
		}
		for _, table := range tables[:3] {
			same(t, b, model, table, nil, nil, 0)
		}
	}
}

// same fails if the two stores do not hold the same.
func same(t *testing.T, b *Bolt, model *Memory, table Table, from, to []byte, limit int) {
	t.Helper()
	list := func(s Store) string {
		var text strings.Builder
		var keys [][]byte
		if err := s.Range(ctx, table, from, to, limit, func(r Record) error {
			fmt.Fprintf(&text, "%s %d %s\n", r.Key, r.Rev, r.Value)
			keys = append(keys, clone(r.Key))
			return nil
		}); err != nil {
			t.Fatal(err)
		}
		for _, key := range keys {
			r, err := s.Get(ctx, table, key)
			if err != nil {
				t.Fatal(err)
			}
			fmt.Fprintf(&text, "%s %d %s\n", r.Key, r.Rev, r.Value)
		}
		return text.String()
	}
	if got, want := list(b), list(model); got != want {
		t.Fatalf("%s from %q to %q, %d of them:\n%swant\n%s", table, from, to, limit, got, want)
	}
}

// logged is a directory as a process leaves it that was killed after n commits, none
// of which is in the file. ends are the ends of their frames.
func logged(t *testing.T, n int) (dir string, ends []int64) {
	t.Helper()
	dir = t.TempDir()
	b := openBolt(t, dir, Options{})
	for i := range n {
		if err := write(b, Key, fmt.Sprintf("k%03d", i), strings.Repeat("v", 50+i)); err != nil {
			t.Fatal(err)
		}
		ends = append(ends, redo.HeaderSize+b.log.Used())
	}
	abandon(t, b)
	return dir, ends
}

// TestLogIsCutBackToItsLastWholeCommit changes logs at every place: nothing that is
// whole is lost without a word, nothing is made up, and the rest is there.
func TestLogIsCutBackToItsLastWholeCommit(t *testing.T) {
	const commits = 12
	origin, ends := logged(t, commits)
	good, err := os.ReadFile(filepath.Join(origin, redo.Names[0]))
	if err != nil {
		t.Fatal(err)
	}
	file, err := os.ReadFile(filepath.Join(origin, FileName))
	if err != nil {
		t.Fatal(err)
	}
	last, end := ends[commits-2], ends[commits-1]
	try := func(name string, log []byte, want int, cutBack bool) {
		t.Helper()
		dir := t.TempDir()
		replace(t, dir, file)
		if err := os.WriteFile(filepath.Join(dir, redo.Names[0]), log, 0o600); err != nil {
			t.Fatal(err)
		}
		for range 2 { // the second finds what the first made of it
			b, err := OpenBolt(dir, Options{LowWater: -1, Timeout: time.Millisecond})
			if want < 0 {
				if !errors.Is(err, ErrCorrupt) {
					t.Fatalf("%s: got %v, want ErrCorrupt", name, err)
				}
				continue
			}
			if err != nil {
				t.Fatalf("%s: %v", name, err)
			}
			n := 0
			if _, err := b.Load(ctx, []Table{Key}, func(Table, Record) error { n++; return nil }); err != nil || n != want {
				t.Errorf("%s: %d records, %v, want %d", name, n, err, want)
			}
			if b.Stats().CutBack != cutBack {
				t.Errorf("%s: CutBack is %v", name, !cutBack)
			}
			cutBack = false
			abandon(t, b)
		}
	}
	try("as it was", good, commits, false)
	step := int64(3)
	if testing.Short() {
		step = 9
	}
	for at := last; at < end; at += step {
		torn := clone(good)
		clear(torn[at:])
		if !bytes.Equal(torn, good) {
			try(fmt.Sprintf("all zeros from %d", at-last), torn, commits-1, at >= last+16)
		}
		flipped := clone(good)
		flipped[at] ^= 4
		try(fmt.Sprintf("the last frame, byte %d", at-last), flipped, commits-1, at >= last+4 &&
			(at < last+8 || at >= last+16))
	}
	step = 7
	if testing.Short() {
		step = 61
	}
	for at := int64(redo.HeaderSize); at < last; at += step {
		flipped := clone(good)
		flipped[at] ^= 4
		try(fmt.Sprintf("an earlier frame, byte %d", at), flipped, -1, false)
	}
	for at := range redo.HeaderSize - 4 {
		flipped := clone(good)
		flipped[at] ^= 4
		try(fmt.Sprintf("the header, byte %d", at), flipped, -1, false)
	}
	for _, size := range []int64{0, 10, redo.HeaderSize} {
		try(fmt.Sprintf("cut to %d bytes", size), good[:size], 0, false)
	}
	try("cut in the last frame", good[:end-10], commits-1, true)
}

// TestDamagedPageThatTheLogMakesGood: what the file lost follows in the log, so nothing
// was cut back.
func TestDamagedPageThatTheLogMakesGood(t *testing.T) {
	dir, _ := logged(t, 5)
	path := filepath.Join(dir, FileName)
	data, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	m, err := readMetas(bytes.NewReader(data), pageSize)
	if err != nil {
		t.Fatal(err)
	}
	data[int(m.last()%2)*pageSize+pageHeader+metaSum] ^= 1
	replace(t, dir, data)
	b := openBolt(t, dir, Options{})
	n := 0
	if _, err := b.Load(ctx, []Table{Key}, func(Table, Record) error { n++; return nil }); err != nil || n != 5 || b.Stats().CutBack {
		t.Errorf("%d records, %v, CutBack %v", n, err, b.Stats().CutBack)
	}
}

// TestLogOfAnotherStoreIsRefused: its commits belong to other tables, and its own
// store may miss them.
func TestLogOfAnotherStoreIsRefused(t *testing.T) {
	dir, _ := logged(t, 3)
	other, _ := logged(t, 3)
	path := filepath.Join(dir, FileName)
	for _, change := range []func() error{
		func() error { return os.Rename(filepath.Join(other, FileName), path) },
		func() error { return os.Remove(path) },
	} {
		if err := change(); err != nil {
			t.Fatal(err)
		}
		if _, err := OpenBolt(dir, Options{LowWater: -1}); !errors.Is(err, ErrCorrupt) || !strings.Contains(err.Error(), redo.Names[0]) {
			t.Errorf("got %v, want one that names the log", err)
		}
	}
	if _, err := Import(ctx, dir, strings.NewReader(""), nil); !errors.Is(err, ErrCorrupt) {
		t.Errorf("an import beside it: %v", err)
	}
}

// TestBackupInTheFilesPlace: what follows it in the log is taken up; where there is a
// gap it is refused.
func TestBackupInTheFilesPlace(t *testing.T) {
	dir := t.TempDir()
	b := openBolt(t, dir, Options{})
	early, late := filepath.Join(t.TempDir(), "early.db"), filepath.Join(t.TempDir(), "late.db")
	for i, path := range []string{early, late, ""} {
		if err := write(b, Key, fmt.Sprint("k", i), "v"); err != nil {
			t.Fatal(err)
		}
		if path == "" {
			continue
		}
		if _, err := BackupFile(ctx, b, path); err != nil {
			t.Fatal(err)
		}
	}
	for range 3 { // both files of the log are written over
		if err := write(b, Key, "k3", "v"); err != nil {
			t.Fatal(err)
		}
		b.writing.Lock()
		if err := b.flush(); err != nil {
			t.Fatal(err)
		}
		b.writing.Unlock()
	}
	if err := write(b, Key, "k4", "v"); err != nil {
		t.Fatal(err)
	}
	again := filepath.Join(t.TempDir(), "again.db")
	if _, err := BackupFile(ctx, b, again); err != nil {
		t.Fatal(err)
	}
	if err := write(b, Key, "k5", "v"); err != nil {
		t.Fatal(err)
	}
	abandon(t, b)
	for path, want := range map[string]int{early: -1, late: -1, again: 6} {
		data, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		replace(t, dir, data)
		r, err := ReadBolt(filepath.Join(dir, FileName), Options{})
		if want < 0 {
			if !errors.Is(err, ErrCorrupt) {
				t.Errorf("%s: got %v, want ErrCorrupt", filepath.Base(path), err)
			}
			continue
		}
		if err != nil {
			t.Fatal(err)
		}
		n := 0
		if _, err := r.Load(ctx, []Table{Key}, func(Table, Record) error { n++; return nil }); err != nil || n != want {
			t.Errorf("%s: %d records, %v, want %d", filepath.Base(path), n, err, want)
		}
		r.Close()
	}
}

// TestCommitThatIsLongerThanTheLog is taken all the same, and the log is no longer
// after the next turn.
func TestCommitThatIsLongerThanTheLog(t *testing.T) {
	dir, o := t.TempDir(), Options{redoSize: 4 << 10, checkpointAfter: 1 << 10}
	b := openBolt(t, dir, o)
	large := strings.Repeat("v", 100<<10)
	for i := range 3 {
		for _, value := range []string{"small", large} {
			if err := write(b, Body, fmt.Sprint(value[:1], i), value); err != nil {
				t.Fatal(err)
			}
		}
	}
	abandon(t, b)
	b = openBolt(t, dir, o)
	for i := range 20 {
		if err := write(b, Key, fmt.Sprint(i), strings.Repeat("v", 500)); err != nil {
			t.Fatal(err)
		}
	}
	if r, err := b.Get(ctx, Body, []byte("v2")); err != nil || string(r.Value) != large {
		t.Errorf("a long one: %v", err)
	}
	b.writing.Lock()
	_ = b.flush()
	b.writing.Unlock()
	for _, path := range redo.Paths(b.dir) {
		if info, err := os.Stat(path); err != nil || info.Size() > 8<<10 {
			t.Errorf("%s has %d bytes, %v", filepath.Base(path), info.Size(), err)
		}
	}
}

// FuzzReadChanges is about what a frame whose sum is right may hold: it says what it
// is, or it is refused.
func FuzzReadChanges(f *testing.F) {
	d, err := newDraft(snapshot{}, []Batch{{Ops: []Op{
		{Table: Key, Key: []byte("k"), Value: []byte("v"), New: true}, {Kind: Delete, Table: Ledger, Key: []byte("l")},
	}}})
	if err != nil {
		f.Fatal(err)
	}
	f.Add(redo.Changes(d.frame))
	f.Add([]byte("\x03key\x01k\x00"))
	f.Fuzz(func(t *testing.T, changes []byte) {
		var o overlay
		if addCommit(&o, redo.Commit{LSN: 1, Changes: changes}) != nil {
			return
		}
		again := draft{}
		for i := range o.tables {
			for _, c := range collect(i, nil, nil, &o) {
				if c.sealed == nil {
					again.remove(i, c.key)
					continue
				}
				again.key(i, c.key)
				again.frame = append(binary.AppendUvarint(again.frame, uint64(1+len(c.sealed))), c.sealed...)
			}
		}
		if len(again.frame) > len(changes) {
			t.Errorf("%d bytes make changes of %d", len(changes), len(again.frame))
		}
	})
}
