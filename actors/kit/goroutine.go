package kit

import (
	"context"
	"fmt"

	"github.com/asynkron/protoactor-go/actor"
	"github.com/sourcegraph/conc/panics"
)

// Crashed tells an actor that work it started with Go panicked. It is sent
// instead of the work's own message.
type Crashed struct {
	// Work is the name given to Go.
	Work string
	// Recovered holds the panic and where it was raised; for the log only.
	Recovered *panics.Recovered
}

func (c *Crashed) Error() string {
	return fmt.Sprintf("%s panicked: %s", c.Work, panicText(c.Recovered.Value))
}

// Go runs fn beside the actor owner, which must not wait itself. What fn returns
// is sent to owner, unless it is nil; a panic, which supervision would not see
// and which would end the process, is sent as *Crashed. ctx is ended when the
// system stops. Stop waits for fn. It runs on a goroutine that is kept for the
// next: a new one would have to grow its stack first.
//
// fn must not use an actor.Context: those are valid inside Receive only.
func (s *System) Go(owner *actor.PID, work string, fn func(ctx context.Context) any) {
	s.goroutines.Add(1)
	s.beside.Add(1)
	s.dispatcher.Schedule(func() {
		defer s.beside.Done()
		defer s.goroutines.Add(-1)
		var message any
		if recovered := panics.Try(func() { message = fn(s.ctx) }); recovered != nil {
			s.crashed.Add(1)
			message = &Crashed{work, recovered}
		}
		if message != nil {
			s.Send(owner, message)
		}
	})
}
