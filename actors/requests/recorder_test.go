package requests

import (
	"context"
	"encoding/json"
	"errors"
	"io"
	"log/slog"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"stagedoor/actors/flow"
	"stagedoor/providers/catalog"
	"stagedoor/providers/dialogue"
	"stagedoor/state/requestlog"
)

// memory is a log that a test can block and break.
type memory struct {
	requestlog.Reader
	gate  chan struct{} // nil: it does not block
	err   error
	panic any

	mu      sync.Mutex
	all     []requestlog.Record
	pruned  atomic.Int64
	old     int64 // calls of Prune that leave more to do
	closed  bool
	removed bool
}

func (m *memory) Append(_ context.Context, records []requestlog.Record) error {
	if m.gate != nil {
		<-m.gate
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.panic != nil {
		panic(m.panic)
	}
	for _, rec := range records { // the caller uses their slices again
		rec.Tries, rec.Steps = slices.Clone(rec.Tries), slices.Clone(rec.Steps)
		m.all = append(m.all, rec)
	}
	return m.err
}

func (m *memory) Prune(context.Context) (bool, error) {
	return m.pruned.Add(1) <= m.old, nil
}

func (m *memory) Close() error {
	m.closed = true
	return nil
}

func start(m *memory, failed error) *Recorder {
	return Start(Options{Logger: slog.New(slog.NewTextHandler(io.Discard, nil)),
		Limits: requestlog.Limits{Keep: time.Hour},
		Open: func(func() requestlog.Limits) (requestlog.Store, error) {
			return requestlog.Store{Reader: m, Writer: m}, failed
		},
		Remove: func() error { m.removed = true; return nil },
		Key:    func(id string) string { return "name of " + id }})
}

// end returns a request of an owner that has ended.
func end(t testing.TB, r *flow.Registry, owner string, result flow.Result) *flow.Request {
	about := flow.About{ID: "req_1", Owner: owner, Key: "key_1", Model: "m", Shape: "chat"}
	q := r.Begin(t.Context(), about, func(error) {})
	q.Attempt(&catalog.Candidate{Provider: &catalog.Provider{Name: "one"}, Model: "m-1"})
	q.Failed(1, 503, "overloaded")
	q.Enter(flow.Resting)
	q.Attempt(&catalog.Candidate{Provider: &catalog.Provider{Name: "two"}, Model: "m-2"})
	q.Enter(flow.Waiting)
	q.End(result)
	return q
}

func TestARecordHasTheRequestWithItsAttemptsAndItsCost(t *testing.T) {
	m, registry := new(memory), flow.New(time.Now)
	r := start(m, nil)
	registry.SetRecorder(r.Add, r.Keeps)
	q := end(t, registry, "user:bob", flow.Result{Usage: dialogue.Usage{InputTotal: 7, OutputTotal: 9}, Losses: "seed"})
	flow.AddCharge(q.Charging(t.Context()), 120)
	flow.AddCharge(q.Charging(t.Context()), 3)
	q.Record()
	if err := r.Close(); err != nil {
		t.Fatal(err)
	}
	if written, dropped := r.Stats(); written != 1 || dropped != 0 || len(m.all) != 1 {
		t.Fatalf("%d written, %d dropped", written, dropped)
	}
	got := m.all[0]
	if got.User != "bob" || got.KeyName != "name of key_1" || got.Status != 200 || got.Cost != 123 || got.Input != 7 ||
		got.Output != 9 || got.Attempts != 2 || got.Losses != "seed" || got.Provider != "two" {
		t.Errorf("%+v", got)
	}
	if len(got.Tries) != 2 || got.Tries[0] != (requestlog.Try{Provider: "one", Model: "m-1", Status: 503,
		Failure: "overloaded"}) || got.Tries[1].Status != 0 {
		t.Errorf("tries %+v", got.Tries)
	}
	if len(got.Steps) != 4 || got.Steps[1].Phase != "resting" || got.Steps[2].Attempt != 2 {
		t.Errorf("steps %+v", got.Steps)
	}
}

// Providers quote prompts and keys in their errors. The gateway's own errors name fields and rules.
func TestErrorsInTheLogHaveNoWordsOfProviders(t *testing.T) {
	const secret = "sk-what my doctor said"
	for _, c := range []struct {
		err        *dialogue.Error
		code, text string
	}{
		{&dialogue.Error{Status: 400, Message: secret, Code: "invalid_prompt", Foreign: true}, "invalid_prompt", ""},
		{&dialogue.Error{Status: 400, Message: secret, Code: json.RawMessage(`"` + secret + `"`), Foreign: true},
			"error", ""},
		{dialogue.FailedJob(secret, secret), "error", ""},
		{&dialogue.Error{Status: 404, Message: "the model does not exist", Code: "no_model"}, "no_model",
			"the model does not exist"},
	} {
		var result flow.Result
		result.Fail(c.err)
		var rec requestlog.Record
		record(&rec, end(t, flow.New(time.Now), "key:a", result), &Options{Key: func(string) string { return "" }})
		all, err := json.Marshal(rec)
		if err != nil || strings.Contains(string(all)+strings.Join(rec.KindWords(), " "), "doctor") {
			t.Errorf("%s, %v", all, err)
		}
		if rec.Code != c.code || rec.Error != c.text || rec.Status != c.err.Status || rec.User != "" {
			t.Errorf("%+v", rec)
		}
	}
}

func TestALogThatIsSlowDropsAndDelaysNothing(t *testing.T) {
	m, registry := &memory{gate: make(chan struct{})}, flow.New(time.Now)
	r := start(m, nil)
	large, small := end(t, registry, "user:large", flow.Result{}), end(t, registry, "user:small", flow.Result{})
	for range 3 * queued { // would block for good if Add waited
		r.Add(large)
	}
	_, before := r.Stats()
	r.Add(small)
	if _, after := r.Stats(); before < queued || after != before {
		t.Errorf("%d dropped, then %d: another owner has no place", before, after)
	}
	close(m.gate)
	if err := r.Close(); err != nil {
		t.Fatal(err)
	}
	if written, dropped := r.Stats(); written+dropped != 3*queued+1 || written != int64(len(m.all)) {
		t.Errorf("%d written, %d dropped", written, dropped)
	}
	if held := r.Pool().Used(); held != 0 {
		t.Errorf("%d places are lost", held)
	}
}

func TestALogThatIsBrokenCountsWhatItLacks(t *testing.T) {
	registry := flow.New(time.Now)
	for name, r := range map[string]*Recorder{"does not open": start(new(memory), errors.New("no room")),
		"does not write": start(&memory{err: errors.New("no room")}, nil)} {
		for range 10 {
			r.Add(end(t, registry, "user:bob", flow.Result{}))
		}
		if err := r.Close(); err != nil {
			t.Fatal(err)
		}
		if written, dropped := r.Stats(); written != 0 || dropped != 10 {
			t.Errorf("%s: %d written, %d dropped", name, written, dropped)
		}
	}
}

func TestALogThatIsOffTakesNothing(t *testing.T) {
	m, registry := new(memory), flow.New(time.Now)
	r := start(m, nil)
	r.Limit(requestlog.Limits{})
	r.Add(end(t, registry, "user:bob", flow.Result{}))
	registry.SetRecorder(r.Add, r.Keeps)
	for range 200 {
		registry.Refused(flow.About{Key: "key_1"}, dialogue.Invalid("model", "is missing"))
	}
	if _, err := r.Store(); !errors.Is(err, ErrOff) || registry.LeftOut() != 0 {
		t.Error(err, registry.LeftOut())
	}
	if err := r.Close(); err != nil || len(m.all) != 0 {
		t.Errorf("%d, %v", len(m.all), err)
	}
}

func TestAQuietLogIsPrunedByTheClock(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m := &memory{old: 3}
		r := start(m, nil)
		time.Sleep(2 * pruneFirst)
		synctest.Wait()
		if n := m.pruned.Load(); n != 4 {
			t.Errorf("pruned %d times at first", n)
		}
		time.Sleep(10 * pruneEvery)
		synctest.Wait()
		if n := m.pruned.Load(); n != 14 {
			t.Errorf("pruned %d times after ten hours", n)
		}
		r.Limit(requestlog.Limits{Keep: 2 * time.Hour})
		if synctest.Wait(); m.pruned.Load() != 15 {
			t.Error("new limits wait for the clock")
		}
		if err := r.Close(); err != nil {
			t.Error(err)
		}
	})
}

func TestALogThatIsSwitchedOffIsRemoved(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m, registry := new(memory), flow.New(time.Now)
		r := start(m, nil)
		r.Add(end(t, registry, "user:bob", flow.Result{}))
		time.Sleep(time.Second)
		synctest.Wait()
		if len(m.all) != 1 || m.removed {
			t.Errorf("%d records, removed: %v", len(m.all), m.removed)
		}
		r.Limit(requestlog.Limits{})
		if synctest.Wait(); !m.closed || !m.removed {
			t.Error("it is still there")
		}
		if err := r.Close(); err != nil {
			t.Error(err)
		}
	})
}

func TestAPanicCostsOneBatchAndNotTheLog(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m, registry := &memory{panic: "no such record"}, flow.New(time.Now)
		r := start(m, nil)
		r.Add(end(t, registry, "user:bob", flow.Result{}))
		time.Sleep(time.Second)
		synctest.Wait()
		m.panic = nil
		late := end(t, registry, "user:bob", flow.Result{})
		late.Progress(7) // after the end
		r.Add(late)
		if err := r.Close(); err != nil {
			t.Error(err)
		}
		if written, dropped := r.Stats(); written != 1 || dropped != 1 || len(m.all) != 1 {
			t.Errorf("%d written, %d dropped", written, dropped)
		}
	})
}

// BenchmarkAdd measures what the log costs on the goroutine of a request: its attempt, its charge and its place in the
// queue.
func BenchmarkAdd(b *testing.B) {
	m, registry := new(memory), flow.New(time.Now)
	r := start(m, nil)
	registry.SetRecorder(r.Add, r.Keeps)
	q := end(b, registry, "user:bob", flow.Result{})
	for b.Loop() {
		flow.AddCharge(q.Charging(context.Background()), 1)
		q.Record()
	}
	b.StopTimer()
	if err := r.Close(); err != nil {
		b.Fatal(err)
	}
}

// A phase without a number is kept, too, but takes the bytes of its name in every record.
func TestEveryPhaseHasANumberInTheLog(t *testing.T) {
	size := func(phase string) int {
		r := requestlog.Record{Steps: []requestlog.Step{{Phase: phase}}}
		return len(r.AppendOwn(nil))
	}
	for _, p := range flow.Phases() {
		if size(p.String()) >= size("?") {
			t.Errorf("%s is written as text", p)
		}
	}
}
