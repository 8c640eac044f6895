package meter

import (
	"context"
	"sync"
	"sync/atomic"
	"time"

	"stagedoor/actors/engine"
	"stagedoor/actors/flow"
	"stagedoor/actors/ledger"
	"stagedoor/actors/telemetry"
	"stagedoor/providers/dialogue"
	"stagedoor/state/money"
)

// ledgerTimeout bounds the calls of the ledger that go on if the client disconnects: settlements, and
// extensions of the hold of a running stream.
const ledgerTimeout = 10 * time.Second

// reasonUnwritten is the end reason of a request whose settlement could not be written. Such
// a request is not charged.
const reasonUnwritten = "storage_unavailable"

// charge makes, extends and ends the hold of one request. Text and Picture embed it; their methods
// Begin and Settle use it and lock mu. All methods except Held need mu.
type charge struct {
	ledger *ledger.Client
	later  bool // use Hold.SettleLater, which does not wait for the disk and reports no error
	held   atomic.Bool
	origin *charge        // of another meter of the same request, which is held if this one is; nil: there is none
	dry    *engine.DryRun // takes the amount of the first hold, which is not made then; usually nil

	mu        sync.Mutex // Settle may be called twice at once
	hold      *ledger.Hold
	unwritten bool // a settlement could not be written, so the next one only releases the hold
	ended     bool // the hold has been settled or released
}

// Held reports whether a hold was ever made for the request, even if it has ended. If so, the ledger
// counts the usage when the hold ends, and the caller must not use ledger.Client.CountUsage. Held may
// be called at any time and needs no lock.
func (c *charge) Held() bool { return c.held.Load() }

// raise makes the hold that ask describes, or extends an existing one to ask.Amount, in micro-dollars.
// It does nothing if the hold is that large already, and must not be called after the end of the hold.
// Its errors are those of ledger.Client.Hold. After an error the hold is as it was.
func (c *charge) raise(ctx context.Context, ask ledger.Ask) (err error) {
	if c.dry != nil {
		c.dry.Hold = ask.Amount
		return nil
	}
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
		if c.origin != nil {
			c.origin.held.Store(true)
		}
	}
	return err
}

// settle ends the hold: it charges bill for a request that ended with end and frees the rest, or
// releases the whole hold if there is nothing to charge. The caller has made sure that there is a hold
// that has not ended. No context cancels the settlement.
//
// If the settlement cannot be written, settle returns the error for the client, and the request is not
// charged. A good reply becomes that error, and the hold stays until Settle is called again with it.
// requestFailed says that the client gets an error of the request itself, so Settle is not called
// again and the hold is released at once. With later, writing is repeated until it succeeds and settle
// returns nil.
func (c *charge) settle(ctx context.Context, bill ledger.Bill, end ledger.Ending, receipt *money.Receipt,
	requestFailed bool) *dialogue.Error {
	receipt.Usage, receipt.Prices, receipt.Catalog, receipt.Flags = bill.Usage, bill.Prices, bill.Catalog, bill.Flags
	switch {
	case c.unwritten:
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
		err = c.hold.SettleWithin(ledgerTimeout, settlement)
	}
	endSpan(span, err, telemetry.Cost.Float64(telemetry.Dollars(bill.Amount)), telemetry.EndReason.String(end.String()))
	if err == nil {
		c.ended = true
		flow.AddCharge(ctx, bill.Amount)
		return nil
	}
	c.unwritten = true
	if requestFailed {
		c.ended = true
		c.hold.Release(reasonUnwritten, receipt)
	}
	return ledger.Refusal(err)
}

// release ends the hold without a charge. It does not wait and cannot fail; ctx is only for the trace.
// There must be a hold.
func (c *charge) release(ctx context.Context, reason string, receipt *money.Receipt) {
	c.ended = true
	_, span := telemetry.Start(ctx, telemetry.SpanSettle)
	c.hold.Release(reason, receipt)
	endSpan(span, nil, telemetry.Cost.Float64(0), telemetry.EndReason.String(reason))
}
