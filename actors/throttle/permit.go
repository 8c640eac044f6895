package throttle

import (
	"sync/atomic"
	"time"
)

// Permit is the right to send one request. Its holder must release it with the outcome of
// the request. Any goroutine may use it.
type Permit struct {
	client   *Client
	ticket   *ticket // nil: counted by atomics only
	released atomic.Bool
}

// Waited returns how long the request was queued (X-Queue-Ms).
func (p *Permit) Waited() time.Duration {
	if p.ticket == nil {
		return 0
	}
	return p.ticket.granted.Sub(p.ticket.asked)
}

// Position returns the position at which the request joined the queue, from 1. It is 0 if
// the request did not have to queue.
func (p *Permit) Position() int {
	if p.ticket == nil {
		return 0
	}
	return p.ticket.position
}

// Release frees the permit's place. Calls after the first do nothing.
func (p *Permit) Release(outcome Outcome) {
	if p.released.Swap(true) {
		return
	}
	outcome.Kind = min(outcome.Kind, Unused)
	if p.ticket != nil {
		p.ticket.outcome = outcome
		p.client.send((*releasing)(p.ticket))
		return
	}
	p.client.releaseFree(outcome)
}
