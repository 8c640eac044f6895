package engine

import (
	"context"

	"stagedoor/actors/flow"
	"stagedoor/actors/throttle"
	"stagedoor/providers/dialogue"
	"stagedoor/providers/upstream"
)

// Run is one request with output of type T. An exchange embeds it and begins it once.
type Run[T any] struct {
	core   core
	first  driver[T]
	output chan T
}

// Begin starts the request. The end of ctx cancels it, as the client's leaving does. Begin never waits, and the output
// always ends.
func (r *Run[T]) Begin(ctx context.Context, e *Engine, q Request, x Exchange[T]) {
	r.first, r.output = driver[T]{r, x, &r.core.first}, make(chan T, max(q.Window, 1))
	r.core.begin(ctx, e, &q, &r.first)
}

// Output returns the pieces of the reply. It is closed at the end of the request. The caller reads it until then; a
// caller whose client has left calls Abandon first.
func (r *Run[T]) Output() <-chan T { return r.output }

// Abandon cancels the request because its client has left.
func (r *Run[T]) Abandon() { r.core.stop(upstream.ErrClient) }

// driver is an Exchange as the core of its Run calls it.
type driver[T any] struct {
	run *Run[T]
	by  Exchange[T]
	leg *leg
}

// sink returns where the exchange of this driver delivers its output. The methods below let the core call an exchange
// without its type parameter.
func (d *driver[T]) sink() Sink[T] { return Sink[T]{d.run, d.leg} }

func (d *driver[T]) prepare(c *Candidate) *upstream.Failure { return d.by.Prepare(c) }

func (d *driver[T]) try(ctx context.Context, c *Candidate, p *throttle.Permit) *upstream.Failure {
	return d.by.Try(ctx, c, p, d.sink())
}

func (d *driver[T]) policy() Policy          { return d.by.Policy() }
func (d *driver[T]) end(f *upstream.Failure) { d.by.End(d.sink(), f) }
func (d *driver[T]) result() flow.Result     { return d.by.Result() }
func (d *driver[T]) close()                  { close(d.run.output) }

// fork returns a leg with an exchange and a hold of its own. See Request.Hedge.
func (d *driver[T]) fork() *leg {
	l := new(leg)
	by, money := d.by.(Forker[T]).Fork() // see Request.Hedge
	l.exchange, l.money = &driver[T]{d.run, by, l}, money
	return l
}

// overtaken ends the exchange of a leg that has lost. Only exchanges that can be forked have legs.
func (d *driver[T]) overtaken(f *upstream.Failure) { d.by.(Forker[T]).Overtaken(f) }

// Sink takes the output of a request's attempts. Only the attempt loop uses it, and goroutines that Try waits for, one
// at a time. In a race each leg has its own, and only that of the winner delivers.
type Sink[T any] struct {
	run *Run[T]
	leg *leg
}

// Claim makes sure that no other target serves the request, before anything is done that only one reply may do. It
// returns false if another target has begun its reply; this attempt is over then. Send and Settle claim by themselves.
func (s Sink[T]) Claim() bool { return s.leg.committed || s.leg.race == nil || s.leg.race.claim(s.leg) }

// Send delivers a piece of output and waits while as many pieces as the window has wait for the caller. The piece
// belongs to the caller then. If ctx ends first, Send returns its cause and the piece stays the sender's. It stays the
// sender's as well if another target has begun the reply, for which the error is ErrOvertaken.
func (s Sink[T]) Send(ctx context.Context, piece T) error {
	r := &s.run.core
	if !s.Claim() {
		return ErrOvertaken
	}
	select {
	case s.run.output <- piece:
		s.leg.committed = true
		return nil
	default:
	}
	if !r.slow {
		r.slow = true
		r.engine.Metrics().Slow()
	}
	select {
	case s.run.output <- piece:
		s.leg.committed = true
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

// Committed reports whether something has been delivered. No attempt follows then.
func (s Sink[T]) Committed() bool { return s.leg.committed }

// Attempts returns how many attempts of the request have begun, those of hedges included.
func (s Sink[T]) Attempts() int { return s.run.core.attempts }

// Settle settles a good reply before the client gets its end. An error must be sent to the client instead of that end.
// After an error the engine settles the request once more when Exchange.End has returned.
func (s Sink[T]) Settle(ctx context.Context) *dialogue.Error {
	if !s.Claim() {
		return dialogue.ClientClosed(ErrOvertaken)
	}
	if s.leg.money == nil {
		return nil
	}
	err := s.leg.money.Settlement()(s.run.core.flow.Charging(ctx))
	s.leg.settled = err == nil
	return err
}

// Context returns the context of the request, without the deadline that an attempt has. A reply that is complete is
// settled and delivered under it.
func (s Sink[T]) Context() context.Context {
	if s.leg.own != nil {
		return s.leg.own
	}
	return s.run.core.ctx
}

// Flow returns the request's entry in actors/flow. It may be nil, whose methods do nothing. That of a hedge is nil
// until it delivers.
func (s Sink[T]) Flow() *flow.Request { return s.leg.flow }
