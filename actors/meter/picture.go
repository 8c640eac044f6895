package meter

import (
	"context"
	"sync"

	"stagedoor/actors/ledger"
	"stagedoor/actors/painter"
	"stagedoor/actors/telemetry"
	"stagedoor/providers/catalog"
	"stagedoor/providers/dialogue"
	"stagedoor/providers/picture"
	"stagedoor/providers/tokens"
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
// It implements painter.Meter.
type Picture struct {
	ledger  *ledger.Client
	request PictureRequest

	mu     sync.Mutex // End may come twice at once
	price  *catalog.Price
	hold   *ledger.Hold
	failed bool // the settlement could not be written, and the client was told
	ended  bool
}

var _ painter.Meter = (*Picture)(nil)

// NewPicture makes the meter of a request.
func NewPicture(l *ledger.Client, r PictureRequest) *Picture {
	if r.Price == nil {
		r.Price = func(c *catalog.Candidate) *catalog.Price { return c.Price }
	}
	return &Picture{ledger: l, request: r}
}

// Begin implements painter.Meter.
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
	u := p.guess(p.request.Picture.N)
	need := saturating(ledger.Images(p.price, int64(p.request.Picture.N)).Amount, ledger.Estimate(p.price, u.InputTotal, u.OutputTotal))
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

// guess is the usage of n images, on the high side.
func (p *Picture) guess(n int) dialogue.Usage {
	r := p.request.Picture
	each := int64(pictureTokens)
	if area := r.Size.Pixels(); area > pictureArea {
		each = each * area / pictureArea
	}
	u := dialogue.NoUsage
	u.InputTotal = max(1, tokens.Guess(len(r.Prompt))) + int64(len(r.Files()))*sourceTokens
	u.OutputTotal = each*int64(n) + int64(r.Partials)*partialTokens
	u.Estimated = true
	return u
}

// End implements painter.Meter.
func (p *Picture) End(ctx context.Context, o *painter.Outcome) *dialogue.Error {
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
	case end != ledger.Finished:
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
	return ledger.Refusal(err)
}

// bill is what was delivered: images by their price, tokens by theirs.
func (p *Picture) bill(o *painter.Outcome, end ledger.End) ledger.Bill {
	if end != ledger.Finished {
		return ledger.Bill{}
	}
	b := ledger.Charge(ledger.Work{Price: p.price, End: end, Delivered: o.Delivered > 0, Told: o.Usage.Tokens(), Counted: p.guess(o.Delivered)})
	if p.price.Input == 0 && p.price.Output == 0 {
		b = ledger.Bill{} // tokens do not matter, nor that nobody counted them
	}
	images := ledger.Images(p.price, int64(o.Delivered))
	b.Amount = saturating(b.Amount, images.Amount)
	b.Usage.Images = images.Usage.Images
	if p.price.PerImage > 0 {
		b.Prices = append(b.Prices, images.Prices...)
	}
	return b
}

// endOf is how the request ended. A picture is delivered as a whole or not at all.
func endOf(o *painter.Outcome) ledger.End {
	switch {
	case o.Err == nil:
		return ledger.Finished
	case o.Err.Status == statusClientLeft:
		return ledger.Left
	case o.Err.Status < 500:
		return ledger.Refused
	}
	return ledger.Failed
}
