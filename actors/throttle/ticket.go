package throttle

import (
	"sync/atomic"
	"time"
)

// ticket is a request that asks for a permit. The caller of Acquire fills the first group
// and afterwards only receives the verdict or abandons the ticket. The rest belongs to the
// core until the verdict is sent.
type ticket struct {
	id       string
	owner    string
	model    string
	class    int
	tokens   int
	asked    time.Time
	deadline time.Time // zero: none
	last     bool      // no other provider is left

	cost     int       // in the round robin
	due      time.Time // when the queue must look at it again
	rank     int       // the index of its line in the flow
	flow     *flow     // nil: not queued
	next     *ticket
	prev     *ticket
	index    int // in the heap of due times; -1: not in it
	position int // place in the queue at the beginning, from 1; 0: never queued

	home          *core // the incarnation that granted it
	granted       time.Time
	requestCharge time.Duration
	tokenCharge   time.Duration

	decided atomic.Bool
	verdict chan *Refused // capacity 1; nil is granted
	permit  Permit
	outcome Outcome
}

// decide sends the verdict, which is nil for a grant. It returns false if the caller has
// abandoned the ticket. It never blocks.
func (t *ticket) decide(refused *Refused) bool {
	if !t.decided.CompareAndSwap(false, true) {
		return false
	}
	t.verdict <- refused
	return true
}

// abandon ends the ticket for a caller that gives up. It returns false if a verdict is in
// the channel or about to be sent.
func (t *ticket) abandon() bool { return t.decided.CompareAndSwap(false, true) }
