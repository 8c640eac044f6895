package journal

import (
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"go.etcd.io/bbolt"
)

var ctx = context.Background()

func openBolt(t testing.TB, dir string, o Options) *Bolt {
	t.Helper()
	if o.LowWater == 0 {
		o.LowWater = -1
	}
	b, err := OpenBolt(dir, o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { b.Close() })
	return b
}

func write(b *Bolt, table Table, key, value string) error {
	_, err := b.Commit(ctx, []Batch{{Ops: []Op{{Table: table, Key: []byte(key), Value: []byte(value)}}}})
	return err
}

// waitingWriter lets a write wait until it is released.
type waitingWriter struct{ begun, release chan struct{} }

func (w waitingWriter) Write(b []byte) (int, error) {
	select {
	case w.begun <- struct{}{}:
	default:
	}
	<-w.release
	return len(b), nil
}

// TestABackupHoldsUpNoCommitWhileTheFileGrows: a backup reads for as long as it takes to write it.
func TestABackupHoldsUpNoCommitWhileTheFileGrows(t *testing.T) {
	b := openBolt(t, t.TempDir(), Options{})
	w := waitingWriter{make(chan struct{}, 1), make(chan struct{})}
	finish := sync.OnceFunc(func() { close(w.release) })
	defer finish()
	done := make(chan error, 1)
	go func() { done <- b.Backup(ctx, w) }()
	<-w.begun
	// Each of them takes more than the redo log holds before it is copied into the file.
	large := strings.Repeat("x", 12<<20)
	for i := range 5 {
		committed := make(chan error, 1)
		go func() { committed <- write(b, Body, fmt.Sprint("k", i), large) }()
		select {
		case err := <-committed:
			if err != nil {
				t.Fatal(err)
			}
		case <-time.After(20 * time.Second):
			t.Fatal("a commit waits for the backup")
		}
	}
	finish()
	if err := <-done; err != nil {
		t.Error(err)
	}
}

func TestOpenedAgainHasEverything(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "made", "by", "open")
	for _, unclean := range []bool{false, true} {
		b := openBolt(t, dir, Options{})
		lsn := b.Stats().LSN
		for i := range 500 {
			if err := write(b, Key, fmt.Sprint("k", i), fmt.Sprint("v", i)); err != nil {
				t.Fatal(err)
			}
		}
		if unclean {
			abandon(t, b)
		} else if err := b.Close(); err != nil {
			t.Fatal(err)
		}
		b = openBolt(t, dir, Options{})
		n := 0
		got, err := b.Load(ctx, []Table{Key}, func(_ Table, r Record) error { n++; return nil })
		if err != nil || n != 500 || got != lsn+500 {
			t.Errorf("unclean %v: got %d records at %d, %v", unclean, n, got, err)
		}
		if err := b.Close(); err != nil {
			t.Fatal(err)
		}
	}
	for path, want := range map[string]os.FileMode{dir: 0o700, filepath.Join(dir, FileName): 0o600} {
		if info, err := os.Stat(path); err != nil || info.Mode().Perm() != want {
			t.Errorf("%s: got %v, %v, want %o", filepath.Base(path), info.Mode(), err, want)
		}
	}
	if entries, err := os.ReadDir(dir); err != nil || len(entries) != 1 {
		t.Errorf("files: got %v, %v, want the store alone", entries, err)
	}
}

// TestCheckPassesGoodFiles: the check after a crash must not refuse what bbolt
// itself makes of growing and shrinking tables.
func TestCheckPassesGoodFiles(t *testing.T) {
	dir, random := t.TempDir(), rand.New(rand.NewPCG(3, 4))
	for round := range 40 {
		b := openBolt(t, dir, Options{})
		var ops []Op
		for range random.IntN(400) {
			op := Op{Table: tables[random.IntN(4)], Key: fmt.Appendf(nil, "%d", random.IntN(3000)),
				Value: make([]byte, random.IntN(600))}
			if random.IntN(100) == 0 {
				op.Value = make([]byte, 20_000) // overflow pages
			}
			if random.IntN(3) == 0 {
				op.Kind = Delete
			}
			ops = append(ops, op)
		}
		if round%7 == 6 { // empty the tables digit by digit
			for digit := range 10 {
				for _, table := range tables[:4] {
					ops = append(ops, Op{Kind: DeletePrefix, Table: table, Key: fmt.Append(nil, digit)})
				}
			}
		}
		if _, err := b.Commit(ctx, []Batch{{Ops: ops}}); err != nil {
			t.Fatal(err)
		}
		abandon(t, b)
	}
}

// abandon closes the file as the end of the process would: without the mark.
func abandon(t testing.TB, b *Bolt) {
	t.Helper()
	if err := drop(b); err != nil {
		t.Fatal(err)
	}
	b.closed = true
}

// drop lets go of a store as the end of its process does.
func drop(b *Bolt) error {
	_ = b.running.outcome()
	return errors.Join(b.log.Close(false), b.db.Close())
}

func TestSecondProcessIsRefused(t *testing.T) {
	dir := t.TempDir()
	openBolt(t, dir, Options{})
	_, err := OpenBolt(dir, Options{Timeout: time.Millisecond})
	if !errors.Is(err, ErrLocked) {
		t.Errorf("got %v, want ErrLocked", err)
	}
}

// TestFirstStartsRaceForOneStore: the process that loses finds the winner's file
// locked and never replaces it.
func TestFirstStartsRaceForOneStore(t *testing.T) {
	dir := t.TempDir()
	var wg sync.WaitGroup
	opened := make([]*Bolt, 4)
	for i := range opened {
		wg.Go(func() {
			b, err := OpenBolt(dir, Options{Timeout: time.Millisecond, LowWater: -1})
			if err != nil && !errors.Is(err, ErrLocked) {
				t.Error(err)
			}
			opened[i] = b
		})
	}
	wg.Wait()
	n := 0
	for _, b := range opened {
		if b == nil {
			continue
		}
		n++
		if err := errors.Join(write(b, Key, "k", "v"), b.Close()); err != nil {
			t.Error(err)
		}
	}
	b := openBolt(t, dir, Options{})
	if _, err := b.Get(ctx, Key, []byte("k")); n != 1 || err != nil {
		t.Errorf("%d opened it; got %v", n, err)
	}
}

func TestFailedWritePoisons(t *testing.T) {
	dir := t.TempDir()
	openBolt(t, dir, Options{}).Close()
	var file *os.File
	b := openBolt(t, dir, Options{openFile: func(name string, flag int, mode os.FileMode) (*os.File, error) {
		var err error
		file, err = os.OpenFile(name, flag, mode)
		return file, err
	}})
	if err := write(b, Key, "before", "v"); err != nil {
		t.Fatal(err)
	}
	file.Close() // every write fails from here on
	for i := range 3 {
		if err := write(b, Key, fmt.Sprint("after", i), "v"); !errors.Is(err, ErrPoisoned) || !errors.Is(err, os.ErrClosed) {
			t.Errorf("write %d: got %v, want ErrPoisoned with its cause", i, err)
		}
	}
	_, getErr := b.Get(ctx, Key, []byte("before"))
	rangeErr := b.Range(ctx, Key, nil, nil, 0, nil)
	_, loadErr := b.Load(ctx, []Table{Key}, nil)
	for _, err := range []error{getErr, rangeErr, loadErr, b.Backup(ctx, &bytes.Buffer{}), b.Stats().Poisoned} {
		if !errors.Is(err, ErrPoisoned) {
			t.Errorf("got %v, want ErrPoisoned", err)
		}
	}
	b.Close()
	again := openBolt(t, dir, Options{})
	if _, err := again.Get(ctx, Key, []byte("before")); err != nil {
		t.Errorf("after a restart: %v", err)
	}
	if _, err := again.Get(ctx, Key, []byte("after0")); !errors.Is(err, ErrNotFound) {
		t.Errorf("what failed, after a restart: %v", err)
	}
}

func TestNearlyFullDiskOnlyReads(t *testing.T) {
	free := int64(1000)
	b := openBolt(t, t.TempDir(), Options{LowWater: 1000, freeSpace: func(string) (int64, error) { return free, nil }})
	if err := write(b, Key, "a", "v"); err != nil {
		t.Fatal(err)
	}
	free = 999
	if err := write(b, Key, "b", "v"); !errors.Is(err, ErrReadOnly) {
		t.Errorf("below the mark: got %v, want ErrReadOnly", err)
	}
	if _, err := b.Get(ctx, Key, []byte("a")); err != nil {
		t.Errorf("reading: %v", err)
	}
	if st := b.Stats(); st.DiskFree != 999 || st.Poisoned != nil || !errors.Is(st.Full, ErrReadOnly) {
		t.Errorf("Stats: got %+v", st)
	}
	free = 1000
	if err := write(b, Key, "b", "v"); err != nil {
		t.Errorf("with room again: %v", err)
	}
	if st := b.Stats(); st.Full != nil {
		t.Errorf("Stats with room again: %v", st.Full)
	}
}

func TestDiskSpaceIsKnown(t *testing.T) {
	if free, err := FreeSpace(t.TempDir()); err != nil || free <= 0 {
		t.Errorf("got %d, %v", free, err)
	}
}

// edit changes the file behind the store's back, through bbolt.
func edit(t *testing.T, dir string, fn func(tx *bbolt.Tx) error) {
	t.Helper()
	db, err := bbolt.Open(filepath.Join(dir, FileName), 0o600, nil)
	if err != nil {
		t.Fatal(err)
	}
	if err := errors.Join(db.Update(fn), db.Close()); err != nil {
		t.Fatal(err)
	}
}

func TestDamagedValueIsNamed(t *testing.T) {
	sealed := appendSealed(nil, Key, []byte("k1"), 1, []byte("v1"))
	change := func(at int, to byte) []byte {
		v := clone(sealed)
		v[at] = to
		return v
	}
	future := clone(sealed)
	future[0] = sealVersion + 1
	flagged := clone(sealed)
	flagged[1] = 1
	for _, v := range [][]byte{future, flagged} {
		binary.BigEndian.PutUint32(v[2:], checksum(Key, []byte("k1"), v))
	}
	for name, v := range map[string][]byte{
		"empty":         {},
		"short":         sealed[:sealHeader-1],
		"payload":       change(sealHeader, 'x'),
		"checksum":      change(2, ^sealed[2]),
		"revision":      change(13, 9),
		"cut":           sealed[:len(sealed)-1],
		"longer":        append(clone(sealed), 0),
		"another key's": appendSealed(nil, Key, []byte("k2"), 1, []byte("v1")),
		"another table": appendSealed(nil, User, []byte("k1"), 1, []byte("v1")),
		"version":       future,
		"flag":          flagged,
	} {
		t.Run(name, func(t *testing.T) {
			dir := t.TempDir()
			b := openBolt(t, dir, Options{})
			for _, k := range []string{"k0", "k1", "k2"} {
				if err := write(b, Key, k, "v"); err != nil {
					t.Fatal(err)
				}
			}
			b.Close()
			edit(t, dir, func(tx *bbolt.Tx) error { return tx.Bucket([]byte(Key)).Put([]byte("k1"), v) })
			b = openBolt(t, dir, Options{})
			_, loadErr := b.Load(ctx, []Table{User, Key}, func(Table, Record) error { return nil })
			_, getErr := b.Get(ctx, Key, []byte("k1"))
			rangeErr := b.Range(ctx, Key, []byte("k1"), nil, 0, func(Record) error { return nil })
			for _, err := range []error{loadErr, getErr, rangeErr} {
				var c *CorruptError
				if !errors.As(err, &c) || c.Table != Key || string(c.Key) != "k1" || !errors.Is(err, ErrCorrupt) {
					t.Errorf("got %v, want a CorruptError that names key/k1", err)
				} else if text := err.Error(); !strings.Contains(text, `key/"k1"`) {
					t.Errorf("%q does not name bucket and key", text)
				}
			}
			if _, err := b.Get(ctx, Key, []byte("k2")); err != nil {
				t.Errorf("its neighbour: %v", err)
			}
		})
	}
}

func TestForeignFilesAreRefused(t *testing.T) {
	for name, c := range map[string]struct {
		make func(t *testing.T, dir string)
		want error
	}{
		"empty": {func(t *testing.T, dir string) { replace(t, dir, nil) }, ErrCorrupt},
		"text":  {func(t *testing.T, dir string) { replace(t, dir, []byte(strings.Repeat("not a database\n", 5000))) }, ErrCorrupt},
		"another": {func(t *testing.T, dir string) {
			edit(t, dir, func(tx *bbolt.Tx) error { _, err := tx.CreateBucket([]byte("x")); return err })
		}, ErrCorrupt},
		"newer": {func(t *testing.T, dir string) {
			openBolt(t, dir, Options{}).Close()
			edit(t, dir, setSchema(schemaVersion+1))
		}, ErrSchema},
		"older": {func(t *testing.T, dir string) {
			openBolt(t, dir, Options{}).Close()
			edit(t, dir, setSchema(schemaVersion-1))
		}, ErrSchema},
		"no table": {func(t *testing.T, dir string) {
			openBolt(t, dir, Options{}).Close()
			edit(t, dir, func(tx *bbolt.Tx) error { return tx.DeleteBucket([]byte(Developer)) })
		}, ErrCorrupt},
		"no schema": {func(t *testing.T, dir string) { openBolt(t, dir, Options{}).Close(); edit(t, dir, setSchema()) }, ErrCorrupt},
	} {
		dir := t.TempDir()
		c.make(t, dir)
		if _, err := OpenBolt(dir, Options{Timeout: time.Millisecond}); !errors.Is(err, c.want) {
			t.Errorf("%s: got %v, want %v", name, err, c.want)
		}
	}
}

func setSchema(v ...byte) func(*bbolt.Tx) error {
	return func(tx *bbolt.Tx) error { return tx.Bucket(own).Put(schemaKey, v) }
}

func replace(t testing.TB, dir string, data []byte) {
	t.Helper()
	if err := os.WriteFile(filepath.Join(dir, FileName), data, 0o600); err != nil {
		t.Fatal(err)
	}
}

// TestDamagedFileIsNeverReadAsGood changes files of a store that was not closed:
// it opens with every record, or it names what is wrong.
func TestDamagedFileIsNeverReadAsGood(t *testing.T) {
	const records = 400
	origin := t.TempDir()
	b := openBolt(t, origin, Options{bare: true})
	value := strings.Repeat("v", 100)
	for i := range records {
		if err := write(b, []Table{Key, User, Body, Meta}[i%4], fmt.Sprintf("k%04d", i), value); err != nil {
			t.Fatal(err)
		}
	}
	abandon(t, b)
	good, err := os.ReadFile(filepath.Join(origin, FileName))
	if err != nil {
		t.Fatal(err)
	}
	random := rand.New(rand.NewPCG(1, 2))
	dir := t.TempDir()
	refused, rounds := 0, 1000
	if testing.Short() {
		rounds = 60
	}
	for range rounds {
		data := damage(random, good)
		replace(t, dir, data)
		b, err := OpenBolt(dir, Options{LowWater: -1, Timeout: time.Millisecond})
		n := 0
		if err == nil {
			_, err = b.Load(ctx, Tables(), func(table Table, r Record) error {
				if string(r.Value) != value {
					t.Errorf("%s/%s was read as %q", table, r.Key, r.Value)
				}
				n++
				return nil
			})
			abandon(t, b)
		}
		switch {
		case errors.Is(err, ErrCorrupt), errors.Is(err, ErrSchema):
			refused++
		case err != nil:
			t.Fatalf("got %v, want ErrCorrupt", err)
		case n != records && !bytes.Equal(data, good):
			t.Errorf("opened with %d of %d records", n, records)
		}
	}
	if refused == 0 {
		t.Error("no damage was noticed")
	}
	t.Logf("%d of %d refused, the others read in full", refused, rounds)
}

// damage leaves the two meta pages alone unless it cuts: bbolt cannot tell a
// damaged one from a commit that a power cut tore, and goes back to the other.
func damage(random *rand.Rand, good []byte) []byte {
	data, metas := clone(good), 2*pageSize
	rest := len(data) - metas
	switch random.IntN(4) {
	case 0: // cut off
		return data[:random.IntN(len(data))]
	case 1: // one bit
		data[metas+random.IntN(rest)] ^= 1 << random.IntN(8)
	case 2: // a sector of zeros
		at := metas + random.IntN(rest/512)*512
		clear(data[at : at+512])
	default: // a sector of noise
		at := metas + random.IntN(rest/512)*512
		for i := range 512 {
			data[at+i] = byte(random.Uint32())
		}
	}
	return data
}

func FuzzUnseal(f *testing.F) {
	f.Add([]byte("k"), appendSealed(nil, Key, []byte("k"), 7, []byte("payload")))
	f.Add([]byte("k"), []byte{1})
	f.Fuzz(func(t *testing.T, key, v []byte) {
		rev, payload, err := unseal(Key, key, v)
		if err != nil {
			return
		}
		if !bytes.Equal(appendSealed(nil, Key, key, rev, payload), v) {
			t.Errorf("%x is another value's form too", v)
		}
	})
}
