package kit

import (
	"fmt"
	"log/slog"
	"runtime"
	"runtime/debug"
	"time"

	"github.com/asynkron/protoactor-go/actor"
)

// Failer is an actor on whose replies other goroutines wait. Failed runs on the actor's goroutine right after its
// Receive panicked and before the supervisor decides, so that no caller waits through a back-off for an instance that
// has ended. It is the last chance to reply, and it must be safe on inconsistent state.
type Failer interface{ Failed(reason any) }

// guard surrounds every actor. In the library a panic while stopping leaves the parent waiting for ever, and a panic
// while restarting brings the failed instance back. The guard counts and survives both. It counts a panic in any other
// message, logs it without its text, and passes it to supervision.
type guard struct {
	actor   actor.Actor
	kind    *kind
	system  *System
	stopped bool // read by the mailbox, on the actor's goroutine
}

// Receive implements actor.Actor.
func (g *guard) Receive(c actor.Context) {
	switch c.Message().(type) {
	case *actor.Started:
		g.kind.started.Add(1)
		g.forward(c)
	case *actor.Restarting:
		g.kind.restarted.Add(1)
		g.system.noteRestart(c.Self().GetId())
		g.contain(c, func() { g.actor.Receive(c) })
	case *actor.Stopping:
		g.contain(c, func() { g.actor.Receive(c) })
	case *actor.Stopped:
		g.contain(c, func() { g.actor.Receive(c) })
		g.system.unlist(c.Self().GetId(), g.kind)
		g.kind.stopped.Add(1)
		g.stopped = true
	default:
		g.forward(c)
	}
}

// forward passes a message to the actor. A panic is noted and passed on to supervision.
func (g *guard) forward(c actor.Context) {
	defer func() {
		if reason := recover(); reason != nil {
			g.fail(c, reason)
			panic(reason)
		}
	}()
	g.actor.Receive(c)
}

// fail counts and logs the panic of an actor, and calls Failed if the actor is a Failer. It runs while the panic is
// still on the stack, so that the log shows where it was raised.
func (g *guard) fail(c actor.Context, reason any) {
	g.kind.failed.Add(1)
	g.system.noteFailure(c.Self().GetId(), g.kind,
		&LastFailure{At: time.Now(), Message: fmt.Sprintf("%T", c.Message()), Reason: panicText(reason)})
	g.report(c, reason)
	if f, ok := g.actor.(Failer); ok {
		g.contain(c, func() { f.Failed(reason) })
	}
}

// contain runs fn and survives its panic, for messages about the actor's own life.
func (g *guard) contain(c actor.Context, fn func()) {
	defer func() {
		if reason := recover(); reason != nil {
			g.kind.contained.Add(1)
			g.report(c, reason)
		}
	}()
	fn()
}

// report logs a panic with its stack, and without its text, which may quote a prompt.
func (g *guard) report(c actor.Context, reason any) {
	g.system.logger.Error("actor panicked",
		slog.String("kind", g.kind.name),
		slog.String("actor", c.Self().GetId()),
		slog.String("message", fmt.Sprintf("%T", c.Message())),
		slog.String("panic", panicText(reason)),
		slog.String("stack", string(debug.Stack())))
}

// panicText returns the text of the runtime's own errors, which quote indexes and types, and only the type of any
// other value, which may quote a prompt.
func panicText(reason any) string {
	if err, ok := reason.(runtime.Error); ok {
		return err.Error()
	}
	return fmt.Sprintf("%T", reason)
}
