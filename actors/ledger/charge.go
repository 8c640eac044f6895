package ledger

import (
	"stagedoor/providers/catalog"
	"stagedoor/providers/dialogue"
	"stagedoor/state"
)

// End is how a request ended: what decides its charge.
type End uint8

// The ends, and what is charged (decisions, Ledger; faults.md 6).
const (
	// Finished: the client has the whole answer. Its usage is charged.
	Finished End = iota
	// Refused: by the gateway or the provider, before any answer. Nothing.
	Refused
	// Failed: the provider failed. What was delivered before, so nothing if
	// nothing was.
	Failed
	// Left: the client went away. What was delivered to it.
	Left
	// Exhausted: the balance ran out and the gateway ended the answer. What was
	// delivered.
	Exhausted
)

var endReasons = [...]string{Finished: "finished", Refused: "refused", Failed: "upstream_failed", Left: "client_left", Exhausted: "balance_exhausted"}

// String is the end reason in receipts.
func (e End) String() string { return endReasons[e] }

// Work is a text request that is over.
type Work struct {
	Price *catalog.Price
	End   End
	// Delivered: the client has, or could have, a part of the answer.
	Delivered bool
	// Told is what the provider said, as far as it said anything; Counted is the
	// gateway's own count of the prompt and of what was delivered.
	Told, Counted dialogue.Usage
	// MaxOutput is how many tokens were asked for at most; 0: not said.
	MaxOutput int64
}

// Bill is what a request costs and why.
type Bill struct {
	Amount int64
	Usage  state.ReceiptUsage
	Prices []state.PriceRow
	Flags  []string
}

// Flags of odd usage. What is flagged was not believed: the gateway's own count
// stands in for it.
const (
	FlagMissing       = "usage_missing"
	FlagNegative      = "usage_negative"
	FlagAbsurd        = "usage_absurd"
	FlagContradicting = "usage_contradicting"
	FlagPartial       = "usage_partial" // the answer was cut off: what was told is not the whole
)

// A number of tokens is absurd beyond tenfold what it should be at most
// (faults.md U29). What should come in is an estimate, and pictures and files by
// reference make it a bad one, so that bound is at least beyond any context.
const (
	absurdFactor = 10
	absurdInput  = 4_000_000
	absurdOutput = 4_000_000
)

// Charge is the bill of a text request.
func Charge(w Work) Bill {
	var b Bill
	if w.Price.Zero() || w.End == Refused || (!w.Delivered && w.End != Finished) {
		return b
	}
	j := judge{told: w.Told, counted: w.Counted}
	if w.MaxOutput > 0 {
		// The count is a guess by lengths, frames included.
		j.counted.OutputTotal = min(w.Counted.OutputTotal, w.MaxOutput)
	}
	u := dialogue.NoUsage
	u.InputTotal = j.believe(w.Told.InputTotal, w.Counted.InputTotal, max(absurdInput, saturate(w.Counted.InputTotal)))
	limit := int64(absurdOutput)
	if w.MaxOutput > 0 {
		limit = saturate(w.MaxOutput)
	}
	u.OutputTotal = j.output(w.End, limit)
	j.parts(&u)
	u.Estimated = j.estimated || w.Told.Estimated
	b.Amount = min(w.Price.Tokens(u), state.MaxCredits)
	b.Usage, b.Prices, b.Flags = used(u), rows(w.Price, u), j.flags
	return b
}

func saturate(n int64) int64 {
	if n > state.MaxCredits/absurdFactor {
		return state.MaxCredits
	}
	return max(n, 0) * absurdFactor
}

// judge decides which numbers are believed.
type judge struct {
	told, counted dialogue.Usage
	flags         []string
	estimated     bool
}

func (j *judge) flag(name string) {
	for _, f := range j.flags {
		if f == name {
			return
		}
	}
	j.flags = append(j.flags, name)
}

// believe returns what was told, or what was counted if that can't be.
func (j *judge) believe(told, counted, limit int64) int64 {
	switch {
	case told == notTold:
		j.flag(FlagMissing)
	case told < 0:
		j.flag(FlagNegative)
	case told > limit:
		j.flag(FlagAbsurd)
	default:
		return told
	}
	j.estimated = true
	return dialogue.Told(counted)
}

const notTold = -1

// output judges the count of output tokens. Of an answer that was cut off a
// provider may have told the beginning only.
func (j *judge) output(end End, limit int64) int64 {
	told, counted := j.told.OutputTotal, dialogue.Told(j.counted.OutputTotal)
	if end == Finished {
		if told == 0 && counted > 0 {
			j.flag(FlagContradicting)
			j.estimated = true
			return counted
		}
		return j.believe(told, counted, limit)
	}
	if told == notTold || (told >= 0 && told < counted) {
		j.flag(FlagPartial)
		j.estimated = true
		return counted
	}
	return j.believe(told, counted, limit)
}

// parts takes over the counts that are parts of the totals, as far as they fit
// into them.
func (j *judge) parts(u *dialogue.Usage) {
	read := j.part(j.told.CacheRead, u.InputTotal)
	// The two kinds of cache writes cost the same here.
	written := j.part(max(j.told.CacheWrite, sum(j.told.CacheWrite5m, j.told.CacheWrite1h)), u.InputTotal-read)
	u.CacheRead, u.CacheWrite = read, written
	u.Reasoning = j.part(j.told.Reasoning, u.OutputTotal)
}

func sum(a, b int64) int64 {
	a, b = dialogue.Told(a), dialogue.Told(b)
	if a > state.MaxCredits-min(b, state.MaxCredits) {
		return state.MaxCredits
	}
	return a + b
}

func (j *judge) part(told, whole int64) int64 {
	switch {
	case told < notTold:
		j.flag(FlagNegative)
		return 0
	case told > whole:
		if !j.estimated {
			j.flag(FlagContradicting)
		}
		return whole
	}
	return dialogue.Told(told)
}

func used(u dialogue.Usage) state.ReceiptUsage {
	return state.ReceiptUsage{Input: u.InputTotal, CacheRead: u.CacheRead, CacheWrite: u.CacheWrite,
		Output: u.OutputTotal, Reasoning: u.Reasoning, Estimated: u.Estimated}
}

// rows are the products that catalog.Price.Tokens adds up.
func rows(p *catalog.Price, u dialogue.Usage) []state.PriceRow {
	out := make([]state.PriceRow, 0, 2) // input and output, mostly
	row := func(what string, tokens, price, otherwise int64) {
		if price == 0 {
			price = otherwise
		}
		if tokens > 0 {
			out = append(out, state.PriceRow{What: what, Quantity: tokens, Price: price, Per: million})
		}
	}
	row("input", u.InputTotal-u.CacheRead-u.CacheWrite, p.Input, 0)
	row("cached_input", u.CacheRead, p.CachedInput, p.Input)
	row("cache_write", u.CacheWrite, p.CacheWrite, p.Input)
	row("output", u.OutputTotal-u.Reasoning, p.Output, 0)
	row("reasoning", u.Reasoning, p.Reasoning, p.Output)
	return out
}
