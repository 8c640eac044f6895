package flow_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/tidwall/gjson"

	"stagedoor/actors/engine"
	"stagedoor/actors/flow"
	"stagedoor/actors/kit"
	"stagedoor/actors/kit/kittest"
	"stagedoor/actors/throttle"
	httpflow "stagedoor/http/flow"
	"stagedoor/providers/catalog"
	"stagedoor/providers/dialogue"
	"stagedoor/state/work"
)

// bench is an overview of a registry with a clock, and one provider.
type bench struct {
	*httpflow.Overview
	at      time.Time
	paused  time.Time // since when up is; zero: it is not
	limiter *throttle.Client
	stop    func() // ends the listener for other gateways
}

func newBench(t testing.TB) *bench {
	b := &bench{at: time.Unix(1000, 0)}
	system := kittest.Start(t)
	var err error
	if b.limiter, err = throttle.Spawn(system, "p", throttle.Config{}); err != nil {
		t.Fatal(err)
	}
	now := func() time.Time { return b.at }
	providers := []*engine.Provider{{Spec: &catalog.Provider{Name: "up", Shape: "chat"}, Limiter: b.limiter}}
	b.Overview = &httpflow.Overview{Flow: flow.New(now), Now: now,
		Serving: func() []*engine.Provider { return providers },
		Pause:   func(string) (work.Pause, bool) { return work.Pause{Since: b.paused}, !b.paused.IsZero() },
		Tree:    func() ([]kit.ActorStats, kit.Stats) { return system.Actors(), system.Stats() }}
	return b
}

var up = &catalog.Candidate{Provider: &catalog.Provider{Name: "up"}, Model: "m"}

// begin begins a stream a second after the one before.
func (b *bench) begin(t testing.TB, id string, output int64) *flow.Request {
	b.at = b.at.Add(time.Second)
	r := b.Flow.Begin(t.Context(), flow.About{ID: id, Model: "m-" + id, Key: "key_" + id[:1], Stream: true},
		func(error) {})
	r.Attempt(up)
	r.Enter(flow.Waiting)
	r.Progress(output)
	return r
}

func ids(a httpflow.Active) string {
	var all []string
	for _, r := range a.Data {
		all = append(all, r.ID)
	}
	return strings.Join(all, " ")
}

func TestWindowHasThoseThatComeFirst(t *testing.T) {
	b := newBench(t)
	for i := range 500 {
		b.begin(t, fmt.Sprintf("%c%03d", 'a'+i%2, i), int64(i*7919%500))
	}
	for _, c := range []struct {
		filter   httpflow.Filter
		matching int
		want     string
	}{
		{httpflow.Filter{Limit: 3}, 500, "a000 b001 a002"},
		{httpflow.Filter{Limit: 3, Sort: httpflow.SortNew}, 500, "b499 a498 b497"},
		{httpflow.Filter{Limit: 2, Sort: httpflow.SortTokens}, 500, "b321 a142"},
		{httpflow.Filter{Limit: 3, Sort: httpflow.SortSlow}, 500, "a000 b179 b037"},
		{httpflow.Filter{Limit: 3, Sort: httpflow.SortUser}, 500, "a000 a002 a004"},
		{httpflow.Filter{Limit: 2, Key: "key_b"}, 250, "b001 b003"},
		{httpflow.Filter{Model: "-a01"}, 5, "a010 a012 a014 a016 a018"},
		{httpflow.Filter{Phase: "queued"}, 0, ""},
		{httpflow.Filter{Text: " KEY_B  -b01 up"}, 5, "b011 b013 b015 b017 b019"},
		{httpflow.Filter{Text: "key_b down"}, 0, ""},
		{httpflow.Filter{Provider: "down"}, 0, ""},
	} {
		got := b.Active(t.Context(), c.filter)
		if got.Matching != c.matching || ids(got) != c.want || got.Load.InFlight != 500 {
			t.Errorf("%+v: %d match of %d, %s; want %d, %s", c.filter, got.Matching, got.Load.InFlight, ids(got),
				c.matching, c.want)
		}
	}
	if all := b.Active(t.Context(), httpflow.Filter{Limit: 1 << 30}); len(all.Data) != httpflow.MaxLimit {
		t.Errorf("%d at once", len(all.Data))
	}
}

func TestWatcherTellsWhatChanged(t *testing.T) {
	b := newBench(t)
	w := b.Watch(t.Context())
	next := func() (sent []gjson.Result, more <-chan struct{}) {
		more, err := w.Next(func(m []byte) error {
			sent = append(sent, gjson.Parse(string(m)))
			return nil
		})
		if err != nil {
			t.Fatal(err)
		}
		return sent, more
	}
	if sent, more := next(); sent != nil || more != nil {
		t.Errorf("before it is asked it tells %v", sent)
	}
	for wish, want := range map[string]string{
		"": "must be", "{": "must be", `{"type":"watch","view":"requests","other":1}`: "must be",
		`{"type":"x"}`:                "type: must be watch",
		`{"type":"watch","view":"x"}`: "view: must be one of", `{"type":"watch","view":"request"}`: "id: must be",
	} {
		w.Receive([]byte(wish))
		if sent, more := next(); len(sent) != 1 || sent[0].Get("type").Str != "error" ||
			!strings.HasPrefix(sent[0].Get("message").Str, want) || more != nil {
			t.Errorf("%s is answered %v", wish, sent)
		}
	}
	w.Receive([]byte(`{"type":"watch","view":"requests","filter":{"limit":1}}`))
	if sent, more := next(); len(sent) != 1 || sent[0].Get("active.matching").Int() != 0 || more == nil {
		t.Errorf("nothing is under way: %v", sent)
	}
	if sent, _ := next(); sent != nil {
		t.Errorf("the same is sent again: %v", sent)
	}
	r := b.begin(t, "a1", 3)
	if sent, _ := next(); len(sent) != 1 || sent[0].Get("active.data.0.id").Str != "a1" {
		t.Errorf("a request under way: %v", sent)
	}
	r.End(flow.Result{Usage: dialogue.NoUsage})
	if sent, _ := next(); len(sent) != 1 || sent[0].Get("recent.0.id").Str != "a1" ||
		sent[0].Get("active.data.#").Int() != 0 {
		t.Errorf("it ended: %v", sent)
	}
	w.Receive([]byte(`{"type":"watch","view":"request","id":"none"}`))
	if sent, _ := next(); len(sent) != 1 || sent[0].Get("request").Type != gjson.Null {
		t.Errorf("one that is not there: %v", sent)
	}
}

func TestProviderWhoseGateIsGoneIsShown(t *testing.T) {
	b := newBench(t)
	if p, ok := b.Provider(t.Context(), "up"); !ok || !p.Answers || p.Breaker != "closed" {
		t.Errorf("%+v", p)
	}
	if err := b.limiter.Stop(t.Context()); err != nil {
		t.Fatal(err)
	}
	if p, ok := b.Provider(t.Context(), "up"); !ok || p.Answers || p.Name != "up" {
		t.Errorf("%+v", p)
	}
	if _, ok := b.Provider(t.Context(), "down"); ok {
		t.Error("there is a provider that is not there")
	}
}

func TestPausedProviderSaysSinceWhen(t *testing.T) {
	b := newBench(t)
	if p, _ := b.Provider(t.Context(), "up"); p.Paused || p.PausedAt != nil {
		t.Errorf("not paused: %+v", p)
	}
	b.paused = b.at
	b.limiter.Pause()
	if p, _ := b.Provider(t.Context(), "up"); !p.Paused || p.PausedAt == nil || !p.PausedAt.Equal(b.at) {
		t.Errorf("paused: %+v", p)
	}
}

// BenchmarkLook is one look at ten thousand streams, as a page takes twice a second.
func BenchmarkLook(b *testing.B) {
	o := newBench(b)
	for i := range 10_000 {
		o.begin(b, fmt.Sprint("a", i), 5)
	}
	b.ReportAllocs()
	for b.Loop() {
		o.Active(b.Context(), httpflow.Filter{})
	}
}

// FuzzHear: whatever a client says, the watcher answers or does as it is sent.
func FuzzHear(f *testing.F) {
	o := newBench(f)
	f.Add([]byte(`{"type":"watch","view":"requests","filter":{"limit":-1,"sort":"x"}}`))
	f.Add([]byte(`{"type":"watch","view":"request","id":"a"}`))
	f.Fuzz(func(t *testing.T, message []byte) {
		w := o.Watch(t.Context())
		w.Receive(message)
		sent := 0
		if _, err := w.Next(func(m []byte) error {
			sent++
			if !gjson.ValidBytes(m) {
				t.Errorf("%q", m)
			}
			return nil
		}); err != nil || sent < 1 || sent > 2 { // the lanes have a message of their own
			t.Errorf("%d messages, %v", sent, err)
		}
	})
}

func TestNamesOfBrokenBytesTakeNoViewAway(t *testing.T) {
	b := newBench(t)
	r := b.begin(t, "a", 1)
	r.Attempt(&catalog.Candidate{Provider: up.Provider, Model: "m\xff\xfe"})
	for _, view := range []string{httpflow.ViewRequests, httpflow.ViewRequest} {
		w := b.Watch(t.Context())
		w.Receive([]byte(`{"type":"watch","view":"` + view + `","id":"a"}`))
		var heard []byte
		if _, err := w.Next(func(m []byte) error { heard = append(heard, m...); return nil }); err != nil ||
			!gjson.ValidBytes(heard) || !strings.Contains(string(heard), "m\ufffd") {
			t.Errorf("%s: %v, %s", view, err, heard)
		}
	}
}

// lanesOf returns the message of the next look that has the lanes.
func lanesOf(t *testing.T, w *httpflow.Watcher) gjson.Result {
	t.Helper()
	var lanes gjson.Result
	if _, err := w.Next(func(m []byte) error {
		if r := gjson.ParseBytes(append([]byte(nil), m...)); r.Get("type").Str == "lanes" {
			lanes = r
		}
		return nil
	}); err != nil || !lanes.Exists() {
		t.Fatalf("the lanes were not sent: %v", err)
	}
	return lanes
}

func TestLanesAreSentWholeAndThenOnlyTheirChanges(t *testing.T) {
	b := newBench(t)
	b.KeyName = func(id string) string { return "name of " + id }
	about := flow.About{ID: "a", Key: "key_a", Owner: "user:ann", Stream: true}
	first := b.Flow.Begin(t.Context(), about, func(error) {})
	first.Attempt(up)
	first.Enter(flow.Queued)
	short := b.begin(t, "b", 2)
	short.End(flow.Result{Usage: dialogue.NoUsage, Status: 503})
	w := b.Watch(t.Context())
	w.Receive([]byte(`{"type":"watch","view":"requests","lanes":true}`))
	got := lanesOf(t, w)
	ann, ended := got.Get(`bars.#(id=="a")`), got.Get(`bars.#(id=="b")`)
	if !got.Get("whole").Bool() || got.Get("bars.#").Int() != 2 || got.Get("lanes.0.provider").Str != "up" ||
		got.Get("lanes.0.queued").Int() != 1 || got.Get("lanes.0.state").Str != "serving" {
		t.Errorf("the first message is %s", got.Raw)
	}
	if ann.Get("user").Str != "ann" || ann.Get("key_name").Str != "name of key_a" ||
		ann.Get("phases").Raw != `["starting","queued"]` {
		t.Errorf("a request in a queue is %s", ann.Raw)
	}
	if !ended.Get("failed").Bool() || ended.Get("phases.3").Str != "ended" {
		t.Errorf("a request that failed a moment ago is %s", ended.Raw)
	}
	if got = lanesOf(t, w); got.Get("whole").Bool() || got.Get("bars.#").Int() != 0 {
		t.Errorf("without a change the message is %s", got.Raw)
	}
	first.Enter(flow.Waiting)
	if got = lanesOf(t, w); got.Get("bars.#").Int() != 1 || got.Get("bars.0.phases.2").Str != "waiting" {
		t.Errorf("after a change of phase the message is %s", got.Raw)
	}
	first.Leave()
	if got = lanesOf(t, w); got.Get("gone.0").Int() != ann.Get("n").Int() || got.Get("bars.#").Int() != 0 {
		t.Errorf("after a request was passed on the message is %s", got.Raw)
	}
}

func TestAWatcherOfLanesHoldsAtMostItsShare(t *testing.T) {
	b := newBench(t)
	const all = 16_384 + 100
	for i := range all {
		b.begin(t, fmt.Sprint("a", i), 1)
	}
	w := b.Watch(t.Context())
	w.Receive([]byte(`{"type":"watch","view":"requests","lanes":true,"filter":{"limit":1}}`))
	var sent, more int64
	for range 10 {
		got := lanesOf(t, w)
		if n := got.Get("bars.#").Int(); n > 2000 {
			t.Fatalf("a message has %d bars", n)
		}
		sent, more = sent+got.Get("bars.#").Int(), got.Get("more").Int()
	}
	if sent != 16_384 || more != 100 {
		t.Errorf("%d requests were sent and %d are counted beyond them", sent, more)
	}
}

func TestHistoryHasTheLastFiveMinutes(t *testing.T) {
	b := newBench(t)
	b.begin(t, "a", 0)
	for range 70 {
		b.at = b.at.Add(5 * time.Second)
		r := b.begin(t, "b", 5)
		flow.AddCharge(r.Charging(t.Context()), 3)
		r.End(flow.Result{Usage: dialogue.NoUsage})
		b.Sample()
	}
	w := b.Watch(t.Context())
	w.Receive([]byte(`{"type":"watch","view":"requests","lanes":true}`))
	got := lanesOf(t, w)
	if got.Get("samples.#").Int() != 60 || got.Get("samples.0.ended").Int() != 11 ||
		got.Get("samples.59.ended").Int() != 70 || got.Get("samples.59.charged").Int() != 210 ||
		got.Get("samples.59.in_flight").Int() != 1 {
		t.Errorf("the history is %s", got.Get("samples").Raw)
	}
	if again := lanesOf(t, w); again.Get("samples.#").Int() != 0 {
		t.Error("the history is sent again without a new sample")
	}
}
