// Package memory bounds the memory that requests take beyond their bodies: the neutral form
// and the encoding for the upstream of a request that is translated, large replies, and
// responses that run in the background. Bodies as they arrive are counted
// by stagedoor/http/overload. Both limits are shares of one limit, which the program
// derives from its control group or its machine (cmd/stagedoor/memory.go), so that
// requests are refused before the kernel kills the process.
//
// # Usage
//
// Each piece of work has a Claim for its owner. Grow it before the memory is allocated, and
// End it with the work. The amounts are estimates that are larger than what was measured.
//
// # Concurrency
//
// Any goroutine may use a Pool. A Claim belongs to one goroutine at a time.
//
// # Errors
//
// Grow returns the error of the Pool, which is a Refusal, or ErrTooLarge if the claim can
// never fit.
package memory

import (
	"bytes"
	"errors"
)

// ErrTooLarge is returned for a claim that is larger than what one owner may ever have.
var ErrTooLarge = errors.New("more memory is needed than one user or key may have")

// Pool is a number of bytes that are divided among owners. The program uses a Pool of
// stagedoor/state/share.
type Pool interface {
	// Take adds n bytes to what an owner has, or returns a Refusal and adds nothing.
	Take(owner string, n int64) error
	// Adopt adds n bytes that are in use already, even if there is no room for them.
	Adopt(owner string, n int64)
	// Give returns n bytes of an owner.
	Give(owner string, n int64)
	// Most returns how much an owner may have while no other owner has anything. 0 is a
	// Pool without a bound.
	Most() int64
}

// Refusal is the error of a Pool that has no room for a claim at the moment.
type Refusal interface {
	error
	// OfShare reports whether the owner's share is used up. Otherwise the whole pool is.
	OfShare() bool
}

// OfTranslation returns about how many bytes the neutral form of a body and its encoding for the
// upstream take, beside the body. Text takes its length in both, and each object its fields
// besides. The tests of sizes hold that it is enough.
func OfTranslation(body []byte) int64 {
	const perByte, perObject = 3, 640
	return perByte*int64(len(body)) + perObject*int64(bytes.Count(body, []byte{'{'}))
}

// Claim counts the bytes that one piece of work holds of a Pool. The zero Claim has no bound.
type Claim struct {
	pool  Pool
	owner string
	held  int64
}

// NewClaim returns a Claim of an owner that holds nothing yet. A nil pool has no bound.
func NewClaim(pool Pool, owner string) Claim { return Claim{pool: pool, owner: owner} }

// Grow adds n bytes, or returns an error and adds nothing.
func (c *Claim) Grow(n int64) error {
	if c.pool == nil {
		return nil
	}
	if most := c.pool.Most(); most > 0 && c.held+n > most {
		return ErrTooLarge
	}
	if err := c.pool.Take(c.owner, n); err != nil {
		return err
	}
	c.held += n
	return nil
}

// Adopt adds n bytes that are in use already, even if the pool has no room for them. Later
// claims are refused instead.
func (c *Claim) Adopt(n int64) {
	if c.pool != nil {
		c.pool.Adopt(c.owner, n)
		c.held += n
	}
}

// End returns the bytes of the claim to the pool. It may be called more than once.
func (c *Claim) End() {
	if c.held != 0 {
		c.pool.Give(c.owner, c.held)
		c.held = 0
	}
}
