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
	by     Exchange[T]
	output chan T
}

// Begin starts the request. The end of ctx cancels it, as the client's leaving does. Begin never waits, and the output
// always ends.
func (r *Run[T]) Begin(ctx context.Context, e *Engine, q Request, x Exchange[T]) {
	r.by, r.output = x, make(chan T, max(q.Window, 1))
	r.core.begin(ctx, e, &q, (*driver[T])(r))
}

// Output returns the pieces of the reply. It is closed at the end of the request. The caller reads it until then; a
// caller whose client has left calls Abandon first.
func (r *Run[T]) Output() <-chan T { return r.output }

// Abandon cancels the request because its client has left.
func (r *Run[T]) Abandon() { r.core.stop(upstream.ErrClient) }

// driver is a Run as its core calls it.
type driver[T any] Run[T]

func (d *driver[T]) sink() Sink[T] { return Sink[T]{(*Run[T])(d)} }

func (d *driver[T]) prepare(c *Candidate) *upstream.Failure { return d.by.Prepare(c) }

func (d *driver[T]) try(ctx context.Context, c *Candidate, p *throttle.Permit) *upstream.Failure {
	return d.by.Try(ctx, c, p, d.sink())
}

func (d *driver[T]) policy() Policy          { return d.by.Policy() }
func (d *driver[T]) end(f *upstream.Failure) { d.by.End(d.sink(), f) }
func (d *driver[T]) result() flow.Result     { return d.by.Result() }
func (d *driver[T]) close()                  { close(d.output) }

// Sink takes the output of a request's attempts. Only the attempt loop uses it, and goroutines that Try waits for, one
// at a time.
type Sink[T any] struct{ run *Run[T] }

// Send delivers a piece of output and waits while as many pieces as the window has wait for the caller. The piece
// belongs to the caller then. If ctx ends first, Send returns its cause and the piece stays the sender's.
func (s Sink[T]) Send(ctx context.Context, piece T) error {
	r := &s.run.core
	select {
	case s.run.output <- piece:
		r.committed = true
		return nil
	default:
	}
	if !r.slow {
		r.slow = true
		r.engine.Metrics().Slow()
	}
	select {
	case s.run.output <- piece:
		r.committed = true
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

// Committed reports whether something has been delivered. No attempt follows then.
func (s Sink[T]) Committed() bool { return s.run.core.committed }

// Settle settles a good reply before the client gets its end. An error must be sent to the client instead of that end.
// After an error the engine settles the request once more when Exchange.End has returned.
func (s Sink[T]) Settle(ctx context.Context) *dialogue.Error {
	r := &s.run.core
	if r.money == nil {
		return nil
	}
	err := r.money.Settlement()(ctx)
	r.settled = err == nil
	return err
}

// Context returns the context of the request, without the deadline that an attempt has. A reply that is complete is
// settled and delivered under it.
func (s Sink[T]) Context() context.Context { return s.run.core.ctx }

// Flow returns the request's entry in actors/flow. It may be nil, whose methods do nothing.
func (s Sink[T]) Flow() *flow.Request { return s.run.core.flow }
