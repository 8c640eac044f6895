package kit

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/asynkron/protoactor-go/actor"
)

// Options configures a System.
type Options struct {
	// Logger is required.
	Logger *slog.Logger
	// MaxIdle is the number of goroutines that stay parked for the next wake-up. 0 means 1,024, and a negative
	// number means none, which a synctest bubble needs.
	MaxIdle int
	// Report, if not nil, gets every failure that the system's own back-off handles. It must not block.
	Report func(Failure)
}

// System is a running actor system, of which a process has one. All methods may be called from any goroutine.
type System struct {
	logger     *slog.Logger
	actors     *actor.ActorSystem
	root       *actor.RootContext // its actors are restarted with the system's back-off
	once       *actor.RootContext // its actors are stopped if they fail
	dispatcher *reuse
	backoff    *Backoff

	kinds sync.Map // name -> *kind
	list  sync.Map // id -> *listing
	dead  deadLetters
	epoch atomic.Uint64

	ctx        context.Context // ends when Stop begins to wait for goroutines
	cancel     context.CancelFunc
	beside     sync.WaitGroup
	goroutines atomic.Int64
	crashed    atomic.Int64
	timers     sync.Pool // of *time.Timer, stopped: see AskWithin

	waiting atomic.Int64 // len(waiters), read without the lock at every stop of an actor
	mu      sync.Mutex
	tops    []*actor.PID
	waiters map[string][]chan struct{}
	stopped bool
}

// defaultIdle is enough for the requests that one commit releases at once. A parked goroutine keeps a few KiB, and a
// new one has to grow its stack first.
const defaultIdle = 1024

// NewSystem starts a system. The library's metrics stay off, because they make a message 25 times as expensive.
func NewSystem(options Options) *System {
	idle := options.MaxIdle
	idle = cmp.Or(idle, defaultIdle)
	s := &System{
		logger:     options.Logger,
		dispatcher: newReuse(max(idle, 0)),
		waiters:    make(map[string][]chan struct{}),
		backoff: &Backoff{Initial: 100 * time.Millisecond, Max: 10 * time.Second,
			Limit: 3, Report: options.Report},
	}
	s.ctx, s.cancel = context.WithCancel(context.Background())
	quiet := slog.New(muted{options.Logger.Handler()})
	s.actors = actor.NewActorSystem(
		actor.WithLoggerFactory(func(*actor.ActorSystem) *slog.Logger { return quiet }),
		actor.WithDeadLetterThrottleCount(0), // counts only, without bodies
		// The lifetime of the goroutine that writes the count after a dead letter.
		actor.WithDeadLetterThrottleInterval(100*time.Millisecond),
	)
	shrinkRegistry(s.actors.ProcessRegistry)
	s.actors.EventStream.Subscribe(s.dead.receive)
	s.root = s.actors.Root.Copy().WithGuardian(s.backoff)
	s.once = s.actors.Root.Copy().WithGuardian(actor.NewOneForOneStrategy(0, 0,
		func(any) actor.Directive { return actor.StopDirective }))
	return s
}

// Logger returns the logger of the system.
func (s *System) Logger() *slog.Logger { return s.logger }

// Send sends a message without waiting and without a sender.
func (s *System) Send(to *actor.PID, message any) { s.actors.Root.Send(to, message) }

// EndActor stops an actor without waiting for it. Messages that it has not handled are refused.
func (s *System) EndActor(pid *actor.PID) { s.actors.Root.Stop(pid) }

// StopActor stops an actor and its children and waits until Stopped was handled and the mailbox is closed. Messages
// that it has not handled are refused. The library's own wait ends after ten seconds in any case. StopActor registers
// before it looks for the actor, since otherwise an actor that stops in between would never be reported.
func (s *System) StopActor(ctx context.Context, pid *actor.PID) error {
	gone := s.awaitStop(pid.GetId())
	// The registry forgets a name before its actor handles Stopped. An actor that is found here will therefore
	// find this channel.
	if _, found := s.actors.ProcessRegistry.GetLocal(pid.GetId()); !found {
		s.forget(pid.GetId(), gone)
		return nil
	}
	s.actors.Root.Stop(pid)
	select {
	case <-gone:
		s.dropTop(pid)
		return nil
	case <-ctx.Done():
		s.forget(pid.GetId(), gone)
		return fmt.Errorf("stop %s: %w", pid.GetId(), context.Cause(ctx))
	}
}

// dropTop takes an actor off the list of those that the shutdown stops.
func (s *System) dropTop(pid *actor.PID) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.tops = slices.DeleteFunc(s.tops, func(top *actor.PID) bool { return top.Equal(pid) })
}

// awaitStop registers a channel that is closed when the actor of that name has stopped.
func (s *System) awaitStop(id string) chan struct{} {
	gone := make(chan struct{})
	s.mu.Lock()
	defer s.mu.Unlock()
	s.waiters[id] = append(s.waiters[id], gone)
	s.waiting.Add(1)
	return gone
}

// forget takes back one registration of awaitStop.
func (s *System) forget(id string, gone chan struct{}) {
	s.mu.Lock()
	defer s.mu.Unlock()
	left := slices.DeleteFunc(s.waiters[id], func(c chan struct{}) bool { return c == gone })
	s.waiting.Add(int64(len(left) - len(s.waiters[id])))
	if s.waiters[id] = left; len(left) == 0 {
		delete(s.waiters, id)
	}
}

// announceStop closes the channels of awaitStop for an actor that has ended. The actor's mailbox calls it.
func (s *System) announceStop(id string) {
	if s.waiting.Load() == 0 {
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, gone := range s.waiters[id] {
		close(gone)
		s.waiting.Add(-1)
	}
	delete(s.waiters, id)
}

// Stop stops the top-level actors, the last one first, ends the context of the goroutines of Go, waits for them, and
// ends the parked goroutines. If ctx ends first, the error names what still runs, and that continues to stop. A second
// call does nothing.
func (s *System) Stop(ctx context.Context) error {
	s.mu.Lock()
	if s.stopped {
		s.mu.Unlock()
		return nil
	}
	s.stopped = true
	tops := slices.Clone(s.tops)
	s.mu.Unlock()

	var errs []error
	for _, pid := range slices.Backward(tops) {
		errs = append(errs, s.StopActor(ctx, pid))
	}
	s.cancel()
	errs = append(errs, s.join(ctx))
	s.actors.Shutdown()
	return errors.Join(errs...)
}

// join waits for the goroutines of Go and then ends the parked goroutines. It waits until ctx ends at most.
func (s *System) join(ctx context.Context) error {
	joined := make(chan struct{})
	go func() {
		defer close(joined)
		s.beside.Wait()
		s.dispatcher.close()
	}()
	select {
	case <-joined:
		return nil
	case <-ctx.Done():
		return fmt.Errorf("join %d goroutines: %w", s.goroutines.Load(), context.Cause(ctx))
	}
}
