package main

import (
	"errors"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"stagedoor/state/journal"
)

func TestBackupsAreMadeWhenDueAndOldOnesGo(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "backups")
	b := backups{dir: dir, every: time.Hour, keep: 2, needs: needsNone}
	write := func(path, _ string) error {
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
		{0, true, "stagedoor-20260102T030000Z.backup"},
		{59 * time.Minute, false, "stagedoor-20260102T030000Z.backup"},
		{time.Minute, true, "stagedoor-20260102T030000Z.backup stagedoor-20260102T040000Z.backup"},
		{2 * time.Hour, true, "stagedoor-20260102T040000Z.backup stagedoor-20260102T060000Z.backup"},
		{-4 * time.Hour, true, "stagedoor-20260102T060000Z.backup"}, // the clock was set back: the new one stays
		{time.Minute, false, "stagedoor-20260102T060000Z.backup"},
	} {
		now = now.Add(c.after)
		made, err := b.makeDue(now, write)
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
	if _, err := b.makeDue(now.Add(100*time.Hour), write); err != nil {
		t.Fatal(err)
	}
	if _, err := os.Stat(filepath.Join(dir, "notes.txt")); err != nil {
		t.Errorf("another file is gone: %v", err)
	}
}

func TestAFailedBackupRemovesNone(t *testing.T) {
	dir := t.TempDir()
	if err := os.WriteFile(filepath.Join(dir, "stagedoor-20260102T030000Z.backup"), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	full := errors.New("full")
	b := backups{dir: dir, every: time.Hour, keep: 1, needs: needsNone}
	if _, err := b.makeDue(time.Now(), func(string, string) error { return full }); !errors.Is(err, full) {
		t.Errorf("got %v", err)
	}
	if list, err := b.list(); err != nil || len(list) != 1 {
		t.Errorf("got %v, %v", list, err)
	}
}

func needsNone(string) ([]string, error) { return nil, nil }

// TestBackupsStayWhileANewerOneNeedsThem: also beyond the number that is kept.
func TestBackupsStayWhileANewerOneNeedsThem(t *testing.T) {
	needs := map[string][]string{}
	b := backups{dir: t.TempDir(), every: time.Hour, keep: 1,
		needs: func(path string) ([]string, error) { return needs[filepath.Base(path)], nil }}
	now := time.Date(2026, 1, 2, 3, 0, 0, 0, time.UTC)
	var names []string
	for i, want := range []string{"3", "3 4", "3 5", "6"} {
		name := now.Format(backupName)
		names = append(names, name)
		switch i {
		case 1, 2:
			needs[name] = names[:1]
		}
		if _, err := b.makeDue(now, func(path, before string) error {
			if i > 0 && !strings.HasSuffix(before, names[i-1]) {
				t.Errorf("backup %d is on top of %s", i, before)
			}
			return os.WriteFile(path, nil, 0o600)
		}); err != nil {
			t.Fatal(err)
		}
		list, err := b.list()
		if err != nil {
			t.Fatal(err)
		}
		var hours []string
		for _, n := range list {
			at, _ := time.Parse(backupName, n)
			hours = append(hours, strconv.Itoa(at.Hour()))
		}
		if got := strings.Join(hours, " "); got != want {
			t.Errorf("after backup %d there are those of %s, want %s", i, got, want)
		}
		now = now.Add(time.Hour)
	}
}

// TestIncrementalBackupsAreVerifiedAndRestoredByCommand: each is a whole store, in an empty directory only.
func TestIncrementalBackupsAreVerifiedAndRestoredByCommand(t *testing.T) {
	dir := directory(t)
	data, before := filepath.Join(dir, "data"), ""
	for _, name := range []string{"first", "second"} {
		createKey(t, data, "--name", name)
		store, err := journal.OpenBolt(data, journal.Options{LowWater: -1})
		if err != nil {
			t.Fatal(err)
		}
		path := filepath.Join(dir, "backups", name+".backup")
		_, err = journal.BackupChanges(t.Context(), store, path, before)
		if err := errors.Join(err, store.Close()); err != nil {
			t.Fatal(err)
		}
		before = path
	}
	first, second, restored := filepath.Join(dir, "backups", "first.backup"), before, filepath.Join(dir, "restored")
	command(t, nil, "state", "verify", second).check(t, exitOK, "nothing is wrong", "")
	command(t, nil, "state", "restore", second, "--data", restored).check(t, exitOK, "restored", "")
	command(t, nil, "keys", "list", "--data", restored).check(t, exitOK, "second", "")
	command(t, nil, "state", "restore", second, "--data", restored).check(t, exitStorage, "",
		"choose an empty directory")
	command(t, nil, "state", "restore", first, "--data", filepath.Join(dir, "older")).check(t, exitOK, "restored", "")
	if err := os.WriteFile(first, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	command(t, nil, "state", "restore", second, "--data", filepath.Join(dir, "none")).check(t, exitStorage, "",
		"cannot be read")
	if left, err := os.ReadDir(filepath.Join(dir, "backups")); err != nil || len(left) != 2 {
		t.Errorf("there are %v, %v", left, err)
	}
}
