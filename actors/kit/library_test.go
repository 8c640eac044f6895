package kit_test

import (
	"errors"
	"log/slog"
	"runtime"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/asynkron/protoactor-go/actor"
)

// The tests below pin what the library does, for better or worse, where this
// package relies on it or exists because of it. If one fails after an update,
// read the part of kit that it names before changing the test.

// bare runs body with a system as the library makes it.
func bare(t *testing.T, body func(t *testing.T, sys *actor.ActorSystem)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		sys := actor.NewActorSystem(
			actor.WithLoggerFactory(func(*actor.ActorSystem) *slog.Logger { return slog.New(slog.DiscardHandler) }),
			actor.WithDeadLetterThrottleCount(0))
		body(t, sys)
		time.Sleep(2 * time.Second) // its dead-letter counter lives for one
		synctest.Wait()
	})
}

func props(receive func(actor.Context), options ...actor.PropsOption) *actor.Props {
	return actor.PropsFromFunc(receive, options...)
}

// Why every actor has a guard.
func TestLibraryWedgesTheParentOfAChildThatPanicsWhileStopping(t *testing.T) {
	bare(t, func(t *testing.T, sys *actor.ActorSystem) {
		stopped := false
		parent := sys.Root.Spawn(props(func(c actor.Context) {
			switch c.Message().(type) {
			case *actor.Started:
				c.Spawn(props(func(c actor.Context) {
					if _, ok := c.Message().(*actor.Stopping); ok {
						panic("while dying")
					}
				}))
			case *actor.Stopped:
				stopped = true
			}
		}))
		synctest.Wait()
		sys.Root.Stop(parent)
		time.Sleep(time.Hour)
		if stopped {
			t.Error("the parent stopped: the guard may be thinner now")
		}
	})
}

// Why LaneMailbox rejects what is left.
func TestLibraryForgetsMessagesOfAStoppedActor(t *testing.T) {
	bare(t, func(t *testing.T, sys *actor.ActorSystem) {
		var dead, handled atomic.Int64
		sys.EventStream.Subscribe(func(event any) {
			if d, ok := event.(*actor.DeadLetterEvent); ok {
				if _, ours := d.Message.(int); ours {
					dead.Add(1)
				}
			}
		})
		gate := make(chan struct{})
		pid := sys.Root.Spawn(props(func(c actor.Context) {
			switch c.Message().(type) {
			case chan struct{}:
				<-gate
			case int:
				handled.Add(1)
			}
		}))
		sys.Root.Send(pid, gate)
		for i := range 50 {
			sys.Root.Send(pid, i)
		}
		sys.Root.Stop(pid) // overtakes all of them
		close(gate)
		synctest.Wait()
		if dead.Load() != 0 || handled.Load() != 0 {
			t.Errorf("%d dead letters, %d handled", dead.Load(), handled.Load())
		}
	})
}

// Why LaneMailbox looks after Goexit.
func TestLibraryWedgesAnActorThatEndsItsGoroutine(t *testing.T) {
	bare(t, func(t *testing.T, sys *actor.ActorSystem) {
		handled := false
		pid := sys.Root.Spawn(props(func(c actor.Context) {
			switch c.Message().(type) {
			case bool:
				runtime.Goexit()
			case int:
				handled = true
			}
		}))
		sys.Root.Send(pid, true)
		sys.Root.Send(pid, 1)
		time.Sleep(time.Hour)
		if handled {
			t.Error("the actor lives")
		}
	})
}

// Why names are made unique.
func TestLibraryKeepsANameUntilTheVeryEnd(t *testing.T) {
	bare(t, func(t *testing.T, sys *actor.ActorSystem) {
		produced := 0
		p := actor.PropsFromProducer(func() actor.Actor {
			produced++
			return actor.ReceiveFunc(func(actor.Context) {})
		})
		first, err := sys.Root.SpawnNamed(p, "one")
		if err != nil {
			t.Fatal(err)
		}
		again, err := sys.Root.SpawnNamed(p, "one")
		if !errors.Is(err, actor.ErrNameExists) || !again.Equal(first) {
			t.Errorf("got %v, %v", again, err)
		}
		// Why produce must have no effects: it ran for the spawn that failed.
		if produced != 2 {
			t.Errorf("produced %d", produced)
		}
	})
}

// What StopActor builds on: the registry forgets the name, then Stopped comes.
func TestLibraryForgetsTheNameBeforeStopped(t *testing.T) {
	bare(t, func(t *testing.T, sys *actor.ActorSystem) {
		var order []string
		note := func(c actor.Context, name string) {
			switch c.Message().(type) {
			case *actor.Stopping:
				order = append(order, name+" stopping")
			case *actor.Stopped:
				order = append(order, name+" stopped")
				if _, found := sys.ProcessRegistry.GetLocal(c.Self().GetId()); found {
					t.Errorf("%s is registered in Stopped", name)
				}
			}
		}
		parent := sys.Root.Spawn(props(func(c actor.Context) {
			if _, ok := c.Message().(*actor.Started); ok {
				c.Spawn(props(func(c actor.Context) { note(c, "child") }))
			}
			note(c, "parent")
		}))
		synctest.Wait()
		sys.Root.Stop(parent)
		synctest.Wait()
		want := []string{"parent stopping", "child stopping", "child stopped", "parent stopped"}
		if !slices.Equal(order, want) {
			t.Errorf("got %v", order)
		}
	})
}

// What Backoff and Failer build on: the failing message is lost, the mailbox is
// kept, the instance is new, and until the supervisor decides nothing is handled.
func TestLibraryRestartsWithTheSameMailbox(t *testing.T) {
	bare(t, func(t *testing.T, sys *actor.ActorSystem) {
		incarnation := 0
		var mu sync.Mutex // time passing orders nothing for the race detector
		var got []int
		strategy := &delayed{}
		pid := sys.Root.Spawn(actor.PropsFromProducer(func() actor.Actor {
			incarnation++
			return actor.ReceiveFunc(func(c actor.Context) {
				if n, ok := c.Message().(int); ok {
					if n == 0 {
						panic("boom")
					}
					mu.Lock()
					defer mu.Unlock()
					got = append(got, incarnation*10+n)
				}
			})
		}, actor.WithGuardian(strategy)))
		for n := range 3 {
			sys.Root.Send(pid, n)
		}
		synctest.Wait()
		mu.Lock()
		if len(got) != 0 {
			t.Errorf("handled %v while suspended", got)
		}
		mu.Unlock()
		time.Sleep(time.Minute)
		synctest.Wait()
		if want := []int{21, 22}; !slices.Equal(got, want) {
			t.Errorf("got %v, want %v", got, want)
		}
	})
}

// delayed restarts from another goroutine after a second, as Backoff does.
type delayed struct{}

func (*delayed) HandleFailure(_ *actor.ActorSystem, s actor.Supervisor, child *actor.PID, _ *actor.RestartStatistics,
	_, _ any) {
	time.AfterFunc(time.Second, func() { s.RestartChildren(child) })
}

// Why children are spawned anew in Started.
func TestLibraryStopsTheChildrenOfARestartedActor(t *testing.T) {
	bare(t, func(t *testing.T, sys *actor.ActorSystem) {
		var stopped atomic.Int64 // the children stop at once
		pid := sys.Root.Spawn(props(func(c actor.Context) {
			switch c.Message().(type) {
			case string:
				c.Spawn(props(func(c actor.Context) {
					if _, ok := c.Message().(*actor.Stopped); ok {
						stopped.Add(1)
					}
				}))
			case bool:
				panic("boom")
			}
		}))
		for range 5 {
			sys.Root.Send(pid, "child")
		}
		sys.Root.Send(pid, true)
		synctest.Wait()
		if n := stopped.Load(); n != 5 {
			t.Errorf("%d of 5 stopped", n)
		}
	})
}

// What Reject by dead letter builds on, and why the subscriber recovers.
func TestLibraryPublishesDeadLettersOnTheSendersGoroutine(t *testing.T) {
	bare(t, func(t *testing.T, sys *actor.ActorSystem) {
		pid := sys.Root.Spawn(props(func(actor.Context) {}))
		sys.Root.Stop(pid)
		synctest.Wait()
		seen := false // no lock: the same goroutine
		sys.EventStream.Subscribe(func(event any) {
			if d, ok := event.(*actor.DeadLetterEvent); ok && d.Message == "hello" {
				seen = true
			}
		})
		sys.Root.Send(pid, "hello")
		if !seen {
			t.Error("not published by the time Send returned")
		}
	})
}

// Why WithDeadLetterThrottleCount(0) and the muted handler: bodies in the log.
func TestLibraryLogsBodiesUnlessMuted(t *testing.T) {
	for _, row := range []struct {
		name    string
		options []actor.ConfigOption
		want    bool
	}{{"default", nil, true}, {"throttled", []actor.ConfigOption{actor.WithDeadLetterThrottleCount(0)}, false}} {
		t.Run(row.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				var log strings.Builder
				logger := slog.New(slog.NewTextHandler(&log, nil))
				sys := actor.NewActorSystem(append(row.options,
					actor.WithLoggerFactory(func(*actor.ActorSystem) *slog.Logger { return logger }))...)
				pid := sys.Root.Spawn(props(func(actor.Context) {}))
				sys.Root.Stop(pid)
				synctest.Wait()
				sys.Root.Send(pid, "a prompt")
				time.Sleep(2 * time.Second)
				synctest.Wait()
				if got := strings.Contains(log.String(), "a prompt"); got != row.want {
					t.Errorf("logged: %v", got)
				}
			})
		})
	}
}

// Why System.Stop shuts down once.
func TestLibraryPanicsAtASecondShutdown(t *testing.T) {
	bare(t, func(t *testing.T, sys *actor.ActorSystem) {
		sys.Shutdown()
		defer func() {
			if recover() == nil {
				t.Error("no panic")
			}
		}()
		sys.Shutdown()
	})
}
