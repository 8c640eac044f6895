package meter

import (
	"context"
	"sync"
	"sync/atomic"

	"stagedoor/actors/images"
	"stagedoor/actors/ledger"
	"stagedoor/actors/telemetry"
	"stagedoor/providers/catalog"
	"stagedoor/providers/dialogue"
	"stagedoor/providers/picture"
	"stagedoor/providers/tokens"
	"stagedoor/providers/upstream"
	"stagedoor/state"
)

// PictureRequest is what the meter must know of a request for pictures.
type PictureRequest struct {
	ID      string
	Account string // the key's user
	Key     string // the key's id
	Picture *picture.Request
	// Price is what a candidate charges, where that depends on the request; nil:
	// what the catalogue says.
	Price func(c *catalog.Candidate) *catalog.Price
}

// Picture is the meter of one request for pictures. It holds, durably and before
// anything is asked, what all images may cost, and charges for those delivered.
// It implements images.Meter.
type Picture struct {
	ledger  *ledger.Client
	request PictureRequest

	held atomic.Bool

	mu     sync.Mutex // End may come twice at once
	price  *catalog.Price
	hold   *ledger.Hold
	failed bool // the settlement could not be written, and the client was told
	ended  bool
}

// Held is as Text.Held.
func (p *Picture) Held() bool { return p.held.Load() }

var _ images.Meter = (*Picture)(nil)

// NewPicture makes the meter of a request.
func NewPicture(l *ledger.Client, r PictureRequest) *Picture {
	if r.Price == nil {
		r.Price = func(c *catalog.Candidate) *catalog.Price { return c.Price }
	}
	return &Picture{ledger: l, request: r}
}

// Begin implements images.Meter.
func (p *Picture) Begin(ctx context.Context, c *catalog.Candidate) *dialogue.Error {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.ended {
		return nil
	}
	p.price = p.request.Price(c)
	if p.price.Zero() {
		return nil
	}
	n := int64(max(p.request.Picture.N, 1))
	u := p.guess(n, n*int64(p.request.Picture.Partials))
	units := ledger.Charge(ledger.Work{Price: p.price.ByUnit(), Media: true, Images: n, Partials: n * int64(p.request.Picture.Partials)})
	need := saturating(units.Amount, ledger.Estimate(p.price, u.InputTotal, u.OutputTotal))
	if p.hold != nil && need <= p.hold.Amount() {
		return nil
	}
	ctx, span := telemetry.Start(ctx, telemetry.SpanHold)
	err := p.keep(ctx, c, need)
	held(span, need, err)
	if err != nil {
		return ledger.Refusal(err)
	}
	return nil
}

// keep brings the hold up to amount.
func (p *Picture) keep(ctx context.Context, c *catalog.Candidate, amount int64) error {
	if p.hold != nil {
		return p.hold.Extend(ctx, amount-p.hold.Amount())
	}
	h, err := p.ledger.Hold(ctx, ledger.Ask{Account: p.request.Account, RequestID: p.request.ID, Amount: amount, Durable: true,
		Key: p.request.Key, Model: p.request.Picture.Model, Provider: c.Provider.Name})
	if err == nil {
		p.hold = h
		p.held.Store(true)
	}
	return err
}

func saturating(a, b int64) int64 {
	if a > state.MaxCredits-min(b, state.MaxCredits) {
		return state.MaxCredits
	}
	return a + b
}

// What a picture may cost in tokens, where models are charged by them: the dearest
// known size and quality, and more for larger ones (wire/images.md 3).
const (
	pictureTokens = 6300
	pictureArea   = 1536 * 1024
	partialTokens = 100
	sourceTokens  = 6500
)

// guess is the usage of images and partial images, on the high side.
func (p *Picture) guess(images, partials int64) dialogue.Usage {
	r := p.request.Picture
	u := dialogue.NoUsage
	u.InputTotal = max(1, tokens.Estimate(len(r.Prompt))) + int64(len(r.Files()))*sourceTokens
	u.OutputTotal = times(p.each(), images) + partials*partialTokens
	u.Estimated = true
	return u
}

// each is what one image may cost in tokens.
func (p *Picture) each() int64 {
	if area := p.request.Picture.Size.Pixels(); area > pictureArea {
		return pictureTokens * area / pictureArea
	}
	return pictureTokens
}

// End implements images.Meter.
func (p *Picture) End(ctx context.Context, o *images.Outcome) *dialogue.Error {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.hold == nil || p.ended {
		return nil
	}
	end := endOf(o)
	bill := p.bill(o, end)
	receipt := &state.Receipt{Model: p.request.Picture.Model, Upstream: o.Model, Provider: o.Provider, Attempts: o.Attempts,
		Usage: bill.Usage, Prices: bill.Prices, Flags: bill.Flags}
	switch {
	case p.failed:
		p.ended = true
		release(ctx, func() { p.hold.Release(reasonUnwritten, receipt) }, reasonUnwritten)
		return nil
	case bill.Amount == 0 && end != ledger.Finished:
		p.ended = true
		release(ctx, func() { p.hold.Release(end.String(), receipt) }, end.String())
		return nil
	}
	// The client's leaving must not take the settlement along.
	_, span := telemetry.Start(ctx, telemetry.SpanSettle)
	err := p.hold.SettleWithin(patience, ledger.Settlement{Amount: bill.Amount, Reason: end.String(), Receipt: receipt})
	settled(span, bill.Amount, end.String(), err)
	if err == nil {
		p.ended = true
		return nil
	}
	p.failed = true
	if o.Err != nil { // nobody comes again
		p.ended = true
		p.hold.Release(reasonUnwritten, receipt)
	}
	return ledger.Refusal(err)
}

// bill is what the provider did: images by their price, tokens by theirs.
func (p *Picture) bill(o *images.Outcome, end ledger.End) ledger.Bill {
	w := ledger.Work{Price: p.price, End: end, Accepted: o.Accepted, Media: true, Reported: o.Usage.Tokens(),
		Images: int64(o.Delivered), Partials: int64(o.Partials), Begun: int64(o.Begun), Whole: int64(o.Whole)}
	rendered := w.Images + max(w.Begun, w.Whole)
	if end == ledger.Failed {
		rendered = w.Images + w.Whole
	}
	w.Counted = p.guess(rendered, w.Partials)
	// Models say nowhere how many tokens a picture may take, so the bound is far away.
	w.MostOutput = times(p.guess(int64(max(p.request.Picture.N, 1)), w.Partials).OutputTotal, 10)
	return ledger.Charge(w)
}

// endOf is how the request ended.
func endOf(o *images.Outcome) ledger.End {
	switch {
	case o.Err == nil:
		return ledger.Finished
	case o.Err.Status == upstream.StatusClientLeft:
		return ledger.Left
	case o.Err.Status < 500:
		return ledger.Refused
	}
	return ledger.Failed
}
