package engine

import (
	"fmt"
	"sync"
	"testing"
	"time"

	"stagedoor/providers/upstream"
)

// step is a decision without the moment it is to be carried out.
type step struct {
	verdict   verdict
	candidate int
	noSchema  bool
}

func TestDecide(t *testing.T) {
	ok := facts{allowed: 2, budget: true, remaining: time.Minute}
	with := func(class upstream.Class, change func(f *facts)) facts {
		f := ok
		f.class = class
		if change != nil {
			change(&f)
		}
		return f
	}
	two := func(f *facts) { f.next = 1 }
	rows := []struct {
		name     string
		p        progress
		f        facts
		want     step
		min, max time.Duration
	}{
		{"a client that left is not served", progress{}, with(upstream.Cancelled, two), step{verdict: giveUp}, 0, 0},
		{"nothing after the first byte", progress{}, with(upstream.Transient, func(f *facts) {
			f.committed = true
			f.next = 1
		}), step{verdict: giveUp}, 0, 0},
		{"nothing after the total deadline", progress{}, with(upstream.TimedOut, func(f *facts) {
			f.remaining = 0
			f.next = 1
		}), step{verdict: giveUp}, 0, 0},
		{"the caller's fault stays one", progress{}, with(upstream.CallerFault, nil), step{verdict: giveUp}, 0, 0},
		{"unless a target is for it", progress{}, with(upstream.CallerFault, func(f *facts) {
			f.next, f.allowed, f.budget = 2, 0, false
		}), step{verdict: elsewhere, candidate: 2}, 0, 0},

		{"a refused schema is left out", progress{},
			with(upstream.CallerFault, func(f *facts) { f.schema, f.structured, f.allowed, f.budget = true, true, 0, false }), step{verdict: again, noSchema: true}, 0, 0},
		{"but only once", progress{noSchema: true}, with(upstream.CallerFault,
			func(f *facts) { f.schema, f.structured = true, true }), step{verdict: giveUp, noSchema: true}, 0, 0},
		{"and only if the request has one", progress{}, with(upstream.CallerFault, func(f *facts) { f.schema = true }),
			step{verdict: giveUp}, 0, 0},
		{"a shorter prompt is sent at once", progress{}, with(upstream.CallerFault, func(f *facts) {
			f.amended, f.allowed, f.budget = true, 0, false
		}), step{verdict: again}, 0, 0},
		{"an amended request keeps its schema", progress{}, with(upstream.CallerFault, func(f *facts) {
			f.amended, f.schema, f.structured = true, true, true
		}), step{verdict: again}, 0, 0},
		{"another target gets the schema", progress{noSchema: true, retries: 2}, with(upstream.Transient, two),
			step{verdict: elsewhere, candidate: 1}, 0, 0},

		{"not sent: here", progress{}, with(upstream.NotSent, two), step{verdict: again}, time.Millisecond,
			101 * time.Millisecond},
		{"not sent: then elsewhere", progress{retriesHere: 2, retries: 2}, with(upstream.NotSent, two),
			step{verdict: elsewhere, candidate: 1}, 0, 0},
		{"no permit: not here", progress{}, with(upstream.NotSent, func(f *facts) { f.gated = true }),
			step{verdict: giveUp}, 0, 0},
		{"no permit: elsewhere", progress{}, with(upstream.NotSent, func(f *facts) {
			f.gated = true
			f.next = 1
		}), step{verdict: elsewhere, candidate: 1}, 0, 0},

		{"maybe sent: once", progress{}, with(upstream.MaybeSent, nil), step{verdict: again}, time.Millisecond,
			101 * time.Millisecond},
		{"maybe sent: not twice", progress{uncertain: 1}, with(upstream.MaybeSent, nil), step{verdict: giveUp}, 0, 0},

		{"timed out: once", progress{}, with(upstream.TimedOut, nil), step{verdict: again}, time.Millisecond,
			101 * time.Millisecond},
		{"timed out: not twice", progress{uncertain: 1}, with(upstream.TimedOut, nil), step{verdict: giveUp}, 0, 0},
		{"timed out: rather elsewhere", progress{}, with(upstream.TimedOut, two),
			step{verdict: elsewhere, candidate: 1}, 0, 0},

		{"rate limited: another key", progress{}, with(upstream.RateLimited,
			func(f *facts) { f.spareKeys = 1; f.retryAfter = time.Hour }), step{verdict: again}, 0, 0},
		{"rate limited: waits as long as the provider asks", progress{},
			with(upstream.RateLimited, func(f *facts) { f.retryAfter = 10 * time.Second }), step{verdict: again},
			10 * time.Second, 10 * time.Second},
		{"rate limited: not too long", progress{}, with(upstream.RateLimited,
			func(f *facts) { f.retryAfter = 11 * time.Second }), step{verdict: giveUp}, 0, 0},
		{"rate limited: not past the deadline", progress{}, with(upstream.RateLimited,
			func(f *facts) { f.retryAfter, f.remaining = 5*time.Second, 4*time.Second }), step{verdict: giveUp}, 0, 0},
		{"rate limited: gives up if the provider names no wait", progress{}, with(upstream.RateLimited, nil),
			step{verdict: giveUp}, 0, 0},
		{"rate limited: elsewhere rather than long", progress{}, with(upstream.RateLimited, func(f *facts) {
			f.retryAfter = 5 * time.Second
			f.next = 1
		}), step{verdict: elsewhere, candidate: 1}, 0, 0},
		{"rate limited: a moment rather than elsewhere", progress{}, with(upstream.RateLimited, func(f *facts) {
			f.retryAfter = time.Second
			f.next = 1
		}), step{verdict: again}, time.Second, time.Second},

		{"credential: another key", progress{}, with(upstream.Credential, func(f *facts) { f.spareKeys = 1 }),
			step{verdict: again}, 0, 0},
		{"credential: no other key", progress{}, with(upstream.Credential, nil), step{verdict: giveUp}, 0, 0},
		{"credential: elsewhere", progress{}, with(upstream.Credential, two), step{verdict: elsewhere, candidate: 1}, 0,
			0},

		{"transient: once here", progress{}, with(upstream.Transient, two), step{verdict: again}, time.Millisecond,
			101 * time.Millisecond},
		{"transient: then elsewhere", progress{retriesHere: 1, retries: 1}, with(upstream.Transient, two),
			step{verdict: elsewhere, candidate: 1}, 0, 0},
		{"transient: at the last target as often as allowed", progress{retriesHere: 1, retries: 1},
			with(upstream.Transient, nil), step{verdict: again}, time.Millisecond, 201 * time.Millisecond},
		{"transient: no more often", progress{retriesHere: 2, retries: 2}, with(upstream.Transient, nil),
			step{verdict: giveUp}, 0, 0},
		{"transient: never if not configured", progress{}, with(upstream.Transient, func(f *facts) { f.allowed = 0 }),
			step{verdict: giveUp}, 0, 0},
		{"transient: not over budget", progress{}, with(upstream.Transient, func(f *facts) { f.budget = false }),
			step{verdict: giveUp}, 0, 0},
		{"over budget, elsewhere is no retry", progress{}, with(upstream.Transient, func(f *facts) {
			f.budget = false
			f.next = 1
		}), step{verdict: elsewhere, candidate: 1}, 0, 0},
		{"overloaded: not before it said", progress{}, with(upstream.Overloaded,
			func(f *facts) { f.retryAfter = 3 * time.Second }), step{verdict: again}, 3 * time.Second, 3 * time.Second},
		{"overloaded: another key", progress{}, with(upstream.Overloaded, func(f *facts) {
			f.spareKeys, f.retryAfter = 1, time.Hour
		}), step{verdict: again}, time.Millisecond, 101 * time.Millisecond},
		{"overloaded: not if that is long", progress{},
			with(upstream.Overloaded, func(f *facts) { f.retryAfter = 20 * time.Second }), step{verdict: giveUp}, 0, 0},

		{"barred: neither here nor elsewhere", progress{}, with(upstream.NotSent, func(f *facts) {
			f.barred = true
			f.next = 1
		}), step{verdict: giveUp}, 0, 0},
		{"not sent: a second time", progress{retriesHere: 1, retries: 1}, with(upstream.NotSent, two),
			step{verdict: again}, time.Millisecond, 201 * time.Millisecond},
		{"not sent: elsewhere if it moves on", progress{retriesHere: 1, retries: 1},
			with(upstream.NotSent, func(f *facts) { f.moveOn = true; f.next = 1 }),
			step{verdict: elsewhere, candidate: 1}, 0, 0},

		{"the last target is the last", progress{candidate: 1, retries: 2}, with(upstream.Transient, nil),
			step{verdict: giveUp, candidate: 1}, 0, 0},
	}
	for _, row := range rows {
		p, what, wait := decide(row.p, row.f)
		if got := (step{what, p.candidate, p.noSchema}); got != row.want {
			t.Errorf("%s: got %+v, want %+v", row.name, got, row.want)
		}
		if wait < row.min || wait > row.max {
			t.Errorf("%s: waits %s, want %s to %s", row.name, wait, row.min, row.max)
		}
	}
}

// Whatever comes, a request is tried a bounded number of times.
func TestDecideEnds(t *testing.T) {
	for class := upstream.OK; class <= upstream.TimedOut; class++ {
		t.Run(fmt.Sprint(class), func(t *testing.T) {
			var p progress
			f := facts{class: class, allowed: 2, budget: true, remaining: time.Hour, spareKeys: 1,
				retryAfter: time.Second, schema: true, structured: true}
			for tries := 1; ; tries++ {
				var what verdict
				f.next = (p.candidate + 1) % 3 // there are three targets
				if p, what, _ = decide(p, f); what == giveUp {
					return
				}
				if tries > 20 {
					t.Fatal("tries for ever")
				}
			}
		})
	}
}

func TestJitterGrowsToItsCap(t *testing.T) {
	for n := range 40 {
		top := min(backoffBase<<min(n, 10), backoffCap) + time.Millisecond
		for range 100 {
			if got := jitter(n); got <= 0 || got > top {
				t.Fatalf("after %d retries: %s, want at most %s", n, got, top)
			}
		}
	}
}

func TestRetryBudgetIsAFifthAndAtLeastThree(t *testing.T) {
	for _, row := range []struct {
		inFlight int
		want     int64
	}{{0, 3}, {10, 3}, {15, 3}, {20, 4}, {100, 20}} {
		var b retryBudget
		var wg sync.WaitGroup
		got := make(chan bool, 200)
		for range 200 {
			wg.Go(func() { got <- b.take(row.inFlight) })
		}
		wg.Wait()
		close(got)
		taken := int64(0)
		for ok := range got {
			if ok {
				taken++
			}
		}
		// A call that is refused counts for a moment, which may refuse others.
		if taken > row.want || b.retrying.Load() != taken {
			t.Errorf("with %d in flight: %d took a place and %d are counted, want at most %d", row.inFlight, taken,
				b.retrying.Load(), row.want)
		}
		for range taken {
			b.giveBack()
		}
		for range row.want {
			if !b.take(row.inFlight) {
				t.Errorf("with %d in flight: no place left of %d", row.inFlight, row.want)
			}
		}
	}
}
