package throttle

import (
	"sync/atomic"
	"time"
)

// ticket is one request's wait. Its owner fills the first group and then only
// decides or receives; the rest belongs to the core until the verdict is sent.
type ticket struct {
	id       string
	owner    string
	model    string
	class    int
	tokens   int
	asked    time.Time
	deadline time.Time // zero: none
	last     bool      // has nowhere else to go

	cost     int       // in the round robin
	due      time.Time // when the queue must look at it again
	rank     int       // its line in the flow
	flow     *flow     // nil: not queued
	next     *ticket
	prev     *ticket
	index    int // in the heap of due times; -1: not in it
	position int // place in the queue at the beginning, from 1; 0: never queued

	home          *core // who granted it
	granted       time.Time
	requestCharge time.Duration
	tokenCharge   time.Duration

	decided atomic.Bool
	verdict chan *Refused // capacity 1; nil is granted
	permit  Permit
	outcome Outcome
}

// decide gives the verdict, nil for granted, unless there is one already: then
// the owner has left and it returns false. It never blocks.
func (t *ticket) decide(refused *Refused) bool {
	if !t.decided.CompareAndSwap(false, true) {
		return false
	}
	t.verdict <- refused
	return true
}

// abandon is the owner leaving. False: a verdict is in the channel, or about to be.
func (t *ticket) abandon() bool { return t.decided.CompareAndSwap(false, true) }
