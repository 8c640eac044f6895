package main

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

func TestBackupsAreMadeWhenDueAndOldOnesGo(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "backups")
	b := backups{dir: dir, every: time.Hour, keep: 2}
	write := func(path string) error {
		return errors.Join(os.MkdirAll(filepath.Dir(path), 0o700), os.WriteFile(path, []byte("copy"), 0o600))
	}
	now := time.Date(2026, 1, 2, 3, 0, 0, 0, time.UTC)
	names := func() string {
		list, err := b.list()
		if err != nil {
			t.Fatal(err)
		}
		return strings.Join(list, " ")
	}
	for _, c := range []struct {
		after time.Duration
		made  bool
		want  string
	}{
		{0, true, "stagedoor-20260102T030000Z.db"},
		{59 * time.Minute, false, "stagedoor-20260102T030000Z.db"},
		{time.Minute, true, "stagedoor-20260102T030000Z.db stagedoor-20260102T040000Z.db"},
		{2 * time.Hour, true, "stagedoor-20260102T040000Z.db stagedoor-20260102T060000Z.db"},
		{-4 * time.Hour, true, "stagedoor-20260102T060000Z.db"}, // the clock was set back: the new one stays
		{time.Minute, false, "stagedoor-20260102T060000Z.db"},
	} {
		now = now.Add(c.after)
		made, err := b.make(now, write)
		if err != nil || (made != "") != c.made {
			t.Fatalf("at %v: made %q, %v", now, made, err)
		}
		if got := names(); !strings.Contains(got, c.want) {
			t.Errorf("at %v: there are %s, want %s", now, got, c.want)
		}
	}
	if err := os.WriteFile(filepath.Join(dir, "notes.txt"), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	b.keep = 1
	if _, err := b.make(now.Add(100*time.Hour), write); err != nil {
		t.Fatal(err)
	}
	if _, err := os.Stat(filepath.Join(dir, "notes.txt")); err != nil {
		t.Errorf("another file is gone: %v", err)
	}
}

func TestAFailedBackupRemovesNone(t *testing.T) {
	dir := t.TempDir()
	if err := os.WriteFile(filepath.Join(dir, "stagedoor-20260102T030000Z.db"), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	full := errors.New("full")
	b := backups{dir: dir, every: time.Hour, keep: 1}
	if _, err := b.make(time.Now(), func(string) error { return full }); !errors.Is(err, full) {
		t.Errorf("got %v", err)
	}
	if list, err := b.list(); err != nil || len(list) != 1 {
		t.Errorf("got %v, %v", list, err)
	}
}
