package painter

import (
	"math/rand/v2"
	"time"

	"stagedoor/providers/upstream"
)

// Rules of trying again. A picture that may have been made is paid for, so unlike
// text nothing is sent twice that an upstream may have begun with (faults.md 1.4).
const (
	backoffBase = 100 * time.Millisecond
	backoffCap  = 2 * time.Second
	longestWait = 10 * time.Second // for a Retry-After
	patience    = 2 * time.Second  // for one, while there is another target
)

// progress is what has been tried so far.
type progress struct {
	candidate int // index into the plan
	tries     int // on this candidate
	retries   int // over all, against the provider's limit
}

// facts are what a decision needs to know besides.
type facts struct {
	class      upstream.Class
	refused    bool // the failure is a status that the upstream answered
	status     int
	retryAfter time.Duration
	committed  bool // the client has seen a partial image
	gated      bool // the throttle gave no permit: it knows better than a retry
	allowed    int  // retries the provider's configuration allows
	candidates int
	spareKeys  int
	tooLarge   bool // the request never fits the target's rate limit
	remaining  time.Duration
}

// verdict is what happens next.
type verdict uint8

const (
	giveUp verdict = iota
	again          // the same target, after a wait
	elsewhere
)

// decide says what to do after a failed attempt. It is pure but for the jitter.
func decide(p progress, f facts) (progress, verdict, time.Duration) {
	if f.committed || f.remaining <= 0 || !f.unmade() {
		return p, giveUp, 0
	}
	if wait, ok := retryHere(p, f); ok && wait < f.remaining {
		p.tries++
		p.retries++
		return p, again, wait
	}
	if p.candidate+1 < f.candidates {
		p.candidate++
		p.tries = 0
		return p, elsewhere, 0
	}
	return p, giveUp, 0
}

// unmade reports whether surely nothing was made: the upstream was not reached,
// or said that it would not or could not.
func (f *facts) unmade() bool {
	switch f.class {
	case upstream.NotSent, upstream.RateLimited, upstream.Overloaded, upstream.Credential:
		return true
	case upstream.Transient:
		return f.refused && f.status == 500 // a 502 or 504 only means that nobody knows
	}
	return false
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
	}
	return max(f.retryAfter, jitter(p.tries)), f.retryAfter <= longest && (last || p.tries < 1)
}

// jitter is the full-jitter back-off before try n+1.
func jitter(n int) time.Duration {
	return rand.N(min(backoffBase<<min(n, 10), backoffCap)) + time.Millisecond
}
