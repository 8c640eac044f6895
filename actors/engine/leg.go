package engine

import (
	"context"
	"time"

	"stagedoor/actors/flow"
	"stagedoor/actors/throttle"
	"stagedoor/providers/dialogue"
	"stagedoor/providers/upstream"
)

// leg makes attempts of a request, with an exchange and money of its own. Most requests have one leg. A hedge is
// another one, which makes one attempt at the same time (see race). A leg belongs to the goroutine that runs its
// attempt.
type leg struct {
	exchange  exchange
	money     Money         // nil: the request is free
	flow      *flow.Request // nil: the leg is not shown
	candidate Candidate
	permit    *throttle.Permit // of the attempt that runs
	committed bool             // output was delivered
	settled   bool

	// race is set while another leg may take the request over. own is the context of the leg then, which ends with
	// ErrOvertaken when another leg has won.
	race  *race
	own   context.Context
	leave context.CancelCauseFunc
}

// prepare makes the leg's candidate one of the plan.
func (l *leg) prepare(r *core, index int) {
	target := &r.plan[index]
	r.attempts++
	l.candidate = Candidate{run: r, leg: l, Candidate: target, Runtime: r.engine.providers(target.Provider.Name),
		Number: r.attempts, NoSchema: r.progress.noSchema, Tokens: r.tokens, index: index,
		last: nextTarget(r.plan, index, noPermit, false) == 0}
	if r.dry != nil {
		r.dry.prepare(&l.candidate)
	}
}

// attempt makes the attempt that prepare has prepared: it lets the exchange write the request, holds the money, waits
// for the permit of the provider's limiter, lets the exchange call the upstream, and gives the permit back. The failure
// of the first step that fails ends it.
func (l *leg) attempt(ctx context.Context) *upstream.Failure {
	c := &l.candidate
	r := c.run
	if c.Number > 1 { // the clocks of a call bound the first attempt
		var release context.CancelFunc
		ctx, release = context.WithDeadlineCause(ctx, r.started.Add(c.Runtime.Total()), upstream.ErrTotal)
		defer release()
	}
	if f := l.exchange.prepare(c); f != nil {
		return f
	}
	if c.Runtime == nil {
		return &upstream.Failure{Class: upstream.NotSent, Err: dialogue.NoRoute(time.Second, nil)}
	}
	if r.dry == nil && c.PriceUnknown() {
		r.engine.Metrics().Unpriced(c.Provider.Name)
	}
	if f := l.hold(ctx); f != nil {
		return f
	}
	if r.dry != nil {
		return r.dry.try(ctx, l.exchange, c)
	}
	permit, f := c.enter(ctx)
	if f != nil {
		return f
	}
	l.permit = permit
	if l.race != nil {
		l.race.sent(l)
	} else {
		r.flow.Sent(c.Number, c.Entered)
	}
	f = l.exchange.try(ctx, c, permit)
	l.release(f)
	return f
}

// hold holds what the attempt may cost.
func (l *leg) hold(ctx context.Context) *upstream.Failure {
	if l.money == nil {
		return nil
	}
	err := l.money.Hold(ctx, &l.candidate)
	switch {
	case err == nil:
		return nil
	case ctx.Err() != nil:
		return Cancelled(ctx)
	}
	return CallerFault(err)
}

// release gives the permit of the attempt back. The limiter learns how the attempt went.
func (l *leg) release(f *upstream.Failure) {
	if l.permit != nil {
		l.permit.Release(l.candidate.Outcome(f, l.candidate.Used))
		l.permit = nil
	}
}
