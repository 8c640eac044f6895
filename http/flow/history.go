package flow

import (
	"context"
	"slices"
	"sync"
	"time"

	"stagedoor/actors/flow"
)

// The history reaches back five minutes. A sample costs one pass over the requests in flight.
const (
	sampleEvery = 5 * time.Second
	maxSamples  = 60
	// firstWindow is the time whose first tokens count for the percentile of a sample.
	firstWindow = time.Minute
)

// Sample has the load at one instant.
type Sample struct {
	InFlight int   `json:"in_flight"`
	Queued   int   `json:"queued"`
	Rate     int64 `json:"tokens_per_second"`
	FirstMs  int64 `json:"first_ms"` // 95th percentile of the last minute, or 0 if there was no first token
	Ended    int64 `json:"ended"`    // since the start, as in Failed
	Failed   int64 `json:"failed"`
	Charged  int64 `json:"charged"` // micro-dollars since the start
	// Firsts has the histogram of the first tokens of the last minute, without its zeros, to add those of other
	// gateways. Pages do not get it.
	Firsts map[int]uint32 `json:"firsts,omitempty"`
	// Providers has the tokens per second of each provider that had requests in flight.
	Providers map[string]int64 `json:"providers"`
}

// history has the last samples, the oldest first.
type history struct {
	mu      sync.Mutex
	samples []Sample
	taken   int64 // samples since the start
}

// Record samples the load every sampleEvery until ctx ends, so that a page that is opened has the last five minutes.
// Each time it also asks the other gateways for the number of their requests in flight (InFlight).
func (o *Overview) Record(ctx context.Context) {
	tick := time.NewTicker(sampleEvery)
	defer tick.Stop()
	for {
		o.Sample()
		o.countOthers(ctx)
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		}
	}
}

// Sample adds the present load to the history. Record calls it every five seconds.
func (o *Overview) Sample() {
	now := o.Now()
	buffer := buffers.Get().(*[]*flow.Request)
	all := o.Flow.Active((*buffer)[:0])
	sum, first := newSum(), []time.Duration{}
	since := func(r *flow.Request) {
		if f := r.First(); f > 0 && now.Sub(r.Began().Add(f)) < firstWindow {
			first = append(first, f)
		}
	}
	for _, r := range all {
		if phase := r.Phase(); phase != flow.Ended {
			sum.add(r, phase, now)
			since(r)
		}
	}
	clear(all)
	*buffer = all[:0]
	buffers.Put(buffer)
	for _, r := range o.Flow.Recent() {
		since(r)
	}
	totals := o.Flow.Totals()
	load := sum.load(totals)
	s := Sample{InFlight: load.InFlight, Queued: load.Phases.Queued, Rate: load.TokensPerSecond, Ended: load.Ended,
		Failed: load.Failed, Charged: totals.Charged, Providers: make(map[string]int64)}
	for _, p := range load.Providers {
		s.Providers[p.Provider] = p.TokensPerSecond
	}
	if slices.Sort(first); len(first) > 0 {
		s.FirstMs = first[(len(first)*95-1)/100].Milliseconds()
		var counts flow.Histogram
		for _, f := range first {
			counts.Count(f)
		}
		s.Firsts = make(map[int]uint32)
		for i, n := range counts {
			if n > 0 {
				s.Firsts[i] = n
			}
		}
	}
	o.sessions.sweep()
	h := &o.history
	h.mu.Lock()
	defer h.mu.Unlock()
	if len(h.samples) == maxSamples {
		h.samples = slices.Delete(h.samples, 0, 1)
	}
	h.samples = append(h.samples, s)
	h.taken++
}

// after returns all samples if there are newer ones than the first taken ones, and how many were taken.
func (h *history) after(taken int64) ([]Sample, int64) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.taken == taken {
		return nil, taken
	}
	return slices.Clone(h.samples), h.taken
}
