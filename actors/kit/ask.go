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
// The first Resolve or Reject counts, later ones do nothing; neither blocks.
type Reply[T any] struct {
	answer  chan answer[T] // capacity 1: answering never waits for the asker
	settled atomic.Bool
}

type answer[T any] struct {
	value T
	err   error
}

// Resolve answers.
func (r *Reply[T]) Resolve(value T, err error) {
	if r.answer == nil || !r.settled.CompareAndSwap(false, true) {
		return // sent without Ask, or answered already
	}
	r.answer <- answer[T]{value, err}
}

// Reject implements Rejecter: the asker gets a *Rejected.
func (r *Reply[T]) Reject(reason Reason) {
	var zero T
	r.Resolve(zero, &Rejected{reason})
}

func (r *Reply[T]) open() *Reply[T] {
	r.answer = make(chan answer[T], 1)
	return r
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
	select {
	case a := <-reply.answer:
		return a.value, a.err
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
	case a := <-reply.answer:
		return a.value, a.err
	case <-timer.C:
		var zero T
		return zero, context.DeadlineExceeded
	}
}
