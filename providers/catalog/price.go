package catalog

import (
	"math"
	"math/bits"

	"stagedoor/providers/dialogue"
)

// Price is the price of a model in micro-dollars: for a million tokens, a thousand searches, an image, a second of
// video. All amounts are integers. If the price of a special kind of tokens is zero, such tokens cost as much as the
// tokens that they are part of: CachedInput, CacheWrite, AudioInput and ImageInput are part of Input, CacheWrite1h is
// part of CacheWrite, AudioCachedInput of CachedInput, and Reasoning, AudioOutput and ImageOutput are part of Output.
// PerPartial is for each partial image of a stream. If it is zero, partial images cost nothing beside their picture.
type Price struct {
	Input, Output                             int64
	CachedInput                               int64
	CacheWrite, CacheWrite1h                  int64
	Reasoning                                 int64
	AudioInput, AudioCachedInput, AudioOutput int64
	ImageInput, ImageOutput                   int64
	WebSearch                                 int64
	PerImage, PerSecond                       int64
	PerPartial                                int64
	// Above replaces the price for requests with a long prompt. It is nil if there is no such price.
	Above *Tier
	// ServiceTiers are parts per million of the price, by the names of the vendor's service tiers (AtTier).
	ServiceTiers map[string]int64
	// Source is the version of the list that the price is from. It is "" if the operator set the price.
	Source string
}

// Tier is the price of calls whose prompt has more than Tokens tokens, cached ones included. It is the price of the
// whole call and not only of the tokens above the threshold. A request that is divided into several calls has this
// price if the prompt of one of them is that long.
type Tier struct {
	Tokens int64
	Price  Price
}

// million is the number of tokens that a price is for, and also the number that stands for the
// factor 1, as factors are in parts per million.
const million = 1_000_000

// Zero reports whether nothing costs anything. A nil Price is zero.
func (p *Price) Zero() bool {
	return p == nil || p.PerImage|p.PerSecond|p.PerPartial == 0 && !p.PerToken()
}

// PerToken reports whether tokens, or searches while they are made, cost anything.
func (p *Price) PerToken() bool {
	return p != nil && (p.Input|p.Output|p.CachedInput|p.CacheWrite|p.CacheWrite1h|p.Reasoning|p.AudioInput|
		p.AudioCachedInput|p.AudioOutput|p.ImageInput|p.ImageOutput|p.WebSearch != 0 ||
		p.Above != nil && p.Above.Price.PerToken())
}

// ByUnit returns the prices that are not for tokens.
func (p *Price) ByUnit() *Price {
	if p == nil {
		return nil
	}
	return &Price{PerImage: p.PerImage, PerSecond: p.PerSecond, PerPartial: p.PerPartial, Source: p.Source}
}

// ForPrompt returns the price of a call with a prompt of this number of tokens.
func (p *Price) ForPrompt(tokens int64) *Price {
	for p != nil && p.Above != nil && tokens > p.Above.Tokens {
		p = &p.Above.Price
	}
	return p
}

// Part is one kind of what a reply used, with its price: Quantity times Price for every Per.
type Part struct {
	What                 string
	Quantity, Price, Per int64
}

// Parts returns the products that the cost of a reply is the sum of. Parts with a Quantity of zero do not count. Every
// token is in one part, whatever the provider reported: a part that is larger than its total is cut.
func (p *Price) Parts(u dialogue.Usage) [12]Part {
	count := dialogue.CountOrZero
	input, output := count(u.InputTotal), count(u.OutputTotal)
	p = p.ForPrompt(u.Prompt())
	read := count(u.CacheRead)
	written := max(count(u.CacheWrite), addSaturating(count(u.CacheWrite5m), count(u.CacheWrite1h)))
	hour := min(count(u.CacheWrite1h), written)
	plain := max(input-addSaturating(read, written), 0)
	// Providers do not say which part of the sound is cached. As much of it as possible counts as not cached, because
	// that is never cheaper.
	audio, image, audioRead := int64(0), int64(0), int64(0)
	if p.AudioInput != 0 {
		audio = min(count(u.AudioIn), plain)
		audioRead = min(count(u.AudioIn)-audio, read)
	}
	if p.ImageInput != 0 {
		image = min(count(u.ImageIn), plain-audio)
	}
	cached := orElse(p.CachedInput, p.Input)
	reasoning := count(u.Reasoning)
	said := max(output-reasoning, 0)
	audioOut, imageOut := int64(0), int64(0)
	if p.AudioOutput != 0 {
		audioOut = min(count(u.AudioOut), said)
	}
	if p.ImageOutput != 0 {
		imageOut = min(count(u.ImageOut), said-audioOut)
	}
	write := orElse(p.CacheWrite, p.Input)
	return [...]Part{
		{"input", plain - audio - image, p.Input, million},
		{"cached_input", read - audioRead, cached, million},
		{"cache_write", written - hour, write, million},
		{"cache_write_1h", hour, orElse(p.CacheWrite1h, write), million},
		{"audio_input", audio, p.AudioInput, million},
		{"cached_audio_input", audioRead, orElse(p.AudioCachedInput, cached), million},
		{"image_input", image, p.ImageInput, million},
		{"output", said - audioOut - imageOut, p.Output, million},
		{"reasoning", reasoning, orElse(p.Reasoning, p.Output), million},
		{"audio_output", audioOut, p.AudioOutput, million},
		{"image_output", imageOut, p.ImageOutput, million},
		{"web_searches", p.searches(u), p.WebSearch, 1000},
	}
}

// searches returns the searches that are charged.
func (p *Price) searches(u dialogue.Usage) int64 {
	if p.WebSearch == 0 {
		return 0
	}
	return min(dialogue.CountOrZero(u.WebSearches), math.MaxInt64/1000)
}

// Tokens returns the cost of a reply in micro-dollars. It rounds up once for the whole reply.
// Counts that are too large for the arithmetic saturate and do not wrap around.
func (p *Price) Tokens(u dialogue.Usage) int64 {
	if p.Zero() {
		return 0
	}
	var sum wideSum
	for _, part := range p.Parts(u) {
		sum.add(part.Quantity*(million/part.Per), part.Price)
	}
	return sum.total()
}

// Highest returns the highest price that a token of the prompt and one of the reply may have, without Above. Sound and
// long-lived cache writes count if special is set, because a client has to ask for them.
func (p *Price) Highest(special bool) (input, output int64) {
	input = max(p.Input, p.CachedInput, p.CacheWrite, p.ImageInput)
	output = max(p.Output, p.Reasoning, p.ImageOutput)
	if special {
		input = max(input, p.CacheWrite1h, p.AudioInput, p.AudioCachedInput)
		output = max(output, p.AudioOutput)
	}
	return input, output
}

// scaled returns the price times parts per million, rounded up. Use it for a region in which a vendor charges more.
func (p *Price) scaled(ppm int64) Price {
	s := *p
	for _, n := range s.amounts() {
		var product wideSum
		product.add(*n, ppm)
		*n = product.total()
	}
	if p.Above != nil {
		s.Above = &Tier{p.Above.Tokens, p.Above.Price.scaled(ppm)}
	}
	return s
}

// AtTier returns the price at the service tier that a reply names. It is the price itself if the list says nothing of
// that tier. Searches, images and seconds cost the same at each tier.
func (p *Price) AtTier(name string) *Price {
	if p == nil || p.ServiceTiers[name] == 0 {
		return p
	}
	there := p.scaled(p.ServiceTiers[name])
	there.keepUnits(p)
	if p.Above != nil {
		there.Above.Price.keepUnits(&p.Above.Price)
	}
	there.ServiceTiers = nil
	return &there
}

// keepUnits takes over the prices that do not depend on the service tier.
func (p *Price) keepUnits(of *Price) {
	p.WebSearch, p.PerImage, p.PerSecond, p.PerPartial = of.WebSearch, of.PerImage, of.PerSecond, of.PerPartial
}

// AtHighestTier returns the highest of the prices at the service tiers and of the price itself.
func (p *Price) AtHighestTier() *Price {
	if p == nil {
		return nil
	}
	dearest, most := "", int64(million)
	for name, ppm := range p.ServiceTiers {
		if ppm > most {
			dearest, most = name, ppm
		}
	}
	return p.AtTier(dearest)
}

// amounts returns all amounts of the price, without those of Above.
func (p *Price) amounts() []*int64 {
	return []*int64{&p.Input, &p.Output, &p.CachedInput, &p.CacheWrite, &p.CacheWrite1h, &p.Reasoning, &p.AudioInput,
		&p.AudioCachedInput, &p.AudioOutput, &p.ImageInput, &p.ImageOutput, &p.WebSearch, &p.PerImage, &p.PerSecond,
		&p.PerPartial}
}

// inherit returns the price with the amounts of base for searches and units where it has none, and with its service
// tiers. It is for a price that replaces base: vendors state such a price for tokens, and what is not a token costs the
// same as before.
func (p Price) inherit(base *Price) Price {
	p.WebSearch = orElse(p.WebSearch, base.WebSearch)
	p.PerImage = orElse(p.PerImage, base.PerImage)
	p.PerSecond = orElse(p.PerSecond, base.PerSecond)
	p.PerPartial = orElse(p.PerPartial, base.PerPartial)
	p.ServiceTiers = base.ServiceTiers
	return p
}

// whole returns the price with the amount that is charged in place of each amount of zero, so that two prices can be
// compared. It has no Above.
func (p Price) whole() Price {
	p.Above = nil
	p.CachedInput, p.CacheWrite = orElse(p.CachedInput, p.Input), orElse(p.CacheWrite, p.Input)
	p.CacheWrite1h = orElse(p.CacheWrite1h, p.CacheWrite)
	p.Reasoning = orElse(p.Reasoning, p.Output)
	p.AudioCachedInput = orElse(p.AudioCachedInput, p.CachedInput)
	p.AudioInput, p.ImageInput = orElse(p.AudioInput, p.Input), orElse(p.ImageInput, p.Input)
	p.AudioOutput, p.ImageOutput = orElse(p.AudioOutput, p.Output), orElse(p.ImageOutput, p.Output)
	return p
}

// orElse returns other if a price is not set.
func orElse(price, other int64) int64 {
	if price == 0 {
		return other
	}
	return price
}

// addSaturating adds two counts, neither of which is negative, and stops at the largest number.
func addSaturating(a, b int64) int64 {
	if a > math.MaxInt64-b {
		return math.MaxInt64
	}
	return a + b
}

// wideSum adds products of 63-bit numbers in 128 bits.
type wideSum struct{ hi, lo uint64 }

// add adds a product. It has 128 bits, since a million tokens at a high price can exceed 64.
func (l *wideSum) add(tokens, price int64) {
	hi, lo := bits.Mul64(uint64(tokens), uint64(max(price, 0)))
	var carry uint64
	l.lo, carry = bits.Add64(l.lo, lo, 0)
	l.hi += hi + carry
}

// total divides the sum by a million, since prices are for a million tokens, and rounds up.
// bits.Div64 panics if the quotient has more than 64 bits, so such a sum is stopped before the
// division.
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
