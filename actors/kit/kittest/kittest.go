// Package kittest runs actor systems in tests, either in a synctest bubble, where time is fake and Quiesce waits until
// every actor is idle, or outside of one for benchmarks. It is for tests only.
//
// # Usage
//
//	kittest.Run(t, func(t *testing.T, sys *kit.System) {
//		pid, _ := sys.Spawn(props, "name")
//		sys.Send(pid, message)
//		kittest.Quiesce() // all messages are handled
//	})
//
// In a bubble a test never sleeps: Pass moves the clock to where a timer fires and returns when what it caused is done.
// A test with sockets or files cannot run in a bubble, because their goroutines are never idle for it, and uses Start.
package kittest

import (
	"context"
	"log/slog"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"go.uber.org/goleak"

	"stagedoor/actors/kit"
)

// Run runs body with a new system inside a bubble and then stops the system. The bubble fails the test if body leaves
// goroutines that can never end.
func Run(t *testing.T, body func(t *testing.T, sys *kit.System)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		// Parked goroutines would count as leaks, so none are kept.
		sys := kit.NewSystem(kit.Options{Logger: Logger(t), MaxIdle: -1})
		defer settle(t, sys)
		body(t, sys)
	})
}

// settle stops the system and lets fake time pass until the library's counter of dead letters has ended, which is a
// goroutine of a few moments.
func settle(t *testing.T, sys *kit.System) {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	if err := sys.Stop(ctx); err != nil {
		t.Errorf("stop the system: %v", err)
	}
	time.Sleep(time.Second)
	synctest.Wait()
}

// Quiesce waits until every goroutine of the bubble is blocked, so that all messages are handled and nothing more
// happens before time passes.
func Quiesce() { synctest.Wait() }

// Pass lets fake time pass and then waits until everything that it caused is done.
func Pass(d time.Duration) {
	time.Sleep(d)
	synctest.Wait()
}

// running counts the systems of Start that have not been stopped.
var running atomic.Int64

// Start starts a system outside of a bubble and checks at the end that it left no goroutine behind. If a test starts
// several, the check is made once the last of them has been stopped, because the others may begin goroutines until
// then. Tests that need time to pass use Run.
func Start(tb testing.TB) *kit.System {
	tb.Helper()
	before := goleak.IgnoreCurrent()
	running.Add(1)
	sys := kit.NewSystem(kit.Options{Logger: slog.New(slog.DiscardHandler)})
	tb.Cleanup(func() {
		ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
		defer cancel()
		if err := sys.Stop(ctx); err != nil {
			tb.Errorf("stop the system: %v", err)
		}
		if running.Add(-1) == 0 {
			NoGoroutines(tb, before)
		}
	})
	return sys
}

// NoGoroutines fails the test if goroutines are left a minute later that the options do not exclude. The package goleak
// by itself waits for half a second, in which a busy machine may not have ended them.
func NoGoroutines(tb testing.TB, options ...goleak.Option) {
	tb.Helper()
	err := goleak.Find(options...)
	for late := time.Now().Add(time.Minute); err != nil && time.Now().Before(late); {
		err = goleak.Find(options...)
	}
	if err != nil {
		tb.Error(err)
	}
}

// Logger returns a logger that writes to the test's output.
func Logger(tb testing.TB) *slog.Logger {
	return slog.New(slog.NewTextHandler(tb.Output(), nil))
}
