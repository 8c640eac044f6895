package throttle

import (
	"sync/atomic"
	"time"
)

// Permit is the right to send one request. Whoever holds it releases it, once,
// with what became of the request; later calls do nothing. Any goroutine may.
type Permit struct {
	client   *Client
	ticket   *ticket // nil: counted by atomics only
	released atomic.Bool
}

// Waited is how long the request was in the queue (X-Queue-Ms).
func (p *Permit) Waited() time.Duration {
	if p.ticket == nil {
		return 0
	}
	return p.ticket.granted.Sub(p.ticket.asked)
}

// Position is the request's place in the queue when it was asked for, from 1;
// 0: it did not have to queue.
func (p *Permit) Position() int {
	if p.ticket == nil {
		return 0
	}
	return p.ticket.position
}

// Release gives the place back.
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
