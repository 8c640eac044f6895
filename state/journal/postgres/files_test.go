package postgres_test

import (
	"bytes"
	"errors"
	"io"
	"math/rand/v2"
	"os"
	"strconv"
	"strings"
	"sync"
	"testing"
	"testing/iotest"
	"time"

	"stagedoor/state/blobs"
	"stagedoor/state/journal/postgres"
	"stagedoor/state/share"
)

// openFiles returns the files of two nodes on an empty database. The network is that of the first one only.
func openFiles(t *testing.T, max int64, n *network) (a, b *blobs.Store, backend *postgres.Files) {
	t.Helper()
	url := empty(t, server(t))
	t.Cleanup(n.bury)
	var both []*blobs.Store
	for _, o := range []postgres.Options{
		{Node: "a", Several: true, AnswerWait: time.Second, Configure: n.configure}, {Node: "b", Several: true},
	} {
		f, err := open(t, url, o).Files(ctx)
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(f.Close)
		exec(t, server(t), "DELETE FROM stagedoor.file")
		s, err := blobs.New(f, max, time.Now())
		if err != nil {
			t.Fatal(err)
		}
		both, backend = append(both, s), f
	}
	return both[0], both[1], backend
}

// putFile puts a file that lives for an hour.
func putFile(t *testing.T, s *blobs.Store, owner string, content []byte) blobs.Info {
	t.Helper()
	info, err := s.Put(owner, bytes.NewReader(content), "image/png", 1<<30, time.Now().Add(time.Hour))
	if err != nil {
		t.Fatal(err)
	}
	return info
}

func readFile(s *blobs.Store, id blobs.ID) ([]byte, error) {
	r, _, err := s.Open(id, time.Now())
	if err != nil {
		return nil, err
	}
	defer r.Close()
	return io.ReadAll(r)
}

func randomBytes(n int) []byte {
	b := make([]byte, n)
	rand.NewChaCha8([32]byte{byte(n)}).Read(b)
	return b
}

// number returns the result of a query.
func number(t *testing.T, query string) (n int) {
	t.Helper()
	exec(t, server(t), "SELECT 1")
	if err := admin.QueryRow(ctx, query).Scan(&n); err != nil {
		t.Fatal(err)
	}
	return n
}

func TestAFileIsReadWholeAndInPartsOnEveryNode(t *testing.T) {
	a, b, _ := openFiles(t, 1<<30, &network{})
	for _, size := range []int{0, 1, 256<<10 - 1, 256 << 10, 1<<20 - 1, 1 << 20, 1<<20 + 1, 3<<20 + 77} {
		content := randomBytes(size)
		info := putFile(t, a, "anna", content)
		r, found, err := b.Open(info.ID, time.Now())
		if err != nil || found.Size != int64(size) || found.MediaType != "image/png" ||
			!found.Expires.Equal(info.Expires) {
			t.Fatalf("%d bytes: %+v, %v", size, found, err)
		}
		if _, err := r.Seek(int64(size/2), io.SeekStart); err != nil {
			t.Error(err)
		}
		if half, err := io.ReadAll(r); err != nil || !bytes.Equal(half, content[size/2:]) {
			t.Errorf("the second half of %d bytes: %d bytes, %v", size, len(half), err)
		}
		if whole, err := readFile(a, info.ID); err != nil || !bytes.Equal(whole, content) {
			t.Errorf("%d bytes on the node that has put them: %d bytes, %v", size, len(whole), err)
		}
	}
	if n := number(t, "SELECT max(octet_length(value)) FROM stagedoor.file_part"); n != 1<<20 {
		t.Errorf("the largest row has %d bytes", n)
	}
}

func TestAFileThatIsNotWrittenWholeLeavesNothing(t *testing.T) {
	a, b, backend := openFiles(t, 4<<20, &network{})
	half := io.MultiReader(bytes.NewReader(randomBytes(3<<19)), iotest.ErrReader(io.ErrUnexpectedEOF))
	soon := time.Now().Add(time.Hour)
	if _, err := a.Put("anna", half, "image/png", 1<<30, soon); !errors.Is(err, io.ErrUnexpectedEOF) {
		t.Errorf("a reader that fails: %v", err)
	}
	much := bytes.NewReader(randomBytes(3 << 20))
	if _, err := a.Put("anna", much, "image/png", 1<<30, soon); !errors.Is(err, blobs.ErrFull) {
		t.Errorf("more than an owner may have: %v", err)
	}
	if n := number(t, "SELECT count(*) FROM stagedoor.file_part"); n != 0 || a.Used() != 0 {
		t.Errorf("%d rows, %d bytes", n, a.Used())
	}
	// One whose process has died stays for an hour. After that it cannot be finished any more.
	dead, err := backend.Create(blobs.Info{ID: "dead", MediaType: "image/png", Owner: "x", Expires: time.Now()})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := dead.Write(randomBytes(1 << 20)); err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		age  string
		rows int
	}{{"50 minutes", 1}, {"70 minutes", 0}} {
		exec(t, server(t), "UPDATE stagedoor.file SET added = now() - interval '"+c.age+"'")
		if _, err := b.Sweep(time.Now()); err != nil {
			t.Fatal(err)
		}
		if n := number(t, "SELECT count(*) FROM stagedoor.file_part"); n != c.rows {
			t.Errorf("%d rows of a file that was begun %s ago", n, c.age)
		}
	}
	if err := dead.Finish(); !errors.Is(err, blobs.ErrNotFound) {
		t.Errorf("the end of a file that was tidied away: %v", err)
	}
}

func TestNodesShareTheRoomForFiles(t *testing.T) {
	a, b, _ := openFiles(t, 4<<20, &network{})
	first := putFile(t, a, "anna", randomBytes(3<<19))
	if _, err := b.Sweep(time.Now()); err != nil {
		t.Fatal(err)
	}
	var refused *share.Refused
	_, err := b.Put("anna", bytes.NewReader(randomBytes(1<<20)), "image/png", 1<<30, time.Now().Add(time.Hour))
	if !errors.As(err, &refused) || b.Used() != 3<<19 {
		t.Errorf("beyond the share, which is used on the other node: %v, %d bytes", err, b.Used())
	}
	if err := b.Delete(first.ID); err != nil {
		t.Fatal(err)
	}
	if _, err := readFile(a, first.ID); !errors.Is(err, blobs.ErrNotFound) {
		t.Errorf("a file that the other node has deleted: %v", err)
	}
	if a.Used() != 0 || b.Used() != 0 {
		t.Errorf("%d and %d bytes", a.Used(), b.Used())
	}
	// One that the other node does not know of is deleted and erased, too.
	second, third := putFile(t, a, "anna", []byte("second")), putFile(t, a, "anna", []byte("third"))
	if err := errors.Join(b.Delete(second.ID), b.DeleteOwner("anna")); err != nil {
		t.Fatal(err)
	}
	for _, info := range []blobs.Info{second, third} {
		if _, err := readFile(a, info.ID); !errors.Is(err, blobs.ErrNotFound) {
			t.Errorf("a file that the other node has deleted: %v", err)
		}
	}
	if n := number(t, "SELECT count(*) FROM stagedoor.file_part"); n != 0 {
		t.Errorf("%d rows", n)
	}
}

func TestAnExpiredFileIsNotFoundAndIsRemovedAfterItsReaders(t *testing.T) {
	a, b, _ := openFiles(t, 1<<30, &network{})
	info := putFile(t, a, "anna", randomBytes(1<<19))
	reader, _, err := b.Open(info.ID, time.Now())
	if err != nil {
		t.Fatal(err)
	}
	if _, _, err := b.Open(info.ID, info.Expires); !errors.Is(err, blobs.ErrNotFound) {
		t.Errorf("after it has expired: %v", err)
	}
	if n, err := a.Sweep(info.Expires.Add(time.Minute)); n != 0 || err != nil {
		t.Errorf("%d removed, %v", n, err)
	}
	if all, err := io.ReadAll(reader); len(all) != 1<<19 || err != nil {
		t.Errorf("a reader that had begun: %d bytes, %v", len(all), err)
	}
	if n, err := a.Sweep(info.Expires.Add(time.Hour)); n != 1 || err != nil {
		t.Errorf("%d removed, %v", n, err)
	}
	if n := number(t, "SELECT count(*) FROM stagedoor.file_part"); n != 0 {
		t.Errorf("%d rows", n)
	}
}

// A file that was put is there whole, whatever happened to the connections meanwhile.
func TestFilesSurviveConnectionsThatBreak(t *testing.T) {
	n := &network{}
	a, b, _ := openFiles(t, 1<<30, n)
	n.lossy.Store(true)
	content, kept, soon := randomBytes(2<<20+5), 0, time.Now().Add(time.Hour)
	var wg sync.WaitGroup
	var mu sync.Mutex
	// On a busy machine all files may be refused at first.
	goesOn := func(puts int, since time.Time) bool {
		mu.Lock()
		defer mu.Unlock()
		return puts < 4 || (kept == 0 || n.broken.Load() == 0) && time.Since(since) < time.Minute
	}
	begun := time.Now()
	for i := range 4 {
		wg.Go(func() {
			for puts := 0; goesOn(puts, begun); puts++ {
				info, err := a.Put(strconv.Itoa(i), bytes.NewReader(content), "image/png", 1<<30, soon)
				if err != nil {
					continue // it was refused, and says so
				}
				mu.Lock()
				kept++
				mu.Unlock()
				if whole, err := readFile(b, info.ID); err != nil || !bytes.Equal(whole, content) {
					t.Errorf("%d bytes of a file that was put, %v", len(whole), err)
				}
			}
		})
	}
	wg.Wait()
	n.lossy.Store(false)
	if broken := n.broken.Load(); broken == 0 || kept == 0 {
		t.Errorf("%d connections broke, %d files were put", broken, kept)
	}
	n.cut.Store(true)
	if _, err := a.Put("anna", strings.NewReader("x"), "image/png", 9, soon); !errors.Is(err, blobs.ErrUnavailable) {
		t.Errorf("without a database: %v", err)
	}
}

func TestFilesOfADirectoryMoveIntoTheDatabase(t *testing.T) {
	a, _, backend := openFiles(t, 1<<30, &network{})
	dir := t.TempDir()
	old, err := blobs.Open(dir, 1<<30, time.Now())
	if err != nil {
		t.Fatal(err)
	}
	info := putFile(t, old, "anna", randomBytes(3<<19))
	if _, err := old.Put("anna", strings.NewReader("x"), "image/png", 9, time.Now().Add(-time.Hour)); err != nil {
		t.Fatal(err)
	}
	from, err := blobs.Directory(dir, false)
	if err != nil {
		t.Fatal(err)
	}
	if err := errors.Join(blobs.Move(from, backend, time.Now()), blobs.Move(from, backend, time.Now())); err != nil {
		t.Fatal(err)
	}
	if whole, err := readFile(a, info.ID); err != nil || !bytes.Equal(whole, randomBytes(3<<19)) {
		t.Errorf("%d bytes, %v", len(whole), err)
	}
	left, err := os.ReadDir(dir)
	if n := number(t, "SELECT count(*) FROM stagedoor.file"); n != 1 || err != nil || len(left) != 0 {
		t.Errorf("%d files in the database, %v in the directory, %v", n, left, err)
	}
}
