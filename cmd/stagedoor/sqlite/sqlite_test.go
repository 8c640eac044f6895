package sqlite_test

import (
	"bytes"
	"context"
	"database/sql"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"stagedoor/actors/flow"
	"stagedoor/actors/requests"
	"stagedoor/cmd/stagedoor/sqlite"
	"stagedoor/providers/catalog"
	"stagedoor/providers/dialogue"
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

// TestAReaderThatLeavesLeavesTheLogToOthers: its context ends while its first statements run. The driver seldom returns
// the error of a statement that was carried out, so there are many readers.
func TestAReaderThatLeavesLeavesTheLogToOthers(t *testing.T) {
	f := openFixture(t, filepath.Join(t.TempDir(), sqlite.FileName))
	readers := int64(20_000)
	if testing.Short() {
		readers = 4_000
	}
	for n := range readers {
		ctx := &leaving{Context: t.Context(), done: make(chan struct{}), looks: 4 + n%2}
		_, err := f.Count(ctx, "", f.Now, f.Now, time.Minute)
		if err != nil && strings.Contains(err.Error(), "transaction") {
			t.Fatalf("after %d readers have left: %v", n, err)
		}
	}
}

// leaving is a context that ends with one of its caller's looks at whether it has ended.
type leaving struct {
	context.Context
	done  chan struct{}
	looks int64
}

func (l *leaving) Done() <-chan struct{} {
	if atomic.AddInt64(&l.looks, -1) == 0 {
		close(l.done)
	}
	return l.done
}

func (l *leaving) Err() error {
	select {
	case <-l.done:
		return context.Canceled
	default:
		return nil
	}
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
	like := logtest.Record(0)
	entries := bytes.Repeat(like.AppendOwn(nil), 500) // no writer reads the entries of a full block
	page := bytes.Index(whole, entries)/4096*4096 + 4096
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

// Each record has an error of its own here, so that each is of its own kind. An index whose parts are merged only from
// 16 of a size on becomes one part in the batch with the number 255, which then writes four times as much as any other
// one. The first record sets off this merge between two of the small steps.
func TestNoBatchRewritesTheIndex(t *testing.T) {
	const size, most = 64, 2 << 20 // bytes
	batches := 16 * 16
	if testing.Short() {
		batches = 3 * 16
	}
	path := filepath.Join(t.TempDir(), sqlite.FileName)
	log := open(t, path)
	add := func(from, to int) {
		t.Helper()
		var batch []requestlog.Record
		for n := from; n < to; n++ {
			r := logtest.Record(n)
			r.Error = fmt.Sprintf("error %d of its own kind", n)
			batch = append(batch, r)
		}
		if err := log.Append(t.Context(), batch); err != nil {
			t.Fatal(err)
		}
	}
	add(batches*size, batches*size+1)
	db, err := sql.Open("sqlite", path)
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close()
	for n := range batches {
		if _, err := db.Exec("PRAGMA wal_checkpoint(TRUNCATE)"); err != nil {
			t.Fatal(err)
		}
		add(n*size, n*size+size)
		info, err := os.Stat(path + "-wal")
		if err != nil {
			t.Fatal(err)
		}
		if wrote := info.Size(); wrote == 0 || wrote > most {
			t.Fatalf("batch %d has written %d bytes, want at most %d", n, wrote, most)
		}
	}
}

// The names that clients choose may be new with each request. When the requests go because the log is too large, their
// kinds go, too, although all of them were used a moment before.
func TestKindsGoWithTheirRequestsWhenTheLogIsTooLarge(t *testing.T) {
	path := filepath.Join(t.TempDir(), sqlite.FileName)
	f := openFixture(t, path)
	for from := 0; from < 2000; from += 500 {
		var batch []requestlog.Record
		for n := from; n < from+500; n++ {
			r := logtest.Record(n)
			r.Began, r.App = logtest.Start, fmt.Sprintf("app %d", n)
			batch = append(batch, r)
		}
		if err := f.Append(t.Context(), batch); err != nil {
			t.Fatal(err)
		}
	}
	f.Limits.Bytes = 300_000
	logtest.Prune(t, f)
	if blocks, kinds := rows(t, path, "blocks"), rows(t, path, "kinds"); blocks != 0 || kinds != 0 {
		t.Errorf("%d blocks and %d kinds are left of a minute that is too large", blocks, kinds)
	}
	logtest.Fill(t, f, 2000, 2001)
	if ids, err := f.find(t); err != nil || len(ids) != 1 {
		t.Errorf("found %v, %v", ids, err)
	}
}

// rows returns the number of rows of a table.
func rows(t *testing.T, path, table string) (n int) {
	t.Helper()
	db, err := sql.Open("sqlite", path)
	if err == nil {
		err = db.QueryRow("SELECT count(*) FROM " + table).Scan(&n)
	}
	if err = errors.Join(err, db.Close()); err != nil {
		t.Fatal(err)
	}
	return n
}

// Few requests have batches of one record. They share blocks, also with the batches after a restart and with those
// after some of them were removed.
func TestSmallBatchesShareABlock(t *testing.T) {
	path := filepath.Join(t.TempDir(), sqlite.FileName)
	f := openFixture(t, path)
	var want []string
	add := func(from, to int) {
		for n := from; n < to; n++ {
			logtest.Fill(t, f, n, n+1)
			want = slices.Insert(want, 0, logtest.Record(n).ID)
		}
	}
	check := func(blocks int) {
		t.Helper()
		if ids, err := f.find(t); err != nil || !slices.Equal(ids, want) {
			t.Fatalf("found %v, %v, want %v", ids, err, want)
		}
		if n := rows(t, path, "blocks"); n != blocks {
			t.Errorf("%d blocks, want %d", n, blocks)
		}
	}
	add(0, 130)
	check(3)
	if err := f.Close(); err != nil {
		t.Fatal(err)
	}
	f = openFixture(t, path)
	add(130, 140)
	check(4)
	f.Limits.Keep = time.Hour - 135*time.Second
	logtest.Prune(t, f)
	want = want[:5]
	check(1)
	add(140, 150)
	check(2)
}

func TestAKindIsKeptOnceAndAsLongAsItsRequests(t *testing.T) {
	path := filepath.Join(t.TempDir(), sqlite.FileName)
	f := openFixture(t, path)
	at := func(hour int, model string) {
		t.Helper()
		r := logtest.Record(0)
		r.ID, r.Model, r.Began = fmt.Sprint(model, hour), model, logtest.Start.Add(time.Duration(hour)*time.Hour)
		if err := f.Append(t.Context(), []requestlog.Record{r}); err != nil {
			t.Fatal(err)
		}
	}
	for hour := range 5 {
		at(hour, "often")
		at(0, "late") // a long request of the first hour
	}
	at(0, "once")
	slow := logtest.Record(0)
	slow.Model, slow.First = "often", time.Minute
	if err := f.Append(t.Context(), []requestlog.Record{slow}); err != nil {
		t.Fatal(err)
	}
	if n := rows(t, path, "kinds"); n != 4 {
		t.Errorf("%d kinds, want often, often but slow, late and once", n)
	}
	for text, want := range map[string]int{"model:often": 6, "is:slow": 1, "model:late": 5, "model:once": 1} {
		if ids := logtest.Find(t, f, requestlog.Query{}, text); len(ids) != want {
			t.Errorf("%s finds %v", text, ids)
		}
	}
	f.Now = logtest.Start.Add(2*time.Hour + logtest.Month.Keep)
	logtest.Prune(t, f)
	if n := rows(t, path, "kinds"); n != 1 {
		t.Errorf("%d kinds are left, want that of the requests that are left", n)
	}
	at(4, "once") // is a new kind, although it was known before
	for text, want := range map[string]int{"model:often": 3, "model:late": 0, "model:once": 1} {
		if ids := logtest.Find(t, f, requestlog.Query{}, text); len(ids) != want {
			t.Errorf("%s finds %v", text, ids)
		}
	}
}

func TestAnIDIsFoundByItsBeginning(t *testing.T) {
	f := openFixture(t, filepath.Join(t.TempDir(), sqlite.FileName))
	ids := []string{"req_0192ab", "req_0192AC", "7f-3c-Client's", "0192"}
	for n, id := range ids {
		r := logtest.Record(n)
		r.ID = id
		if err := f.Append(t.Context(), []requestlog.Record{r}); err != nil {
			t.Fatal(err)
		}
	}
	for text, want := range map[string]int{"0192": 3, "0192ab": 1, "REQ_0192": 2, "id:0192": 1, "id:0192*": 3,
		"id:req_0192ac": 1, "7F-3c": 1, `"7f-3c-client's"`: 1, "92ab": 0, "id:req_": 0,
		"0192 bob": 1, "0192 0192ab": 1, "0192ab 7f": 0} {
		if got := logtest.Find(t, f, requestlog.Query{}, text); len(got) != want {
			t.Errorf("%s finds %v", text, got)
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

// totals returns the numbers of requests of all charts and sums.
func (f *fixture) totals(t *testing.T) (counted, spent int64) {
	t.Helper()
	to := logtest.Start.Add(3 * time.Hour)
	bars, err := f.Count(t.Context(), "", logtest.Start, to, 3*time.Hour)
	for _, bar := range bars {
		counted += bar.All
	}
	q := requestlog.SpentQuery{From: logtest.Start.Truncate(time.Hour), To: to, Step: time.Hour}
	err = errors.Join(err, f.Spent(t.Context(), &q, func(s *requestlog.Spent) error {
		spent += s.Requests
		return nil
	}))
	if err != nil {
		t.Fatal(err)
	}
	return counted, spent
}

// Records are added to the sums in the file for many blocks together. Each must be in the sums that readers see once,
// at any time, after a restart, and after older records were removed.
func TestEachRecordIsInTheSumsOnce(t *testing.T) {
	path := filepath.Join(t.TempDir(), sqlite.FileName)
	f := openFixture(t, path)
	check := func(want int64) {
		t.Helper()
		if counted, spent := f.totals(t); counted != want || spent != want {
			t.Fatalf("%d counted and %d summed up of %d", counted, spent, want)
		}
	}
	const size = 70 // a block is full with it
	most, added := 0, false
	for n := range 100 {
		logtest.Fill(t, f, n*size, n*size+size)
		check(int64(n+1) * size)
		left := rows(t, path, "blocks WHERE summed = 0")
		added = added || left < most
		most = max(most, left)
		if n%70 == 17 {
			if err := f.Close(); err != nil {
				t.Fatal(err)
			}
			f = openFixture(t, path)
			check(int64(n+1) * size)
		}
	}
	if most > 64 || !added {
		t.Errorf("readers read up to %d blocks, and none were added to the sums: %v", most, !added)
	}
	f.Limits.Keep = f.Now.Sub(logtest.Start) - 99*size*time.Second // the last blocks stay
	logtest.Prune(t, f)
	f.Limits.Keep = logtest.Month.Keep
	last := logtest.Record(100*size - 1).Began.Truncate(time.Hour)
	if _, spent := f.totals(t); spent != 100*size-int64(last.Sub(logtest.Start)/time.Second) {
		t.Errorf("%d are summed up of the hour of the last block", spent)
	}
}

func TestAFileOfTheVersionBeforeIsKept(t *testing.T) {
	path := filepath.Join(t.TempDir(), sqlite.FileName)
	f := openFixture(t, path)
	logtest.Fill(t, f, 0, 70)
	db, err := sql.Open("sqlite", path)
	if err == nil {
		_, err = db.Exec("PRAGMA user_version = 4")
	}
	if err = errors.Join(err, f.Close(), db.Close()); err != nil {
		t.Fatal(err)
	}
	f = openFixture(t, path)
	logtest.Fill(t, f, 70, 140)
	if ids := logtest.Find(t, f, requestlog.Query{}, ""); len(ids) != 140 {
		t.Errorf("%d found", len(ids))
	}
	if counted, spent := f.totals(t); counted != 140 || spent != 140 {
		t.Errorf("%d counted, %d summed up", counted, spent)
	}
}

// cancelledLater is a context that is cancelled when its error was asked for so many times.
type cancelledLater struct {
	context.Context
	left int
}

func (c *cancelledLater) Err() error {
	if c.left--; c.left < 0 {
		return context.Canceled
	}
	return nil
}

func TestRecordsOfAFailedChangeAreNotInTheSums(t *testing.T) {
	f := openFixture(t, filepath.Join(t.TempDir(), sqlite.FileName))
	const size = 70 // a block is full with it
	logtest.Fill(t, f, 0, size)
	var batch []requestlog.Record
	for n := range size {
		batch = append(batch, logtest.Record(n))
	}
	if err := f.Append(&cancelledLater{t.Context(), size - 10}, batch); !errors.Is(err, context.Canceled) {
		t.Fatal(err)
	}
	for n := 1; n <= 65; n++ { // the sums are written meanwhile
		logtest.Fill(t, f, n*size, n*size+size)
	}
	if counted, spent := f.totals(t); counted != 66*size || spent != 66*size {
		t.Errorf("%d counted and %d summed up of %d", counted, spent, 66*size)
	}
}

// BenchmarkRequest measures the processor time of requests of which the log keeps a record, and of the same requests
// without a log. The difference is what the log costs: its place in the queue, its record, the batches in the file, and
// the collections that it causes. The requests come from 210 combinations of users, keys, models and providers.
func BenchmarkRequest(b *testing.B) {
	for name, keep := range map[string]time.Duration{"without": 0, "kept": logtest.Month.Keep} {
		b.Run(name, func(b *testing.B) { benchmarkRequest(b, keep) })
	}
}

func benchmarkRequest(b *testing.B, keep time.Duration) {
	log, registry, limits := open(b, filepath.Join(b.TempDir(), sqlite.FileName)), flow.New(time.Now), logtest.Month
	limits.Keep = keep
	r := requests.Start(requests.Options{Limits: limits, Logger: slog.Default(),
		Key: func(id string) string { return "of " + id },
		Open: func(func() requestlog.Limits) (requestlog.Store, error) {
			return requestlog.Store{Reader: log, Writer: log}, nil
		}})
	registry.SetRecorder(r.Add, r.Keeps)
	const size = 512
	made := int64(0)
	began := processor(b)
	for b.Loop() {
		for range size {
			like := logtest.Record(int(made))
			about := flow.About{ID: like.ID, Owner: like.Owner, Key: like.Key, Model: like.Model, Shape: "chat"}
			q := registry.Begin(b.Context(), about, func(error) {})
			q.Attempt(&catalog.Candidate{Provider: &catalog.Provider{Name: like.Provider}, Model: like.Model})
			q.Enter(flow.Waiting)
			q.Enter(flow.Replying)
			q.End(flow.Result{Usage: dialogue.Usage{InputTotal: like.Input, OutputTotal: like.Output}, Reason: "stop"})
			q.Record()
			made++
		}
		for written := int64(0); keep > 0 && written < made; time.Sleep(time.Millisecond) {
			var dropped int64
			if written, dropped = r.Stats(); dropped > 0 {
				b.Fatalf("%d are missing", dropped)
			}
		}
	}
	b.ReportMetric(float64((processor(b)-began).Nanoseconds())/1e3/float64(made), "cpu-µs/request")
	if err := r.Close(); err != nil {
		b.Fatal(err)
	}
}

// processor returns the processor time of this process.
func processor(b *testing.B) time.Duration {
	var used syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &used); err != nil {
		b.Fatal(err)
	}
	return time.Duration(used.Utime.Nano() + used.Stime.Nano())
}
func BenchmarkAppend(b *testing.B) {
	logtest.BenchmarkAppend(b, open(b, filepath.Join(b.TempDir(), sqlite.FileName)))
}
