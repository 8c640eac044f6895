package redo

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"testing"
)

// logged writes commits 1 to n to a log in dir and switches files after every third of them.
func logged(t *testing.T, dir string, id ID, n int) {
	t.Helper()
	l := New(dir, id, Options{Size: 1 << 12})
	for i := 1; i <= n; i++ {
		if err := l.Append(uint64(i), append(NewFrame(16), fmt.Sprint("commit ", i)...)); err != nil {
			t.Fatal(err)
		}
		if i == 3 {
			if err := l.Switch(); err != nil {
				t.Fatal(err)
			}
		}
	}
	if err := l.Close(false); err != nil {
		t.Fatal(err)
	}
}

func TestReadReturnsTheCommitsThatTheFileLacks(t *testing.T) {
	dir, id := t.TempDir(), ID{1}
	logged(t, dir, id, 5)
	for last := range uint64(6) {
		found, err := Read(dir, id, last)
		if err != nil || found.Torn || len(found.Commits) != int(5-last) {
			t.Fatalf("after commit %d: %d commits, torn %t, %v", last, len(found.Commits), found.Torn, err)
		}
		for i, c := range found.Commits {
			want := last + 1 + uint64(i)
			if c.LSN != want || string(c.Changes) != fmt.Sprint("commit ", want) {
				t.Errorf("after commit %d: commit %d holds %q", last, c.LSN, c.Changes)
			}
		}
	}
}

func TestACommitThatWasCutOffIsTorn(t *testing.T) {
	dir, id := t.TempDir(), ID{1}
	logged(t, dir, id, 2)
	path := filepath.Join(dir, Names[0])
	data, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	second := HeaderSize + (frameHeader+len("commit 1")+7)&^7
	clear(data[second+frameHeader:])
	if err := os.WriteFile(path, data, 0o600); err != nil {
		t.Fatal(err)
	}
	found, err := Read(dir, id, 0)
	if err != nil || !found.Torn || len(found.Commits) != 1 {
		t.Errorf("%d commits, torn %t, %v; want 1 and a torn one", len(found.Commits), found.Torn, err)
	}
}

func TestMissingCommitsAreDamage(t *testing.T) {
	dir, id := t.TempDir(), ID{1}
	logged(t, dir, id, 5)
	var damage *DamageError
	if _, err := Read(dir, ID{2}, 0); !errors.As(err, &damage) {
		t.Errorf("the log of another store: %v", err)
	}
	if err := os.Remove(filepath.Join(dir, Names[0])); err != nil {
		t.Fatal(err)
	}
	if _, err := Read(dir, id, 0); !errors.As(err, &damage) {
		t.Errorf("a log without its first file: %v", err)
	}
}

func TestCloseRemovesOnlyTheFilesOfThisLog(t *testing.T) {
	dir := t.TempDir()
	l := New(dir, ID{1}, Options{})
	if err := l.Append(1, append(NewFrame(1), 'a')); err != nil {
		t.Fatal(err)
	}
	other := filepath.Join(dir, Names[1])
	if err := os.WriteFile(other, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	if err := l.Close(true); err != nil {
		t.Fatal(err)
	}
	if _, err := os.Stat(filepath.Join(dir, Names[0])); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("its own file: %v", err)
	}
	if _, err := os.Stat(other); err != nil {
		t.Errorf("a file of another process: %v", err)
	}
}

func FuzzRead(f *testing.F) {
	var id ID
	f.Add(append(header(id), sealFrame(id, 1, append(NewFrame(8), "changes"...))...))
	f.Fuzz(func(t *testing.T, data []byte) {
		dir := t.TempDir()
		if err := os.WriteFile(filepath.Join(dir, Names[0]), data, 0o600); err != nil {
			t.Fatal(err)
		}
		found, err := Read(dir, id, 0)
		if err != nil {
			return
		}
		for i, c := range found.Commits {
			if c.LSN != uint64(i+1) {
				t.Errorf("commit %d in place %d", c.LSN, i)
			}
		}
	})
}
