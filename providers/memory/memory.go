// Package memory bounds the memory that requests take beyond their bodies: the neutral form
// and the encoding for the upstream of a request that is translated, large replies, and
// responses that run in the background. Bodies as they arrive are counted
// by stagedoor/http/intake. Both limits are shares of one limit, which the program
// derives from its control group or its machine (cmd/stagedoor/memory.go), so that
// requests are refused before the kernel kills the process.
//
// # Usage
//
// Each piece of work has a Claim. Grow it before the memory is allocated, and End it with the
// work. The amounts are estimates that are larger than what was measured.
//
// # Concurrency
//
// Any goroutine may use a Budget. A Claim belongs to one goroutine at a time.
//
// # Errors
//
// Grow returns ErrFull, or ErrTooLarge if the claim can never fit.
package memory

import (
	"errors"
	"sync/atomic"
)

var (
	// ErrFull is returned while other claims hold the memory. A later attempt can succeed.
	ErrFull = errors.New("all memory for requests is in use")
	// ErrTooLarge is returned for a claim that is larger than the whole budget.
	ErrTooLarge = errors.New("more memory is needed than the gateway has for requests")
)

// Budget is a number of bytes. A nil Budget has no bound.
type Budget struct{ limit, used atomic.Int64 }

// New returns a Budget of limit bytes; 0 is one without a bound.
func New(limit int64) *Budget {
	b := new(Budget)
	b.Set(limit)
	return b
}

// Set changes the limit. Bytes in use stay in use.
func (b *Budget) Set(limit int64) { b.limit.Store(limit) }

// Used returns the bytes in use.
func (b *Budget) Used() int64 {
	if b == nil {
		return 0
	}
	return b.used.Load()
}

// Claim counts the bytes that one piece of work holds of a Budget. The zero Claim has no bound.
type Claim struct {
	budget *Budget
	held   int64
}

// Claim returns a Claim that holds nothing yet.
func (b *Budget) Claim() Claim { return Claim{budget: b} }

// Grow adds n bytes, or returns an error and adds nothing.
func (c *Claim) Grow(n int64) error {
	if c.budget == nil {
		return nil
	}
	limit := c.budget.limit.Load()
	if limit > 0 && c.held+n > limit {
		return ErrTooLarge
	}
	if used := c.budget.used.Add(n); limit > 0 && used > limit {
		c.budget.used.Add(-n)
		return ErrFull
	}
	c.held += n
	return nil
}

// Adopt adds n bytes that are in use already, even if the budget has no room for them. Later
// claims are refused instead.
func (c *Claim) Adopt(n int64) {
	if c.budget != nil {
		c.budget.used.Add(n)
		c.held += n
	}
}

// End returns the bytes of the claim to the budget. It may be called more than once.
func (c *Claim) End() {
	if c.budget != nil {
		c.budget.used.Add(-c.held)
		c.held = 0
	}
}
