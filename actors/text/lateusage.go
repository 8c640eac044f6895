package text

import (
	"context"
	"sync/atomic"
	"time"

	"stagedoor/actors/engine"
	"stagedoor/providers/dialogue"
	"stagedoor/providers/fields"
	"stagedoor/providers/upstream"
)

// lateUsageWait bounds how long a call is read for its usage after its client has left.
const lateUsageWait = time.Second

// lateUsage lets an upstream call outlive its client. A client that leaves between the last
// text and the usage event would otherwise be charged for a count of the gateway, which may
// be lower than what the provider reports. A nil lateUsage does nothing.
type lateUsage struct {
	attempt  *attempt
	answered atomic.Bool
	cancel   context.CancelCauseFunc
	stop     func() bool // ends the watch over the request's context
}

// usageContext returns the context for an upstream call. That of a priced stream ends with ctx,
// unless the client left after every choice had ended: then it ends lateUsageWait later, or
// when the gateway cuts off its requests. The lateUsage must be closed with the call.
func (a *attempt) usageContext(ctx context.Context) (context.Context, *lateUsage) {
	if a.request.Meter == nil || !a.request.Head.Stream || !a.c.MayCharge(a.svc.env.Now()) {
		return ctx, nil
	}
	l := &lateUsage{attempt: a}
	call, cancel := context.WithCancelCause(context.WithoutCancel(ctx))
	l.cancel = cancel
	l.stop = context.AfterFunc(ctx, func() {
		cause := context.Cause(ctx)
		if l.answered.Load() && l.left() {
			wait := time.NewTimer(lateUsageWait)
			defer wait.Stop()
			select {
			case <-wait.C:
			case <-a.svc.engine.CutOff():
			case <-call.Done():
			}
		}
		cancel(cause)
	})
	return call, l
}

// left reports whether the client has left. The context of a part of a fan-out also ends
// when another part fails, so the request's own is asked.
func (l *lateUsage) left() bool {
	return l != nil && l.attempt.ctx.Err() != nil && engine.ClientLeft(engine.Cancelled(l.attempt.ctx))
}

// answerEnded notes that every choice has ended, so that only the usage is outstanding.
func (l *lateUsage) answerEnded() {
	if l != nil {
		l.answered.Store(true)
	}
}

// outstanding reports whether the client left when every choice had ended.
func (l *lateUsage) outstanding() bool { return l.left() && l.answered.Load() }

// read reads what is left of a reply, calling see with every event, until done. It returns
// at once if nothing is outstanding.
func (l *lateUsage) read(events *upstream.EventReader, done func() bool, see func(*upstream.Event)) {
	if !l.outstanding() {
		return
	}
	for !done() {
		ev, err := events.Next()
		if err != nil {
			return
		}
		if fields.CheckEvent(ev.Data) == nil {
			see(&ev)
		}
	}
}

// close ends the call's context.
func (l *lateUsage) close() {
	if l != nil {
		l.stop()
		l.cancel(context.Canceled)
	}
}

// usageOnly passes the usage of an event on, and nothing that belongs to the answer.
func usageOnly(emit func(*dialogue.Event)) func(*dialogue.Event) {
	return func(ev *dialogue.Event) {
		if ev.Kind == dialogue.EventUsage {
			emit(ev)
		}
	}
}

// parse reads what is left of a translated reply, as read does, and passes on only its usage. It also ends the parser,
// because some parsers report the usage only at the end of the reply.
func (l *lateUsage) parse(in *incoming) {
	l.read(in.events, in.parser.Done, func(ev *upstream.Event) {
		in.attempt.keepTier(&in.tier, ev.Data)
		in.parser.Event(ev.Name, ev.Data, usageOnly(in.emit))
	})
	if l.outstanding() {
		in.parser.EOF(usageOnly(in.emit))
	}
}
