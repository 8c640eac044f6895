package recordings_test

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"stagedoor/state"
	"stagedoor/state/recordings"
)

var (
	began  = time.Date(2026, 11, 1, 12, 0, 0, 0, time.UTC)
	limits = recordings.Limits{Keep: time.Hour, Bytes: 1000, Exchanges: 3}
)

func open(t *testing.T, dir string) *recordings.Store {
	t.Helper()
	s, err := recordings.Open(dir)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// kept returns the exchange of a request at a minute, or "".
func kept(t *testing.T, s *recordings.Store, key, id string, minute int) string {
	t.Helper()
	at := began.Add(time.Duration(minute) * time.Minute)
	data, err := s.Find(key, id, at.Add(-time.Second), at.Add(time.Second))
	if err != nil && !errors.Is(err, state.ErrNotFound) {
		t.Fatal(err)
	}
	return string(data)
}

func put(t *testing.T, s *recordings.Store, key, id string, minute int, data string) {
	t.Helper()
	if err := s.Put(key, id, began.Add(time.Duration(minute)*time.Minute), []byte(data), limits); err != nil {
		t.Fatal(err)
	}
}

// TestTheOldestExchangesMakeRoom by number and by bytes, also after the directory was read again.
func TestTheOldestExchangesMakeRoom(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "recordings")
	s := open(t, dir)
	for minute := range 4 {
		put(t, s, "key_1", "../../r", minute, strings.Repeat("x", 10+minute))
	}
	if kept(t, s, "key_1", "../../r", 0) != "" || len(kept(t, s, "key_1", "../../r", 3)) != 13 {
		t.Error("not the latest three exchanges are kept")
	}
	if kept(t, s, "key_2", "../../r", 3) != "" || kept(t, s, "key_1", "r", 3) != "" {
		t.Error("an exchange of another key or request was found")
	}
	put(t, s, "key_2", "s", 9, strings.Repeat("y", 980)) // beside the last one only
	if s = open(t, dir); kept(t, s, "key_1", "../../r", 2) != "" || kept(t, s, "key_1", "../../r", 3) == "" ||
		kept(t, s, "key_2", "s", 9) == "" {
		t.Error("not the oldest exchanges made room")
	}
	if err := s.Put("key_1", "t", began, make([]byte, 1001), limits); err == nil {
		t.Error("an exchange is larger than all may be")
	}
	for _, key := range []string{"..", "a/b", ""} {
		if err := s.Put(key, "t", began, nil, limits); !errors.Is(err, state.ErrInvalid) {
			t.Errorf("key %q: got %v", key, err)
		}
	}
}

// TestExchangesLeaveByAgeAndWithTheirKey, and nothing is left of the directory then.
func TestExchangesLeaveByAgeAndWithTheirKey(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "recordings")
	s := open(t, dir)
	put(t, s, "key_1", "a", 0, "a")
	put(t, s, "key_1", "b", 30, "b")
	put(t, s, "key_2", "c", 40, "c")
	if err := s.Prune(began.Add(61*time.Minute), limits); err != nil {
		t.Fatal(err)
	}
	if kept(t, s, "key_1", "a", 0) != "" || kept(t, s, "key_1", "b", 30) != "b" {
		t.Error("not the exchange that was too old left")
	}
	if err := s.Retain(func(key string) bool { return key == "key_2" }); err != nil {
		t.Fatal(err)
	}
	if kept(t, s, "key_1", "b", 30) != "" || kept(t, s, "key_2", "c", 40) != "c" || s.Empty() {
		t.Error("not the exchanges of the key left")
	}
	if err := s.Prune(began.Add(2*time.Hour), limits); err != nil || !s.Empty() {
		t.Error(err)
	}
	if _, err := os.Stat(dir); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("the directory is still there: %v", err)
	}
}

// TestFilesAreReadableByTheirOwnerOnly, and files of another kind stay.
func TestFilesAreReadableByTheirOwnerOnly(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "recordings")
	s := open(t, dir)
	put(t, s, "key_1", "a", 0, "a")
	files, err := filepath.Glob(filepath.Join(dir, "key_1", "*"))
	if err != nil || len(files) != 1 {
		t.Fatal(files, err)
	}
	for path, mode := range map[string]os.FileMode{files[0]: 0o600, dir: 0o700, filepath.Dir(files[0]): 0o700} {
		if info, err := os.Stat(path); err != nil || info.Mode().Perm() != mode {
			t.Errorf("%s: %v %v", path, info.Mode(), err)
		}
	}
	foreign := filepath.Join(dir, "key_1", "notes.txt")
	for _, path := range []string{foreign, files[0] + ".half"} {
		if err := os.WriteFile(path, []byte("x"), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	s = open(t, dir)
	if err := s.Prune(began.Add(2*time.Hour), limits); err != nil {
		t.Fatal(err)
	}
	left, err := filepath.Glob(filepath.Join(dir, "key_1", "*"))
	if err != nil || len(left) != 1 || left[0] != foreign {
		t.Errorf("left are %q, %v", left, err)
	}
}
