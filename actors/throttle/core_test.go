package throttle

import (
	"fmt"
	"testing"
	"time"

	"pgregory.net/rapid"
)

// world is a core with a clock of its own and the owners of its tickets.
type world struct {
	core    *core
	shared  shared
	now     time.Time
	waiting []*ticket // asked, no verdict seen
	holding []*ticket
	left    []*ticket // whose owner has gone

	requests, tokens int // charged at grants
	begin            time.Time
}

func newWorld(config Config) *world {
	w := &world{now: time.Unix(1_000_000, 0)}
	w.begin = w.now
	w.core = newCore(w.now, config, &w.shared, false)
	return w
}

func (w *world) ask(key string, class, tokens int, wait time.Duration, last bool) *ticket {
	t := &ticket{owner: key, class: class, tokens: tokens, asked: w.now, last: last, verdict: make(chan *Refused, 1)}
	if wait > 0 {
		t.deadline = w.now.Add(wait)
	}
	w.core.acquire(w.now, t)
	w.waiting = append(w.waiting, t)
	return t
}

// collect reads verdicts and returns how many tickets still wait.
func (w *world) collect(t interface{ Fatalf(string, ...any) }) {
	still := w.waiting[:0]
	for _, k := range w.waiting {
		select {
		case refused := <-k.verdict:
			if refused == nil {
				w.holding = append(w.holding, k)
				w.requests++
				w.tokens += k.tokens
			} else if refused.RetryAfter < 0 {
				t.Fatalf("retry after %v", refused.RetryAfter)
			}
			if k.flow != nil {
				t.Fatalf("a ticket with a verdict is still queued")
			}
		default:
			if k.flow == nil {
				t.Fatalf("a ticket without a verdict is not queued")
			}
			still = append(still, k)
		}
	}
	w.waiting = still
}

func (w *world) check(t *rapid.T, config Config) {
	w.collect(t)
	for _, k := range append(w.left, w.holding...) {
		if len(k.verdict) != 0 {
			t.Fatalf("a second verdict")
		}
	}
	if n := int(w.shared.inFlight.Load()); n != len(w.holding) {
		t.Fatalf("%d in flight, %d held", n, len(w.holding))
	}
	if config.MaxInFlight > 0 && len(w.holding) > config.MaxInFlight {
		t.Fatalf("%d held, %d allowed", len(w.holding), config.MaxInFlight)
	}
	if w.core.queue.total != len(w.waiting) {
		t.Fatalf("%d queued, %d waiting", w.core.queue.total, len(w.waiting))
	}
	if most := w.core.config.QueueTotal + w.core.config.Reserve; w.core.queue.total > most {
		t.Fatalf("%d queued, %d allowed", w.core.queue.total, most)
	}
	if free := w.core.requests.credit; config.RequestsPerMinute > 0 && free < 0 {
		t.Fatalf("requests overdrawn: %v", free)
	}
	for _, k := range w.waiting {
		if !k.deadline.IsZero() && !w.now.Before(k.deadline) {
			t.Fatalf("a ticket waits beyond its deadline")
		}
	}
	due := 0
	q, listed := &w.core.queue, 0
	for which, r := range []*round{&q.current, &q.later} {
		for class := range r {
			for f := r[class].first; f != nil; f = f.next {
				listed++
				if f.count == 0 || f != q.flows[f.owner] || f.in != &r[class] || f.class() != class ||
					f.done != (which == 1) {
					t.Fatalf("the flow %+v is in the list of class %d of round %d", f, class, which)
				}
				n := 0
				for k := range f.upTo(Background) {
					if n++; k.index >= 0 {
						due++
					}
				}
				if n != f.count || n != f.classes[0]+f.classes[1]+f.classes[2] {
					t.Fatalf("key %s counts %d, has %d", f.owner, f.count, n)
				}
			}
		}
	}
	if listed != len(q.flows) {
		t.Fatalf("%d flows are listed, %d known", listed, len(q.flows))
	}
	if due != len(w.core.queue.due) {
		t.Fatalf("heap holds %d, want %d", len(w.core.queue.due), due)
	}
}

// drain lets time pass and holders finish until the queue is empty.
func (w *world) drain(t *rapid.T) {
	for range 100_000 {
		if len(w.waiting) == 0 && len(w.holding) == 0 {
			return
		}
		if len(w.holding) > 0 {
			k := w.holding[0]
			w.holding = w.holding[1:]
			w.core.release(w.now, k, &Outcome{})
		}
		next := w.core.dispatch(w.now)
		w.collect(t)
		if len(w.holding) > 0 || len(w.waiting) == 0 {
			continue
		}
		if next.IsZero() {
			t.Fatalf("%d wait and nothing will wake the core", len(w.waiting))
		}
		if next.After(w.now) {
			w.now = next
		}
	}
	t.Fatalf("%d still wait", len(w.waiting))
}

// For any sequence of events, each ticket gets one verdict, no limit on requests in flight
// or in the queue is exceeded, and no ticket waits beyond its deadline or forever.
func TestCoreKeepsItsInvariants(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		config := Config{
			RequestsPerMinute: rapid.SampledFrom([]int{0, 1, 60, 6000}).Draw(t, "rpm"),
			TokensPerMinute:   rapid.SampledFrom([]int{0, 100, 60_000}).Draw(t, "tpm"),
			MaxInFlight:       rapid.SampledFrom([]int{0, 1, 3}).Draw(t, "flight"),
			QueuePerOwner:     rapid.IntRange(1, 5).Draw(t, "perKey"),
			QueueTotal:        rapid.IntRange(1, 12).Draw(t, "total"),
			Reserve:           rapid.IntRange(1, 3).Draw(t, "reserve"),
			MaxWait:           rapid.SampledFrom([]time.Duration{0, 30 * time.Second}).Draw(t, "maxWait"),
		}
		w := newWorld(config)
		pick := func(from []*ticket) int { return rapid.IntRange(0, len(from)-1).Draw(t, "which") }
		t.Repeat(map[string]func(*rapid.T){
			"ask": func(t *rapid.T) {
				w.ask(fmt.Sprint(rapid.IntRange(0, 3).Draw(t, "key")),
					rapid.IntRange(-1, 3).Draw(t, "class"),
					rapid.IntRange(0, 500).Draw(t, "tokens"),
					time.Duration(rapid.IntRange(0, 60_000).Draw(t, "wait"))*time.Millisecond,
					rapid.Bool().Draw(t, "last"))
			},
			"release": func(t *rapid.T) {
				if len(w.holding) == 0 {
					return
				}
				i := pick(w.holding)
				k := w.holding[i]
				w.holding = append(w.holding[:i], w.holding[i+1:]...)
				o := Outcome{
					Kind:       Kind(rapid.IntRange(0, int(kindCount)-1).Draw(t, "kind")),
					RetryAfter: time.Duration(rapid.IntRange(0, 20).Draw(t, "after")) * time.Second,
					TokensUsed: rapid.IntRange(0, 1000).Draw(t, "used"),
				}
				if rapid.Bool().Draw(t, "reported") {
					left := rapid.IntRange(0, 5).Draw(t, "left")
					o.RemainingRequests, o.ResetRequests = &left, time.Second
				}
				w.core.release(w.now, k, &o)
				w.core.dispatch(w.now)
			},
			"leave": func(t *rapid.T) {
				if len(w.waiting) == 0 {
					return
				}
				i := pick(w.waiting)
				if k := w.waiting[i]; k.abandon() {
					w.waiting = append(w.waiting[:i], w.waiting[i+1:]...)
					w.left = append(w.left, k)
					w.core.cancel(k)
				}
			},
			"pass": func(t *rapid.T) {
				w.now = w.now.Add(time.Duration(rapid.IntRange(0, 20_000).Draw(t, "ms")) * time.Millisecond)
				w.core.dispatch(w.now)
			},
			"pause": func(t *rapid.T) {
				w.core.paused = rapid.Bool().Draw(t, "paused")
				w.core.dispatch(w.now)
			},
			"": func(t *rapid.T) {
				w.core.dispatch(w.now)
				w.check(t, config)
			},
		})
		w.core.paused = false
		w.drain(t)
	})
}

// What a bucket lets through in any time is its burst and what flowed in.
func TestBucketIsNeverOverdrawn(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		limit := rapid.IntRange(1, 2_000_000).Draw(t, "limit")
		now := time.Unix(1_000_000, 0)
		begin := now
		b := newBucket(now, limit, time.Minute, rapid.Bool().Draw(t, "full"))
		start := float64(b.credit)
		passed := 0
		for range rapid.IntRange(1, 100).Draw(t, "steps") {
			now = now.Add(time.Duration(rapid.IntRange(0, 5_000_000_000).Draw(t, "ns")))
			b.refill(now)
			n := rapid.IntRange(0, limit).Draw(t, "n")
			wait := b.wait(n)
			if wait == 0 {
				b.take(n)
				passed += n
				continue
			}
			// The wait is exact: the bucket refuses just before it and grants after it.
			early, late := b, b
			early.refill(now.Add(wait - 1))
			late.refill(now.Add(wait))
			if early.wait(n) == 0 || late.wait(n) != 0 {
				t.Fatalf("a wait of %v is wrong", wait)
			}
		}
		if b.credit < 0 {
			t.Fatalf("credit %v", b.credit)
		}
		allowed := (start + float64(now.Sub(begin))) * float64(limit) / float64(time.Minute)
		if float64(passed) > allowed+1e-6*allowed {
			t.Fatalf("%d passed, %f allowed", passed, allowed)
		}
	})
}

// Keys with different appetites get the same share of tokens.
func TestRoundRobinSharesTokens(t *testing.T) {
	w := newWorld(Config{TokensPerMinute: 6_000_000, MaxInFlight: 1, QueuePerOwner: 1000, QueueTotal: 5000})
	hold := w.ask("first", Normal, 0, 0, false)
	sizes := map[string]int{"small": 2048, "middle": 4096, "large": 16384}
	for range 600 {
		for key, size := range sizes {
			w.ask(key, Normal, size, 0, false)
		}
	}
	w.core.release(w.now, hold, &Outcome{})
	w.core.dispatch(w.now)
	got := make(map[string]int)
	for range 300 {
		w.collect(t)
		for _, k := range w.holding {
			got[k.owner] += k.tokens
			w.core.release(w.now, k, &Outcome{TokensUsed: k.tokens})
		}
		w.holding = nil
		w.now = w.now.Add(time.Second)
		w.core.dispatch(w.now)
	}
	delete(got, "first")
	for key, tokens := range got {
		for other, more := range got {
			if tokens*100 < more*75 {
				t.Errorf("%s got %d tokens, %s %d", key, tokens, other, more)
			}
		}
	}
	if len(got) != 3 {
		t.Errorf("got %v", got)
	}
}

func TestTallyForgetsAfterTheWindow(t *testing.T) {
	var c tally
	for i := range 10 {
		c.add(time.Duration(i) * time.Second)
	}
	for _, row := range []struct {
		at   time.Duration
		want int
	}{{9 * time.Second, 10}, {29 * time.Second, 10}, {30 * time.Second, 5}, {35 * time.Second, 0},
		{10 * time.Minute, 0}} {
		if got := c.sum(row.at); got != row.want {
			t.Errorf("at %v: %d, want %d", row.at, got, row.want)
		}
	}
	c.add(40 * time.Second) // the slot comes round again
	if got := c.sum(40 * time.Second); got != 1 {
		t.Errorf("got %d, want 1", got)
	}
}

// A grant costs nothing when its owner has left without the core knowing it: the request
// and its tokens stay in the buckets, and the place stays free.
func TestAGrantToACallerThatGaveUpCostsNothing(t *testing.T) {
	w := newWorld(Config{RequestsPerMinute: 60, TokensPerMinute: 6000, MaxInFlight: 1, Burst: time.Minute})
	running := w.ask("a", Interactive, 100, 0, false)
	waiting := w.ask("b", Interactive, 100, 0, false)
	w.collect(t)
	if len(w.holding) != 1 || !waiting.abandon() {
		t.Fatalf("%d hold a place, want the first one to hold it and the second one to wait", len(w.holding))
	}
	requests, tokens := w.core.requests.credit, w.core.tokens.credit
	w.core.release(w.now, running, &Outcome{Kind: Success, TokensUsed: 100})
	w.core.dispatch(w.now)
	if w.core.requests.credit != requests || w.core.tokens.credit != tokens {
		t.Errorf("buckets hold %v and %v, want %v and %v", w.core.requests.credit, w.core.tokens.credit, requests,
			tokens)
	}
	if n := w.shared.inFlight.Load(); n != 0 || w.core.queue.total != 0 {
		t.Errorf("%d places are taken and %d requests wait, want none", n, w.core.queue.total)
	}
}
