package flow_test

import (
	"context"
	"math"
	"strconv"
	"testing"
	"time"

	"stagedoor/actors/flow"
	"stagedoor/providers/catalog"
	"stagedoor/providers/dialogue"
)

// try is one attempt of a test: at a provider, how it failed, and whether it got a permit.
type try struct {
	provider, failure string
	sent              bool
}

// record plays a request that took ten seconds, of which the last attempt had nine. Its first token came after three.
func record(r *flow.Registry, now *time.Time, status int, tries ...try) {
	q := r.Begin(context.Background(), flow.About{ID: "r", Model: "m", Stream: true}, func(error) {})
	began := *now
	for i, a := range tries {
		q.Attempt(&catalog.Candidate{Provider: &catalog.Provider{Name: a.provider}, Model: "m"})
		if a.sent {
			q.Sent(i+1, began.Add(time.Second))
		}
		if a.failure != "" {
			q.Failed(i+1, 500, a.failure)
		}
	}
	if *now = began.Add(3 * time.Second); status == 0 {
		q.Progress(1)
	}
	*now = began.Add(10 * time.Second)
	q.End(flow.Result{Status: status, Usage: dialogue.Usage{OutputTotal: 350}})
	q.Record()
}

func hourOf(r *flow.Registry, provider string) flow.Hour {
	f := r.ProviderFigures(provider)
	return f.Hour()
}

func modelHourOf(r *flow.Registry, model string) flow.Hour {
	f := r.ModelFigures("")[model]
	return f.Hour()
}

func near(got, want time.Duration) bool { return math.Abs(float64(got-want)) <= .07*float64(want) }

func TestAnHourHasTheAttemptsAtEachProvider(t *testing.T) {
	now := time.Date(2026, 5, 1, 12, 0, 0, 0, time.UTC)
	r := flow.New(func() time.Time { return now })
	record(r, &now, 0, try{"a", "transient", true}, try{"b", "", true})
	record(r, &now, 0, try{"a", "", true})
	record(r, &now, 429, try{"a", "not_sent", false}) // refused by the gateway's own limiter
	record(r, &now, 400, try{"a", "caller_fault", true})
	record(r, &now, 499, try{"b", "cancelled", true})
	a, b := hourOf(r, "a"), hourOf(r, "b")
	if a.Requests != 3 || a.Failed != 1 || b.Requests != 2 || b.Failed != 0 {
		t.Errorf("a has %d and %d failed, b %d and %d", a.Requests, a.Failed, b.Requests, b.Failed)
	}
	// The times are those from the permit on, of attempts that succeeded.
	for name, h := range map[string]flow.Hour{"a": a, "b": b} {
		if !near(h.First.P50, 2*time.Second) || !near(h.First.P95, 2*time.Second) || !near(h.Took.P50, 9*time.Second) {
			t.Errorf("%s: %+v, %+v", name, h.First, h.Took)
		}
	}
	if last := a.Minutes[flow.HourMinutes-1]; last != (flow.Minute{Requests: 3, Failed: 1, First: 2 * time.Second,
		Rate: 50}) {
		t.Errorf("the last minute has %+v", last)
	}
	now = now.Add(59 * time.Minute)
	if h := hourOf(r, "a"); h.Requests != 3 || h.Minutes[0].Requests != 3 {
		t.Errorf("after 59 minutes: %+v", h)
	}
	now = now.Add(time.Minute)
	record(r, &now, 500, try{"a", "transient", true})
	if h := hourOf(r, "a"); h.Requests != 1 || h.Failed != 1 || h.Took.P50 != 0 {
		t.Errorf("after an hour: %d, %d failed, %+v", h.Requests, h.Failed, h.Took)
	}
}

func TestAModelIsMeasuredAtAllItsProvidersFromItsFirstReplyOn(t *testing.T) {
	now := time.Date(2026, 5, 1, 12, 0, 0, 0, time.UTC)
	r := flow.New(func() time.Time { return now })
	record(r, &now, 500, try{"a", "transient", true}) // a name that clients may have invented
	if h := modelHourOf(r, "m"); h.Requests != 0 {
		t.Errorf("a model without a reply has %d requests", h.Requests)
	}
	record(r, &now, 0, try{"a", "transient", true}, try{"b", "", true})
	record(r, &now, 0, try{"a", "", true})
	record(r, &now, 500, try{"b", "overloaded", true})
	h := modelHourOf(r, "m")
	// A reply of 350 tokens took seven seconds after its first one.
	if h.Requests != 3 || h.Failed != 1 || h.Rate != 50 || !near(h.First.P50, 2*time.Second) {
		t.Errorf("%d requests, %d failed, %v a second, %+v", h.Requests, h.Failed, h.Rate, h.First)
	}
	now = now.Add(time.Hour)
	if h := modelHourOf(r, "m"); h.Requests != 0 || h.Rate != 0 {
		t.Errorf("after an hour: %d requests, %v a second", h.Requests, h.Rate)
	}
}

func TestTheQuantilesOfAnHourAreExactToSevenPerCent(t *testing.T) {
	for d := time.Millisecond + 24*time.Microsecond; d < time.Hour; d += d/5 + time.Microsecond {
		now := time.Unix(1_000_000, 0)
		r := flow.New(func() time.Time { return now })
		q := r.Begin(t.Context(), flow.About{}, func(error) {})
		q.Attempt(&catalog.Candidate{Provider: &catalog.Provider{Name: "a"}})
		q.Sent(1, now)
		now = now.Add(d)
		q.End(flow.Result{})
		q.Record()
		if h := hourOf(r, "a"); !near(h.Took.P50, d) || h.Took.P50 != h.Took.P95 {
			t.Errorf("%v is %v", d, h.Took)
		}
	}
}

func TestProvidersThatAreNotUsedMakeRoomForOthers(t *testing.T) {
	now := time.Unix(1_000_000, 0)
	r := flow.New(func() time.Time { return now })
	for i := range 600 {
		record(r, &now, 0, try{strconv.Itoa(i), "", true})
		now = now.Add(-10 * time.Second)
	}
	if first, last := hourOf(r, "0"), hourOf(r, "599"); first.Requests != 1 || last.Requests != 0 {
		t.Errorf("%d at the first one, %d at one too many", first.Requests, last.Requests)
	}
	now = now.Add(2 * time.Hour)
	record(r, &now, 0, try{"599", "", true})
	if h := hourOf(r, "599"); h.Requests != 1 {
		t.Error("a provider is not measured after the others were idle for an hour")
	}
}

// BenchmarkRecord measures the cost of the figures of a provider for each request.
func BenchmarkRecord(b *testing.B) {
	now := time.Unix(1_000_000, 0)
	r := flow.New(func() time.Time { return now })
	q := r.Begin(b.Context(), flow.About{}, func(error) {})
	q.Attempt(&catalog.Candidate{Provider: &catalog.Provider{Name: "a"}})
	q.Sent(1, now)
	q.Progress(1)
	q.End(flow.Result{})
	b.RunParallel(func(pb *testing.PB) {
		for pb.Next() {
			q.Record()
		}
	})
}

// TestPercentilesOfTwoGatewaysAreThoseOfAllTheirRequests: the median of 9 fast requests and 3 slow ones is that of the
// fast ones, and no mean of two medians.
func TestPercentilesOfTwoGatewaysAreThoseOfAllTheirRequests(t *testing.T) {
	now := time.Date(2026, 5, 1, 12, 0, 0, 0, time.UTC)
	clock := func() time.Time { return now }
	fast, slow := flow.New(clock), flow.New(clock)
	play := func(r *flow.Registry, n int, took time.Duration) {
		for range n {
			began := now
			q := r.Begin(t.Context(), flow.About{ID: "r", Model: "m"}, func(error) {})
			q.Attempt(&catalog.Candidate{Provider: &catalog.Provider{Name: "a"}, Model: "m"})
			q.Sent(1, began)
			now = began.Add(took)
			q.End(flow.Result{Usage: dialogue.NoUsage})
			q.Record()
			now = began
		}
	}
	play(fast, 9, time.Second)
	play(slow, 3, 8*time.Second)
	all, other := fast.ProviderFigures("a"), slow.ProviderFigures("a")
	all.Add(&other)
	h := all.Hour()
	if h.Requests != 12 || h.Minutes[flow.HourMinutes-1].Requests != 12 || !near(h.Took.P50, time.Second) ||
		!near(h.Took.P95, 8*time.Second) {
		t.Errorf("%d requests, %+v", h.Requests, h.Took)
	}
}
