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
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"stagedoor/cmd/stagedoor/sqlite"
	"stagedoor/state"
	"stagedoor/state/requestlog"
)

// start is the time of the first record.
var start = time.Date(2026, 11, 20, 10, 0, 30, 0, time.UTC)

// month keeps all records of a test.
var month = requestlog.Limits{Keep: 30 * 24 * time.Hour, Bytes: 1 << 30}

// fixture is a log whose clock, limits and room a test changes. The clock stands an hour after start.
type fixture struct {
	*sqlite.Log
	path   string
	now    time.Time
	limits requestlog.Limits
	room   int64
	said   strings.Builder
}

// openFixture opens a log at path. The log is closed when the test ends.
func openFixture(t testing.TB, path string) *fixture {
	t.Helper()
	f := &fixture{path: path, now: start.Add(time.Hour), limits: month}
	log, err := sqlite.Open(sqlite.Options{Path: path, Now: func() time.Time { return f.now },
		Limits: func() requestlog.Limits { return f.limits }, Room: func() int64 { return f.room },
		Logger: slog.New(slog.NewTextHandler(&f.said, nil))})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { log.Close() })
	f.Log = log
	return f
}

func open(t testing.TB, path string) *sqlite.Log { return openFixture(t, path).Log }

// prune removes all that the limits forbid.
func (f *fixture) prune(t *testing.T) {
	t.Helper()
	for more, err := true, error(nil); more; {
		if more, err = f.Prune(t.Context()); err != nil {
			t.Fatal(err)
		}
	}
}

// find returns the ids of all records, or the error of the search.
func (f *fixture) find(t *testing.T) (ids []string, err error) {
	err = f.Find(t.Context(), &requestlog.Query{Limit: 100_000}, func(r *requestlog.Record) bool {
		ids = append(ids, r.ID)
		return true
	})
	return ids, err
}

// record returns the n-th record: bob's and anna's turn by turn, each second one second later.
func record(n int) requestlog.Record {
	user := []string{"bob", "anna"}[n%2]
	r := requestlog.Record{ID: fmt.Sprintf("req_%06d", n), Began: start.Add(time.Duration(n) * time.Second),
		Owner: "user:" + user, User: user, Key: fmt.Sprintf("key_%d", n%7), KeyName: fmt.Sprintf("laptop-%d", n%7),
		Model: fmt.Sprintf("gpt-5-%d", n%5), Provider: []string{"openai", "azure", "lab"}[n%3], Shape: "chat",
		Status: 200,
		Reason: "stop", Took: time.Duration(n%4000) * time.Millisecond, First: 400 * time.Millisecond,
		Input: int64(n % 5000), Output: 20, Cost: int64(n%1000) * 100, Attempts: 1,
		Tries: []requestlog.Try{{Provider: "openai", Model: "gpt-5"}}, Steps: []requestlog.Step{{Phase: "waiting",
			AtUs: 7}}}
	if n%100 == 50 {
		r.Status, r.Code, r.Error, r.Attempts = 502, "upstream_reset", "the provider closed the connection", 2
		r.Tries[0].Failure = "transient"
	}
	if n%40 == 3 {
		r.Losses = "logprobs, seed"
	}
	return r
}

// fill adds records from one number to another.
func fill(t testing.TB, log *sqlite.Log, from, to int) {
	t.Helper()
	for part := range slices.Chunk(numbers(from, to), 500) {
		batch := make([]requestlog.Record, len(part))
		for i, n := range part {
			batch[i] = record(n)
		}
		if err := log.Append(t.Context(), batch); err != nil {
			t.Fatal(err)
		}
	}
}

func numbers(from, to int) []int {
	all := make([]int, 0, to-from)
	for n := from; n < to; n++ {
		all = append(all, n)
	}
	return all
}

// find returns the ids that a search finds.
func find(t testing.TB, log *sqlite.Log, q requestlog.Query, text string) (ids []string) {
	t.Helper()
	terms, err := requestlog.Parse(text)
	if err != nil {
		t.Fatal(err)
	}
	if q.Terms = terms; q.Limit == 0 {
		q.Limit = 10_000
	}
	if err := log.Find(t.Context(), &q, func(r *requestlog.Record) bool {
		ids = append(ids, r.ID)
		return true
	}); err != nil {
		t.Fatalf("%s: %v", text, err)
	}
	return ids
}

func TestASearchFindsByAnyFieldAndByTextOfErrors(t *testing.T) {
	log := open(t, filepath.Join(t.TempDir(), "a b#c?%.sqlite"))
	fill(t, log, 0, 1000)
	for text, matches := range map[string]func(r *requestlog.Record) bool{
		"":              func(*requestlog.Record) bool { return true },
		"req_000123":    func(r *requestlog.Record) bool { return r.ID == "req_000123" },
		"user:bob":      func(r *requestlog.Record) bool { return r.User == "bob" },
		"key:laptop-3":  func(r *requestlog.Record) bool { return r.KeyName == "laptop-3" },
		"model:gpt-5-1": func(r *requestlog.Record) bool { return r.Model == "gpt-5-1" },
		"provider:lab user:ANNA": func(r *requestlog.Record) bool {
			return r.Provider == "lab" &&
				r.User == "anna"
		},
		"status:502":               func(r *requestlog.Record) bool { return r.Status == 502 },
		"status:5xx model:gpt-5-0": func(r *requestlog.Record) bool { return r.Status == 502 },
		"closed connect":           nil,
		`"closed the connect"`:     func(r *requestlog.Record) bool { return r.Status == 502 },
		"error:trans*":             func(r *requestlog.Record) bool { return r.Status == 502 },
		"is:failed is:retried":     func(r *requestlog.Record) bool { return r.Status == 502 },
		"loss:seed":                func(r *requestlog.Record) bool { return r.Losses != "" },
		"cost:>0.0989":             func(r *requestlog.Record) bool { return r.Cost > 98_900 },
		"cost:<=0.0001 took:>=1": func(r *requestlog.Record) bool {
			return r.Cost <= 100 &&
				r.Took >= time.Second
		},
		"in:137":                       func(r *requestlog.Record) bool { return r.Input == 137 },
		"out:>20":                      nil,
		"key":                          func(*requestlog.Record) bool { return true },
		"owner757365723a626f62":        nil,
		`"bob) OR user:anna" * ^ NEAR`: nil,
	} {
		var want []string
		for n := 999; n >= 0; n-- {
			if r := record(n); matches != nil && matches(&r) {
				want = append(want, r.ID)
			}
		}
		if text == "closed connect" { // both words, in any place
			want = find(t, log, requestlog.Query{}, "status:502")
		}
		if got := find(t, log, requestlog.Query{}, text); !slices.Equal(got, want) {
			t.Errorf("%q finds %d, want %d", text, len(got), len(want))
		}
	}
}

func TestASearchFindsNamesAsTheyAreWrittenAndEachProviderTried(t *testing.T) {
	log := open(t, filepath.Join(t.TempDir(), sqlite.FileName))
	r := record(1)
	r.KeyName, r.Provider = "cafe\u0301s", "azure2"
	r.Tries = []requestlog.Try{{Provider: "azure"}, {Provider: "azure2"}}
	if err := log.Append(t.Context(), []requestlog.Record{r}); err != nil {
		t.Fatal(err)
	}
	for _, text := range []string{"key:cafe\u0301s", "cafe\u0301", "key:cafés", "provider:azure", "provider:azure2"} {
		if len(find(t, log, requestlog.Query{}, text)) != 1 {
			t.Errorf("%q finds nothing", text)
		}
	}
}

func TestAnOwnerFindsOnlyTheirOwnRequests(t *testing.T) {
	log := open(t, filepath.Join(t.TempDir(), sqlite.FileName))
	fill(t, log, 0, 100)
	for _, text := range []string{"", "user:anna", "req_000001", "is:failed", "cost:>=0"} {
		for _, id := range find(t, log, requestlog.Query{Owner: "user:bob"}, text) {
			if id[len(id)-1]%2 != 0 {
				t.Errorf("%q finds %s of anna", text, id)
			}
		}
	}
	var at int64
	q := requestlog.Query{Owner: "user:anna", Limit: 1}
	if err := log.Find(t.Context(), &q, func(r *requestlog.Record) bool { at = r.At; return true }); err != nil {
		t.Fatal(err)
	}
	if _, err := log.Get(t.Context(), at, "user:bob"); !errors.Is(err, state.ErrNotFound) {
		t.Errorf("bob gets a request of anna: %v", err)
	}
	for _, owner := range []string{"", "user:anna"} {
		if r, err := log.Get(t.Context(), at, owner); err != nil || r.ID != "req_000099" || len(r.Tries) != 1 {
			t.Errorf("%q: %+v, %v", owner, r, err)
		}
	}
	bars, err := log.Count(t.Context(), "user:bob", start, start.Add(2*time.Minute), time.Minute)
	if err != nil || len(bars) != 3 || bars[0].All+bars[1].All+bars[2].All != 50 ||
		bars[1].Failed != 1 {
		t.Errorf("bars %v, %v", bars, err)
	}
}

func TestPagesContinueWhereTheLastOneEnded(t *testing.T) {
	log := open(t, filepath.Join(t.TempDir(), sqlite.FileName))
	fill(t, log, 0, 100)
	var all []string
	q := requestlog.Query{Limit: 7, From: start.Add(10 * time.Second), To: start.Add(90 * time.Second)}
	for {
		before := len(all)
		if err := log.Find(t.Context(), &q, func(r *requestlog.Record) bool {
			all, q.Before = append(all, r.ID), r.At
			return true
		}); err != nil {
			t.Fatal(err)
		}
		if len(all) == before {
			break
		}
		fill(t, log, 95, 96) // newer requests do not move the pages
	}
	if len(all) != 80 || all[0] != "req_000089" || all[79] != "req_000010" {
		t.Errorf("%d from %s to %s", len(all), all[0], all[len(all)-1])
	}
}

func TestTheLogKeepsItsDaysAndItsBytes(t *testing.T) {
	path := filepath.Join(t.TempDir(), sqlite.FileName)
	f := openFixture(t, path)
	fill(t, f.Log, 0, 6001)
	f.limits.Keep = time.Hour - 2000*time.Second
	f.prune(t)
	if left := find(t, f.Log, requestlog.Query{}, ""); len(left) != 4001 || left[len(left)-1] != "req_002000" {
		t.Errorf("%d are left of the days", len(left))
	}
	f.limits = requestlog.Limits{Keep: month.Keep, Bytes: 1 << 20}
	for n := 6001; n < 20_000; n += 3000 {
		fill(t, f.Log, n, n+3000)
		f.prune(t)
	}
	left := find(t, f.Log, requestlog.Query{}, "")
	if len(left) < 100 || len(left) > 6000 || left[0] != "req_021000" {
		t.Errorf("%d are left of the bytes, the newest is %v", len(left), left[:1])
	}
	if words := find(t, f.Log, requestlog.Query{Limit: 100_000}, "model:gpt"); len(words) != len(left) {
		t.Errorf("the index has %d of %d", len(words), len(left))
	}
	if info, err := os.Stat(path); err != nil || info.Size() > 5<<20 || info.Mode().Perm() != 0o600 {
		t.Errorf("the file has %d bytes, mode %v, %v", info.Size(), info.Mode(), err)
	}
}

func TestNoReaderSeesARequestOlderThanTheLogKeeps(t *testing.T) {
	f := openFixture(t, filepath.Join(t.TempDir(), sqlite.FileName))
	fill(t, f.Log, 0, 60)
	var oldest int64
	if err := f.Find(t.Context(), &requestlog.Query{Limit: 60}, func(r *requestlog.Record) bool {
		oldest = r.At
		return true
	}); err != nil {
		t.Fatal(err)
	}
	f.now = start.Add(month.Keep + 30*time.Second) // the requests of the first half minute are too old
	for _, text := range []string{"", "model:gpt*"} {
		if ids := find(t, f.Log, requestlog.Query{From: start.Add(-time.Hour)}, text); len(ids) != 30 {
			t.Errorf("%q finds %d", text, len(ids))
		}
	}
	if _, err := f.Get(t.Context(), oldest, ""); !errors.Is(err, state.ErrNotFound) {
		t.Errorf("the oldest request is shown: %v", err)
	}
	bars, err := f.Count(t.Context(), "", start, start.Add(time.Minute), time.Hour)
	if err != nil || bars[0].All != 30 {
		t.Errorf("%+v, %v", bars, err)
	}
	f.prune(t)
	if f.limits.Keep *= 2; len(find(t, f.Log, requestlog.Query{}, "")) != 30 {
		t.Error("the old requests are still in the file")
	}
}

func TestALogThatIsSwitchedOffLeavesNoFile(t *testing.T) {
	f := openFixture(t, filepath.Join(t.TempDir(), sqlite.FileName))
	fill(t, f.Log, 0, 10)
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
	if err := errors.Join(os.WriteFile(aside, nil, 0o600), os.Chtimes(aside, start, start)); err != nil {
		t.Fatal(err)
	}
	f.prune(t)
	if _, err := os.Stat(aside); err != nil {
		t.Errorf("it went at once: %v", err)
	}
	f.now = start.Add(month.Keep + time.Second)
	f.prune(t)
	if _, err := os.Stat(aside); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("it is still there: %v", err)
	}
}

func TestTheLogGivesSpaceBackBeforeTheJournalNeedsIt(t *testing.T) {
	f := openFixture(t, filepath.Join(t.TempDir(), sqlite.FileName))
	fill(t, f.Log, 0, 3000)
	f.room = -1
	if err := f.Append(t.Context(), []requestlog.Record{record(3000)}); err == nil {
		t.Error("it takes the last space of the disk")
	}
	f.prune(t)
	info, err := os.Stat(f.path)
	if err != nil || info.Size() > 200_000 {
		t.Errorf("the file has %d bytes, %v", info.Size(), err)
	}
	f.room = 0
	fill(t, f.Log, 3001, 3002)
	if ids := find(t, f.Log, requestlog.Query{}, ""); !slices.Equal(ids, []string{"req_003001"}) {
		t.Errorf("found %d", len(ids))
	}
}

func TestTheLogSurvivesARestart(t *testing.T) {
	path := filepath.Join(t.TempDir(), sqlite.FileName)
	log := open(t, path)
	fill(t, log, 0, 10)
	if err := log.Close(); err != nil {
		t.Fatal(err)
	}
	log = open(t, path)
	fill(t, log, 10, 20)
	if all := find(t, log, requestlog.Query{}, ""); len(all) != 20 {
		t.Errorf("%d after a restart", len(all))
	}
}

// written returns the bytes of a closed file of a log with n requests.
func written(t *testing.T, path string, n int) []byte {
	t.Helper()
	log := open(t, path)
	fill(t, log, 0, n)
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
			fill(t, f.Log, 500, 600)
			if all := find(t, f.Log, requestlog.Query{}, ""); len(all) != 100 {
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
	fill(t, f.Log, 2000, 2001)
	if ids, err := f.find(t); err == nil {
		t.Fatalf("a broken page is no error: %d found", len(ids))
	}
	fill(t, f.Log, 2001, 2002)
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
		if err := f.Append(t.Context(), []requestlog.Record{record(1)}); err == nil {
			t.Fatal("a broken file takes a record")
		}
	}
	if err := os.Remove(path + sqlite.Broken); err != nil {
		t.Fatal(err)
	}
	f.now = f.now.Add(time.Minute)
	fill(t, f.Log, 2, 3)
	if ids, err := f.find(t); err != nil || !slices.Equal(ids, []string{"req_000002"}) {
		t.Errorf("%v, %v", ids, err)
	}
}

func TestASearchThatIsCancelledEnds(t *testing.T) {
	log := open(t, filepath.Join(t.TempDir(), sqlite.FileName))
	fill(t, log, 0, 10)
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if err := log.Find(ctx, &requestlog.Query{Limit: 5}, func(*requestlog.Record) bool { return true }); err == nil {
		t.Error("it goes on")
	}
}

// BenchmarkSearch measures searches in a log of -requests records, which it makes first:
//
//	REQUESTS=1000000 go test ./cmd/stagedoor/sqlite -bench Search -run ^$
func BenchmarkSearch(b *testing.B) {
	many := 20_000
	if _, err := fmt.Sscan(os.Getenv("REQUESTS"), &many); err != nil && os.Getenv("REQUESTS") != "" {
		b.Fatal(err)
	}
	path := filepath.Join(b.TempDir(), sqlite.FileName)
	log := open(b, path)
	began := time.Now()
	fill(b, log, 0, many)
	info, err := os.Stat(path)
	if err != nil {
		b.Fatal(err)
	}
	b.Logf("%d records in %v, %d bytes each", many, time.Since(began), info.Size()/int64(many))
	last := record(many - 1)
	for _, text := range []string{"", "user:bob", "req_000001", "user:anna status:502", "is:failed model:gpt-5-1",
		"closed connection",
		"cost:>0.0999 is:failed", "cost:=0.0007 took:<0.01", "loss:seed key:laptop-3",
		"id:req_00001 provider:lab took:>3.9"} {
		b.Run(text, func(b *testing.B) {
			found := 0
			for b.Loop() {
				found = len(find(b, log, requestlog.Query{Limit: 50}, text))
			}
			b.ReportMetric(float64(found), "found")
		})
	}
	b.Run("count", func(b *testing.B) {
		for b.Loop() {
			if _, err := log.Count(b.Context(), "", start, last.Began, 30*24*time.Hour/60); err != nil {
				b.Fatal(err)
			}
		}
	})
}

func TestABatchInAnyOrderKeepsEachRecordWhole(t *testing.T) {
	log := open(t, filepath.Join(t.TempDir(), sqlite.FileName))
	batch := []requestlog.Record{record(3), {ID: "req_000001", Began: start, Owner: "key:a", Model: "\xff"}, record(53)}
	if err := log.Append(t.Context(), slices.Clone(batch)); err != nil {
		t.Fatal(err)
	}
	slices.Reverse(batch[1:]) // newest first
	batch[0], batch[1] = batch[1], batch[0]
	batch[2].Model = "\ufffd"
	n := 0
	if err := log.Find(t.Context(), &requestlog.Query{Limit: 10}, func(r *requestlog.Record) bool {
		if r.At = 0; !reflect.DeepEqual(*r, batch[n]) {
			t.Errorf("%d: got %+v, want %+v", n, *r, batch[n])
		}
		n++
		return true
	}); err != nil || n != len(batch) {
		t.Errorf("%d found, %v", n, err)
	}
}

// BenchmarkAppend measures one record of a batch whose requests ended in another order than they began, as they do when
// several are in flight.
func BenchmarkAppend(b *testing.B) {
	const size = 512
	log := open(b, filepath.Join(b.TempDir(), sqlite.FileName))
	for n := 0; b.Loop(); n += size {
		batch := make([]requestlog.Record, size)
		for i := range batch {
			batch[i] = record(n + i)
			batch[i].Began = start.Add(time.Duration(n+(i^13)) * 100 * time.Microsecond)
		}
		if err := log.Append(b.Context(), batch); err != nil {
			b.Fatal(err)
		}
	}
	b.ReportMetric(float64(b.Elapsed().Microseconds())/float64(size*b.N), "µs/record")
}

func TestWhatWasUsedIsSummedByTheHour(t *testing.T) {
	f := openFixture(t, filepath.Join(t.TempDir(), sqlite.FileName))
	var records []requestlog.Record
	for n := range 200 { // in two hours
		r := record(n)
		r.Began, r.Cost, r.Input, r.Output, r.App = start.Add(time.Duration(n)*time.Minute/2), 5, 2, 1, "curl"
		records = append(records, r)
	}
	for i := range 4 { // in several batches
		if err := f.Append(t.Context(), records[50*i:50*i+50]); err != nil {
			t.Fatal(err)
		}
	}
	sum := func(owner string, from, to time.Time, step time.Duration) (by map[int]int64, providers map[string]int64) {
		by, providers = map[int]int64{}, map[string]int64{}
		q := requestlog.SpentQuery{Owner: owner, From: from, To: to, Step: step}
		err := f.Spent(t.Context(), &q, func(s *requestlog.Spent) error {
			if s.MicroUSD != 5*s.Requests || s.Input != 2*s.Requests || s.Output != s.Requests || s.App != "curl" {
				t.Errorf("%+v", s)
			}
			by[s.Step] += s.Requests
			providers[s.Provider] += s.Requests
			return nil
		})
		if err != nil {
			t.Fatal(err)
		}
		return by, providers
	}
	hour := start.Truncate(time.Hour)
	by, providers := sum("", hour, hour.Add(3*time.Hour), time.Hour)
	if fmt.Sprint(by, providers) != "map[0:119 1:81] map[azure:67 lab:66 openai:67]" {
		t.Errorf("by the hour %v, by provider %v", by, providers)
	}
	day := 24 * time.Hour
	if by, _ := sum("user:bob", hour.Add(-day), hour.Add(day), day); fmt.Sprint(by) != "map[1:100]" {
		t.Errorf("bob by the day: %v", by)
	}
	f.now = start.Add(month.Keep + 90*time.Minute)
	if by, _ := sum("", hour, hour.Add(3*time.Hour), time.Hour); fmt.Sprint(by) != "map[1:81]" {
		t.Errorf("after the time of the log: %v", by)
	}
	f.prune(t)
}

// A log of version 1, which had no sums, is kept, and sums from then on.
func TestALogOfTheVersionBeforeIsKept(t *testing.T) {
	path := filepath.Join(t.TempDir(), sqlite.FileName)
	log := open(t, path)
	fill(t, log, 0, 10)
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
	fill(t, f.Log, 10, 20)
	sum := int64(0)
	q := requestlog.SpentQuery{From: start.Add(-time.Hour), To: start.Add(time.Hour), Step: time.Hour}
	err = f.Spent(t.Context(), &q, func(s *requestlog.Spent) error { sum += s.Requests; return nil })
	if all := find(t, f.Log, requestlog.Query{}, ""); err != nil || len(all) != 20 || sum != 10 {
		t.Errorf("%d requests, %d summed, %v", len(all), sum, err)
	}
}

func TestAGroupAndAnAppAreFoundByTheirWholeName(t *testing.T) {
	f := openFixture(t, filepath.Join(t.TempDir(), sqlite.FileName))
	one, two := record(1), record(2)
	one.Group, one.App, two.Group, two.App = "Team", "OpenAI", "Team B", "openai-python"
	if err := f.Append(t.Context(), []requestlog.Record{one, two}); err != nil {
		t.Fatal(err)
	}
	for text, want := range map[string]string{"group:team": one.ID, `group:"team b"`: two.ID, "app:openai": one.ID} {
		if ids := find(t, f.Log, requestlog.Query{}, text); !slices.Equal(ids, []string{want}) {
			t.Errorf("%s finds %v", text, ids)
		}
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
	fill(t, log, 0, 20)
	log.Close()
	if got := change(""); got != 4 {
		t.Errorf("a new index is merged from %d parts on", got)
	}
	if got := change("INSERT INTO words (words, rank) VALUES ('automerge', 16)"); got != 16 {
		t.Fatalf("the index is merged from %d parts on, want 16", got)
	}
	log = open(t, path)
	if got := find(t, log, requestlog.Query{}, ""); len(got) != 20 {
		t.Errorf("%d records are found, want 20", len(got))
	}
	log.Close()
	if got := change(""); got != 4 {
		t.Errorf("the index is merged from %d parts on after it was opened", got)
	}
}

// An index whose parts are merged only from 16 of a size on becomes one part in the batch with the number 255, which
// then writes four times as much as any other one. The first record sets off this merge between two of the small steps.
func TestNoBatchRewritesTheIndex(t *testing.T) {
	const batches, size, most = 16 * 16, 64, 2 << 20 // bytes
	path := filepath.Join(t.TempDir(), sqlite.FileName)
	log := open(t, path)
	fill(t, log, batches*size, batches*size+1)
	db, err := sql.Open("sqlite", path)
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close()
	for n := range batches {
		if _, err := db.Exec("PRAGMA wal_checkpoint(TRUNCATE)"); err != nil {
			t.Fatal(err)
		}
		fill(t, log, n*size, n*size+size)
		info, err := os.Stat(path + "-wal")
		if err != nil {
			t.Fatal(err)
		}
		if wrote := info.Size(); wrote == 0 || wrote > most {
			t.Fatalf("batch %d has written %d bytes, want at most %d", n, wrote, most)
		}
	}
}
