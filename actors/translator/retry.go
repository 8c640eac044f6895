package translator

import (
	"math/rand/v2"
	"sync/atomic"
	"time"

	"stagedoor/providers/upstream"
)

// Rules of trying again (faults.md 4).
const (
	backoffBase   = 100 * time.Millisecond
	backoffCap    = 2 * time.Second
	longestWait   = 10 * time.Second // for a Retry-After
	budgetFloor   = 3
	budgetPercent = 20
)

// progress is what has been tried so far.
type progress struct {
	candidate int // index into the plan
	tries     int // on this candidate, all of them
	retries   int // over all, against the provider's limit
	uncertain int // attempts that may have reached an upstream
	noSchema  bool
}

// facts are what a decision needs to know besides.
type facts struct {
	class      upstream.Class
	schema     bool // the failure was about the schema
	structured bool
	retryAfter time.Duration
	committed  bool
	allowed    int // retries the provider's configuration allows
	candidates int
	spareKeys  int  // usable keys of this provider besides the one that failed
	budget     bool // the retry budget has room
	remaining  time.Duration
}

// verdict is what happens next.
type verdict uint8

const (
	giveUp verdict = iota
	again          // the same target, after a wait
	elsewhere
)

// decide says what to do after a failed attempt. It is pure; p is what will
// have been tried when the decision is carried out.
func decide(p progress, f facts) (progress, verdict, time.Duration) {
	if f.committed || f.class == upstream.Cancelled {
		return p, giveUp, 0
	}
	if f.schema && f.structured && !p.noSchema {
		p.noSchema = true // rule 6 of 4.8: never fail for the schema
		p.tries++
		return p, again, 0
	}
	if f.class == upstream.CallerFault {
		return p, giveUp, 0
	}
	if f.class == upstream.MaybeSent || f.class == upstream.TimedOut {
		p.uncertain++
	}
	if wait, ok := retryHere(p, f); ok && wait < f.remaining && f.budget {
		p.tries++
		p.retries++
		return p, again, wait
	}
	if p.candidate+1 < f.candidates {
		p.candidate++
		p.tries, p.noSchema = 0, false
		return p, elsewhere, 0
	}
	return p, giveUp, 0
}

// retryHere says whether the same target deserves another attempt, and when.
func retryHere(p progress, f facts) (time.Duration, bool) {
	if p.retries >= f.allowed {
		return 0, false
	}
	switch f.class {
	case upstream.Credential:
		return 0, f.spareKeys > 0
	case upstream.RateLimited:
		if f.spareKeys > 0 {
			return 0, true
		}
		return f.retryAfter, f.retryAfter > 0 && f.retryAfter <= longestWait
	case upstream.MaybeSent:
		return jitter(p.tries), p.uncertain <= 1
	case upstream.NotSent:
		return jitter(p.tries), true
	case upstream.Overloaded, upstream.Transient:
		return max(min(f.retryAfter, longestWait), jitter(p.tries)), p.tries < 1 || f.candidates == 1
	default: // TimedOut: waiting as long again helps nobody; OK does not get here
		return 0, false
	}
}

// jitter is the full-jitter back-off before try n+1.
func jitter(n int) time.Duration {
	top := min(backoffBase<<min(n, 10), backoffCap)
	return rand.N(top) + time.Millisecond
}

// budget keeps retries from multiplying the load on upstreams that fail: at
// most a fifth of what is in flight, but three at any time.
type budget struct{ inFlight, retrying atomic.Int64 }

func (b *budget) room() bool {
	return b.retrying.Load() < max(budgetFloor, b.inFlight.Load()*budgetPercent/100)
}
