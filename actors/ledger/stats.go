package ledger

import "sync/atomic"

// Stats counts the ledger's operations since the start. Held does not include holds that
// were kept from a previous process.
type Stats struct {
	Held, Refused             int64
	Settled, Released, Failed int64
	Charged                   int64 // micro-dollars
}

// counts holds the counters that Stats reads.
type counts struct {
	held, refused, settled, released, failed, charged atomic.Int64
}

// Stats returns the current counts. Any goroutine may call it.
func (c *Client) Stats() Stats {
	n := &c.counts
	return Stats{Held: n.held.Load(), Refused: n.refused.Load(), Settled: n.settled.Load(), Released: n.released.Load(),
		Failed: n.failed.Load(), Charged: n.charged.Load()}
}

// asked counts a granted or refused hold.
func (n *counts) asked(err error) {
	if err != nil {
		n.refused.Add(1)
		return
	}
	n.held.Add(1)
}

// settled counts the outcome of a settlement. Settling a hold again counts once.
func (h *Hold) settled(amount int64, err error) {
	n := &h.client.counts
	if err != nil {
		n.failed.Add(1)
		return
	}
	if h.ended.Swap(true) {
		return
	}
	n.settled.Add(1)
	n.charged.Add(amount)
}

// released counts a hold as released, once.
func (h *Hold) released() {
	if !h.ended.Swap(true) {
		h.client.counts.released.Add(1)
	}
}
