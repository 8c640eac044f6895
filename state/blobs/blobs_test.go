package blobs_test

import (
	"bytes"
	"errors"
	"io"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"testing"
	"testing/iotest"
	"time"

	"stagedoor/state/blobs"
	"stagedoor/state/share"
)

var now = time.Unix(1_800_000_000, 0)

func open(t *testing.T, dir string, max int64) *blobs.Store {
	t.Helper()
	s, err := blobs.Open(dir, max, now)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

func put(t *testing.T, s *blobs.Store, content string, life time.Duration) blobs.Info {
	t.Helper()
	info, err := s.Put("a", strings.NewReader(content), "image/png", 1<<20, now.Add(life))
	if err != nil {
		t.Fatal(err)
	}
	return info
}

func read(t *testing.T, s *blobs.Store, id blobs.ID, at time.Time) (string, error) {
	t.Helper()
	f, info, err := s.Open(id, at)
	if err != nil {
		return "", err
	}
	defer f.Close()
	b, err := io.ReadAll(f)
	if err != nil || int64(len(b)) != info.Size || info.MediaType != "image/png" {
		t.Fatalf("%d bytes of %+v, %v", len(b), info, err)
	}
	return string(b), nil
}

func names(t *testing.T, dir string) []string {
	t.Helper()
	entries, err := os.ReadDir(dir)
	if err != nil {
		t.Fatal(err)
	}
	var out []string
	for _, e := range entries {
		out = append(out, e.Name())
	}
	return out
}

func TestABlobIsThereUntilItExpires(t *testing.T) {
	dir := t.TempDir()
	s := open(t, dir, 1<<20)
	info := put(t, s, "picture", time.Hour)
	if got, err := read(t, s, info.ID, now.Add(time.Hour-time.Second)); err != nil || got != "picture" {
		t.Fatalf("%q, %v", got, err)
	}
	if _, err := read(t, s, info.ID, now.Add(time.Hour)); !errors.Is(err, blobs.ErrNotFound) {
		t.Errorf("after its expiry: %v", err)
	}
	if n, err := s.Sweep(now.Add(time.Hour)); n != 1 || err != nil {
		t.Errorf("swept %d, %v", n, err)
	}
	if left := names(t, dir); len(left) != 0 || s.Used() != 0 {
		t.Errorf("left %v, %d bytes", left, s.Used())
	}
}

func TestBlobsSurviveTheProcess(t *testing.T) {
	dir := t.TempDir()
	s := open(t, dir, 1<<20)
	kept, old := put(t, s, "kept", time.Hour), put(t, s, "old", time.Minute)
	for _, name := range []string{"half-123", "another-program"} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte("x"), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	again, err := blobs.Open(dir, 1<<20, now.Add(time.Minute))
	if err != nil {
		t.Fatal(err)
	}
	if got, err := read(t, again, kept.ID, now.Add(time.Minute)); err != nil || got != "kept" {
		t.Errorf("%q, %v", got, err)
	}
	if _, err := read(t, again, old.ID, now); !errors.Is(err, blobs.ErrNotFound) {
		t.Errorf("the expired one: %v", err)
	}
	if again.Used() != int64(len("kept")) || len(names(t, dir)) != 2 {
		t.Errorf("%d bytes, %v", again.Used(), names(t, dir))
	}
}

// Processes that have mounted one directory find what the others have put, and leave what they are writing alone.
func TestStoresOfASharedDirectoryFindEachOthersBlobs(t *testing.T) {
	dir := t.TempDir()
	var both []*blobs.Store
	for range 2 {
		d, err := blobs.Directory(dir, true)
		if err != nil {
			t.Fatal(err)
		}
		s, err := blobs.New(d, 1<<20, time.Now())
		if err != nil {
			t.Fatal(err)
		}
		both = append(both, s)
	}
	young, old := filepath.Join(dir, "half-1"), filepath.Join(dir, "half-2")
	for _, path := range []string{young, old} {
		if err := os.WriteFile(path, []byte("x"), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.Chtimes(old, time.Time{}, time.Now().Add(-2*time.Hour)); err != nil {
		t.Fatal(err)
	}
	first, second := put(t, both[0], "first", time.Hour), put(t, both[0], "second", time.Hour)
	if got, err := read(t, both[1], first.ID, now); got != "first" || err != nil {
		t.Errorf("%q, %v", got, err)
	}
	if _, err := both[1].Sweep(time.Now()); err != nil || both[1].Used() != int64(len("firstsecond")) {
		t.Errorf("%d bytes, %v", both[1].Used(), err)
	}
	if err := both[1].Delete(second.ID); err != nil {
		t.Fatal(err)
	}
	_, err := read(t, both[0], second.ID, now)
	if used := both[0].Used(); !errors.Is(err, blobs.ErrNotFound) || used != int64(len("first")) {
		t.Errorf("one that the other process has deleted: %v, %d bytes", err, used)
	}
	if left := names(t, dir); len(left) != 2 || left[1] != filepath.Base(young) {
		t.Errorf("left %v", left)
	}
}

func TestTheStoreIsBounded(t *testing.T) {
	dir := t.TempDir()
	s := open(t, dir, 20)
	put(t, s, "12345678", time.Hour)
	for name, tc := range map[string]struct {
		r     io.Reader
		limit int64
		want  error
	}{
		"too large": {strings.NewReader("123"), 2, blobs.ErrTooLarge},
		"cut off":   {iotest.ErrReader(io.ErrUnexpectedEOF), 100, io.ErrUnexpectedEOF},
	} {
		if _, err := s.Put("b", tc.r, "image/png", tc.limit, now.Add(time.Hour)); !errors.Is(err, tc.want) {
			t.Errorf("%s: %v", name, err)
		}
	}
	if _, err := s.Put("b", strings.NewReader("12345"), "image/png", 100, now.Add(time.Hour)); err != nil {
		t.Fatal(err)
	}
	if _, err := s.Put("c", strings.NewReader("12345678"), "image/png", 100, now.Add(time.Hour)); !errors.Is(err, blobs.ErrFull) {
		t.Errorf("beyond the bound: %v", err)
	}
	if s.Used() != 13 || len(names(t, dir)) != 2 {
		t.Errorf("%d bytes, %v", s.Used(), names(t, dir))
	}
	s.SetMax(1) // less than there is
	if _, err := s.Put("c", strings.NewReader("4"), "image/png", 100, now.Add(time.Hour)); !errors.Is(err, blobs.ErrFull) || s.Used() != 13 {
		t.Errorf("%v, %d bytes", err, s.Used())
	}
}

// One owner has half of the store, also of what an earlier process has kept for it.
func TestOneOwnerCannotTakeTheWholeStore(t *testing.T) {
	dir := t.TempDir()
	greedy := func(s *blobs.Store) error {
		_, err := s.Put("greedy", strings.NewReader("123456"), "image/png", 100, now.Add(time.Hour))
		return err
	}
	s := open(t, dir, 20)
	if err := greedy(s); err != nil {
		t.Fatal(err)
	}
	for _, s := range []*blobs.Store{s, open(t, dir, 20)} {
		var refused *share.Refused
		if err := greedy(s); !errors.As(err, &refused) || !refused.Share || refused.Pool != share.Content {
			t.Errorf("beyond its share: %v", err)
		}
		if err := s.Room("greedy", 5); !errors.As(err, &refused) {
			t.Errorf("room beyond its share: %v", err)
		}
	}
	if _, err := s.Put("late", strings.NewReader("1234567"), "image/png", 100, now.Add(time.Hour)); err != nil {
		t.Errorf("another owner: %v", err)
	}
}

func TestManyAtOnceStayBelowTheBound(t *testing.T) {
	s := open(t, t.TempDir(), 50<<10)
	var wg sync.WaitGroup
	for i := range 20 {
		wg.Go(func() {
			_, err := s.Put(strconv.Itoa(i), bytes.NewReader(make([]byte, 10<<10)), "image/png", 1<<20,
				now.Add(time.Hour))
			if err != nil && !errors.Is(err, blobs.ErrFull) {
				t.Error(err)
			}
		})
	}
	wg.Wait()
	if s.Used() > 50<<10 || s.Used()%(10<<10) != 0 {
		t.Errorf("%d bytes", s.Used())
	}
}

func TestTheBlobsOfOneOwnerAreDeletedTogether(t *testing.T) {
	dir := t.TempDir()
	s := open(t, dir, 1<<20)
	first, second := put(t, s, "first", time.Hour), put(t, s, "second", time.Hour)
	other, err := s.Put("b", strings.NewReader("other"), "image/png", 1<<20, now.Add(time.Hour))
	if err != nil {
		t.Fatal(err)
	}
	if err := s.DeleteOwner("a"); err != nil {
		t.Fatal(err)
	}
	for _, gone := range []blobs.Info{first, second} {
		if _, err := read(t, s, gone.ID, now); !errors.Is(err, blobs.ErrNotFound) {
			t.Errorf("read a deleted one: %v", err)
		}
	}
	if got, err := read(t, s, other.ID, now); got != "other" || len(names(t, dir)) != 1 || s.Used() != 5 {
		t.Errorf("left %q, %v, files %v, %d bytes", got, err, names(t, dir), s.Used())
	}
}

func TestReadersKeepWhatIsDeleted(t *testing.T) {
	s := open(t, t.TempDir(), 1<<20)
	info := put(t, s, "picture", time.Hour)
	f, _, err := s.Open(info.ID, now)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	if err := s.Delete(info.ID); err != nil {
		t.Fatal(err)
	}
	if b, err := io.ReadAll(f); string(b) != "picture" || err != nil {
		t.Errorf("%q, %v", b, err)
	}
	if err := s.Delete(info.ID); err != nil {
		t.Errorf("the second time: %v", err)
	}
}

func TestOnlyPlainMediaTypesAreKept(t *testing.T) {
	s := open(t, t.TempDir(), 1<<20)
	for _, media := range []string{"", "image", "image/../../x", "image/svg+xml", "text/html; charset=utf-8"} {
		if _, err := s.Put("a", strings.NewReader("x"), media, 10, now.Add(time.Hour)); err == nil {
			t.Errorf("%q was kept", media)
		}
	}
}

// One owner has half of the files, also of those that an earlier process has kept for it,
// and files that are deleted or were not written whole count no longer.
func TestOneOwnerCannotTakeAllFiles(t *testing.T) {
	dir := t.TempDir()
	s := open(t, dir, 0)
	var kept []blobs.Info
	for range 2 {
		kept = append(kept, put(t, s, "1", time.Hour))
	}
	s = open(t, dir, 0)
	s.SetMaxFiles(8)
	for range 2 {
		kept = append(kept, put(t, s, "1", time.Hour))
	}
	var refused *share.Refused
	for range 3 {
		_, err := s.Put("a", strings.NewReader("1"), "image/png", 10, now.Add(time.Hour))
		if !errors.As(err, &refused) || !refused.Share || refused.Pool != share.Files || !errors.As(s.Room("a", 1), &refused) {
			t.Errorf("a file beyond the share: %v", err)
		}
		if _, err := s.Put("b", iotest.ErrReader(io.ErrUnexpectedEOF), "image/png", 10, now.Add(time.Hour)); !errors.Is(err, io.ErrUnexpectedEOF) {
			t.Errorf("a file that is cut off: %v", err)
		}
	}
	if _, err := s.Put("b", strings.NewReader("1"), "image/png", 10, now.Add(time.Hour)); err != nil {
		t.Errorf("another owner: %v", err)
	}
	for _, info := range kept[:2] {
		if err := s.Delete(info.ID); err != nil {
			t.Fatal(err)
		}
	}
	put(t, s, "1", time.Hour)
	if _, files := s.Pools(); files.Used() != 4 {
		t.Errorf("%d files count", files.Used())
	}
}
