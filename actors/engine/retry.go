package engine

import (
	"math/rand/v2"
	"sync/atomic"
	"time"

	"stagedoor/providers/upstream"
)

const (
	// Bounds of the random wait before a retry, see jitter.
	backoffBase = 100 * time.Millisecond
	backoffCap  = 2 * time.Second
	// An upstream may ask for a wait by Retry-After. lastTargetWait is the longest one that a request waits for at the
	// last target of its plan, and otherTargetWait the longest one while another target is left. A longer Retry-After
	// makes the request go on to the next target, or fail.
	lastTargetWait  = 10 * time.Second
	otherTargetWait = 2 * time.Second
	// Limits of the retries at a time, see retryBudget.
	budgetFloor   = 3
	budgetPercent = 20
)

// progress counts what a request has tried so far.
type progress struct {
	candidate   int // index into the plan
	retriesHere int // retries at this candidate
	retries     int // retries at all candidates, which the provider's configuration limits
	uncertain   int // failed attempts that the upstream may have processed nevertheless
	noSchema    bool
}

// facts describe the failed attempt and the state of its request. Together with the exchange's Policy they determine
// the decision.
type facts struct {
	class      upstream.Class
	schema     bool // the failure was about the schema
	amended    bool // the exchange has changed the request, such as by shortening the prompt
	tooLarge   bool // the request never fits the target's rate limit
	structured bool // see Policy.Structured
	barred     bool // the policy forbids to send the request again
	moveOn     bool // see Policy.MoveOn
	retryAfter time.Duration
	committed  bool // output has been delivered
	allowed    int  // retries the provider's configuration allows
	next       int  // index of the target that the failure leads to; 0: there is none
	spareKeys  int  // usable keys of this provider besides the one that failed
	budget     bool // the retry budget has room
	gated      bool // the limiter gave no permit, and would give none to a retry
	remaining  time.Duration
}

// verdict decides the next step of the attempt loop.
type verdict uint8

const (
	giveUp    verdict = iota
	again             // the same target, after a wait
	elsewhere         // the next target, at once
)

// decide returns what to do after a failed attempt, the wait before it, and the progress as it is once that has been
// done. It is a pure function except for the jitter. The first rule that applies decides:
//
//  1. Give up if output has been delivered, the request was cancelled, its time is over, or its Policy forbids to
//     send it again.
//  2. Send it again at once, to the same target, as the exchange has amended it, or else without a schema that the
//     upstream refused. Neither counts as a retry.
//  3. Go to the next target if the request itself is wrong and that target is for such a failure. Otherwise give up.
//  4. Retry at the same target if retryHere allows it, the wait ends in time and the retry budget has room.
//  5. Go to the next target at once. That is no retry and needs no room in the budget.
//  6. Give up.
func decide(p progress, f facts) (progress, verdict, time.Duration) {
	if f.committed || f.class == upstream.Cancelled || f.barred || f.remaining <= 0 {
		return p, giveUp, 0
	}
	if f.amended { // the exchange bounds how often, and the schema may be fine
		return p, again, 0
	}
	if f.schema && f.structured && !p.noSchema {
		p.noSchema = true // a schema that cannot be honoured is dropped and never fails a request
		return p, again, 0
	}
	if f.class == upstream.CallerFault {
		return p.moveOn(f)
	}
	if f.class == upstream.MaybeSent || f.class == upstream.TimedOut {
		p.uncertain++
	}
	if wait, ok := retryHere(p, f); ok && wait < f.remaining && f.budget {
		p.retriesHere++
		p.retries++
		return p, again, wait
	}
	return p.moveOn(f)
}

// moveOn returns the decision to go to the next target, or to give up if there is none.
func (p progress) moveOn(f facts) (progress, verdict, time.Duration) {
	if f.next == 0 {
		return p, giveUp, 0
	}
	p.candidate, p.retriesHere, p.noSchema = f.next, 0, false
	return p, elsewhere, 0
}

// retryHere reports whether another attempt at the same target is worth making, and after which wait. It is not if the
// allowed retries are used up, if the limiter gave no permit, or if the request never fits the rate limit. After the
// refusal of a key, a spare key is used at once. MaybeSent and TimedOut are retried only if they are the first failure
// of the request after which the upstream may have done the work, and charged for it.
func retryHere(p progress, f facts) (time.Duration, bool) {
	if p.retries >= f.allowed || f.gated || f.tooLarge {
		return 0, false
	}
	last := f.next == 0
	longest := lastTargetWait
	if !last {
		longest = otherTargetWait
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
		ok := f.retryAfter <= longest && (last || p.retriesHere < 1 || !f.moveOn)
		return max(f.retryAfter, jitter(p.retriesHere)), ok
	case upstream.MaybeSent:
		return jitter(p.retriesHere), p.uncertain <= 1
	case upstream.TimedOut:
		// To wait as long once more is better than to fail, and worse than to use another target.
		return jitter(p.retriesHere), last && p.uncertain <= 1
	case upstream.Overloaded, upstream.Transient:
		asked := f.retryAfter
		if f.class == upstream.Overloaded && f.spareKeys > 0 {
			asked = 0 // it is for the key that was refused
		}
		return max(asked, jitter(p.retriesHere)), asked <= longest && (last || p.retriesHere < 1)
	}
	return 0, false
}

// jitter returns a random wait before the retry after n retries at the same target. It is at most backoffBase for the
// first retry (n is 0), twice as much for each further one, and never much more than backoffCap. Random waits keep
// requests that failed together from coming back together.
func jitter(n int) time.Duration {
	top := min(backoffBase<<min(n, 10), backoffCap)
	return rand.N(top) + time.Millisecond
}

// retryBudget keeps retries from multiplying the load on upstreams that fail. At most budgetPercent of the requests in
// flight may be retrying at a time. The limit is never below budgetFloor, so that retries also work with little
// traffic.
type retryBudget struct{ retrying atomic.Int64 }

// take counts a request as retrying and returns true, or returns false and changes nothing if the limit is reached. A
// request takes one place for all its retries and returns it by giveBack at its end.
func (b *retryBudget) take(inFlight int) bool {
	most := max(budgetFloor, int64(inFlight)*budgetPercent/100)
	if b.retrying.Add(1) > most {
		b.retrying.Add(-1)
		return false
	}
	return true
}

// giveBack returns a place that take granted.
func (b *retryBudget) giveBack() { b.retrying.Add(-1) }
