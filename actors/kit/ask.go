package kit

import (
	"context"
	"fmt"
	"sync/atomic"
	"time"

	"github.com/asynkron/protoactor-go/actor"
)

// Reply is the part of a message that carries its reply. Embed it by value and send the message by pointer with Ask:
//
//	type stats struct{ kit.Reply[Stats] }
//
// The first call of Resolve or Reject counts, and later ones do nothing. Neither blocks. A reply that exists when the
// caller of Ask looks for it, as that of an Inline actor does, costs no channel.
type Reply[T any] struct {
	phase   atomic.Uint32
	claimed atomic.Bool // a reply was chosen
	value   T
	err     error
	wake    chan struct{} // capacity 1, so that a reply never waits for the caller of Ask
}

// Phases of a Reply.
const (
	unasked  uint32 = iota // sent without Ask, so that the reply is not read
	asked                  // Ask has not looked for the reply yet
	awaited                // Ask waits on wake
	answered               // value and err are set
)

// Resolve makes Ask return value and err. It does nothing if the message was sent without Ask.
func (r *Reply[T]) Resolve(value T, err error) {
	if r.phase.Load() == unasked || !r.claimed.CompareAndSwap(false, true) {
		return
	}
	r.value, r.err = value, err
	if r.phase.Swap(answered) == awaited {
		r.wake <- struct{}{}
	}
}

// Reject implements Rejecter. Ask returns a *Rejected then.
func (r *Reply[T]) Reject(reason Reason) {
	var zero T
	r.Resolve(zero, &Rejected{reason})
}

// open marks the message as sent by Ask, so that its reply is kept.
func (r *Reply[T]) open() *Reply[T] {
	r.phase.Store(asked)
	return r
}

// await returns a channel that is signalled when the reply is there, or nil if it is there already.
func (r *Reply[T]) await() <-chan struct{} {
	if r.phase.Load() == answered {
		return nil
	}
	r.wake = make(chan struct{}, 1)
	if !r.phase.CompareAndSwap(asked, awaited) {
		return nil
	}
	return r.wake
}

// Rejected is the error of an Ask whose message was not handled.
type Rejected struct{ Reason Reason }

func (e *Rejected) Error() string { return fmt.Sprintf("message rejected: %s", e.Reason) }

// Asker is implemented by messages that embed a Reply.
type Asker[T any] interface {
	Rejecter
	open() *Reply[T]
}

// Ask sends message and returns the value and the error of its reply. It returns a *Rejected if the message was not
// handled, and the cause of ctx (context.Cause) if ctx ends first. It must not be called from Receive, because an actor
// never waits.
func Ask[T any](ctx context.Context, s *System, to *actor.PID, message Asker[T]) (T, error) {
	reply := message.open()
	s.Send(to, message)
	wake := reply.await()
	if wake == nil {
		return reply.value, reply.err
	}
	select {
	case <-wake:
		return reply.value, reply.err
	case <-ctx.Done():
		var zero T
		return zero, context.Cause(ctx)
	}
}

// AskWithin sends a message and waits for the reply as Ask does, but for d at most and without a context. It returns
// context.DeadlineExceeded after that. It costs less than a context with a deadline.
func AskWithin[T any](d time.Duration, s *System, to *actor.PID, message Asker[T]) (T, error) {
	reply := message.open()
	s.Send(to, message)
	wake := reply.await()
	if wake == nil {
		return reply.value, reply.err
	}
	timer, _ := s.timers.Get().(*time.Timer)
	if timer == nil {
		timer = time.NewTimer(d)
	} else {
		timer.Reset(d)
	}
	defer func() {
		timer.Stop()
		s.timers.Put(timer)
	}()
	select {
	case <-wake:
		return reply.value, reply.err
	case <-timer.C:
		var zero T
		return zero, context.DeadlineExceeded
	}
}
