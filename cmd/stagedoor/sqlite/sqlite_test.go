package sqlite_test

import (
	"bytes"
	"database/sql"
	"errors"
	"log/slog"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"stagedoor/cmd/stagedoor/sqlite"
	"stagedoor/state/requestlog"
	"stagedoor/state/requestlog/logtest"
)

// fixture is a log whose clock, limits and room a test changes.
type fixture struct {
	*sqlite.Log
	*logtest.Bounds
	path string
	room int64
	said strings.Builder
}

// openFixture opens a log at path. The log is closed when the test ends.
func openFixture(t testing.TB, path string) *fixture {
	t.Helper()
	return openWith(t, path, logtest.NewBounds())
}

func openWith(t testing.TB, path string, b *logtest.Bounds) *fixture {
	t.Helper()
	f := &fixture{path: path, Bounds: b}
	log, err := sqlite.Open(sqlite.Options{Path: path, Now: func() time.Time { return f.Now },
		Limits: func() requestlog.Limits { return f.Limits }, Room: func() int64 { return f.room },
		Logger: slog.New(slog.NewTextHandler(&f.said, nil))})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { log.Close() })
	f.Log = log
	return f
}

func open(t testing.TB, path string) *sqlite.Log { return openFixture(t, path).Log }

func TestTheFileConforms(t *testing.T) {
	logtest.Run(t, logtest.Store{
		Place: func(t testing.TB) string { return filepath.Join(t.TempDir(), "a b#c?%.sqlite") },
		Open: func(t testing.TB, path string, b *logtest.Bounds) requestlog.Store {
			f := openWith(t, path, b)
			return requestlog.Store{Reader: f.Log, Writer: f.Log}
		},
	})
}

// find returns the ids of all records, or the error of the search.
func (f *fixture) find(t *testing.T) (ids []string, err error) {
	err = f.Find(t.Context(), &requestlog.Query{Limit: 100_000}, func(r *requestlog.Record) bool {
		ids = append(ids, r.ID)
		return true
	})
	return ids, err
}

func TestTheFileKeepsItsBytes(t *testing.T) {
	f := openFixture(t, filepath.Join(t.TempDir(), sqlite.FileName))
	f.Limits.Bytes = 1 << 20
	for n := 0; n < 12_000; n += 3000 {
		logtest.Fill(t, f, n, n+3000)
		logtest.Prune(t, f)
	}
	if info, err := os.Stat(f.path); err != nil || info.Size() > 5<<20 || info.Mode().Perm() != 0o600 {
		t.Errorf("the file has %d bytes, mode %v, %v", info.Size(), info.Mode(), err)
	}
}

func TestALogThatIsSwitchedOffLeavesNoFile(t *testing.T) {
	f := openFixture(t, filepath.Join(t.TempDir(), sqlite.FileName))
	logtest.Fill(t, f.Log, 0, 10)
	if err := os.WriteFile(f.path+sqlite.Broken, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	for range 2 {
		if err := errors.Join(f.Close(), sqlite.Remove(f.path)); err != nil {
			t.Fatal(err)
		}
	}
	if left, err := os.ReadDir(filepath.Dir(f.path)); err != nil || len(left) != 0 {
		t.Errorf("%v, %v", left, err)
	}
}

func TestAFileThatWasSetAsideGoesWithItsAge(t *testing.T) {
	f := openFixture(t, filepath.Join(t.TempDir(), sqlite.FileName))
	aside := f.path + sqlite.Broken
	err := os.WriteFile(aside, nil, 0o600)
	if err = errors.Join(err, os.Chtimes(aside, logtest.Start, logtest.Start)); err != nil {
		t.Fatal(err)
	}
	logtest.Prune(t, f)
	if _, err := os.Stat(aside); err != nil {
		t.Errorf("it went at once: %v", err)
	}
	f.Now = logtest.Start.Add(logtest.Month.Keep + time.Second)
	logtest.Prune(t, f)
	if _, err := os.Stat(aside); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("it is still there: %v", err)
	}
}

func TestTheLogGivesSpaceBackBeforeTheJournalNeedsIt(t *testing.T) {
	f := openFixture(t, filepath.Join(t.TempDir(), sqlite.FileName))
	logtest.Fill(t, f.Log, 0, 3000)
	f.room = -1
	if err := f.Append(t.Context(), []requestlog.Record{logtest.Record(3000)}); err == nil {
		t.Error("it takes the last space of the disk")
	}
	logtest.Prune(t, f)
	info, err := os.Stat(f.path)
	if err != nil || info.Size() > 200_000 {
		t.Errorf("the file has %d bytes, %v", info.Size(), err)
	}
	f.room = 0
	logtest.Fill(t, f.Log, 3001, 3002)
	if ids := logtest.Find(t, f.Log, requestlog.Query{}, ""); !slices.Equal(ids, []string{"req_003001"}) {
		t.Errorf("found %d", len(ids))
	}
}

// written returns the bytes of a closed file of a log with n requests.
func written(t *testing.T, path string, n int) []byte {
	t.Helper()
	log := open(t, path)
	logtest.Fill(t, log, 0, n)
	if err := log.Close(); err != nil {
		t.Fatal(err)
	}
	whole, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return whole
}

func TestABrokenFileIsSetAside(t *testing.T) {
	for name, content := range map[string]string{"no database": strings.Repeat("what is this?", 1000), "cut": ""} {
		t.Run(name, func(t *testing.T) {
			path := filepath.Join(t.TempDir(), sqlite.FileName)
			if content == "" {
				whole := written(t, path, 500)
				clear(whole[len(whole)/8:])
				content = string(whole)
			}
			if err := os.WriteFile(path, []byte(content), 0o600); err != nil {
				t.Fatal(err)
			}
			f := openFixture(t, path)
			logtest.Fill(t, f.Log, 500, 600)
			if all := logtest.Find(t, f.Log, requestlog.Query{}, ""); len(all) != 100 {
				t.Errorf("%d in the new file", len(all))
			}
			if !strings.Contains(f.said.String(), "begins anew") {
				t.Errorf("nothing is said: %s", f.said.String())
			}
			if aside, err := os.ReadFile(path + sqlite.Broken); err != nil || len(aside) < len(content) {
				t.Errorf("%d bytes are set aside: %v", len(aside), err)
			}
		})
	}
}

func TestAFileThatOnlyReadersFindBrokenIsSetAside(t *testing.T) {
	path := filepath.Join(t.TempDir(), sqlite.FileName)
	whole := written(t, path, 2000)
	page := bytes.Index(whole, []byte(`"id":"req_000100"`)) / 4096 * 4096 // no writer reads this page
	clear(whole[page : page+4096])
	if err := os.WriteFile(path, whole, 0o600); err != nil {
		t.Fatal(err)
	}
	f := openFixture(t, path)
	logtest.Fill(t, f.Log, 2000, 2001)
	if ids, err := f.find(t); err == nil {
		t.Fatalf("a broken page is no error: %d found", len(ids))
	}
	logtest.Fill(t, f.Log, 2001, 2002)
	if ids, err := f.find(t); err != nil || !slices.Equal(ids, []string{"req_002001"}) {
		t.Errorf("%d found in the new file, %v", len(ids), err)
	}
	if _, err := os.Stat(path + sqlite.Broken); err != nil {
		t.Error(err)
	}
}

func TestALogWhoseFileCouldNotBeReplacedGoesOnLater(t *testing.T) {
	path := filepath.Join(t.TempDir(), sqlite.FileName)
	whole := written(t, path, 500)
	clear(whole[len(whole)/8:])
	if err := errors.Join(os.WriteFile(path, whole, 0o600), os.Mkdir(path+sqlite.Broken, 0o700)); err != nil {
		t.Fatal(err)
	}
	f := openFixture(t, path)
	for range 2 {
		if err := f.Append(t.Context(), []requestlog.Record{logtest.Record(1)}); err == nil {
			t.Fatal("a broken file takes a record")
		}
	}
	if err := os.Remove(path + sqlite.Broken); err != nil {
		t.Fatal(err)
	}
	f.Now = f.Now.Add(time.Minute)
	logtest.Fill(t, f.Log, 2, 3)
	if ids, err := f.find(t); err != nil || !slices.Equal(ids, []string{"req_000002"}) {
		t.Errorf("%v, %v", ids, err)
	}
}

// A log of version 1, which had no sums, is kept, and sums from then on.
func TestALogOfTheVersionBeforeIsKept(t *testing.T) {
	path := filepath.Join(t.TempDir(), sqlite.FileName)
	log := open(t, path)
	logtest.Fill(t, log, 0, 10)
	if err := log.Close(); err != nil {
		t.Fatal(err)
	}
	db, err := sql.Open("sqlite", path)
	if err == nil {
		_, err = db.Exec("DROP TABLE spent; PRAGMA user_version = 1")
	}
	if err = errors.Join(err, db.Close()); err != nil {
		t.Fatal(err)
	}
	f := openFixture(t, path)
	logtest.Fill(t, f.Log, 10, 20)
	sum := int64(0)
	q := requestlog.SpentQuery{From: logtest.Start.Add(-time.Hour), To: logtest.Start.Add(time.Hour), Step: time.Hour}
	err = f.Spent(t.Context(), &q, func(s *requestlog.Spent) error { sum += s.Requests; return nil })
	if all := logtest.Find(t, f.Log, requestlog.Query{}, ""); err != nil || len(all) != 20 || sum != 10 {
		t.Errorf("%d requests, %d summed, %v", len(all), sum, err)
	}
}

func TestTheIndexOfAnEarlierProgramIsMergedInSmallSteps(t *testing.T) {
	path := filepath.Join(t.TempDir(), "log")
	change := func(statement string) (merge int) {
		t.Helper()
		db, err := sql.Open("sqlite", path)
		if err == nil {
			_, err = db.Exec(statement)
		}
		if err == nil {
			const stored = "SELECT coalesce(max(v), 4) FROM words_config WHERE k = 'automerge'"
			err = db.QueryRow(stored).Scan(&merge)
		}
		if err = errors.Join(err, db.Close()); err != nil {
			t.Fatal(err)
		}
		return merge
	}
	log := open(t, path)
	logtest.Fill(t, log, 0, 20)
	log.Close()
	if got := change(""); got != 8 {
		t.Errorf("a new index is merged from %d parts on", got)
	}
	if got := change("INSERT INTO words (words, rank) VALUES ('automerge', 16)"); got != 16 {
		t.Fatalf("the index is merged from %d parts on, want 16", got)
	}
	log = open(t, path)
	if got := logtest.Find(t, log, requestlog.Query{}, ""); len(got) != 20 {
		t.Errorf("%d records are found, want 20", len(got))
	}
	log.Close()
	if got := change(""); got != 8 {
		t.Errorf("the index is merged from %d parts on after it was opened", got)
	}
}

// An index whose parts are merged only from 16 of a size on becomes one part in the batch with the number 255, which
// then writes four times as much as any other one. The first record sets off this merge between two of the small steps.
func TestNoBatchRewritesTheIndex(t *testing.T) {
	const batches, size, most = 16 * 16, 64, 2 << 20 // bytes
	path := filepath.Join(t.TempDir(), sqlite.FileName)
	log := open(t, path)
	logtest.Fill(t, log, batches*size, batches*size+1)
	db, err := sql.Open("sqlite", path)
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close()
	for n := range batches {
		if _, err := db.Exec("PRAGMA wal_checkpoint(TRUNCATE)"); err != nil {
			t.Fatal(err)
		}
		logtest.Fill(t, log, n*size, n*size+size)
		info, err := os.Stat(path + "-wal")
		if err != nil {
			t.Fatal(err)
		}
		if wrote := info.Size(); wrote == 0 || wrote > most {
			t.Fatalf("batch %d has written %d bytes, want at most %d", n, wrote, most)
		}
	}
}

func BenchmarkSearch(b *testing.B) {
	path := filepath.Join(b.TempDir(), sqlite.FileName)
	log := open(b, path)
	logtest.BenchmarkSearch(b, requestlog.Store{Reader: log, Writer: log}, func() {}, func() int64 {
		info, err := os.Stat(path)
		if err != nil {
			b.Fatal(err)
		}
		return info.Size()
	})
}

func BenchmarkAppend(b *testing.B) {
	logtest.BenchmarkAppend(b, open(b, filepath.Join(b.TempDir(), sqlite.FileName)))
}
