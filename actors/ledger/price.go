package ledger

import (
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
	if speed == "" {
		speed = "DEFAULT"
	}
	p, ok := speeds[speed]
	return p, ok
}

// Estimate returns the most that a text request should cost in micro-dollars, with every token at the highest price
// that it may have. Prices of sound and of long-lived cache writes count if special is set.
func Estimate(p *catalog.Price, promptTokens, maxTokens int64, special bool) int64 {
	if p.Zero() {
		return 0
	}
	input, output := p.Dearest(promptTokens, special)
	dearest := catalog.Price{Input: input, Output: output}
	u := dialogue.NoUsage
	u.InputTotal, u.OutputTotal = max(promptTokens, 0), max(maxTokens, 0)
	return min(dearest.Tokens(u), budget.MaxCredits)
}

// Affordable returns how many output tokens amount pays for after promptTokens, or -1 if it
// does not even pay for the prompt. Any amount pays for everything if the price is zero. special is that of Estimate.
func Affordable(p *catalog.Price, amount, promptTokens int64, special bool) int64 {
	if p.Zero() {
		return math.MaxInt64
	}
	input, output := p.Dearest(promptTokens, special)
	hi, lo := bits.Mul64(uint64(max(amount, 0)), million)
	promptHi, promptLo := bits.Mul64(uint64(max(promptTokens, 0)), uint64(max(input, 0)))
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

// Images returns the bill for n images, made or to be made.
func Images(p *catalog.Price, n int64) Bill {
	return Charge(Work{Price: p.ByUnit(), Media: true, Images: n})
}

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
