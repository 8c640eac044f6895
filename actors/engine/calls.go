package engine

import (
	"context"
	"errors"
	"time"

	"github.com/sourcegraph/conc/pool"

	"stagedoor/actors/throttle"
	"stagedoor/providers/dialogue"
	"stagedoor/providers/upstream"
)

// maxCalls bounds the calls of one request that are in flight (decisions.md).
const maxCalls = 8

// Calls makes n calls that together make an attempt, at most eight at a time in the order of their numbers, and
// returns when all of them have ended. The first failure ends the context of the others and is returned. A panic of a
// call ends them too, and Calls panics with it.
func Calls(ctx context.Context, n int, call func(ctx context.Context, i int) *upstream.Failure) *upstream.Failure {
	if ctx.Value(dryRunKey{}) != nil {
		return dryCalls(ctx, n, call)
	}
	calls := pool.New().WithMaxGoroutines(maxCalls).WithContext(ctx).WithCancelOnError().WithFirstError()
	for i := range n {
		calls.Go(func(ctx context.Context) error {
			if f := call(ctx, i); f != nil {
				return f
			}
			return nil
		})
	}
	var f *upstream.Failure
	_ = errors.As(calls.Wait(), &f) // calls return nothing else
	return f
}

// Call makes one of several calls of an attempt. It runs under p, the permit of the attempt, or under one that it
// acquires if p is nil. It gives the permit back when the call has ended and not with the attempt, because the other
// calls may be waiting for it: a provider may take only one call at a time. call returns the tokens that the upstream
// has reported.
func (c *Candidate) Call(ctx context.Context, p *throttle.Permit,
	call func() (tokens int, f *upstream.Failure)) *upstream.Failure {
	if c.Dry != nil {
		_, f := call()
		return f
	}
	if p == nil {
		var f *upstream.Failure
		if p, f = c.Acquire(ctx, time.Now()); f != nil {
			return f
		}
	}
	used, f := 0, CallerFault(dialogue.Internal(nil)) // stands if call panics
	defer func() { p.Release(c.Outcome(f, used)) }()
	used, f = call()
	return f
}
