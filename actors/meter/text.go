package meter

import (
	"bytes"
	"context"
	"errors"
	"time"

	"stagedoor/actors/engine"
	"stagedoor/actors/ledger"
	"stagedoor/actors/text"
	"stagedoor/providers/catalog"
	"stagedoor/providers/dialogue"
	"stagedoor/providers/upstream"
	"stagedoor/state/budget"
	"stagedoor/state/money"
)

const (
	// firstTokens is the output that is held at first for a stream without a maximum, and
	// moreTokens is added each time the stream comes near the end of its hold.
	firstTokens = 1024
	moreTokens  = 2048
	// nearEnd is the number of tokens left in a hold at which it is extended.
	nearEnd = 256

	// A long stream records its progress after either of these.
	noteTokens = 4000
	noteEvery  = 10 * time.Second

	// heldSearches is held for a request that may search. Few replies have more searches.
	heldSearches = 10

	// unknownHold is held, in micro-dollars, for a model whose price is known only when its reply names a model. An
	// account without money is refused by it before the call. A charge above it makes a debt.
	unknownHold = 1000
)

// Request describes a text request to its meter.
type Request struct {
	ID      string
	Account string // the key's user
	Key     string // the key's ID
	Model   string // the name that the client sent
	Body    []byte // read by NewText only
	// Tokens is an estimate of the prompt's tokens by the caller. It counts if it is more than that of Body: lists of
	// tokens have more of them than text of that length.
	Tokens int64
	// MaxTokens is the most output tokens of one choice. Zero or less means that the request
	// sets no maximum.
	MaxTokens int64
	// Choices is the number of choices that the provider generates.
	Choices int
	Stream  bool
	// Lasting work is started again by the next process if this one ends first. The work
	// done until then is not charged.
	Lasting bool
	// Dry, if set, learns what the request would hold. Nothing is held then.
	Dry *engine.DryRun
}

// Text is the meter of one text request. It implements text.Meter.
type Text struct {
	charge
	now     func() time.Time
	request Request
	demand  ledger.Demand // Prompt is for all calls to the present candidate

	// charge.mu guards the fields below.
	price   *catalog.Price
	target  *catalog.Candidate
	began   time.Time // of the attempt, whose prices count
	most    int64     // output tokens the candidate's model gives at most, for all choices
	exact   bool      // the catalogue says so
	covered int64     // output tokens the hold pays for
	dry     bool      // the hold cannot be extended further
	enough  bool
	noted   int64 // output tokens when progress was last recorded
	notedAt time.Time
}

var _ text.Meter = (*Text)(nil)

// NewText returns the meter of a request. The body may change afterwards.
func NewText(l *ledger.Client, now func() time.Time, r Request) *Text {
	t := &Text{charge: charge{ledger: l, later: true, dry: r.Dry}, now: now, request: r, demand: demandOf(&r)}
	t.request.Body = nil
	t.request.Choices = max(r.Choices, 1)
	return t
}

// Another implements text.Meter. The other meter has a hold and a receipt of its own.
func (t *Text) Another() text.Meter {
	return &Text{charge: charge{ledger: t.ledger, later: true, origin: &t.charge}, now: t.now, request: t.request,
		demand: t.demand}
}

// demandOf returns what the body of a request shows of its demand for things that have a price of their own: sound,
// cache writes of an hour, searches and a faster service tier. It only looks for words. A client that hides them pays
// the same and has a hold that is too small.
func demandOf(r *Request) ledger.Demand {
	has := func(word string) bool { return bytes.Contains(r.Body, []byte(word)) }
	d := ledger.Demand{Largest: max(promptTokens(r.Body), r.Tokens), Special: has("audio") || has(`"1h"`)}
	d.Faster = (has("service_tier") || has("serviceTier")) && (has(`"priority"`) || has(`"fast"`))
	if has("web_search") || has("google_search") || has("googleSearch") {
		d.Searches = heldSearches
	}
	return d
}

// Begin implements text.Meter. It holds what this candidate may cost, or extends the hold if
// this candidate costs more than the previous one. The prompt is sent to the candidate so many times.
func (t *Text) Begin(ctx context.Context, c *catalog.Candidate, times int) (tight bool, refused *dialogue.Error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.ended {
		return false, nil
	}
	t.began, t.target, t.enough, t.dry = t.now(), c, false, false
	t.price = c.Rates(t.began)
	t.demand.Prompt = multiply(t.demand.Largest, int64(times))
	output, all := t.outputTokens(c)
	t.most, t.exact = c.MaxOutput()
	t.most = multiply(t.most, int64(t.request.Choices))
	if !t.exact {
		t.most = max(t.most, all, multiply(c.OutputLimit(), int64(t.request.Choices)))
	}
	if !c.MayCharge(t.began) {
		return false, nil
	}
	need := t.estimate(output)
	if t.price.Zero() {
		need = unknownHold
	}
	if err := t.raiseHold(ctx, need); err != nil {
		return false, ledger.Refusal(err)
	}
	if t.hold == nil || t.price.Zero() {
		return false, nil // a dry run, or nothing to extend the hold by
	}
	t.noted, t.notedAt = 0, t.now()
	t.covered = ledger.Affordable(t.price, t.hold.Amount(), t.demand)
	if output == all {
		return false, nil
	}
	return t.nearLimit(ctx, t.estimate(all)), nil
}

// estimate returns the most that the prompt and so many output tokens should cost.
func (t *Text) estimate(output int64) int64 {
	return ledger.Estimate(t.price, t.demand, output)
}

// outputTokens returns the output tokens of the first hold, and the largest number that the request may reach. The
// two are equal for a reply in one piece, because its hold cannot be extended on the way.
func (t *Text) outputTokens(c *catalog.Candidate) (now, all int64) {
	n := int64(t.request.Choices)
	if t.request.MaxTokens > 0 {
		all = multiply(t.request.MaxTokens, n)
		return all, all
	}
	most, exact := c.MaxOutput()
	all = multiply(most, n)
	if !t.request.Stream {
		if !exact && !c.SendsMaximum() {
			all = max(all, multiply(c.OutputLimit(), n)) // more than that default may be charged
		}
		return all, all
	}
	return min(all, firstTokens*n), all
}

// multiply returns a times n, or the largest amount that an account may have if that is less.
func multiply(a, n int64) int64 {
	if n > 0 && a > budget.MaxCredits/n {
		return budget.MaxCredits
	}
	return a * n
}

// raiseHold makes the hold, or extends it, so that it is at least amount.
func (t *Text) raiseHold(ctx context.Context, amount int64) error {
	return t.raise(ctx, ledger.Ask{Account: t.request.Account, RequestID: t.request.ID, Amount: amount,
		Key: t.request.Key, Model: t.request.Model})
}

// nearLimit reports whether the account or a budget could not pay for the longest reply now.
func (t *Text) nearLimit(ctx context.Context, all int64) bool {
	room, err := t.hold.Room(ctx)
	return err != nil || all-t.hold.Amount() > room
}

// Progress implements text.Meter. If the request set a maximum, the hold covers all of the
// reply, and the count, which is an estimate, never ends it. The hold of an earlier attempt stays while a later target
// without a price answers, and is not extended then.
func (t *Text) Progress(o *text.Outcome) (enough bool) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.hold == nil || t.ended || t.price.Zero() {
		return false
	}
	// A provider that reports more than its model gives must not take the balance into the hold.
	output := max(o.Counted, min(o.Usage.OutputTotal, t.most))
	t.recordProgress(o, output)
	if t.request.MaxTokens > 0 {
		return false
	}
	if output+nearEnd >= t.covered && !t.dry {
		t.extend(output)
	}
	t.enough = t.dry && output >= t.covered
	return t.enough
}

// extend extends the hold by moreTokens per choice, or by as much as the account has.
func (t *Text) extend(output int64) {
	ctx, cancel := context.WithTimeout(context.Background(), ledgerTimeout)
	defer cancel()
	want := t.estimate(max(output, t.covered) + moreTokens*int64(t.request.Choices))
	if t.raiseHold(ctx, want) != nil {
		t.dry = true
		if room, err := t.hold.Room(ctx); err == nil && room > 0 {
			_ = t.hold.Extend(ctx, min(room, want-t.hold.Amount())) // another request may take the room first
		}
	}
	t.covered = ledger.Affordable(t.price, t.hold.Amount(), t.demand)
}

// recordProgress records in the ledger what the stream has cost so far, which is charged after a crash. It is the bill
// of a client that leaves now, and not the hold: a client can raise its hold by words for searches, sound and service
// tiers that the provider may not use. The price is the plain one, because a reply is sure of its tier only at its end.
func (t *Text) recordProgress(o *text.Outcome, output int64) {
	if t.request.Lasting {
		return
	}
	if output-t.noted < noteTokens {
		now := t.now()
		if output == t.noted || now.Sub(t.notedAt) < noteEvery {
			return
		}
		t.notedAt = now
	}
	t.noted = output
	price := t.target.RatesOf(o.ReplyModel, t.began)
	work := t.work(o, price, ledger.Left)
	work.Accepted = true
	t.hold.Progress(ledger.Charge(work).Amount)
}

// Settle implements text.Meter.
func (t *Text) Settle(ctx context.Context, o *text.Outcome) *dialogue.Error {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.ended || t.target == nil {
		return nil
	}
	if t.reprice(o); t.price.Zero() {
		t.price = nil // no hold was made, or the model that answered is free
	}
	end := t.endOf(o)
	bill := ledger.Charge(t.work(o, t.price, end))
	if t.price == nil && t.target.PriceUnknown() {
		bill.Flags = append(bill.Flags, ledger.FlagUnpriced)
	}
	if t.hold == nil && (bill.Amount == 0 || t.raiseHold(ctx, bill.Amount) != nil || t.hold == nil) {
		return nil // nothing is to be charged, or cannot be
	}
	return t.settle(ctx, bill, end, &money.Receipt{Model: t.request.Model, Upstream: o.Model, Provider: o.Provider,
		Attempts: o.Attempts}, o.Err != nil)
}

// work describes what the provider did until the end.
func (t *Text) work(o *text.Outcome, price *catalog.Price, end ledger.Ending) ledger.Work {
	return ledger.Work{Price: price, End: end, Accepted: o.Accepted, Reported: o.Usage, Counted: t.counted(o),
		MostOutput: t.most, Exact: t.exact}
}

// reprice sets the price to that of the model and the service tier that the reply names, if the price depends on them.
func (t *Text) reprice(o *text.Outcome) {
	t.price = t.target.RatesOf(o.ReplyModel, t.began).AtTier(o.ServiceTier)
}

// endOf returns how the request ended.
func (t *Text) endOf(o *text.Outcome) ledger.Ending {
	switch {
	case o.Overtaken:
		return ledger.Overtaken
	case t.enough:
		return ledger.Exhausted
	case o.Err == nil:
		return ledger.Finished
	case t.request.Lasting && errors.Is(o.Err, upstream.ErrDraining):
		return ledger.Refused
	case o.Err.Status == dialogue.StatusClientClosed:
		return ledger.Left
	case !o.Committed && o.Err.Status < 500:
		return ledger.Refused
	}
	return ledger.Failed
}

// counted returns the gateway's own count of the usage.
func (t *Text) counted(o *text.Outcome) dialogue.Usage {
	u := dialogue.NoUsage
	prompt := t.demand.Prompt
	u.InputTotal, u.LargestInput, u.OutputTotal, u.Estimated = prompt, t.demand.Largest, 0, true
	if calls, accepted := int64(o.Calls), int64(o.AcceptedCalls); accepted > 0 && accepted < calls {
		u.InputTotal = prompt/calls*accepted + prompt%calls*accepted/calls
	}
	if o.Committed || o.Err == nil || o.Err.Status == dialogue.StatusClientClosed {
		u.OutputTotal = o.Counted
	}
	return u
}
