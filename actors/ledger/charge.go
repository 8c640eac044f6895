package ledger

import (
	"slices"

	"stagedoor/providers/catalog"
	"stagedoor/providers/dialogue"
	"stagedoor/state/budget"
	"stagedoor/state/money"
)

// End says how a request ended, which decides what is charged.
type End uint8

// The ends, and what is charged (decisions, Ledger; faults.md 6).
const (
	// Finished: the client has the whole answer. Its usage is charged.
	Finished End = iota
	// Refused: by the gateway or the provider, before any answer. Nothing is charged.
	Refused
	// Failed: the provider failed. What was delivered before is charged, and nothing if
	// nothing was.
	Failed
	// Left: the client went away. The prompt is charged from the moment when the provider
	// accepted the request, and all that was delivered.
	Left
	// Exhausted: the balance ran out and the gateway ended the answer. It is charged as
	// Left is.
	Exhausted
)

var endReasons = [...]string{
	Finished:  "finished",
	Refused:   "refused",
	Failed:    "upstream_failed",
	Left:      "client_left",
	Exhausted: "balance_exhausted",
}

// String is the end reason in receipts.
func (e End) String() string { return endReasons[e] }

// Work describes what a provider did for a request that has ended. Clients control none of
// its fields except MostOutput, which they can only raise: a client can raise a hold, but it
// cannot lower a bill.
type Work struct {
	Price *catalog.Price
	End   End
	// Accepted: the provider answered the request with a 2xx status.
	Accepted bool
	// Reported is the usage that the provider reported. Counted is the gateway's own count of
	// the prompt and of the output that was delivered.
	Reported, Counted dialogue.Usage
	// MostOutput is the most output tokens that the model gives to all choices together. If
	// Exact, the catalogue says so. Otherwise it is a default, and more that was delivered is
	// charged.
	MostOutput int64
	Exact      bool
	// Media: the work is priced by its units below, and by tokens only if the price is.
	Media bool
	// Images are the finished images that were delivered.
	Images int64
	// Video is the length of the video that was made.
	Video VideoLength
	// Partials are the partial images that were delivered. Begun are the images that had a
	// partial one and were not delivered themselves, and Whole are those of them whose last
	// partial image is the picture, as it is with quality high.
	Partials, Begun, Whole int64
}

// VideoLength is the length in seconds of the video that a provider made for one request. The
// zero value is no video.
type VideoLength struct {
	// Asked counts if the provider reports nothing.
	Asked int64
	// Reported is the length that the provider reported for the finished video. 0 means that it
	// reported none, and less is a length that cannot be.
	Reported int64
	// Most is the most that a model makes for one request.
	Most int64
}

// seconds returns the length that is charged, and a flag if the reported one was rejected.
func (l VideoLength) seconds() (seconds int64, flag string) {
	switch {
	case l.Reported == 0:
		return max(l.Asked, 0), ""
	case l.Reported < 0:
		return max(l.Asked, 0), FlagContradicting
	case l.Reported > max(l.Most, l.Asked):
		return max(l.Most, l.Asked), FlagAbsurd
	}
	return l.Reported, ""
}

// delivered reports whether the client received anything before the end. A video is delivered
// whole or not at all.
func (w *Work) delivered() bool {
	return w.Counted.OutputTotal > 0 || w.Images > 0 || w.Partials > 0
}

// charged reports whether anything is charged at all.
func (w *Work) charged() bool {
	switch w.End {
	case Finished:
		return true
	case Failed:
		return w.delivered()
	case Left, Exhausted:
		return w.Accepted || w.delivered()
	}
	return false
}

// Bill is the charge for a request, with the usage and the prices that it results from.
type Bill struct {
	Amount int64
	Usage  money.ReceiptUsage
	Prices []money.PriceRow
	Flags  []string
}

// Flags of usage reports that were rejected. The gateway's own count is charged instead, or
// the most that the model gives if the report was absurdly high.
const (
	FlagMissing       = "usage_missing"
	FlagNegative      = "usage_negative"
	FlagAbsurd        = "usage_absurd"
	FlagContradicting = "usage_contradicting"
	FlagPartial       = "usage_partial" // the answer was cut off, so the report is incomplete
)

// A number of input tokens is absurd if it is more than ten times the gateway's own count
// (faults.md U29). That count is only an estimate, and a bad one if media are sent by
// reference, so the bound is never below the size of any context.
const (
	absurdFactor = 10
	absurdInput  = 4_000_000
)

// Charge returns the bill for a request of any kind: text, images, videos and the image
// vendor's routes. No other function decides what is charged.
func Charge(w Work) Bill {
	var b Bill
	if !w.charged() {
		return b
	}
	if !w.Media || w.Price.PerToken() {
		b = tokens(&w)
	}
	if w.Media {
		b.add(&w)
	}
	return b
}

// tokens returns the part of a bill that is counted in tokens.
func tokens(w *Work) Bill {
	j := judge{reported: w.Reported, counted: w.Counted, most: max(w.MostOutput, 0)}
	if !w.Exact {
		j.most = max(j.most, w.Counted.OutputTotal)
	}
	u := dialogue.NoUsage
	u.InputTotal = j.input()
	u.OutputTotal = j.output(w.End)
	j.parts(&u)
	u.Estimated = j.estimated || w.Reported.Estimated
	return Bill{
		Amount: min(w.Price.Tokens(u), budget.MaxCredits),
		Usage:  used(u),
		Prices: rows(w.Price, u),
		Flags:  j.flags,
	}
}

// add adds the charges for images and seconds. If partial images have a price, an image that
// was begun and not delivered costs its partial images. If they have none, a client that
// disconnects after a partial image pays for the whole picture. A picture that is complete in
// its last partial image is charged for any end of the request.
func (b *Bill) add(w *Work) {
	var p catalog.Price
	if w.Price != nil {
		p = *w.Price
	}
	images := max(w.Images, 0) + max(w.Whole, 0)
	if p.PerPartial == 0 && w.End != Failed {
		images = max(w.Images, 0) + max(w.Begun, w.Whole, 0)
	}
	seconds, flag := w.Video.seconds()
	if flag != "" {
		b.Flags = append(b.Flags, flag)
	}
	b.Usage.Images, b.Usage.Seconds = images, seconds
	b.unit("images", images, p.PerImage)
	b.unit("partial_images", max(w.Partials, 0), p.PerPartial)
	b.unit("video_seconds", seconds, p.PerSecond)
}

// unit adds one product to a bill.
func (b *Bill) unit(what string, n, each int64) {
	if each = max(each, 0); n == 0 || each == 0 {
		return
	}
	b.Amount = saturating(b.Amount, multiply(n, each))
	b.Prices = append(b.Prices, money.PriceRow{What: what, Quantity: n, Price: each, Per: 1})
}

func saturating(a, b int64) int64 {
	if a > budget.MaxCredits-min(b, budget.MaxCredits) {
		return budget.MaxCredits
	}
	return a + b
}

func saturate(n int64) int64 {
	if n > budget.MaxCredits/absurdFactor {
		return budget.MaxCredits
	}
	return max(n, 0) * absurdFactor
}

// judge decides which reported numbers are charged.
type judge struct {
	reported, counted dialogue.Usage
	most              int64 // output tokens
	flags             []string
	estimated         bool
}

func (j *judge) flag(name string) {
	if !slices.Contains(j.flags, name) {
		j.flags = append(j.flags, name)
	}
}

// input judges the count of input tokens.
func (j *judge) input() int64 {
	reported, counted := j.reported.InputTotal, dialogue.CountOrZero(j.counted.InputTotal)
	switch {
	case reported == notReported:
		j.flag(FlagMissing)
	case reported < 0:
		j.flag(FlagNegative)
	case reported > max(absurdInput, saturate(counted)):
		j.flag(FlagAbsurd)
	default:
		return reported
	}
	j.estimated = true
	return counted
}

const notReported = -1

// output judges the count of output tokens. If an answer was cut off, the provider may have
// reported only its beginning. A report above the model's maximum is charged as the maximum.
func (j *judge) output(end End) int64 {
	reported, counted := j.reported.OutputTotal, dialogue.CountOrZero(j.counted.OutputTotal)
	cut := end != Finished
	switch {
	case reported > j.most:
		j.flag(FlagAbsurd)
		j.estimated = true
		return j.most
	case cut && (reported == notReported || reported >= 0 && reported < counted):
		j.flag(FlagPartial)
	case reported == notReported:
		j.flag(FlagMissing)
	case reported < 0:
		j.flag(FlagNegative)
	case reported == 0 && counted > 0:
		j.flag(FlagContradicting)
	default:
		return reported
	}
	j.estimated = true
	return min(counted, j.most)
}

// parts sets the counts that are parts of the totals, limited to those totals.
func (j *judge) parts(u *dialogue.Usage) {
	read := j.part(j.reported.CacheRead, u.InputTotal)
	// The two kinds of cache writes cost the same here.
	writes := max(j.reported.CacheWrite, sum(j.reported.CacheWrite5m, j.reported.CacheWrite1h))
	written := j.part(writes, u.InputTotal-read)
	u.CacheRead, u.CacheWrite = read, written
	u.Reasoning = j.part(j.reported.Reasoning, u.OutputTotal)
}

func sum(a, b int64) int64 {
	a, b = dialogue.CountOrZero(a), dialogue.CountOrZero(b)
	if a > budget.MaxCredits-min(b, budget.MaxCredits) {
		return budget.MaxCredits
	}
	return a + b
}

func (j *judge) part(reported, whole int64) int64 {
	switch {
	case reported < notReported:
		j.flag(FlagNegative)
		return 0
	case reported > whole:
		if !j.estimated {
			j.flag(FlagContradicting)
		}
		return whole
	}
	return dialogue.CountOrZero(reported)
}

func used(u dialogue.Usage) money.ReceiptUsage {
	return money.ReceiptUsage{Input: u.InputTotal, CacheRead: u.CacheRead, CacheWrite: u.CacheWrite,
		Output: u.OutputTotal, Reasoning: u.Reasoning, Estimated: u.Estimated}
}

// rows returns the products that catalog.Price.Tokens adds up, for the receipt.
func rows(p *catalog.Price, u dialogue.Usage) []money.PriceRow {
	if p.Zero() {
		return nil
	}
	out := make([]money.PriceRow, 0, 2) // input and output, mostly
	row := func(what string, tokens, price, otherwise int64) {
		if price == 0 {
			price = otherwise
		}
		if tokens > 0 {
			out = append(out, money.PriceRow{What: what, Quantity: tokens, Price: price, Per: million})
		}
	}
	row("input", u.InputTotal-u.CacheRead-u.CacheWrite, p.Input, 0)
	row("cached_input", u.CacheRead, p.CachedInput, p.Input)
	row("cache_write", u.CacheWrite, p.CacheWrite, p.Input)
	row("output", u.OutputTotal-u.Reasoning, p.Output, 0)
	row("reasoning", u.Reasoning, p.Reasoning, p.Output)
	return out
}
