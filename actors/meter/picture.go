package meter

import (
	"context"
	"time"

	"stagedoor/actors/engine"
	"stagedoor/actors/images"
	"stagedoor/actors/ledger"
	"stagedoor/providers/catalog"
	"stagedoor/providers/dialogue"
	"stagedoor/providers/picture"
	"stagedoor/providers/tokens"
	"stagedoor/state/budget"
	"stagedoor/state/money"
)

// PictureRequest describes an image request to its meter.
type PictureRequest struct {
	ID      string
	Account string // the key's user
	Key     string // the key's ID
	Picture *picture.Request
	// Price returns the price of a candidate if it depends on the request. A nil Price uses
	// the price in the catalogue.
	Price func(c *catalog.Candidate) *catalog.Price
	// Dry, if set, learns what the request would hold. Nothing is held then.
	Dry *engine.DryRun
}

// Picture is the meter of one image request. It makes a durable hold of what all images may
// cost before the first upstream call, and charges for the images that were delivered. It
// implements images.Meter.
type Picture struct {
	charge
	request PictureRequest
	price   *catalog.Price // guarded by charge.mu
}

var _ images.Meter = (*Picture)(nil)

// NewPicture returns the meter of a request.
func NewPicture(l *ledger.Client, r PictureRequest) *Picture {
	if r.Price == nil {
		now := time.Now()
		r.Price = func(c *catalog.Candidate) *catalog.Price { return c.Rates(now) }
	}
	return &Picture{charge: charge{ledger: l, dry: r.Dry}, request: r}
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
	u := p.estimate(n, n*int64(p.request.Picture.Partials))
	units := ledger.Charge(
		ledger.Work{Price: p.price.ByUnit(), Media: true, Images: n, Partials: n * int64(p.request.Picture.Partials)},
	)
	// Both amounts are at most MaxCredits, so the sum does not overflow.
	estimate := ledger.Estimate(p.price, ledger.Demand{Prompt: u.InputTotal, Largest: u.InputTotal}, u.OutputTotal)
	need := min(units.Amount+estimate, budget.MaxCredits)
	if err := p.raise(ctx, ledger.Ask{Account: p.request.Account, RequestID: p.request.ID, Amount: need, Durable: true,
		Key: p.request.Key, Model: p.request.Picture.Model, Provider: c.Provider.Name}); err != nil {
		return ledger.Refusal(err)
	}
	return nil
}

// The tokens that an image may cost with models that are charged by tokens: those of the most
// expensive known size and quality, and more for larger images.
const (
	pictureTokens = 6300
	pictureArea   = 1536 * 1024
	partialTokens = 100
	sourceTokens  = 6500
)

// estimate returns a high estimate of the usage of images and partial images.
func (p *Picture) estimate(images, partials int64) dialogue.Usage {
	r := p.request.Picture
	u := dialogue.NoUsage
	u.InputTotal = max(1, tokens.Estimate(len(r.Prompt))) + int64(len(r.Files()))*sourceTokens
	u.OutputTotal = multiply(p.tokensPerImage(), images) + partials*partialTokens
	u.ImageOut = u.OutputTotal
	u.Estimated = true
	return u
}

// tokensPerImage returns the most tokens that one image may cost.
func (p *Picture) tokensPerImage() int64 {
	if area := p.request.Picture.Size.Pixels(); area > pictureArea {
		return pictureTokens * area / pictureArea
	}
	return pictureTokens
}

// Settle implements images.Meter.
func (p *Picture) Settle(ctx context.Context, o *images.Outcome) *dialogue.Error {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.hold == nil || p.ended {
		return nil
	}
	end := endOf(o)
	return p.settle(ctx, p.bill(o, end), end, &money.Receipt{Model: p.request.Picture.Model, Upstream: o.Model,
		Provider: o.Provider, Attempts: o.Attempts}, o.Err != nil)
}

// bill returns the charge for the images and the tokens that the provider produced.
func (p *Picture) bill(o *images.Outcome, end ledger.Ending) ledger.Bill {
	w := ledger.Work{Price: p.price, End: end, Accepted: o.Accepted, Media: true, Reported: o.Usage.Tokens(),
		Images: int64(o.Delivered), Partials: int64(o.Partials), Begun: int64(o.Begun), Whole: int64(o.Whole)}
	rendered := w.Images + max(w.Begun, w.Whole)
	if end == ledger.Failed {
		rendered = w.Images + w.Whole
	}
	w.Counted = p.estimate(rendered, w.Partials)
	// No vendor documents how many tokens an image may take, so the bound is ten estimates.
	w.MostOutput = multiply(p.estimate(int64(max(p.request.Picture.N, 1)), w.Partials).OutputTotal, 10)
	return ledger.Charge(w)
}

// endOf returns how the request ended.
func endOf(o *images.Outcome) ledger.Ending {
	switch {
	case o.Err == nil:
		return ledger.Finished
	case o.Err.Status == dialogue.StatusClientClosed:
		return ledger.Left
	case o.Err.Status < 500:
		return ledger.Refused
	}
	return ledger.Failed
}
