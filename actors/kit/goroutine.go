package kit

import (
	"context"
	"fmt"

	"github.com/asynkron/protoactor-go/actor"
	"github.com/sourcegraph/conc/panics"
)

// Crashed reports to an actor that a function it started with Go panicked. It is sent in place of the function's
// result.
type Crashed struct {
	// Work is the name that was passed to Go.
	Work string
	// Recovered has the panic and its stack, for the log only.
	Recovered *panics.Recovered
}

func (c *Crashed) Error() string {
	return fmt.Sprintf("%s panicked: %s", c.Work, panicText(c.Recovered.Value))
}

// Go runs fn beside the actor owner, which must not wait itself. It sends the result of fn to owner unless that is
// nil. If fn panics, it sends *Crashed, because supervision would not see the panic and the process would end. ctx ends
// when the system stops, and Stop waits for fn. fn runs on a goroutine that is reused, because a new one would have to
// grow its stack first.
//
// fn must not use an actor.Context, which is valid inside Receive only.
func (s *System) Go(owner *actor.PID, work string, fn func(ctx context.Context) any) {
	s.goroutines.Add(1)
	s.beside.Add(1)
	s.dispatcher.Schedule(func() {
		defer s.beside.Done()
		defer s.goroutines.Add(-1)
		if message := s.contain(work, fn); message != nil {
			s.Send(owner, message)
		}
	})
}

// contain returns the result of fn, or *Crashed if fn panics. Its frame stays on the stack of each stream, so it is
// smaller than that of panics.Try.
func (s *System) contain(work string, fn func(ctx context.Context) any) (message any) {
	defer func() {
		if reason := recover(); reason != nil {
			s.crashed.Add(1)
			recovered := panics.NewRecovered(1, reason)
			message = &Crashed{work, &recovered}
		}
	}()
	return fn(s.ctx)
}
