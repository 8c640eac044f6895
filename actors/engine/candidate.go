package engine

import (
	"context"
	"errors"
	"sync/atomic"
	"time"

	"stagedoor/actors/flow"
	"stagedoor/actors/telemetry"
	"stagedoor/actors/throttle"
	"stagedoor/providers/catalog"
	"stagedoor/providers/dialogue"
	"stagedoor/providers/upstream"
)

// Candidate is the target of one attempt. It is valid until Try returns.
type Candidate struct {
	*catalog.Candidate
	// Runtime is the provider; nil if it is no longer configured.
	Runtime *Provider
	// Number counts the attempts of the request from 1.
	Number int
	// NoSchema says that an earlier attempt was refused because of its schema.
	NoSchema bool
	// Queued is the time that the attempt waited for its permit. Entered is the moment at which it got it.
	Queued  time.Duration
	Entered time.Time
	// Used is the number of tokens that the upstream reports. The exchange sets it, and the limiter corrects its
	// estimate by it. 0 leaves the estimate as it is.
	Used int
	// Tokens is the estimate that the limiter reserves with each permit. The exchange changes it in Prepare if it makes
	// several calls that each send only a part of the request.
	Tokens int
	// Dry is set if the attempt sends nothing. The exchange reports to it how it wrote the request.
	Dry *DryRun

	run   *core
	leg   *leg
	index int  // in the plan
	last  bool // no target is left after this one
	left  atomic.Pointer[upstream.Remaining]
}

// Acquire waits for a permit of the candidate's provider. Each upstream call needs one: Try is given the first, and a
// request that is divided into several calls acquires the others. A wait or a refusal is part of the request's trace.
func (c *Candidate) Acquire(ctx context.Context, asked time.Time) (*throttle.Permit, *upstream.Failure) {
	r := c.run
	ask := throttle.Ask{ID: r.id, Owner: r.owner, Model: c.Model, Class: r.class, Tokens: c.Tokens, Last: c.last}
	if d := c.Runtime.Spec.Limits.QueueTimeout; d > 0 {
		ask.Deadline = r.engine.now().Add(d)
	}
	wait := telemetry.Wait{Provider: c.Runtime.Spec.Name, Attempt: c.Number, Asked: asked}
	permit, err := c.Runtime.Limiter.Acquire(ctx, ask)
	if err != nil {
		wait.Refused = throttle.Why(err)
	} else {
		wait.Waited, wait.Position = permit.Waited(), permit.Position()
	}
	r.engine.telemetry.Queued(ctx, wait)
	if err != nil {
		return nil, refusedByLimiter(ctx, err)
	}
	return permit, nil
}

// enter acquires the permit of the attempt itself.
func (c *Candidate) enter(ctx context.Context) (*throttle.Permit, *upstream.Failure) {
	asked := time.Now()
	c.leg.flow.EnterAt(flow.Queued, asked)
	permit, f := c.Acquire(ctx, asked)
	if f != nil {
		return nil, f
	}
	c.Queued = permit.Waited()
	c.Entered = asked.Add(c.Queued)
	c.leg.flow.EnterAt(flow.Waiting, c.Entered)
	return permit, nil
}

// refusedByLimiter returns the failure of a request for which the limiter's Acquire returned err.
func refusedByLimiter(ctx context.Context, err error) *upstream.Failure {
	var r *throttle.Refused
	if !errors.As(err, &r) {
		return Cancelled(ctx)
	}
	retryAfter := min(max(r.RetryAfter, time.Second), upstream.MaxClientRetryAfter)
	e := dialogue.RateLimited("the provider of this model is at its limit and the request cannot be served in time",
		retryAfter, err)
	if r.Reason == throttle.BreakerOpen || r.Reason == throttle.Closed {
		e = dialogue.NoRoute(retryAfter, err)
	}
	return &upstream.Failure{Class: upstream.NotSent, Err: e, RetryAfter: r.RetryAfter}
}

// Notice keeps what a reply says is left of the provider's limits. With several keys that would be true of one of them
// only, so nothing is kept then.
func (c *Candidate) Notice(reply *upstream.Reply) {
	if len(c.Runtime.Client.Keys().All()) > 1 {
		return
	}
	if left := upstream.RateLimits(reply.Header, c.run.engine.now); left.Requests != nil || left.Tokens != nil {
		kept := left // so that only this is allocated
		c.left.Store(&kept)
	}
}

// Outcome returns what the limiter learns of a call that used so many tokens and failed with f, or nil. An exchange
// needs it for the permits that it acquires itself.
func (c *Candidate) Outcome(f *upstream.Failure, tokens int) throttle.Outcome {
	o := throttle.Outcome{Kind: throttle.Success, Model: c.Model, TokensUsed: tokens}
	if left := c.left.Load(); left != nil {
		o.RemainingRequests, o.ResetRequests = left.Requests, left.ResetRequests
		o.RemainingTokens, o.ResetTokens = left.Tokens, left.ResetTokens
	}
	if f != nil {
		o.Kind, o.RetryAfter = c.Runtime.Judge(f, c.Model, c.run.engine.now())
	}
	return o
}
