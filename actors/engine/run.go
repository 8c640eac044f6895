package engine

import (
	"context"
	"errors"
	"sync/atomic"
	"time"

	"github.com/asynkron/protoactor-go/actor"
	"go.opentelemetry.io/otel/trace"

	"stagedoor/actors/flow"
	"stagedoor/actors/telemetry"
	"stagedoor/actors/throttle"
	"stagedoor/providers/catalog"
	"stagedoor/providers/dialogue"
	"stagedoor/providers/upstream"
)

// core is the part of a request that does not depend on what it delivers. From the start of its loop to the close of
// its output, everything without a comment belongs to the attempt loop.
type core struct {
	engine *Engine
	ctx    context.Context
	stop   context.CancelCauseFunc // any goroutine
	flow   *flow.Request           // safe for concurrent use; nil: the request is not shown

	// What Request has, unchanged.
	id, owner     string
	class, tokens int
	stream        bool
	plan          []catalog.Candidate
	hedge         *catalog.Hedge
	dry           *DryRun

	running bool // the loop was started; of the actor

	// Of the shard, under its lock.
	shard      *shard
	pid        *actor.PID // nil: the request has no actor yet
	listed     bool
	prev, next *core

	leg      *leg // whose attempt runs; after a race the winner
	first    leg
	started  time.Time
	progress progress
	slow     bool // the caller had to be waited for

	unsettled atomic.Int32 // settlements under way

	// While a race runs, these are under its lock.
	attempts int  // begun so far
	retrying bool // holds a place in the retry budget
	hedges   int  // begun so far
	hedgedTo int  // index of the last target that was a hedge
}

// exchange is an Exchange without the type of its output.
type exchange interface {
	prepare(c *Candidate) *upstream.Failure
	try(ctx context.Context, c *Candidate, p *throttle.Permit) *upstream.Failure
	policy() Policy
	end(f *upstream.Failure)
	result() flow.Result
	close()
}

// forker is a Forker without the type of its output.
type forker interface {
	fork() *leg
	overtaken(f *upstream.Failure)
}

// begin starts a request that has its exchange. A request that is refused ends here, on the
// caller's goroutine.
func (r *core) begin(ctx context.Context, e *Engine, q *Request, x exchange) {
	r.engine, r.shard = e, &e.shards[e.next.Add(1)&uint64(len(e.shards)-1)]
	r.leg = &r.first
	r.leg.exchange, r.leg.money = x, q.Money
	r.id, r.owner, r.class, r.tokens = q.About.ID, q.About.Owner, q.Class, q.Tokens
	r.stream, r.plan, r.hedge, r.dry = q.About.Stream, q.Plan, q.Hedge, q.Dry
	r.ctx, r.stop = context.WithCancelCause(ctx)
	if e.flow != nil && r.dry == nil {
		r.flow = e.flow.Begin(r.ctx, q.About, r.cancel)
		r.leg.flow = r.flow
	}
	refused := shuttingDown
	if e.inFlight.Enter() {
		refused = func() *upstream.Failure { return r.shard.admit(r) }
	}
	if f := refused(); f != nil {
		r.over(f)
	}
}

// cancel ends the request for an administrator. If it has an actor, that one does it.
func (r *core) cancel(cause error) {
	if pid := r.shard.actorOf(r); pid != nil {
		r.engine.system.Send(pid, &cancel{cause})
		return
	}
	r.stop(cause)
}

// run runs the attempt loop and then ends the actor. It is the goroutine of the request. After a panic, the message
// *kit.Crashed ends the actor.
func (r *core) run(context.Context) any {
	r.loop()
	r.engine.system.EndActor(r.pid)
	return nil
}

// loop makes the attempts of the request and ends it, once, whether it returns or panics.
func (r *core) loop() {
	var last *upstream.Failure
	returned := false
	defer func() {
		if !returned {
			last = CallerFault(dialogue.Internal(nil))
		}
		r.over(last)
	}()
	r.started = r.engine.now()
	for {
		if last = r.attempt(); last == nil {
			break
		}
		wait, again := r.retry(last)
		if !again {
			break
		}
		if !r.wait(wait) {
			last = Cancelled(r.ctx)
			break
		}
	}
	returned = true
}

// attempt makes one attempt at the candidate whose turn it is.
func (r *core) attempt() *upstream.Failure {
	l := r.leg
	l.prepare(r, r.progress.candidate)
	l.flow.Attempt(l.candidate.Candidate)
	if x := r.hedgeable(); x != nil {
		return x.attempt(l)
	}
	return l.attempt(r.ctx)
}

// retry decides whether another attempt follows a failed one, and after how long.
func (r *core) retry(f *upstream.Failure) (time.Duration, bool) {
	r.flow.Failed(r.leg.candidate.Number, f.Err.Status, throttle.KindOf(f.Class).String())
	facts := r.facts(f)
	reserved := !r.retrying && r.engine.retries.take(r.engine.InFlight())
	facts.budget = r.retrying || reserved
	next, what, wait := decide(r.progress, facts)
	retried := what == again && next.retries > r.progress.retries
	if reserved && !retried {
		r.engine.retries.giveBack()
	}
	r.retrying = r.retrying || retried
	if what != giveUp {
		r.reportRetry(f, wait)
	}
	r.progress = next
	return wait, what != giveUp
}

// facts collects what decide needs to know after a failed attempt.
func (r *core) facts(f *upstream.Failure) facts {
	target, now, policy := &r.plan[r.progress.candidate], r.engine.now(), r.leg.exchange.policy()
	p := r.engine.providers(target.Provider.Name)
	var refused *throttle.Refused
	facts := facts{class: f.Class, schema: f.Schema, amended: f.Amended, tooLarge: f.TooLarge,
		structured: policy.Structured,
		barred:     policy.Repeatable != nil && !policy.Repeatable(f), moveOn: policy.MoveOn, retryAfter: f.RetryAfter,
		committed: r.leg.committed, gated: errors.As(f, &refused), remaining: p.Total() - now.Sub(r.started),
		next: nextTarget(r.plan, max(r.progress.candidate, r.hedgedTo), conditionsOf(f),
			f.Class == upstream.CallerFault)}
	if p != nil {
		facts.allowed, facts.spareKeys = p.Spec.Retries, p.SpareKeys(now, target.Model)
	}
	return facts
}

// reportRetry adds the retry to metrics and to the request's trace.
func (r *core) reportRetry(f *upstream.Failure, wait time.Duration) {
	class := throttle.KindOf(f.Class).String()
	r.engine.Metrics().Retried(r.plan[r.progress.candidate].Provider.Name, class)
	if span := trace.SpanFromContext(r.ctx); span.IsRecording() {
		span.AddEvent(telemetry.EventRetry, trace.WithAttributes(telemetry.FailureClass.String(class),
			telemetry.RetryWait.Float64(wait.Seconds()), telemetry.Attempt.Int(r.leg.candidate.Number)))
	}
}

// wait waits before the next attempt and reports whether the request is still wanted.
func (r *core) wait(d time.Duration) bool {
	if d <= 0 {
		return true
	}
	r.flow.Enter(flow.Resting)
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
		return true
	case <-r.ctx.Done():
		return false
	}
}

// over ends the request: with the failure of its last attempt, or nil. It runs once, on the goroutine that the request
// belongs to. Each step is taken even if one before it panics.
func (r *core) over(f *upstream.Failure) {
	defer r.leave()
	defer r.report()
	if r.dry != nil && f != nil {
		r.dry.Err = f.Err
	}
	if r.retrying {
		r.engine.retries.giveBack()
	}
	r.leg.release(f)
	r.leg.exchange.end(f)
}

// report shows how the request went, and has it settled if that has not been done.
func (r *core) report() {
	r.flow.End(r.leg.exchange.result())
	r.settle(r.leg)
	r.recordIfSettled()
}

// recordIfSettled records the request at its last call, because only then its cost is known. It is called when the
// request has ended and after each settlement of its legs.
func (r *core) recordIfSettled() {
	if r.unsettled.Add(-1) < 0 {
		r.flow.Record()
	}
}

// settle settles a leg if that has not been done. The settlement counts as a request in flight, because a drain must
// not end before it. The actors of accounts stop after a drain.
func (r *core) settle(l *leg) {
	if l.money == nil || l.settled {
		return
	}
	r.unsettled.Add(1)
	settle, ctx := l.money.Settlement(), r.flow.Charging(telemetry.Carry(context.Background(), r.ctx))
	r.engine.inFlight.Enter()
	r.engine.system.Go(r.engine.supervisor, "settle", func(context.Context) any {
		defer r.engine.inFlight.Leave()
		defer r.recordIfSettled()
		if err := settle(ctx); err != nil {
			r.engine.system.Logger().Error("request not settled", "cause", err)
		}
		return nil
	})
}

// leave closes the output and gives up what the request still has.
func (r *core) leave() {
	r.leg.exchange.close()
	r.stop(context.Canceled)
	r.shard.remove(r)
	r.engine.inFlight.Leave()
}
