package kit_test

import (
	"context"
	"errors"
	"log/slog"
	"runtime"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/asynkron/protoactor-go/actor"

	"stagedoor/actors/kit"
	"stagedoor/actors/kit/kittest"
)

// script is an actor made of one function per message type.
type script struct {
	receive func(actor.Context)
	failed  func(any)
}

func (s *script) Receive(c actor.Context) {
	if s.receive != nil {
		s.receive(c)
	}
}

func (s *script) Failed(reason any) {
	if s.failed != nil {
		s.failed(reason)
	}
}

func spawn(t testing.TB, sys *kit.System, receive func(actor.Context), options ...kit.PropsOption) *actor.PID {
	t.Helper()
	props := sys.Props("script", func() actor.Actor { return &script{receive: receive} }, options...)
	pid, err := sys.SpawnUnique(props, "script")
	if err != nil {
		t.Fatal(err)
	}
	return pid
}

type question struct {
	kit.Reply[int]
	number int
}

type bomb struct{}

// laned is a message with a lane and a record of its rejection.
type laned struct {
	lane     kit.Lane
	id       int
	rejected func(int, kit.Reason)
}

func (l *laned) Lane() kit.Lane { return l.lane }
func (l *laned) Reject(reason kit.Reason) {
	if l.rejected != nil {
		l.rejected(l.id, reason)
	}
}

func TestAskIsAnswered(t *testing.T) {
	kittest.Run(t, func(t *testing.T, sys *kit.System) {
		pid := spawn(t, sys, func(c actor.Context) {
			if q, ok := c.Message().(*question); ok {
				q.Resolve(2*q.number, nil)
				q.Resolve(0, errors.New("a second answer must not count"))
			}
		})
		got, err := kit.Ask(t.Context(), sys, pid, &question{number: 21})
		if got != 42 || err != nil {
			t.Errorf("got %d, %v", got, err)
		}
	})
}

func TestAskEndsWithItsContext(t *testing.T) {
	kittest.Run(t, func(t *testing.T, sys *kit.System) {
		pid := spawn(t, sys, nil)
		ctx, cancel := context.WithTimeout(t.Context(), time.Hour)
		defer cancel()
		if _, err := kit.Ask(ctx, sys, pid, &question{}); !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("got %v", err)
		}
	})
}

func TestAskWithinEndsWithItsTime(t *testing.T) {
	kittest.Run(t, func(t *testing.T, sys *kit.System) {
		silent := spawn(t, sys, nil)
		quick := spawn(t, sys, func(c actor.Context) {
			if q, ok := c.Message().(*question); ok {
				q.Resolve(2*q.number, nil)
			}
		})
		for range 3 { // with the timers of those before
			began := time.Now()
			if _, err := kit.AskWithin(time.Hour, sys, silent, &question{}); !errors.Is(err,
				context.DeadlineExceeded) ||
				time.Since(began) != time.Hour {
				t.Errorf("got %v after %s", err, time.Since(began))
			}
			if got, err := kit.AskWithin(time.Hour, sys, quick, &question{number: 21}); got != 42 || err != nil {
				t.Errorf("got %d, %v", got, err)
			}
		}
	})
}

func TestAskOfDeadActorFailsAtOnce(t *testing.T) {
	kittest.Run(t, func(t *testing.T, sys *kit.System) {
		pid := spawn(t, sys, nil)
		if err := sys.StopActor(t.Context(), pid); err != nil {
			t.Fatal(err)
		}
		_, err := kit.Ask(t.Context(), sys, pid, &question{})
		rejected, ok := errors.AsType[*kit.Rejected](err)
		if !ok || rejected.Reason != kit.ReasonDead {
			t.Errorf("got %v, want dead", err)
		}
		if n := sys.Stats().DeadLetters["*kit_test.question"]; n != 1 {
			t.Errorf("dead letters counted: %d, want 1", n)
		}
	})
}

func TestLanesGoInOrder(t *testing.T) {
	kittest.Run(t, func(t *testing.T, sys *kit.System) {
		gate := make(chan struct{})
		var got []int
		pid := spawn(t, sys, func(c actor.Context) {
			switch m := c.Message().(type) {
			case *laned:
				got = append(got, m.id)
			case chan struct{}:
				<-m
			}
		})
		sys.Send(pid, gate)
		kittest.Quiesce()
		for i, lane := range []kit.Lane{kit.LaneAcquire, kit.LaneRelease, kit.LaneControl, kit.LaneAcquire,
			kit.LaneControl} {
			sys.Send(pid, &laned{lane: lane, id: i})
		}
		close(gate)
		kittest.Quiesce()
		if want := []int{2, 4, 1, 0, 3}; !slices.Equal(got, want) {
			t.Errorf("got %v, want %v", got, want)
		}
	})
}

func TestFullLaneRefusesOnTheSendersSide(t *testing.T) {
	kittest.Run(t, func(t *testing.T, sys *kit.System) {
		gate := make(chan struct{})
		pid := spawn(t, sys, func(c actor.Context) {
			if m, ok := c.Message().(chan struct{}); ok {
				<-m
			}
		}, kit.WithLanes(kit.Lanes{Bound: 2}))
		sys.Send(pid, gate)
		kittest.Quiesce()
		var refused []int
		for i := range 4 {
			sys.Send(pid, &laned{lane: kit.LaneAcquire, id: i, rejected: func(id int, reason kit.Reason) {
				if reason == kit.ReasonFull {
					refused = append(refused, id) // no lock: this is our own goroutine
				}
			}})
		}
		if want := []int{2, 3}; !slices.Equal(refused, want) {
			t.Errorf("refused %v, want %v", refused, want)
		}
		close(gate)
	})
}

func TestStoppingRefusesWhatIsLeft(t *testing.T) {
	kittest.Run(t, func(t *testing.T, sys *kit.System) {
		gate := make(chan struct{})
		pid := spawn(t, sys, func(c actor.Context) {
			if m, ok := c.Message().(chan struct{}); ok {
				<-m
			}
		})
		sys.Send(pid, gate)
		kittest.Quiesce()
		var rejected atomic.Int64
		for range 100 {
			sys.Send(pid, &laned{rejected: func(_ int, reason kit.Reason) {
				if reason == kit.ReasonStopped {
					rejected.Add(1)
				}
			}})
		}
		time.AfterFunc(time.Second, func() { close(gate) })
		if err := sys.StopActor(t.Context(), pid); err != nil {
			t.Fatal(err)
		}
		if rejected.Load() != 100 {
			t.Errorf("%d of 100 rejected when StopActor returned", rejected.Load())
		}
		if depth := sys.Stats().Kind("script").Depth; depth != 0 {
			t.Errorf("depth %d after the stop", depth)
		}
	})
}

func TestStopWaitsLongerThanTheLibraryWould(t *testing.T) {
	kittest.Run(t, func(t *testing.T, sys *kit.System) {
		gate := make(chan struct{})
		pid := spawn(t, sys, func(c actor.Context) {
			if _, ok := c.Message().(*actor.Stopping); ok {
				<-gate
			}
		})
		time.AfterFunc(time.Hour, func() { close(gate) })
		before := time.Now()
		if err := sys.StopActor(t.Context(), pid); err != nil {
			t.Fatal(err)
		}
		if took := time.Since(before); took != time.Hour {
			t.Errorf("took %v", took)
		}
	})
}

func TestStopGivesUpWithItsContext(t *testing.T) {
	kittest.Run(t, func(t *testing.T, sys *kit.System) {
		gate := make(chan struct{})
		pid := spawn(t, sys, func(c actor.Context) {
			if _, ok := c.Message().(*actor.Stopping); ok {
				<-gate
			}
		})
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		if err := sys.StopActor(ctx, pid); !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("got %v", err)
		}
		close(gate)
	})
}

func TestPanicWhileStoppingDoesNotWedgeTheParent(t *testing.T) {
	kittest.Run(t, func(t *testing.T, sys *kit.System) {
		child := sys.Props("child", func() actor.Actor {
			return &script{receive: func(c actor.Context) {
				switch c.Message().(type) {
				case *actor.Stopping, *actor.Stopped:
					panic("while dying")
				}
			}}
		})
		parent := spawn(t, sys, func(c actor.Context) {
			if _, ok := c.Message().(*actor.Started); ok {
				if _, err := sys.SpawnChild(c, child, "child"); err != nil {
					t.Error(err)
				}
			}
		})
		kittest.Quiesce()
		if err := sys.StopActor(t.Context(), parent); err != nil {
			t.Error(err)
		}
		if k := sys.Stats().Kind("child"); k.Contained != 2 || k.Live() != 0 {
			t.Errorf("child %+v", k)
		}
	})
}

func TestGoexitDoesNotWedgeTheActor(t *testing.T) {
	kittest.Run(t, func(t *testing.T, sys *kit.System) {
		pid := spawn(t, sys, func(c actor.Context) {
			switch m := c.Message().(type) {
			case bomb:
				runtime.Goexit()
			case *question:
				m.Resolve(m.number, nil)
			}
		})
		sys.Send(pid, bomb{})
		if got, err := kit.Ask(t.Context(), sys, pid, &question{number: 7}); got != 7 || err != nil {
			t.Errorf("got %d, %v", got, err)
		}
	})
}

func TestFailedActorAnswersBeforeTheBackOff(t *testing.T) {
	kittest.Run(t, func(t *testing.T, sys *kit.System) {
		var held *question
		props := sys.Props("holder", func() actor.Actor {
			return &script{
				receive: func(c actor.Context) {
					switch m := c.Message().(type) {
					case *question:
						held = m
					case bomb:
						panic("boom")
					}
				},
				failed: func(any) { held.Resolve(0, errors.ErrUnsupported) },
			}
		})
		pid, err := sys.SpawnUnique(props, "holder")
		if err != nil {
			t.Fatal(err)
		}
		time.AfterFunc(time.Second, func() { sys.Send(pid, bomb{}) })
		before := time.Now()
		_, err = kit.Ask(t.Context(), sys, pid, &question{})
		if !errors.Is(err, errors.ErrUnsupported) || time.Since(before) != time.Second {
			t.Errorf("got %v after %v", err, time.Since(before))
		}
	})
}

func TestFailFastRefusesAcquiresDuringTheBackOff(t *testing.T) {
	kittest.Run(t, func(t *testing.T, sys *kit.System) {
		pid := spawn(t, sys, func(c actor.Context) {
			if _, ok := c.Message().(bomb); ok {
				panic("boom")
			}
		}, kit.WithLanes(kit.Lanes{FailFast: true}))
		sys.Send(pid, bomb{})
		kittest.Quiesce()
		var got kit.Reason
		sys.Send(pid, &laned{lane: kit.LaneAcquire, rejected: func(_ int, r kit.Reason) { got = r }})
		if got != kit.ReasonFailed {
			t.Errorf("got %v, want failed", got)
		}
		kittest.Pass(time.Second)
		got = 0
		sys.Send(pid, &laned{lane: kit.LaneAcquire, rejected: func(_ int, r kit.Reason) { got = r }})
		kittest.Quiesce()
		if got != 0 {
			t.Errorf("refused (%v) after the restart", got)
		}
	})
}

func TestBackoffIsExponentialAndLimited(t *testing.T) {
	kittest.Run(t, func(t *testing.T, sys *kit.System) {
		var failures []kit.Failure
		var starts []time.Duration
		begin := time.Now()
		backoff := &kit.Backoff{Initial: 200 * time.Millisecond, Max: time.Second, Limit: 4,
			AtLimit: kit.StopChild, Report: func(f kit.Failure) { failures = append(failures, f) }}
		child := sys.Props("child", func() actor.Actor {
			return &script{receive: func(c actor.Context) {
				if _, ok := c.Message().(*actor.Started); ok {
					starts = append(starts, time.Since(begin))
					panic("a secret")
				}
			}}
		})
		parent := spawn(t, sys, func(c actor.Context) {
			if _, ok := c.Message().(*actor.Started); ok {
				if _, err := sys.SpawnChild(c, child, "child"); err != nil {
					t.Error(err)
				}
			}
		}, kit.WithSupervisor(backoff))
		kittest.Pass(time.Minute)
		want := []time.Duration{
			0,
			200 * time.Millisecond,
			600 * time.Millisecond,
			1400 * time.Millisecond,
			2400 * time.Millisecond,
		}
		if !slices.Equal(starts, want) {
			t.Errorf("started at %v, want %v", starts, want)
		}
		last := failures[len(failures)-1]
		if len(failures) != 5 || !last.Exhausted || last.Directive != actor.StopDirective || last.Reason != "string" {
			t.Errorf("%d failures, last %+v", len(failures), last)
		}
		if err := sys.StopActor(t.Context(), parent); err != nil {
			t.Error(err)
		}
	})
}

func TestBackoffForgetsOldFailures(t *testing.T) {
	kittest.Run(t, func(t *testing.T, sys *kit.System) {
		pid := spawn(t, sys, func(c actor.Context) {
			if _, ok := c.Message().(bomb); ok {
				panic("boom")
			}
		})
		for range 20 {
			sys.Send(pid, bomb{})
			kittest.Pass(2 * time.Minute)
		}
		if k := sys.Stats().Kind("script"); k.Restarted != 20 || k.Live() != 1 {
			t.Errorf("%+v", k)
		}
	})
}

func TestGoReportsResultAndPanic(t *testing.T) {
	kittest.Run(t, func(t *testing.T, sys *kit.System) {
		var got []any
		pid := spawn(t, sys, func(c actor.Context) {
			switch c.Message().(type) {
			case int, *kit.Crashed:
				got = append(got, c.Message())
			}
		})
		sys.Go(pid, "count", func(context.Context) any { return 7 })
		kittest.Quiesce()
		sys.Go(pid, "explode", func(context.Context) any { panic("boom") })
		kittest.Quiesce()
		if len(got) != 2 || got[0] != 7 {
			t.Fatalf("got %v", got)
		}
		crash, ok := got[1].(*kit.Crashed)
		if !ok || crash.Work != "explode" || crash.Error() != "explode panicked: string" {
			t.Errorf("got %v", got[1])
		}
	})
}

func TestStopEndsAndJoinsGoroutines(t *testing.T) {
	kittest.Run(t, func(t *testing.T, sys *kit.System) {
		pid := spawn(t, sys, nil)
		ended := false
		sys.Go(pid, "wait", func(ctx context.Context) any {
			<-ctx.Done()
			time.Sleep(time.Minute)
			ended = true
			return nil
		})
		if err := sys.Stop(t.Context()); err != nil || !ended {
			t.Errorf("stop: %v, ended %v", err, ended)
		}
	})
}

func TestTimerIgnoresStaleTicks(t *testing.T) {
	kittest.Run(t, func(t *testing.T, sys *kit.System) {
		var timer *kit.Timer
		var fired []time.Duration
		begin := time.Now()
		pid := spawn(t, sys, func(c actor.Context) {
			switch m := c.Message().(type) {
			case *actor.Started:
				timer = sys.NewTimer(c.Self())
			case time.Duration:
				timer.Wake(time.Now(), begin.Add(m))
			case bool:
				timer.Stop()
			case *kit.Tick:
				if timer.Fired(m) {
					fired = append(fired, time.Since(begin))
				}
			}
		})
		sys.Send(pid, 10*time.Second)
		sys.Send(pid, 20*time.Second) // later than the one armed: stays at 10
		sys.Send(pid, 5*time.Second)  // earlier: moves
		kittest.Pass(30 * time.Second)
		sys.Send(pid, 40*time.Second)
		sys.Send(pid, false)
		kittest.Pass(time.Hour)
		if want := []time.Duration{5 * time.Second}; !slices.Equal(fired, want) {
			t.Errorf("fired at %v, want %v", fired, want)
		}
	})
}

func TestNamesAreReusableAtOnce(t *testing.T) {
	kittest.Run(t, func(t *testing.T, sys *kit.System) {
		props := sys.Props("brief", func() actor.Actor { return &script{} })
		for range 200 {
			pid, err := sys.SpawnUnique(props, "brief")
			if err != nil {
				t.Fatal(err)
			}
			if err := sys.StopActor(t.Context(), pid); err != nil {
				t.Fatal(err)
			}
		}
		if live := sys.Stats().Kind("brief").Live(); live != 0 {
			t.Errorf("%d still live", live)
		}
	})
}

func TestSystemLeavesNoGoroutineBehind(t *testing.T) {
	sys := kittest.Start(t) // checks at the end, outside of a bubble
	pid := spawn(t, sys, func(c actor.Context) {
		if q, ok := c.Message().(*question); ok {
			q.Resolve(1, nil)
		}
	})
	if _, err := kit.Ask(t.Context(), sys, pid, &question{}); err != nil {
		t.Fatal(err)
	}
	if err := sys.StopActor(t.Context(), pid); err != nil {
		t.Fatal(err)
	}
	sys.Send(pid, bomb{}) // a dead letter starts the library's counter
}

func TestInlineActorsRunOnTheirSendersGoroutine(t *testing.T) {
	kittest.Run(t, func(t *testing.T, sys *kit.System) {
		var self *actor.PID
		var handled atomic.Int64
		depth := 0
		props := sys.Props("inline", func() actor.Actor {
			return &script{receive: func(c actor.Context) {
				switch m := c.Message().(type) {
				case int:
					if depth++; depth != 1 {
						t.Error("two messages at a time")
					}
					if handled.Add(1); m > 0 {
						sys.Send(self, m-1) // handled when this is done
					}
					depth--
				case *question:
					m.Resolve(2*m.number, nil)
				case string:
					panic(m)
				}
			}}
		}, kit.Inline())
		var err error
		if self, err = sys.SpawnUnique(props, "inline"); err != nil {
			t.Fatal(err)
		}
		sys.Send(self, 5)
		if n := handled.Load(); n != 6 {
			t.Errorf("%d messages were handled when the sender went on, want 6", n)
		}
		sys.Send(self, 1000)
		synctest.Wait()
		if n := handled.Load(); n != 6+1001 {
			t.Errorf("%d messages were handled in the end", n)
		}
		sys.Send(self, "a failure is the actor's, not its sender's")
		if got, err := kit.Ask(t.Context(), sys, self, &question{number: 21}); got != 42 || err != nil {
			t.Errorf("after a failure: %d, %v", got, err)
		}
	})
}

// TestInlineActorOutlivesItsSender: a handler that ends the sender's goroutine with
// the first message does not end the mailbox.
func TestInlineActorOutlivesItsSender(t *testing.T) {
	kittest.Run(t, func(t *testing.T, sys *kit.System) {
		props := sys.Props("inline", func() actor.Actor {
			return &script{receive: func(c actor.Context) {
				switch m := c.Message().(type) {
				case string:
					runtime.Goexit()
				case *question:
					m.Resolve(2*m.number, nil)
				}
			}}
		}, kit.Inline())
		pid, err := sys.SpawnUnique(props, "inline")
		if err != nil {
			t.Fatal(err)
		}
		gone := make(chan struct{})
		go func() {
			defer close(gone)
			sys.Send(pid, "leave")
		}()
		<-gone
		if got, err := kit.Ask(t.Context(), sys, pid, &question{number: 21}); got != 42 || err != nil {
			t.Errorf("got %d, %v", got, err)
		}
	})
}

// Several goroutines send, and one message at a time is handled.
func TestInlineActorsHandleEachMessageOnce(t *testing.T) {
	sys := kit.NewSystem(kit.Options{Logger: slog.New(slog.DiscardHandler)})
	defer sys.Stop(context.Background())
	handled := 0 // the race detector watches it
	props := sys.Props("inline", func() actor.Actor {
		return &script{receive: func(c actor.Context) {
			switch m := c.Message().(type) {
			case *question:
				handled++
				m.Resolve(m.number, nil)
			}
		}}
	}, kit.Inline())
	pid, err := sys.SpawnUnique(props, "inline")
	if err != nil {
		t.Fatal(err)
	}
	const senders, each = 8, 500
	var wg sync.WaitGroup
	for range senders {
		wg.Go(func() {
			for i := range each {
				if got, err := kit.Ask(t.Context(), sys, pid, &question{number: i}); got != i || err != nil {
					t.Errorf("got %d, %v, want %d", got, err, i)
					return
				}
			}
		})
	}
	wg.Wait()
	if handled != senders*each {
		t.Errorf("%d handled, want %d", handled, senders*each)
	}
}

func TestAnActorSpawnedOnceIsStoppedAndNotRestarted(t *testing.T) {
	kittest.Run(t, func(t *testing.T, sys *kit.System) {
		var started, stopped atomic.Int32
		props := sys.Props("once", func() actor.Actor {
			return &script{receive: func(c actor.Context) {
				switch c.Message().(type) {
				case *actor.Started:
					started.Add(1)
				case *bomb:
					panic("bomb")
				case *actor.Stopped:
					stopped.Add(1)
				}
			}}
		})
		for _, end := range []func(*actor.PID){func(pid *actor.PID) { sys.Send(pid, &bomb{}) }, sys.EndActor} {
			started.Store(0)
			stopped.Store(0)
			pid, err := sys.SpawnOnce(props, "once")
			if err != nil {
				t.Fatal(err)
			}
			kittest.Quiesce()
			end(pid)
			kittest.Pass(time.Minute)
			if started.Load() != 1 || stopped.Load() != 1 {
				t.Errorf("started %d times, stopped %d times", started.Load(), stopped.Load())
			}
		}
	})
}
