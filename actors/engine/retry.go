package engine

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
	patience      = 2 * time.Second  // for a Retry-After while there is another target
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

// facts describe the failed attempt and the state of its request. Together with the exchange's Policy they determine
// the decision.
type facts struct {
	class      upstream.Class
	schema     bool // the failure was about the schema
	amended    bool // the exchange sends the request otherwise from now on
	tooLarge   bool // the request never fits the target's rate limit
	structured bool
	barred     bool // the policy forbids to send the request again
	moveOn     bool // see Policy.MoveOn
	retryAfter time.Duration
	committed  bool
	allowed    int // retries the provider's configuration allows
	candidates int
	spareKeys  int  // usable keys of this provider besides the one that failed
	budget     bool // the retry budget has room
	gated      bool // the limiter gave no permit: it knows better than a retry
	remaining  time.Duration
}

// verdict is what happens next.
type verdict uint8

const (
	giveUp verdict = iota
	again          // the same target, after a wait
	elsewhere
)

// decide says what to do after a failed attempt. It is pure but for the jitter; the progress it returns is what will
// have been tried when the decision is carried out.
func decide(p progress, f facts) (progress, verdict, time.Duration) {
	if f.committed || f.class == upstream.Cancelled || f.barred || f.remaining <= 0 {
		return p, giveUp, 0
	}
	if f.schema && f.structured && !p.noSchema {
		p.noSchema = true // gateway.md 4.8, rule 6: never fail for the schema
		return p, again, 0
	}
	if f.amended { // the exchange bounds how often
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
	if p.retries >= f.allowed || f.gated || f.tooLarge {
		return 0, false
	}
	last := p.candidate+1 >= f.candidates
	longest := longestWait
	if !last {
		longest = patience
	}
	switch f.class {
	case upstream.Credential:
		return 0, f.spareKeys > 0
	case upstream.RateLimited:
		if f.spareKeys > 0 {
			return 0, true
		}
		return f.retryAfter, f.retryAfter > 0 && f.retryAfter <= longest
	case upstream.NotSent:
		return max(f.retryAfter, jitter(p.tries)), f.retryAfter <= longest && (last || p.tries < 1 || !f.moveOn)
	case upstream.MaybeSent:
		return jitter(p.tries), p.uncertain <= 1
	case upstream.TimedOut:
		// Waiting as long again, once, is better than failing, and worse than asking another target.
		return jitter(p.tries), last && p.uncertain <= 1
	case upstream.Overloaded, upstream.Transient:
		return max(f.retryAfter, jitter(p.tries)), f.retryAfter <= longest && (last || p.tries < 1)
	}
	return 0, false
}

// jitter is the full-jitter back-off before try n+1.
func jitter(n int) time.Duration {
	top := min(backoffBase<<min(n, 10), backoffCap)
	return rand.N(top) + time.Millisecond
}

// budget keeps retries from multiplying the load on upstreams that fail. Of the requests in flight, a fifth may be
// retrying, but three at any time.
type budget struct{ retrying atomic.Int64 }

// take reserves a place for a request that tries again, if there is one.
func (b *budget) take(inFlight int) bool {
	most := max(budgetFloor, int64(inFlight)*budgetPercent/100)
	if b.retrying.Add(1) > most {
		b.retrying.Add(-1)
		return false
	}
	return true
}

func (b *budget) giveBack() { b.retrying.Add(-1) }
