package catalog

import (
	"math"
	"math/bits"

	"stagedoor/providers/dialogue"
)

// Price is the price of a model in micro-dollars: for a million tokens, an image, a second of
// video. If CachedInput, CacheWrite or Reasoning is zero, such tokens cost as much as the input
// or output that they are part of. PerPartial is for each partial image of a stream. If it is
// zero, partial images cost nothing beside their picture.
type Price struct {
	Input, Output       int64
	CachedInput         int64
	CacheWrite          int64
	Reasoning           int64
	PerImage, PerSecond int64
	PerPartial          int64
}

const million = 1_000_000

// Zero reports whether nothing costs anything. A nil Price is zero.
func (p *Price) Zero() bool { return p == nil || *p == Price{} }

// PerToken reports whether tokens cost anything.
func (p *Price) PerToken() bool {
	return p != nil && (p.Input != 0 || p.Output != 0 || p.CachedInput != 0 || p.CacheWrite != 0 || p.Reasoning != 0)
}

// ByUnit returns the prices that are not for tokens.
func (p *Price) ByUnit() *Price {
	if p == nil {
		return nil
	}
	return &Price{PerImage: p.PerImage, PerSecond: p.PerSecond, PerPartial: p.PerPartial}
}

// Tokens returns the cost of a reply in micro-dollars. It rounds up once for the whole reply.
// Counts that are too large for the arithmetic saturate and do not wrap around.
func (p *Price) Tokens(u dialogue.Usage) int64 {
	if p.Zero() {
		return 0
	}
	read := dialogue.CountOrZero(u.CacheRead)
	written := max(
		dialogue.CountOrZero(u.CacheWrite),
		addSaturating(dialogue.CountOrZero(u.CacheWrite5m), dialogue.CountOrZero(u.CacheWrite1h)),
	)
	reasoning := dialogue.CountOrZero(u.Reasoning)
	var sum wideSum
	sum.add(max(dialogue.CountOrZero(u.InputTotal)-addSaturating(read, written), 0), p.Input)
	sum.add(read, orElse(p.CachedInput, p.Input))
	sum.add(written, orElse(p.CacheWrite, p.Input))
	sum.add(max(dialogue.CountOrZero(u.OutputTotal)-reasoning, 0), p.Output)
	sum.add(reasoning, orElse(p.Reasoning, p.Output))
	return sum.total()
}

func orElse(price, other int64) int64 {
	if price == 0 {
		return other
	}
	return price
}

func addSaturating(a, b int64) int64 {
	if a > math.MaxInt64-b {
		return math.MaxInt64
	}
	return a + b
}

// wideSum adds products of 63-bit numbers in 128 bits.
type wideSum struct{ hi, lo uint64 }

func (l *wideSum) add(tokens, price int64) {
	hi, lo := bits.Mul64(uint64(tokens), uint64(max(price, 0)))
	var carry uint64
	l.lo, carry = bits.Add64(l.lo, lo, 0)
	l.hi += hi + carry
}

func (l *wideSum) total() int64 {
	if l.hi >= million {
		return math.MaxInt64
	}
	sum, rest := bits.Div64(l.hi, l.lo, million)
	if rest > 0 {
		sum++
	}
	return int64(min(sum, math.MaxInt64))
}
