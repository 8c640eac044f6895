package memory_test

import (
	"errors"
	"testing"

	"stagedoor/providers/memory"
)

// A pool has a bound and counts what each owner has. It leaves shares to the real one, which
// stagedoor/state/share tests.
type pool struct {
	capacity, used int64
	owners         map[string]int64
}

var errFull = errors.New("full")

func (p *pool) Take(owner string, n int64) error {
	if p.used+n > p.capacity {
		return errFull
	}
	p.Adopt(owner, n)
	return nil
}

func (p *pool) Adopt(owner string, n int64) { p.used += n; p.owners[owner] += n }
func (p *pool) Give(owner string, n int64)  { p.Adopt(owner, -n) }
func (p *pool) Most() int64                 { return p.capacity / 2 }

func TestAClaimHoldsBytesOfItsOwnerUntilItEnds(t *testing.T) {
	p := &pool{capacity: 100, owners: make(map[string]int64)}
	first, second := memory.NewClaim(p, "ann"), memory.NewClaim(p, "bob")
	if err := first.Grow(50); err != nil || p.owners["ann"] != 50 {
		t.Fatalf("%v, and ann has %d", err, p.owners["ann"])
	}
	if err := first.Grow(1); !errors.Is(err, memory.ErrTooLarge) {
		t.Fatalf("a claim that grows beyond what an owner may have: got %v, want ErrTooLarge", err)
	}
	if err := second.Grow(51); !errors.Is(err, memory.ErrTooLarge) {
		t.Fatalf("got %v, want ErrTooLarge", err)
	}
	second.Adopt(60)
	third := memory.NewClaim(p, "bob")
	for range 3 { // a refusal takes nothing
		if err := third.Grow(1); !errors.Is(err, errFull) || p.owners["bob"] != 60 {
			t.Fatalf("got %v, want the error of the pool, and bob has %d", err, p.owners["bob"])
		}
	}
	first.End()
	first.End()
	if p.owners["ann"] != 0 || p.used != 60 {
		t.Errorf("after the claim has ended ann has %d of %d", p.owners["ann"], p.used)
	}
	if err := third.Grow(40); err != nil || p.owners["bob"] != 100 {
		t.Errorf("%v, and bob has %d", err, p.owners["bob"])
	}
}

func TestWithoutAPoolThereIsNoBound(t *testing.T) {
	c := memory.NewClaim(nil, "ann")
	c.Adopt(1)
	if err := c.Grow(1 << 40); err != nil {
		t.Error(err)
	}
	c.End()
}
