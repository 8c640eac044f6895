package journal

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"

	"go.etcd.io/bbolt"
)

// busy makes the log turn and checkpoints run all the time.
var busy = Options{LowWater: -1, checkpointAfter: 1 << 10, redoSize: 4 << 10}

// TestReadersSeeOneMoment: during a checkpoint, too, a reader sees the state after one
// commit, and never an earlier one than before.
func TestReadersSeeOneMoment(t *testing.T) {
	commits := 600
	if testing.Short() {
		commits = 60
	}
	b := openBolt(t, t.TempDir(), busy)
	var wg sync.WaitGroup
	done := make(chan struct{})
	wg.Go(func() {
		defer close(done)
		for n := 1; n <= commits; n++ {
			v := fmt.Append(nil, n)
			ops := []Op{
				{Table: Key, Key: []byte("n"), Value: v},
				{Table: User, Key: []byte("n"), Value: v},
				{Table: Body, Key: fmt.Appendf(nil, "%03d", n%100), Value: bytes.Repeat(v, 40)},
				{Kind: Delete, Table: Body, Key: fmt.Appendf(nil, "%03d", (n+50)%100)},
			}
			if _, err := b.Commit(ctx, []Batch{{Ops: ops}}); err != nil {
				t.Error(err)
				return
			}
		}
	})
	// Each look tells which commit it saw; 0: an empty store.
	for name, look := range map[string]func() (int, error){
		"load": func() (int, error) { return seen(b) },
		"get": func() (n int, err error) {
			r, err := b.Get(ctx, Key, []byte("n"))
			if err == nil {
				_, err = fmt.Sscan(string(r.Value), &n)
			}
			if err == nil && int(r.Rev) != n {
				err = fmt.Errorf("revision %d of commit %d", r.Rev, n)
			}
			if errors.Is(err, ErrNotFound) {
				err = nil
			}
			return n, err
		},
		"backup": func() (int, error) {
			path := filepath.Join(t.TempDir(), "backup.db")
			if _, err := BackupFile(ctx, b, path); err != nil {
				return 0, err
			}
			r, err := ReadBolt(path, Options{})
			if err != nil {
				return 0, err
			}
			defer r.Close()
			return seen(r)
		},
		"flush": func() (int, error) { return 0, b.Backup(ctx, io.Discard) },
	} {
		wg.Go(func() {
			for last := 0; ; {
				n, err := look()
				if err != nil || (n < last && name != "flush") {
					t.Errorf("%s: commit %d after %d, %v", name, n, last, err)
					return
				}
				last = n
				select {
				case <-done:
					return
				default:
				}
			}
		})
	}
	wg.Wait()
	if n, err := seen(b); n != commits || err != nil {
		t.Errorf("at the end: commit %d, %v", n, err)
	}
}

// seen tells which commit a store shows, all tables alike.
func seen(b *Bolt) (int, error) {
	values := map[Table]string{Key: "0", User: "0"}
	bodies := 0
	lsn, err := b.Load(ctx, []Table{Key, Body, User}, func(table Table, r Record) error {
		if table == Body {
			bodies++
			return nil
		}
		values[table] = string(r.Value)
		return nil
	})
	n := int(lsn)
	if err == nil && (values[Key] != fmt.Sprint(n) || values[User] != values[Key] || bodies != min(n, 50)) {
		err = fmt.Errorf("commit %d has %v and %d bodies", n, values, bodies)
	}
	return n, err
}

// TestCheckpointThatFailsPoisons: commits that the log has are not lost.
func TestCheckpointThatFailsPoisons(t *testing.T) {
	for name, spoil := range map[string]func(*Bolt, *os.File) error{
		"the file cannot be written": func(_ *Bolt, file *os.File) error { return file.Close() },
		"it panics": func(b *Bolt, _ *os.File) error {
			return b.db.Update(func(tx *bbolt.Tx) error { return tx.DeleteBucket([]byte(Key)) })
		},
	} {
		t.Run(name, func(t *testing.T) {
			dir := t.TempDir()
			openBolt(t, dir, Options{}).Close()
			whole, err := os.ReadFile(filepath.Join(dir, FileName))
			if err != nil {
				t.Fatal(err)
			}
			var file *os.File
			o := busy
			o.openFile = func(name string, flag int, mode os.FileMode) (*os.File, error) {
				f, err := os.OpenFile(name, flag, mode)
				if filepath.Base(name) == FileName {
					file = f
				}
				return f, err
			}
			b := openBolt(t, dir, o)
			if err := spoil(b, file); err != nil {
				t.Fatal(err)
			}
			var kept []string
			for len(kept) < 1000 {
				key := fmt.Sprintf("k%04d", len(kept))
				if err = write(b, Key, key, strings.Repeat("v", 100)); err != nil {
					break
				}
				kept = append(kept, key)
			}
			if !errors.Is(err, ErrPoisoned) || errors.Is(err, ErrReadOnly) || len(kept) < 5 {
				t.Fatalf("after %d commits: %v", len(kept), err)
			}
			if _, err := b.Get(ctx, Key, []byte(kept[0])); !errors.Is(err, ErrPoisoned) {
				t.Errorf("reading: %v", err)
			}
			_ = b.Close() // of what is closed already
			if !b.running.ended() {
				t.Error("a checkpoint outlives Close")
			}
			if name == "it panics" {
				replace(t, dir, whole) // as it was; the log goes on from there
			}
			b = openBolt(t, dir, Options{})
			for _, key := range kept {
				if _, err := b.Get(ctx, Key, []byte(key)); err != nil {
					t.Errorf("%s was acknowledged: %v", key, err)
				}
			}
		})
	}
}

// TestNoFileLeftIsNoLoss: a process that has too many files open cannot make the log,
// but can when it has fewer.
func TestNoFileLeftIsNoLoss(t *testing.T) {
	dir := t.TempDir()
	openBolt(t, dir, Options{}).Close()
	none := false
	b := openBolt(t, dir, Options{openFile: func(name string, flag int, mode os.FileMode) (*os.File, error) {
		if none {
			return nil, &os.PathError{Op: "open", Path: name, Err: syscall.EMFILE}
		}
		return os.OpenFile(name, flag, mode)
	}})
	for i, want := range []error{ErrReadOnly, nil, nil} {
		none = want != nil
		if err := write(b, Key, fmt.Sprint("k", i), "v"); !errors.Is(err, want) || errors.Is(err, ErrPoisoned) {
			t.Errorf("write %d: got %v, want %v", i, err, want)
		}
	}
	if st := b.Stats(); st.LSN != 2 {
		t.Errorf("commit %d, want 2", st.LSN)
	}
}

// TestCloseThatFailsKeepsTheLog: what could not go into the file is there after the
// next start.
func TestCloseThatFailsKeepsTheLog(t *testing.T) {
	dir := t.TempDir()
	openBolt(t, dir, Options{}).Close()
	var file *os.File
	b := openBolt(t, dir, Options{openFile: func(name string, flag int, mode os.FileMode) (*os.File, error) {
		f, err := os.OpenFile(name, flag, mode)
		if filepath.Base(name) == FileName {
			file = f
		}
		return f, err
	}})
	if err := errors.Join(write(b, Key, "k", "v"), file.Close()); err != nil {
		t.Fatal(err)
	}
	if err := b.Close(); !errors.Is(err, os.ErrClosed) {
		t.Errorf("got %v", err)
	}
	if _, err := b.Get(ctx, Key, []byte("k")); !errors.Is(err, ErrClosed) {
		t.Errorf("after Close: %v", err)
	}
	if err := b.Close(); err != nil {
		t.Errorf("a second Close: %v", err)
	}
	if _, err := openBolt(t, dir, Options{}).Get(ctx, Key, []byte("k")); err != nil {
		t.Error(err)
	}
}
