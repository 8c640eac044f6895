package sqlite_test

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
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

// open opens a log in a directory. The clock stands an hour after start.
func open(t testing.TB, path string, l requestlog.Limits, said *strings.Builder) *sqlite.Log {
	t.Helper()
	if said == nil {
		said = new(strings.Builder)
	}
	log, err := sqlite.Open(path, l, func() time.Time { return start.Add(time.Hour) },
		slog.New(slog.NewTextHandler(said, nil)))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { log.Close() })
	return log
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
	log := open(t, filepath.Join(t.TempDir(), "a b#c?%.sqlite"), month, nil)
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

func TestAnOwnerFindsOnlyTheirOwnRequests(t *testing.T) {
	log := open(t, filepath.Join(t.TempDir(), sqlite.FileName), month, nil)
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
	log := open(t, filepath.Join(t.TempDir(), sqlite.FileName), month, nil)
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
	log := open(t, path, month, nil)
	fill(t, log, 0, 6000)
	log.Limit(requestlog.Limits{Keep: time.Hour - 2000*time.Second, Bytes: 1 << 30})
	fill(t, log, 6000, 6001)
	if left := find(t, log, requestlog.Query{}, ""); len(left) != 4001 || left[len(left)-1] != "req_002000" {
		t.Errorf("%d are left of the days", len(left))
	}
	log.Limit(requestlog.Limits{Keep: month.Keep, Bytes: 1 << 20})
	for n := 6001; n < 20_000; n += 3000 {
		fill(t, log, n, n+3000)
	}
	left := find(t, log, requestlog.Query{}, "")
	if len(left) < 100 || len(left) > 6000 || left[0] != "req_020999" && left[0] != "req_021000" {
		t.Errorf("%d are left of the bytes, the newest is %v", len(left), left[:1])
	}
	if words := find(t, log, requestlog.Query{Limit: 100_000}, "model:gpt"); len(words) != len(left) {
		t.Errorf("the index has %d of %d", len(words), len(left))
	}
	if info, err := os.Stat(path); err != nil || info.Size() > 5<<20 || info.Mode().Perm() != 0o600 {
		t.Errorf("the file has %d bytes, mode %v, %v", info.Size(), info.Mode(), err)
	}
}

func TestTheLogSurvivesARestart(t *testing.T) {
	path := filepath.Join(t.TempDir(), sqlite.FileName)
	log := open(t, path, month, nil)
	fill(t, log, 0, 10)
	if err := log.Close(); err != nil {
		t.Fatal(err)
	}
	log = open(t, path, month, nil)
	fill(t, log, 10, 20)
	if all := find(t, log, requestlog.Query{}, ""); len(all) != 20 {
		t.Errorf("%d after a restart", len(all))
	}
}

func TestABrokenFileIsSetAside(t *testing.T) {
	for name, content := range map[string]string{"no database": strings.Repeat("what is this?", 1000), "cut": ""} {
		t.Run(name, func(t *testing.T) {
			path := filepath.Join(t.TempDir(), sqlite.FileName)
			if content == "" {
				log := open(t, path, month, nil)
				fill(t, log, 0, 500)
				if err := log.Close(); err != nil {
					t.Fatal(err)
				}
				whole, err := os.ReadFile(path)
				if err != nil {
					t.Fatal(err)
				}
				clear(whole[len(whole)/8:])
				content = string(whole)
			}
			if err := os.WriteFile(path, []byte(content), 0o600); err != nil {
				t.Fatal(err)
			}
			var said strings.Builder
			log := open(t, path, month, &said)
			fill(t, log, 500, 600)
			if all := find(t, log, requestlog.Query{}, ""); len(all) != 100 {
				t.Errorf("%d in the new file", len(all))
			}
			if !strings.Contains(said.String(), "begins anew") {
				t.Errorf("nothing is said: %s", said.String())
			}
			if aside, err := os.ReadFile(path + sqlite.Broken); err != nil || len(aside) < len(content) {
				t.Errorf("%d bytes are set aside: %v", len(aside), err)
			}
		})
	}
}

func TestASearchThatIsCancelledEnds(t *testing.T) {
	log := open(t, filepath.Join(t.TempDir(), sqlite.FileName), month, nil)
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
	log := open(b, path, requestlog.Limits{Keep: 1e6 * time.Hour, Bytes: 1 << 40}, nil)
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
