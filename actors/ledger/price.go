package ledger

import (
	"cmp"
	"math"
	"math/bits"

	"stagedoor/providers/catalog"
	"stagedoor/providers/dialogue"
	"stagedoor/state/budget"
)

// Prices of the image vendor's routes by rendering speed, in micro-dollars per
// image.
var speeds = map[string]*catalog.Price{
	"TURBO":   {PerImage: 30_000},
	"DEFAULT": {PerImage: 60_000},
	"QUALITY": {PerImage: 90_000},
}

// Speed returns the price of a rendering speed. An empty speed is DEFAULT.
func Speed(speed string) (*catalog.Price, bool) {
	speed = cmp.Or(speed, "DEFAULT")
	p, ok := speeds[speed]
	return p, ok
}

// Demand describes a request for text before its first call, without the length of the reply. A client can
// change it, so it decides about holds and never about bills.
type Demand struct {
	// Prompt is a high estimate of the tokens of the prompt in all calls, and Largest that of one call.
	Prompt, Largest int64
	// Special is set if tokens may be those of sound or of long-lived cache writes, which have prices of their own.
	Special bool
	// Faster is set if the reply may be at a service tier that costs more.
	Faster bool
	// Searches is the number of searches that are held for.
	Searches int64
}

// highest returns the highest price that a token of the prompt and one of the reply may have, and what the searches
// cost.
func (d *Demand) highest(p *catalog.Price) (input, output, searches int64) {
	u := dialogue.NoUsage
	u.WebSearches = d.Searches
	p = p.ForPrompt(d.Largest)
	if d.Faster {
		p = p.AtHighestTier()
	}
	input, output = p.Highest(d.Special)
	return input, output, p.Tokens(u)
}

// Estimate returns the most that a text request with so many output tokens should cost in micro-dollars.
func Estimate(p *catalog.Price, d Demand, output int64) int64 {
	if p.Zero() {
		return 0
	}
	each, eachOutput, searches := d.highest(p)
	dearest := catalog.Price{Input: each, Output: eachOutput}
	u := dialogue.NoUsage
	u.InputTotal, u.OutputTotal = max(d.Prompt, 0), max(output, 0)
	return add(dearest.Tokens(u), searches)
}

// Affordable returns how many output tokens amount pays for after the prompt and the searches, or -1 if it does not
// even pay for these. Any amount pays for everything if the price is zero.
func Affordable(p *catalog.Price, amount int64, d Demand) int64 {
	if p.Zero() {
		return math.MaxInt64
	}
	input, output, searches := d.highest(p)
	if amount < searches {
		return -1
	}
	hi, lo := bits.Mul64(uint64(amount-searches), million)
	promptHi, promptLo := bits.Mul64(uint64(max(d.Prompt, 0)), uint64(max(input, 0)))
	lo, borrow := bits.Sub64(lo, promptLo, 0)
	hi, borrow = bits.Sub64(hi, promptHi, borrow)
	switch {
	case borrow != 0:
		return -1
	case output <= 0 || hi >= uint64(output):
		return math.MaxInt64
	}
	tokens, _ := bits.Div64(hi, lo, uint64(output))
	return int64(min(tokens, math.MaxInt64))
}

const million = 1_000_000

// Video returns the bill for a video that was made or is to be made.
func Video(p *catalog.Price, length VideoLength) Bill {
	return Charge(Work{Price: p.ByUnit(), Media: true, Video: length})
}

// multiply returns a*b, limited to the most credits that an account can have.
func multiply(a, b int64) int64 {
	hi, lo := bits.Mul64(uint64(a), uint64(b))
	if hi != 0 || lo > budget.MaxCredits {
		return budget.MaxCredits
	}
	return int64(lo)
}
