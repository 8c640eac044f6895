// Package logtest is the one suite that every store of the log of requests passes. A new store calls Run from its test.
// What only one kind of store can do, such as setting a broken file aside, is tested beside it.
//
// # Usage
//
// Store says how a test opens a log at a new place, and how it opens one again at a place that was used. Bounds has the
// clock and the limits, which the tests move, so that no test waits for a record to become old. Record makes records
// whose fields can be computed from their numbers; a test states what it expects without listing them.
//
// BenchmarkSearch and BenchmarkAppend are exported for the benchmarks of each store, so that the figures of two stores
// are of the same records.
package logtest

import (
	"context"
	"errors"
	"fmt"
	"os"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"stagedoor/state"
	"stagedoor/state/requestlog"
)

// Start is the time of the first record, and Month keeps all records of a test.
var (
	Start = time.Date(2026, 11, 20, 10, 0, 30, 0, time.UTC)
	Month = requestlog.Limits{Keep: 30 * 24 * time.Hour, Bytes: 1 << 30}
)

// Bounds are the clock and the limits of a log, which a test changes. A store reads them at each call, so
// that a test can let time pass, or make the log smaller, between two calls.
type Bounds struct {
	Now    time.Time
	Limits requestlog.Limits
}

// NewBounds returns bounds in which all records are kept. The clock stands an hour after Start.
func NewBounds() *Bounds { return &Bounds{Start.Add(time.Hour), Month} }

// Store makes the stores under test.
type Store struct {
	// Place returns where an empty log is to be kept.
	Place func(testing.TB) string
	// Open opens the log at a place. It is closed when the test ends.
	Open func(t testing.TB, place string, b *Bounds) requestlog.Store
}

func (s *Store) open(t testing.TB) requestlog.Store {
	t.Helper()
	return s.Open(t, s.Place(t), NewBounds())
}

// Run runs the suite. Each test opens a log of its own.
func Run(t *testing.T, s Store) {
	for name, test := range map[string]func(*testing.T, Store){
		"ASearchFindsByAnyFieldAndByTextOfErrors":          TestASearchFindsByAnyFieldAndByTextOfErrors,
		"ASearchFindsNamesAsTheyAreWrittenAndEachProvider": TestASearchFindsNamesAsTheyAreWrittenAndEachProviderTried,
		"ASearchFindsTheNewestOfManyRecords":               TestASearchFindsTheNewestOfManyRecords,
		"AnOwnerFindsOnlyTheirOwnRequests":                 TestAnOwnerFindsOnlyTheirOwnRequests,
		"PagesContinueWhereTheLastOneEnded":                TestPagesContinueWhereTheLastOneEnded,
		"TheLogKeepsItsDaysAndItsBytes":                    TestTheLogKeepsItsDaysAndItsBytes,
		"NoReaderSeesARequestOlderThanTheLogKeeps":         TestNoReaderSeesARequestOlderThanTheLogKeeps,
		"TheLogSurvivesARestart":                           TestTheLogSurvivesARestart,
		"ASearchThatIsCancelledEnds":                       TestASearchThatIsCancelledEnds,
		"ABatchInAnyOrderKeepsEachRecordWhole":             TestABatchInAnyOrderKeepsEachRecordWhole,
		"WhatWasUsedIsSummedByTheHour":                     TestWhatWasUsedIsSummedByTheHour,
		"AGroupAndAnAppAreFoundByTheirWholeName":           TestAGroupAndAnAppAreFoundByTheirWholeName,
	} {
		t.Run(name, func(t *testing.T) { test(t, s) })
	}
}

// failed is the status of the records that failed.
const failed = 502

// Record returns the n-th record. Records are bob's and anna's in turn, and each began a second after the one
// before. One in a hundred failed, and one in forty has losses. Names repeat with other periods, so that a
// test can compute which records match.
func Record(n int) requestlog.Record {
	user := []string{"bob", "anna"}[n%2]
	r := requestlog.Record{ID: fmt.Sprintf("req_%06d", n), Began: Start.Add(time.Duration(n) * time.Second),
		Owner: "user:" + user, User: user, Key: fmt.Sprintf("key_%d", n%7), KeyName: fmt.Sprintf("laptop-%d", n%7),
		Model: fmt.Sprintf("maple-5-%d", n%5), Provider: []string{"openai", "azure", "lab"}[n%3], Shape: "chat",
		Status: requestlog.OK,
		Reason: "stop", Took: time.Duration(n%4000) * time.Millisecond, First: 400 * time.Millisecond,
		Input: int64(n % 5000), Output: 20, Cost: int64(n%1000) * 100, Attempts: 1,
		Tries: []requestlog.Try{{Provider: "openai", Model: "maple-5"}}, Steps: []requestlog.Step{{Phase: "waiting",
			AtUs: 7}}}
	if n%100 == 50 {
		r.Status, r.Code, r.Error, r.Attempts = failed, "upstream_reset", "the provider closed the connection", 2
		r.Tries[0].Failure = "transient"
	}
	if n%40 == 3 {
		r.Losses = "logprobs, seed"
	}
	return r
}

// Fill adds records from one number to another.
func Fill(t testing.TB, log requestlog.Writer, from, to int) {
	t.Helper()
	for part := range slices.Chunk(numbers(from, to), 500) {
		batch := make([]requestlog.Record, len(part))
		for i, n := range part {
			batch[i] = Record(n)
		}
		if err := log.Append(t.Context(), batch); err != nil {
			t.Fatal(err)
		}
	}
}

// numbers returns the numbers from from up to, but without, to.
func numbers(from, to int) []int {
	all := make([]int, 0, to-from)
	for n := from; n < to; n++ {
		all = append(all, n)
	}
	return all
}

// Find returns the ids that a search finds, the newest first, as the log orders them.
func Find(t testing.TB, log requestlog.Reader, q requestlog.Query, text string) (ids []string) {
	t.Helper()
	terms, err := requestlog.Parse(text)
	if err != nil {
		t.Fatal(err)
	}
	if q.Terms = terms; q.Limit == 0 {
		q.Limit = 100_000
	}
	if err := log.Find(t.Context(), &q, func(r *requestlog.Record) bool {
		ids = append(ids, r.ID)
		return true
	}); err != nil {
		t.Fatalf("%s: %v", text, err)
	}
	return ids
}

// Prune removes all that the limits forbid.
func Prune(t testing.TB, log requestlog.Writer) {
	t.Helper()
	for more, err := true, error(nil); more; {
		if more, err = log.Prune(t.Context()); err != nil {
			t.Fatal(err)
		}
	}
}

// TestASearchFindsByAnyFieldAndByTextOfErrors compares each kind of term with the records that must match. The last
// terms look like parts of the log's own index or of a query language, and must find nothing.
func TestASearchFindsByAnyFieldAndByTextOfErrors(t *testing.T, s Store) {
	log := s.open(t)
	Fill(t, log, 0, 1000)
	for text, matches := range map[string]func(r *requestlog.Record) bool{
		"":                func(*requestlog.Record) bool { return true },
		"req_000123":      func(r *requestlog.Record) bool { return r.ID == "req_000123" },
		"user:bob":        func(r *requestlog.Record) bool { return r.User == "bob" },
		"key:laptop-3":    func(r *requestlog.Record) bool { return r.KeyName == "laptop-3" },
		"model:maple-5-1": func(r *requestlog.Record) bool { return r.Model == "maple-5-1" },
		"provider:lab user:ANNA": func(r *requestlog.Record) bool {
			return r.Provider == "lab" &&
				r.User == "anna"
		},
		"status:502":                 func(r *requestlog.Record) bool { return r.Status == 502 },
		"status:5xx model:maple-5-0": func(r *requestlog.Record) bool { return r.Status == 502 },
		"closed connect":             nil,
		`"closed the connect"`:       func(r *requestlog.Record) bool { return r.Status == 502 },
		"error:trans*":               func(r *requestlog.Record) bool { return r.Status == 502 },
		"is:failed is:retried":       func(r *requestlog.Record) bool { return r.Status == 502 },
		"loss:seed":                  func(r *requestlog.Record) bool { return r.Losses != "" },
		"cost:>0.0989":               func(r *requestlog.Record) bool { return r.Cost > 98_900 },
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
			if r := Record(n); matches != nil && matches(&r) {
				want = append(want, r.ID)
			}
		}
		if text == "closed connect" { // both words, in any place
			want = Find(t, log, requestlog.Query{}, "status:502")
		}
		if got := Find(t, log, requestlog.Query{}, text); !slices.Equal(got, want) {
			t.Errorf("%q finds %d, want %d", text, len(got), len(want))
		}
	}
}

// TestASearchFindsNamesAsTheyAreWrittenAndEachProviderTried searches a name in both of its Unicode forms, and a request
// by a provider that it has only tried.
func TestASearchFindsNamesAsTheyAreWrittenAndEachProviderTried(t *testing.T, s Store) {
	log := s.open(t)
	r := Record(1)
	r.KeyName, r.Provider = "cafe\u0301s", "azure2"
	r.Tries = []requestlog.Try{{Provider: "azure"}, {Provider: "azure2"}}
	if err := log.Append(t.Context(), []requestlog.Record{r}); err != nil {
		t.Fatal(err)
	}
	for _, text := range []string{"key:cafe\u0301s", "cafe\u0301", "key:cafés", "provider:azure", "provider:azure2"} {
		if len(Find(t, log, requestlog.Query{}, text)) != 1 {
			t.Errorf("%q finds nothing", text)
		}
	}
}

// TestAnOwnerFindsOnlyTheirOwnRequests checks that neither a search, nor the place of a record, nor the bars show an
// owner a request of another one, while a group has those of all its members.
func TestAnOwnerFindsOnlyTheirOwnRequests(t *testing.T, s Store) {
	log := s.open(t)
	Fill(t, log, 0, 100)
	for _, text := range []string{"", "user:anna", "req_000001", "is:failed", "cost:>=0"} {
		for _, id := range Find(t, log, requestlog.Query{Owner: "user:bob"}, text) {
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
	bars, err := log.Count(t.Context(), "user:bob", Start, Start.Add(2*time.Minute), time.Minute)
	if err != nil || len(bars) != 3 || bars[0].All+bars[1].All+bars[2].All != 50 ||
		bars[1].Failed != 1 {
		t.Errorf("bars %v, %v", bars, err)
	}
	records := []requestlog.Record{{Began: Start, ID: "a", Owner: "user:bob", Group: "Staff", Status: failed},
		{Began: Start, ID: "b", Owner: "user:anna", Group: "staff", Status: requestlog.OK}}
	if err := log.Append(t.Context(), records); err != nil {
		t.Fatal(err)
	}
	bars, err = log.Count(t.Context(), requestlog.GroupOwner("STAFF"), Start, Start.Add(time.Minute), time.Minute)
	if err != nil || bars[0].All != 2 || bars[0].Failed != 1 {
		t.Errorf("bars of a group %v, %v", bars, err)
	}
}

// TestPagesContinueWhereTheLastOneEnded reads all pages of a time while newer records are added, which must neither
// repeat nor leave out a record.
func TestPagesContinueWhereTheLastOneEnded(t *testing.T, s Store) {
	log := s.open(t)
	Fill(t, log, 0, 100)
	var all []string
	q := requestlog.Query{Limit: 7, From: Start.Add(10 * time.Second), To: Start.Add(90 * time.Second)}
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
		Fill(t, log, 95, 96) // newer requests do not move the pages
	}
	if len(all) != 80 || all[0] != "req_000089" || all[79] != "req_000010" {
		t.Errorf("%d from %s to %s", len(all), all[0], all[len(all)-1])
	}
}

// TestTheLogKeepsItsDaysAndItsBytes checks both limits of the log, and that the index of words loses what the records
// lose.
func TestTheLogKeepsItsDaysAndItsBytes(t *testing.T, s Store) {
	b := NewBounds()
	log := s.Open(t, s.Place(t), b)
	Fill(t, log, 0, 2501)
	b.Limits.Keep = time.Hour - 2200*time.Second
	Prune(t, log)
	if left := Find(t, log, requestlog.Query{}, ""); len(left) != 301 || left[len(left)-1] != "req_002200" {
		t.Errorf("%d are left of the days", len(left))
	}
	b.Limits = requestlog.Limits{Keep: Month.Keep, Bytes: 1 << 19}
	for n := 2501; n < 12501; n += 2500 {
		Fill(t, log, n, n+2500)
		Prune(t, log)
	}
	left := Find(t, log, requestlog.Query{}, "")
	if len(left) < 100 || len(left) > 8000 || left[0] != "req_012500" {
		t.Errorf("%d are left of the bytes, the newest is %v", len(left), left[:min(len(left), 1)])
	}
	if words := Find(t, log, requestlog.Query{}, "model:maple"); len(words) != len(left) {
		t.Errorf("the index has %d of %d", len(words), len(left))
	}
}

// TestASearchFindsTheNewestOfManyRecords searches for words that many records have, for some that few have, and within
// a time.
func TestASearchFindsTheNewestOfManyRecords(t *testing.T, s Store) {
	log := s.open(t)
	Fill(t, log, 0, 1000)
	for _, text := range []string{"user:bob", "key:laptop-3 provider:lab", "is:failed", "status:200 loss:seed",
		"000012"} {
		q := requestlog.Query{From: Start.Add(5 * time.Second), To: Start.Add(900 * time.Second)}
		all := Find(t, log, q, text)
		if !slices.IsSortedFunc(all, func(a, b string) int { return strings.Compare(b, a) }) || len(all) == 0 {
			t.Errorf("%s finds %v", text, all)
		}
		for _, q.Limit = range []int{1, 3, 20} {
			if got := Find(t, log, q, text); !slices.Equal(got, all[:min(q.Limit, len(all))]) {
				t.Errorf("%s finds %v of %d, want the first of %v", text, got, q.Limit, all)
			}
		}
	}
}

// TestNoReaderSeesARequestOlderThanTheLogKeeps checks that a record which is too old is hidden at once and not only
// when Prune has removed it, so that the promise of the days does not depend on when that runs.
func TestNoReaderSeesARequestOlderThanTheLogKeeps(t *testing.T, s Store) {
	b := NewBounds()
	log := s.Open(t, s.Place(t), b)
	Fill(t, log, 0, 60)
	var oldest int64
	if err := log.Find(t.Context(), &requestlog.Query{Limit: 60}, func(r *requestlog.Record) bool {
		oldest = r.At
		return true
	}); err != nil {
		t.Fatal(err)
	}
	b.Now = Start.Add(Month.Keep + 30*time.Second) // the requests of the first half minute are too old
	for _, text := range []string{"", "model:maple*"} {
		if ids := Find(t, log, requestlog.Query{From: Start.Add(-time.Hour)}, text); len(ids) != 30 {
			t.Errorf("%q finds %d", text, len(ids))
		}
	}
	if _, err := log.Get(t.Context(), oldest, ""); !errors.Is(err, state.ErrNotFound) {
		t.Errorf("the oldest request is shown: %v", err)
	}
	bars, err := log.Count(t.Context(), "", Start, Start.Add(time.Minute), time.Hour)
	if err != nil || bars[0].All != 30 {
		t.Errorf("%+v, %v", bars, err)
	}
	Prune(t, log)
	if b.Limits.Keep *= 2; len(Find(t, log, requestlog.Query{}, "")) != 30 {
		t.Error("the old requests are still in the file")
	}
}

// TestTheLogSurvivesARestart opens a log again at its place and goes on writing.
func TestTheLogSurvivesARestart(t *testing.T, s Store) {
	place := s.Place(t)
	log := s.Open(t, place, NewBounds())
	Fill(t, log, 0, 10)
	if err := log.Close(); err != nil {
		t.Fatal(err)
	}
	log = s.Open(t, place, NewBounds())
	Fill(t, log, 10, 20)
	if all := Find(t, log, requestlog.Query{}, ""); len(all) != 20 {
		t.Errorf("%d after a restart", len(all))
	}
}

// TestASearchThatIsCancelledEnds makes sure that a search whose page was left returns an error.
func TestASearchThatIsCancelledEnds(t *testing.T, s Store) {
	log := s.open(t)
	Fill(t, log, 0, 10)
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if err := log.Find(ctx, &requestlog.Query{Limit: 5}, func(*requestlog.Record) bool { return true }); err == nil {
		t.Error("it goes on")
	}
}

// TestABatchInAnyOrderKeepsEachRecordWhole appends records that are not in the order of time and that have bytes which
// are no UTF-8. All fields must come back, with such bytes replaced.
func TestABatchInAnyOrderKeepsEachRecordWhole(t *testing.T, s Store) {
	log := s.open(t)
	batch := []requestlog.Record{Record(3), {ID: "req_000001", Began: Start, Owner: "key:a", Model: "\xff"}, Record(53)}
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

// TestWhatWasUsedIsSummedByTheHour checks the sums of requests, tokens and money by hour, day, owner and provider over
// several batches, and that sums of hours which are too old are left out.
func TestWhatWasUsedIsSummedByTheHour(t *testing.T, s Store) {
	b := NewBounds()
	log := s.Open(t, s.Place(t), b)
	var records []requestlog.Record
	for n := range 200 { // in two hours
		r := Record(n)
		r.Began, r.Cost, r.Input, r.Output, r.App = Start.Add(time.Duration(n)*time.Minute/2), 5, 2, 1, "curl"
		records = append(records, r)
	}
	for i := range 4 { // in several batches
		if err := log.Append(t.Context(), records[50*i:50*i+50]); err != nil {
			t.Fatal(err)
		}
	}
	sum := func(owner string, from, to time.Time, step time.Duration) (by map[int]int64, providers map[string]int64) {
		by, providers = map[int]int64{}, map[string]int64{}
		q := requestlog.SpentQuery{Owner: owner, From: from, To: to, Step: step}
		err := log.Spent(t.Context(), &q, func(s *requestlog.Spent) error {
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
	hour := Start.Truncate(time.Hour)
	by, providers := sum("", hour, hour.Add(3*time.Hour), time.Hour)
	if fmt.Sprint(by, providers) != "map[0:119 1:81] map[azure:67 lab:66 openai:67]" {
		t.Errorf("by the hour %v, by provider %v", by, providers)
	}
	day := 24 * time.Hour
	if by, _ := sum("user:bob", hour.Add(-day), hour.Add(day), day); fmt.Sprint(by) != "map[1:100]" {
		t.Errorf("bob by the day: %v", by)
	}
	b.Now = Start.Add(Month.Keep + 90*time.Minute)
	if by, _ := sum("", hour, hour.Add(3*time.Hour), time.Hour); fmt.Sprint(by) != "map[1:81]" {
		t.Errorf("after the time of the log: %v", by)
	}
	Prune(t, log)
}

// TestAGroupAndAnAppAreFoundByTheirWholeName checks that the name of a group or an app does not find another one that
// begins with it, because a report of one group must not show another one.
func TestAGroupAndAnAppAreFoundByTheirWholeName(t *testing.T, s Store) {
	log := s.open(t)
	one, two := Record(1), Record(2)
	one.Group, one.App, two.Group, two.App = "Team", "OpenAI", "Team B", "openai-python"
	if err := log.Append(t.Context(), []requestlog.Record{one, two}); err != nil {
		t.Fatal(err)
	}
	for text, want := range map[string]string{"group:team": one.ID, `group:"team b"`: two.ID, "app:openai": one.ID} {
		if ids := Find(t, log, requestlog.Query{}, text); !slices.Equal(ids, []string{want}) {
			t.Errorf("%s finds %v", text, ids)
		}
	}
}

// BenchmarkSearch measures searches in a log of as many records as the environment variable REQUESTS says, which it
// makes first and then has settle. size returns the bytes of the log.
func BenchmarkSearch(b *testing.B, log requestlog.Store, settle func(), size func() int64) {
	many := 20_000
	if _, err := fmt.Sscan(os.Getenv("REQUESTS"), &many); err != nil && os.Getenv("REQUESTS") != "" {
		b.Fatal(err)
	}
	began := time.Now()
	for part := range slices.Chunk(numbers(0, many), 500) {
		batch := make([]requestlog.Record, len(part))
		for i, n := range part {
			if batch[i] = Record(n); n < many/2 {
				batch[i].Group = "early" // a common word that no new record has
			}
		}
		if err := log.Append(b.Context(), batch); err != nil {
			b.Fatal(err)
		}
	}
	b.Logf("%d records in %v, %d bytes each", many, time.Since(began), size()/int64(many))
	settle()
	last := Record(many - 1)
	for _, text := range []string{"", "user:bob", "req_000001", "user:anna status:502", "is:failed model:maple-5-1",
		"closed connection", "cost:>0.0999 is:failed", "cost:=0.0007 took:<0.01", "loss:seed key:laptop-3",
		"id:req_00001 provider:lab took:>3.9", "user:anna provider:azure", "model:maple* user:none", "group:early",
		"group:early user:anna key:laptop-2",
	} {
		b.Run(text, func(b *testing.B) {
			found := 0
			for b.Loop() {
				found = len(Find(b, log, requestlog.Query{Limit: 51}, text))
			}
			b.ReportMetric(float64(found), "found")
		})
	}
	b.Run("count", func(b *testing.B) {
		for b.Loop() {
			if _, err := log.Count(b.Context(), "", Start, last.Began, 30*24*time.Hour/60); err != nil {
				b.Fatal(err)
			}
		}
	})
}

// BenchmarkAppend measures batches whose requests ended in another order than they began, as they do when several are
// in flight.
func BenchmarkAppend(b *testing.B, log requestlog.Writer) {
	const size = 512
	var took time.Duration // without the making of the records
	for n := 0; b.Loop(); n += size {
		batch := make([]requestlog.Record, size)
		for i := range batch {
			batch[i] = Record(n + i)
			batch[i].Began = Start.Add(time.Duration(n+(i^13)) * 100 * time.Microsecond)
		}
		began := time.Now()
		if err := log.Append(b.Context(), batch); err != nil {
			b.Fatal(err)
		}
		took += time.Since(began)
	}
	b.ReportMetric(float64(took.Nanoseconds())/1e3/float64(size*b.N), "µs/record")
}
