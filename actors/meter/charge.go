package meter

import (
	"context"
	"sync"
	"sync/atomic"
	"time"

	"stagedoor/actors/ledger"
	"stagedoor/actors/telemetry"
	"stagedoor/providers/dialogue"
	"stagedoor/state/money"
)

// patience bounds a settlement, which no context can cancel.
const patience = 10 * time.Second

// reasonUnwritten is the end reason of a request whose settlement could not be written. Such
// a request is not charged.
const reasonUnwritten = "storage_unavailable"

// charge is the hold of one request and its settlement, which happens once. Text and Picture
// embed it. The caller of its methods other than Held has locked mu.
type charge struct {
	ledger *ledger.Client
	later  bool // the settlement does not wait for the disk
	held   atomic.Bool

	mu     sync.Mutex // End may come twice at once
	hold   *ledger.Hold
	failed bool // the settlement could not be written, and the client got an error
	ended  bool
}

// Held reports whether a hold was made for the request. If so, the end of the hold counts its
// usage. Held may be called at any time.
func (c *charge) Held() bool { return c.held.Load() }

// raise makes the hold that ask describes, or extends an existing one to ask.Amount.
func (c *charge) raise(ctx context.Context, ask ledger.Ask) (err error) {
	if c.hold != nil && ask.Amount <= c.hold.Amount() {
		return nil
	}
	ctx, span := telemetry.Start(ctx, telemetry.SpanHold)
	defer func() {
		endSpan(span, err, telemetry.Held.Float64(telemetry.Dollars(ask.Amount)))
	}()
	if c.hold != nil {
		return c.hold.Extend(ctx, ask.Amount-c.hold.Amount())
	}
	h, err := c.ledger.Hold(ctx, ask)
	if err == nil {
		c.hold = h
		c.held.Store(true)
	}
	return err
}

// settle charges bill for a request that ended with end, or returns the whole hold if there is
// nothing to charge. If the settlement cannot be written, it returns the error for the client; End
// is then called again with that error, and the request is not charged. lost says that the client
// has an error already, so that End is not called again.
func (c *charge) settle(
	ctx context.Context,
	bill ledger.Bill,
	end ledger.End,
	receipt *money.Receipt,
	lost bool,
) *dialogue.Error {
	receipt.Usage, receipt.Prices, receipt.Flags = bill.Usage, bill.Prices, bill.Flags
	switch {
	case c.failed:
		c.release(ctx, reasonUnwritten, receipt)
		return nil
	case bill.Amount == 0 && end != ledger.Finished:
		c.release(ctx, end.String(), receipt)
		return nil
	}
	settlement := ledger.Settlement{Amount: bill.Amount, Reason: end.String(), Receipt: receipt}
	_, span := telemetry.Start(ctx, telemetry.SpanSettle)
	var err error
	if c.later {
		c.hold.SettleLater(settlement)
	} else {
		err = c.hold.SettleWithin(patience, settlement) // which is not cancelled if the client disconnects
	}
	endSpan(span, err, telemetry.Cost.Float64(telemetry.Dollars(bill.Amount)), telemetry.EndReason.String(end.String()))
	if err == nil {
		c.ended = true
		return nil
	}
	c.failed = true
	if lost {
		c.ended = true
		c.hold.Release(reasonUnwritten, receipt)
	}
	return ledger.Refusal(err)
}

// release returns the whole hold.
func (c *charge) release(ctx context.Context, reason string, receipt *money.Receipt) {
	c.ended = true
	_, span := telemetry.Start(ctx, telemetry.SpanSettle)
	c.hold.Release(reason, receipt)
	endSpan(span, nil, telemetry.Cost.Float64(0), telemetry.EndReason.String(reason))
}
