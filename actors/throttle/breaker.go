package throttle

import (
	"sync/atomic"
	"time"
)

// State is the state of a circuit breaker. Its String is the word used in metrics.
type State uint8

// The states of a breaker.
const (
	Shut     State = iota // closed: all requests pass
	Open                  // none pass
	HalfOpen              // one passes, as a probe
)

// String returns the name of the state in metrics and the API.
func (s State) String() string {
	switch s {
	case Open:
		return "open"
	case HalfOpen:
		return "half_open"
	}
	return "closed"
}

// Breaker configures when the circuit breaker opens and for how long. Zero values mean the
// defaults, which are given with each field.
type Breaker struct {
	Consecutive int           // failures in a row that open it; 5
	MinSamples  int           // outcomes within Window before the ratio counts; 20
	Ratio       float64       // share of failures above which it opens; 0.5
	OpenFor     time.Duration // how long it opens at first, doubled at each failed probe; 5 s
	OpenMax     time.Duration // the longest time it stays open; 60 s
}

// Window is the time for which an outcome counts in the ratio.
const Window = 30 * time.Second

// credentialOut is the time for which the breaker stays open after the provider refused our API key.
// It is long because the key does not become valid without an operator.
const credentialOut = 10 * time.Minute

// withDefaults returns the configuration with the usual values in place of zeros.
func (b Breaker) withDefaults() Breaker {
	setDefault(&b.Consecutive, 5)
	setDefault(&b.MinSamples, 20)
	setDefault(&b.Ratio, 0.5)
	setDefault(&b.OpenFor, 5*time.Second)
	setDefault(&b.OpenMax, 60*time.Second)
	return b
}

// breaker counts outcomes and opens when too many fail. Any goroutine may call count at any
// time; everything else belongs to the core.
type breaker struct {
	config Breaker   // constant: count reads it
	base   time.Time // tallies count time from here
	state  State
	until  time.Time // end of Open
	opened int       // times in a row without a successful probe between
	probe  *ticket   // the request in flight in HalfOpen

	streak    atomic.Int32 // failures in a row
	good, bad tally
}

// newBreaker returns a breaker in a state, so that a reconfigured provider keeps the state that it had.
func newBreaker(now time.Time, config Breaker, state State) *breaker {
	return &breaker{config: config.withDefaults(), base: now, state: state}
}

// withConfig returns a breaker in the same state with another configuration.
func (b *breaker) withConfig(now time.Time, config Breaker) *breaker {
	next := newBreaker(now, config, b.state)
	next.until, next.opened, next.probe = b.until, b.opened, b.probe
	return next
}

// admits reports whether one more request may pass, and turns Open into HalfOpen when its time is over.
func (b *breaker) admits(now time.Time) bool {
	if b.state == Open && !now.Before(b.until) {
		b.state, b.probe = HalfOpen, nil
	}
	switch b.state {
	case Open:
		return false
	case HalfOpen:
		return b.probe == nil
	}
	return true
}

// noteGrant makes a granted ticket the probe of a half-open breaker.
func (b *breaker) noteGrant(t *ticket) {
	if b.state == HalfOpen {
		b.probe = t
	}
}

// count counts an outcome at base+since. It reports whether the core must call judge. While
// a provider is healthy, the breaker costs no more than this call.
func (b *breaker) count(since time.Duration, kind Kind) bool {
	switch {
	case kind == Success:
		b.good.add(since)
		if b.streak.Load() != 0 {
			b.streak.Store(0)
		}
	case kind.failure():
		b.bad.add(since)
		b.streak.Add(1)
		return b.exceeded(since)
	}
	return false
}

// exceeded reports whether the failures are too many, in a row or as a share of the last Window.
func (b *breaker) exceeded(since time.Duration) bool {
	if int(b.streak.Load()) >= b.config.Consecutive {
		return true
	}
	bad := b.bad.sum(since)
	all := bad + b.good.sum(since)
	return all >= b.config.MinSamples && float64(bad) > b.config.Ratio*float64(all)
}

// judge opens a closed breaker if its counters say so.
func (b *breaker) judge(now time.Time) {
	if b.state == Shut && b.exceeded(now.Sub(b.base)) {
		b.open(now, b.nextOpen())
	}
}

// record counts an outcome that count has not counted, and opens or closes the breaker if it decides that. Cancelled,
// CallerFault and Unused say nothing about the upstream. RateLimited shows that it is alive, and the cool-down handles
// it.
func (b *breaker) record(now time.Time, t *ticket, kind Kind) {
	probe := t != nil && t == b.probe
	if probe {
		b.probe = nil
	}
	switch {
	case kind == Credential:
		b.open(now, credentialOut)
	case b.state == Shut:
		if b.count(now.Sub(b.base), kind) {
			b.judge(now)
		}
	case probe && kind.failure():
		b.open(now, b.nextOpen())
	case probe && kind.alive():
		b.close()
	}
}

// nextOpen returns how long the breaker opens now: OpenFor, doubled for each failed probe, and at
// most OpenMax.
func (b *breaker) nextOpen() time.Duration {
	open := b.config.OpenFor
	for range b.opened {
		if open *= 2; open >= b.config.OpenMax {
			return b.config.OpenMax
		}
	}
	return open
}

// open refuses all calls for d. opened counts how often this has happened in a row; the pauses grow
// with it.
func (b *breaker) open(now time.Time, d time.Duration) {
	b.opened++
	b.probe = nil
	b.state, b.until = Open, now.Add(d)
}

// close lets all calls through again. The counts begin anew, since old failures would open the
// breaker at the next one.
func (b *breaker) close() {
	b.state, b.opened, b.probe = Shut, 0, nil
	b.streak.Store(0)
	b.good.clear()
	b.bad.clear()
}

// tally counts events over the last Window in slots of five seconds. Each slot is one word
// with the slot's number above its count. Adding therefore needs no lock, and a slot that
// is reused starts from zero.
type tally struct{ slots [8]atomic.Uint64 }

const slotLength = 5 * time.Second

// add counts one event. A slot that belongs to an earlier time is replaced in the same operation.
func (t *tally) add(since time.Duration) {
	number := uint64(since/slotLength) + 1
	slot := &t.slots[number%uint64(len(t.slots))]
	for {
		old := slot.Load()
		next := old + 1
		if old>>32 != number {
			next = number<<32 | 1
		}
		if slot.CompareAndSwap(old, next) {
			return
		}
	}
}

// sum returns the number of events in the last Window, rounded to whole slots.
func (t *tally) sum(since time.Duration) int {
	newest := uint64(since/slotLength) + 1
	total := uint64(0)
	for i := range t.slots {
		word := t.slots[i].Load()
		if number := word >> 32; number != 0 && number+uint64(Window/slotLength) > newest {
			total += word & (1<<32 - 1)
		}
	}
	return int(total)
}

// clear forgets the outcomes of all slots.
func (t *tally) clear() {
	for i := range t.slots {
		t.slots[i].Store(0)
	}
}
