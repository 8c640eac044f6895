package text

import (
	"context"

	"stagedoor/actors/engine"
	"stagedoor/providers/catalog"
	"stagedoor/providers/dialogue"
	"stagedoor/providers/shapes"
	"stagedoor/providers/tokens"
	"stagedoor/providers/upstream"
)

// Meter holds and charges the money of one request. http/text makes one for a request of a key with
// a price. Its methods are called one after the other, but from several goroutines.
type Meter interface {
	// Begin holds what the attempt at a candidate may cost, before it is made. An error ends the request. A tight
	// reply may outrun the balance, so it must be one that can be ended early with finish reason and usage. Each
	// prompt is sent to the candidate as many times as times says.
	Begin(ctx context.Context, c *catalog.Candidate, times int) (tight bool, err *dialogue.Error)
	// Progress takes note of what has been delivered, and reports whether there is no money for more.
	Progress(o *Outcome) (enough bool)
	// Settle charges for the request and ends its hold. For a good reply it is called before the client gets
	// the end of it, so that the client's next request finds what is left of the hold. An
	// error is sent instead of that end. For any other request, and for one whose Settle failed,
	// it is called when all is over.
	Settle(ctx context.Context, o *Outcome) *dialogue.Error
	// Another returns a meter of its own for an attempt of the same request that runs at the same time.
	Another() Meter
}

// HoldAhead holds what the first target of the plan may cost before the request begins, so that one which is accepted
// now and runs later is refused now if there is no money for it. Its attempts then keep that hold or extend it. A caller
// that does not begin the request after all must call ReleaseAhead.
func (r *Request) HoldAhead(ctx context.Context) error {
	if r.Meter == nil {
		return nil
	}
	if _, err := r.Meter.Begin(ctx, &r.Plan[0], 1); err != nil {
		return err
	}
	return nil
}

// ReleaseAhead gives back what HoldAhead holds. cause is the error that the client gets.
func (r *Request) ReleaseAhead(ctx context.Context, cause error) {
	if r.Meter != nil {
		// Nothing is charged, so nothing can fail.
		r.Meter.Settle(ctx, &Outcome{Usage: dialogue.NoUsage, Err: dialogue.Internal(cause)})
	}
}

// promptTimes returns how often each prompt is sent to the candidate: once for as many
// choices as its shape makes in one call.
func (a *attempt) promptTimes() int {
	n := max(a.request.Head.N, 1)
	if n == 1 || !a.svc.simulates(a.provider) && a.c.Provider.Serves(a.request.Inbound.Name) && !a.request.Translate {
		return 1
	}
	most := 1
	if shape := a.svc.shape(a.c.Provider.Shape); shape != nil && !a.svc.simulates(a.provider) {
		most = shape.MaxChoices()
	}
	return (n + most - 1) / most
}

// closeReply runs before the client gets the end of a complete reply. It claims the request for this attempt, calls
// Request.Complete, and has the meter settle. If it returns an error, the client must not get the end. A stream that
// has begun then ends with the event replacement, unless that is nil. The error is ErrOvertaken if another attempt has
// won the request.
func (a *attempt) closeReply(ctx context.Context, last []byte) (replacement []byte, err *dialogue.Error) {
	if !a.sink.Claim() {
		return nil, dialogue.ClientClosed(engine.ErrOvertaken)
	}
	if a.request.Complete != nil {
		if replacement, err = a.request.Complete(ctx, a.meta, last); err != nil {
			return replacement, err
		}
	}
	return nil, a.sink.Settle(ctx)
}

// closes reports whether closeReply has anything to do.
func (a *attempt) closes() bool { return a.request.Complete != nil || a.request.Meter != nil }

// outOfMoney reports whether the meter wants the reply to end here. Everything that is known of the
// reply must have been noted in a.outcome.
func (a *attempt) outOfMoney() bool {
	return a.request.Meter != nil && a.request.Meter.Progress(&a.outcome)
}

// exhausted returns the failure of a stream that passes through and for which there is no more money. Such a stream
// cannot be given a proper end.
func exhausted() *upstream.Failure {
	return engine.CallerFault(dialogue.InsufficientQuota("the account's balance was used up during the reply", nil))
}

// counter estimates the output tokens of a reply while it streams, because upstreams report them at
// the end. A charge rests on it only if the upstream's own count never comes.
type counter struct {
	output int64
	pieces int64
	bytes  int
}

// text counts a piece of answer.
func (c *counter) text(s string) { c.add(len(s)) }

// event counts an event of a provider of this shape that passes through.
func (c *counter) event(shape *shapes.Shape, data []byte) { c.add(shape.Answer.Bytes(data)) }

// piece counts an event as one token.
func (c *counter) piece() { c.add(1) }

// add counts one piece of so many bytes. Most upstreams send one token in a piece, whatever its
// length, so the number of pieces is a lower bound. An estimate by bytes for each piece would round
// every one of them up.
func (c *counter) add(bytes int) {
	if bytes == 0 {
		return
	}
	c.pieces++
	c.bytes += bytes
	c.output = max(c.pieces, tokens.Estimate(c.bytes))
}
