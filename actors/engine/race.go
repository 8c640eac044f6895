package engine

import (
	"context"
	"errors"
	"sync"
	"time"

	"github.com/sourcegraph/conc"
	"github.com/sourcegraph/conc/panics"
	"go.opentelemetry.io/otel/trace"

	"stagedoor/actors/telemetry"
	"stagedoor/actors/throttle"
	"stagedoor/providers/catalog"
	"stagedoor/providers/dialogue"
	"stagedoor/providers/upstream"
)

// ErrOvertaken is the cause with which the attempt of a leg is cancelled when another one has begun the reply.
var ErrOvertaken = errors.New("another target began its reply first")

// race is an attempt that other targets may take over (hedging). The attempt of the request's own leg runs on the
// attempt loop as ever. If it has not sent a piece of reply some time after it got its permit, a further leg starts at
// the next target, on a goroutine of its own. The first leg that claims the output, which it does before its first
// piece, wins. The others are cancelled at once. When all have ended, the winner is the request's leg.
//
// The race has a lock, because a timer and the legs enter it. The state of a leg stays that of its goroutine.
type race struct {
	run   *core
	hedge *catalog.Hedge
	after time.Duration // 0: no leg is started, and the race only measures
	legs  conc.WaitGroup

	mu      sync.Mutex
	all     []*leg
	timer   *time.Timer
	closed  bool // no further leg starts
	winner  *leg
	outcome *upstream.Failure // of the winner, if it is a hedge
	crashed *panics.Recovered // the winner panicked
}

// hedgeable returns a race for the next attempt, or nil if no target may take it over.
func (r *core) hedgeable() *race {
	h := r.hedge
	if h == nil || r.hedges >= h.Most || r.dry != nil ||
		nextTarget(r.plan, max(r.progress.candidate, r.hedgedTo), 0, false) == 0 {
		return nil
	}
	x := &race{run: r, hedge: h, after: h.After}
	if h.After == 0 {
		x.after = r.engine.firstPieces.p95(r.pieceOf(&r.plan[r.progress.candidate]), r.engine.now())
	}
	return x
}

// attempt makes an attempt of the request's own leg.
func (x *race) attempt(l *leg) (f *upstream.Failure) {
	x.join(l)
	returned := false
	defer func() {
		if !returned {
			f = CallerFault(dialogue.Internal(nil))
			l.release(f)
		}
		f = x.finish(l, f, !returned)
	}()
	f = l.attempt(l.own)
	returned = true
	return f
}

// join lets a leg take part. Once it has been called for the second leg, x.mu must be held.
func (x *race) join(l *leg) {
	l.race = x
	l.own, l.leave = context.WithCancelCause(x.run.ctx)
	x.all = append(x.all, l)
}

// sent starts the timer for the next leg when the first one has its permit. Time in the provider's
// queue does not count, because another target may have a queue as well.
func (x *race) sent(l *leg) {
	x.mu.Lock()
	defer x.mu.Unlock()
	x.run.flow.Sent(l.candidate.Number, l.candidate.Entered)
	if l == x.all[0] && x.after > 0 && !x.closed {
		x.timer = time.AfterFunc(x.after, x.start)
	}
}

// start starts a further leg, if the budget of retries has room for it.
func (x *race) start() {
	x.mu.Lock()
	defer x.mu.Unlock()
	r := x.run
	index := nextTarget(r.plan, max(x.all[len(x.all)-1].candidate.index, r.hedgedTo), 0, false)
	if x.closed || index == 0 || r.ctx.Err() != nil || !r.retrying && !r.engine.retries.take(r.engine.InFlight()) {
		return
	}
	r.retrying = true
	l := x.all[0].exchange.(forker).fork()
	r.hedges++
	r.hedgedTo = index
	x.join(l)
	l.prepare(r, index)
	r.flow.Hedge(l.candidate.Candidate)
	r.engine.Metrics().Retried(l.candidate.Provider.Name, hedged)
	trace.SpanFromContext(r.ctx).AddEvent(telemetry.EventHedge, trace.WithAttributes(
		telemetry.Provider.String(l.candidate.Provider.Name), telemetry.Attempt.Int(l.candidate.Number)))
	x.legs.Go(func() { x.runHedge(l) })
	if r.hedges < x.hedge.Most {
		x.timer.Reset(x.after)
	}
}

// hedged stands for the class of a failure in the metrics of retries.
const hedged = "hedged"

// runHedge makes the attempt of a further leg.
func (x *race) runHedge(l *leg) {
	var f *upstream.Failure
	crashed := panics.Try(func() { f = l.attempt(l.own) })
	if crashed != nil {
		f = CallerFault(dialogue.Internal(nil))
		l.release(f)
	}
	if !x.won(l, f == nil) {
		if crashed != nil {
			x.run.engine.system.Logger().Error("hedge panicked", "request_id", x.run.id, "stack", string(crashed.Stack))
		}
		x.lose(l, f)
		return
	}
	x.mu.Lock()
	defer x.mu.Unlock()
	x.outcome, x.crashed = f, crashed
}

// claim makes a leg the winner if there is none yet, and reports whether it is the winner. Its goroutine calls it.
func (x *race) claim(l *leg) bool {
	x.mu.Lock()
	defer x.mu.Unlock()
	if x.winner != nil {
		return x.winner == l
	}
	x.winner = l
	x.close()
	for _, other := range x.all {
		if other != l {
			other.leave(ErrOvertaken)
		}
	}
	x.measure(l)
	if l.flow = x.run.flow; len(x.all) > 1 {
		l.flow.Choose(l.candidate.Candidate, l.candidate.Number)
	}
	return true
}

// close keeps further legs from starting. x.mu must be held.
func (x *race) close() {
	if x.closed = true; x.timer != nil {
		x.timer.Stop()
	}
}

// won reports whether an attempt that has ended is the winner's. One that needs no further attempt wins if no other
// has.
func (x *race) won(l *leg, good bool) bool {
	if good {
		return x.claim(l)
	}
	x.mu.Lock()
	defer x.mu.Unlock()
	return x.winner == l
}

// lose ends a leg whose attempt another one has overtaken, or which failed while another one went on.
func (x *race) lose(l *leg, f *upstream.Failure) {
	if f == nil {
		f = upstream.CancelledBy(ErrOvertaken)
	}
	status, failure := f.Err.Status, throttle.KindOf(f.Class).String()
	if errors.Is(f, ErrOvertaken) {
		x.measure(l) // it would have taken longer
		status, failure = 0, "overtaken"
	}
	x.mu.Lock()
	x.run.flow.Failed(l.candidate.Number, status, failure)
	x.mu.Unlock()
	l.exchange.(forker).overtaken(f)
	x.run.settle(l)
}

// measure records how long the first piece of a leg took.
func (x *race) measure(l *leg) {
	if r := x.run; x.hedge.After == 0 && !l.candidate.Entered.IsZero() {
		now := r.engine.now()
		r.engine.firstPieces.record(r.pieceOf(l.candidate.Candidate), now.Sub(l.candidate.Entered), now)
	}
}

// finish waits for the other legs and makes the winner the request's leg. own is the request's leg and f the failure of
// its attempt. The result is how the race ended.
func (x *race) finish(own *leg, f *upstream.Failure, panicked bool) *upstream.Failure {
	x.mu.Lock()
	x.close()
	if panicked { // the request ends, so no other leg may go on
		for _, other := range x.all {
			other.leave(context.Canceled)
		}
	}
	x.mu.Unlock()
	if !panicked && f == nil {
		x.claim(own)
	}
	x.legs.Wait()
	winner := x.winner
	if winner != nil && winner != own {
		x.lose(own, f)
		x.run.leg, f = winner, x.outcome
		x.run.progress.candidate = winner.candidate.index
	}
	for _, l := range x.all {
		l.leave(context.Canceled)
	}
	x.run.leg.race, x.run.leg.own = nil, nil
	if x.crashed != nil {
		panic(x.crashed)
	}
	return f
}

// pieceOf names the times of a target of the request.
func (r *core) pieceOf(c *catalog.Candidate) pieceKey {
	return pieceKey{model: r.hedge.Model, provider: c.Provider.Name, target: c.Route(), stream: r.stream}
}
