package ledger

import (
	"slices"

	"stagedoor/providers/catalog"
	"stagedoor/providers/dialogue"
	"stagedoor/state/budget"
	"stagedoor/state/money"
)

// Ending says how a request ended, which decides what is charged. All amounts in this package are in
// micro-dollars.
type Ending uint8

// The endings, and what is charged for each.
const (
	// Finished means that the client has the whole answer. All usage is charged.
	Finished Ending = iota
	// Refused means that the gateway or the provider refused the request before any answer.
	// Nothing is charged.
	Refused
	// Failed means that the provider failed. If something was delivered before, it is charged
	// together with the prompt. Otherwise nothing is charged.
	Failed
	// Left means that the client disconnected. Once the provider has accepted the request, the
	// prompt and all that was delivered are charged.
	Left
	// Exhausted means that the balance ran out, so the gateway ended the answer. It is charged
	// as Left is.
	Exhausted
	// Overtaken means that another provider served the request first (hedging). It is charged as Left is.
	Overtaken
)

var endReasons = [...]string{
	Finished:  "finished",
	Refused:   "refused",
	Failed:    "upstream_failed",
	Left:      "client_left",
	Exhausted: "balance_exhausted",
	Overtaken: money.ReasonOvertaken,
}

// String returns the end reason that receipts show. It panics for a value that is not one of the endings.
func (e Ending) String() string { return endReasons[e] }

// Work describes what a provider did for a request that has ended. Clients control none of
// its fields except MostOutput, which they can only raise: a client can raise a hold, but it
// cannot lower a bill.
type Work struct {
	// Price is nil if the model is free.
	Price *catalog.Price
	End   Ending
	// Accepted says that the provider answered the request with a 2xx status.
	Accepted bool
	// Reported is the usage that the provider reported. Counted is the gateway's own count of
	// the prompt and of the output that was delivered.
	Reported, Counted dialogue.Usage
	// MostOutput is the most output tokens that the model gives to all choices together. If
	// Exact, the catalogue says so. Otherwise it is a default, and more that was delivered is
	// charged.
	MostOutput int64
	Exact      bool
	// Media says that the work is priced by its images and seconds below. Tokens are charged too if
	// Price has a price for them.
	Media bool
	// Images are the finished images that were delivered.
	Images int64
	// Video is the length of the video that was made.
	Video VideoLength
	// Partials is the number of partial images that were delivered, of all images. Begun is the
	// number of images of which only partial images were delivered, and not the finished one. Whole
	// is the number of those images of Begun whose last partial image is already as good as the
	// finished one, which providers do with quality high.
	Partials, Begun, Whole int64
}

// VideoLength is the length in seconds of the video that a provider made for one request. The
// zero value is no video.
type VideoLength struct {
	// Asked is the length that the client asked for. It counts if the provider reports nothing.
	Asked int64
	// Reported is the length that the provider reported for the finished video. 0 means that it
	// reported none. A negative length is rejected.
	Reported int64
	// Most is the longest video that the model makes for one request. A longer report is rejected
	// unless the client asked for that length.
	Most int64
}

// seconds returns the length that is charged, and a flag if the reported one was rejected. A length
// that was not reported is no error and has no flag.
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

// charged reports whether the ending allows any charge. The bill may still be zero.
func (w *Work) charged() bool {
	switch w.End {
	case Finished:
		return true
	case Failed:
		return w.delivered()
	case Left, Exhausted, Overtaken:
		return w.Accepted || w.delivered()
	}
	return false
}

// Bill is the charge for a request, with the usage and the prices that it results from. The Bill of
// a request that is not charged is zero, without usage and flags.
type Bill struct {
	Amount int64 // micro-dollars, at most budget.MaxCredits
	Usage  money.ReceiptUsage
	Prices []money.PriceRow
	// Catalog is the version of the list of models that the prices are from, or "".
	Catalog string
	Flags   []string
}

// Flags of usage reports that were rejected. The gateway's own count is charged instead. Of an
// absurdly high output or video, the most that the model gives is charged.
const (
	FlagMissing       = "usage_missing"
	FlagNegative      = "usage_negative"
	FlagAbsurd        = "usage_absurd"
	FlagContradicting = "usage_contradicting"
	FlagPartial       = "usage_partial" // the answer was cut off, so the report is incomplete
)

// FlagUnpriced is the flag of a receipt for a model whose price neither the configuration nor the catalogue has.
const FlagUnpriced = "price_unknown"

// A number of input tokens is absurd if it is more than ten times the gateway's own count, because
// a fault of a provider must not empty an account. That count is only an estimate, and a bad one if media are sent by
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
		b.addMedia(&w)
	}
	if w.Price != nil {
		b.Catalog = w.Price.Source
	}
	return b
}

// tokens returns the part of a bill that is counted in tokens. Where it rejects a report, the usage is
// marked as estimated.
func tokens(w *Work) Bill {
	j := judge{reported: w.Reported, counted: w.Counted, most: max(w.MostOutput, 0)}
	if !w.Exact {
		j.most = max(j.most, w.Counted.OutputTotal)
	}
	u := dialogue.NoUsage
	u.InputTotal = j.input()
	u.LargestInput = j.largest(u.InputTotal)
	u.OutputTotal = j.output(w.End)
	j.parts(&u)
	u.Estimated = j.estimated || w.Reported.Estimated
	return Bill{
		Amount: min(w.Price.Tokens(u), budget.MaxCredits),
		Usage:  receiptUsage(u),
		Prices: priceRows(w.Price, u),
		Flags:  j.flags,
	}
}

// addMedia adds the charges for images, partial images and seconds of video. The rules for images are:
//
//   - Each delivered image costs PerImage, and so does each one of Whole, because the client has it.
//   - If PerPartial is set, each delivered partial image costs PerPartial besides, no matter whether its
//     image was finished. Other images of Begun cost only that.
//   - If PerPartial is 0, each image of Begun costs PerImage, because a client could otherwise disconnect
//     after the last partial image and pay nothing. If the provider failed, only Whole is charged.
func (b *Bill) addMedia(w *Work) {
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

// unit adds n units at the price each, in micro-dollars, and a row for the receipt. It adds nothing if
// there are no units or they cost nothing. n must not be negative.
func (b *Bill) unit(what string, n, each int64) {
	if each = max(each, 0); n == 0 || each == 0 {
		return
	}
	b.Amount = add(b.Amount, multiply(n, each))
	b.Prices = append(b.Prices, money.PriceRow{What: what, Quantity: n, Price: each, Per: 1})
}

// notReported is the value of a count in dialogue.Usage that the provider did not report. Lower values
// stand for a negative count that it did report, see dialogue.NegativeCount.
const notReported = -1

// judge decides which reported numbers are charged. It collects the flags of those that it rejects.
type judge struct {
	reported, counted dialogue.Usage
	most              int64 // the most output tokens that are charged
	flags             []string
	estimated         bool // a count of the gateway or a limit is charged in place of a report
}

// flag adds a flag once.
func (j *judge) flag(name string) {
	if !slices.Contains(j.flags, name) {
		j.flags = append(j.flags, name)
	}
}

// input returns the input tokens to charge: the reported number if it is possible, and otherwise the
// gateway's own count with a flag.
func (j *judge) input() int64 {
	reported, counted := j.reported.InputTotal, dialogue.CountOrZero(j.counted.InputTotal)
	switch {
	case reported == notReported:
		j.flag(FlagMissing)
	case reported < 0:
		j.flag(FlagNegative)
	case reported > max(absurdInput, multiply(counted, absurdFactor)):
		j.flag(FlagAbsurd)
	default:
		return reported
	}
	j.estimated = true
	return counted
}

// largest returns the tokens of the largest prompt of one call, or 0 if input is that of one call.
func (j *judge) largest(input int64) int64 {
	largest := j.reported.LargestInput
	if input != j.reported.InputTotal {
		largest = j.counted.LargestInput
	}
	return min(largest, input)
}

// output returns the output tokens to charge: the reported number if it is possible, and otherwise the
// gateway's own count, but at most j.most, with a flag. With any ending except Finished the answer
// was cut off, and the provider may have reported only its beginning. Then a report that is missing or
// below the gateway's count is FlagPartial. A report above j.most is charged as j.most.
func (j *judge) output(end Ending) int64 {
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

// parts sets the counts in u that are parts of the totals and have other prices. Cache reads and cache
// writes together are limited to the input, and reasoning is limited to the output.
func (j *judge) parts(u *dialogue.Usage) {
	read := j.part(j.reported.CacheRead, u.InputTotal)
	writes := max(j.reported.CacheWrite, add(j.reported.CacheWrite5m, j.reported.CacheWrite1h))
	written := j.part(writes, u.InputTotal-read)
	u.CacheRead, u.CacheWrite = read, written
	u.CacheWrite1h = min(dialogue.CountOrZero(j.reported.CacheWrite1h), written)
	u.Reasoning = j.part(j.reported.Reasoning, u.OutputTotal)
	u.AudioIn, u.ImageIn = j.part(j.reported.AudioIn, u.InputTotal), j.part(j.reported.ImageIn, u.InputTotal)
	images := j.reported.ImageOut
	if images == notReported {
		images = j.counted.ImageOut
	}
	u.AudioOut, u.ImageOut = j.part(j.reported.AudioOut, u.OutputTotal), j.part(images, u.OutputTotal)
	u.WebSearches = j.part(j.reported.WebSearches, mostSearches)
}

// mostSearches is more than a provider makes for one reply.
const mostSearches = 1000

// add returns a+b, limited to the most credits that an account can have. Negative numbers, which are
// unknown counts, count as 0.
func add(a, b int64) int64 {
	a, b = dialogue.CountOrZero(a), dialogue.CountOrZero(b)
	if a > budget.MaxCredits-min(b, budget.MaxCredits) {
		return budget.MaxCredits
	}
	return a + b
}

// part returns a reported part of whole: 0 if it was not reported or is negative, and at most whole. It
// flags a part above whole only if both totals are as reported.
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

// receiptUsage returns the counts of u that receipts show.
func receiptUsage(u dialogue.Usage) money.ReceiptUsage {
	return money.ReceiptUsage{Input: u.InputTotal, CacheRead: u.CacheRead, CacheWrite: u.CacheWrite,
		Output: u.OutputTotal, Reasoning: u.Reasoning, Estimated: u.Estimated}
}

// priceRows returns one row for the receipt for each kind of tokens that was used, with the same
// quantities and prices that catalog.Price.Tokens adds up. It returns none if the model is free.
func priceRows(p *catalog.Price, u dialogue.Usage) []money.PriceRow {
	if p.Zero() {
		return nil
	}
	out := make([]money.PriceRow, 0, 2) // input and output, mostly
	for _, part := range p.Parts(u) {
		if part.Quantity > 0 {
			out = append(out, money.PriceRow(part))
		}
	}
	return out
}
