package kit

import (
	"context"
	"fmt"
	"sync/atomic"
	"time"

	"github.com/asynkron/protoactor-go/actor"
)

// Reply is the part of a message that carries its answer. Embed it by value and
// send the message by pointer with Ask:
//
//	type stats struct{ kit.Reply[Stats] }
//
// The first Resolve or Reject counts, later ones do nothing; neither blocks. An
// answer that is there when the asker looks, as that of an Inline actor is, costs no
// channel.
type Reply[T any] struct {
	phase   atomic.Uint32
	claimed atomic.Bool // somebody answers
	value   T
	err     error
	wake    chan struct{} // capacity 1: answering never waits for the asker
}

// Phases of a Reply.
const (
	unasked  uint32 = iota // sent without Ask: nobody hears the answer
	asked                  // and not looked for yet
	awaited                // by somebody who reads wake
	answered               // value and err are there
)

// Resolve answers.
func (r *Reply[T]) Resolve(value T, err error) {
	if r.phase.Load() == unasked || !r.claimed.CompareAndSwap(false, true) {
		return
	}
	r.value, r.err = value, err
	if r.phase.Swap(answered) == awaited {
		r.wake <- struct{}{}
	}
}

// Reject implements Rejecter: the asker gets a *Rejected.
func (r *Reply[T]) Reject(reason Reason) {
	var zero T
	r.Resolve(zero, &Rejected{reason})
}

func (r *Reply[T]) open() *Reply[T] {
	r.phase.Store(asked)
	return r
}

// await returns what tells that the answer is there; nil: it is already.
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

// Rejected is the error of an ask that no actor handled.
type Rejected struct{ Reason Reason }

func (e *Rejected) Error() string { return fmt.Sprintf("message rejected: %s", e.Reason) }

// Asker is a message with an embedded Reply.
type Asker[T any] interface {
	Rejecter
	open() *Reply[T]
}

// Ask sends message and waits for its answer, a rejection or the end of ctx.
// It must not be called from Receive: an actor never waits.
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

// AskWithin is Ask for what nobody may call off: only time ends the wait, with
// context.DeadlineExceeded. It costs less than a context that has a deadline.
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
