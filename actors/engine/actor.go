package engine

import (
	"fmt"

	"github.com/asynkron/protoactor-go/actor"

	"stagedoor/actors/kit"
	"stagedoor/providers/dialogue"
	"stagedoor/providers/upstream"
)

// message is any message that a request's actor accepts besides the library's and kit's. The set is closed and contains
// only pointer types.
type message interface{ requestMessage() }

// cancel ends the request's context with a cause. The drain sends it, and so does an administrator's command.
type cancel struct{ cause error }

func (*cancel) requestMessage() {}

// IgnoreDeadLetterLogging marks a message that may come after the end.
func (*cancel) IgnoreDeadLetterLogging() {}

var _ message = (*cancel)(nil)

// Receive implements actor.Actor. The actor owns the goroutine of the attempt loop. It is never restarted, because half
// a reply cannot be begun again.
func (r *core) Receive(c actor.Context) {
	switch m := c.Message().(type) {
	case *actor.Started:
		r.engine.system.Go(c.Self(), "request", r.run)
		r.running = true
	case *cancel:
		r.stop(m.cause)
	case *kit.Crashed: // the loop has ended the request, see loop
		r.engine.system.Logger().Error("request panicked", "request_id", r.id,
			"panic", fmt.Sprintf("%T", m.Recovered.Value), "stack", string(m.Recovered.Stack))
		c.Stop(c.Self())
	case *actor.Stopping:
		r.stop(upstream.ErrDraining)
	case *actor.Stopped:
		if !r.running { // the loop, which ends the request, was never started
			r.over(CallerFault(dialogue.Internal(nil)))
		}
	}
}

// Failed implements kit.Failer: a panic in Receive ends this request, and no other.
func (r *core) Failed(any) { r.stop(dialogue.Internal(nil)) }
