package requests

import (
	"context"
	"encoding/json"
	"errors"
	"io"
	"log/slog"
	"strings"
	"sync"
	"testing"
	"time"

	"stagedoor/actors/flow"
	"stagedoor/providers/catalog"
	"stagedoor/providers/dialogue"
	"stagedoor/state/requestlog"
)

// memory is a log that a test can block and break.
type memory struct {
	requestlog.Store
	gate chan struct{} // nil: it does not block
	err  error

	mu  sync.Mutex
	all []requestlog.Record
}

func (m *memory) Append(_ context.Context, records []requestlog.Record) error {
	if m.gate != nil {
		<-m.gate
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	m.all = append(m.all, records...)
	return m.err
}

func (m *memory) Limit(requestlog.Limits) {}
func (m *memory) Close() error            { return nil }

func start(m *memory, failed error) *Recorder {
	return Start(Options{Logger: slog.New(slog.NewTextHandler(io.Discard, nil)),
		Limits: requestlog.Limits{Keep: time.Hour},
		Open:   func() (requestlog.Store, error) { return m, failed },
		Key:    func(id string) string { return "name of " + id }})
}

// end returns a request of an owner that has ended.
func end(t testing.TB, r *flow.Registry, owner string, result flow.Result) *flow.Request {
	about := flow.About{ID: "req_1", Owner: owner, Key: "key_1", Model: "m", Shape: "chat"}
	q := r.Begin(t.Context(), about, func(error) {})
	q.Attempt(&catalog.Candidate{Provider: &catalog.Provider{Name: "one"}, Model: "m-1"})
	q.Failed(503, "overloaded")
	q.Enter(flow.Resting)
	q.Attempt(&catalog.Candidate{Provider: &catalog.Provider{Name: "two"}, Model: "m-2"})
	q.Enter(flow.Waiting)
	q.End(result)
	return q
}

func TestARecordHasTheRequestWithItsAttemptsAndItsCost(t *testing.T) {
	m, registry := new(memory), flow.New(time.Now)
	r := start(m, nil)
	registry.SetRecorder(r.Add)
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
		rec := recordOf(end(t, flow.New(time.Now), "key:a", result), func(string) string { return "" })
		all, err := json.Marshal(rec)
		if err != nil || strings.Contains(string(all)+strings.Join(rec.Words(), " "), "doctor") {
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
	for name, r := range map[string]*Recorder{"does not open": start(nil, errors.New("no room")),
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
	if _, err := r.Store(); !errors.Is(err, ErrOff) {
		t.Error(err)
	}
	if err := r.Close(); err != nil || len(m.all) != 0 {
		t.Errorf("%d, %v", len(m.all), err)
	}
}

// BenchmarkAdd measures what the log costs on the goroutine of a request: its attempt, its charge and its place in the
// queue.
func BenchmarkAdd(b *testing.B) {
	m, registry := new(memory), flow.New(time.Now)
	r := start(m, nil)
	registry.SetRecorder(r.Add)
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
