package throttle

import (
	"context"
	"errors"
	"sync"
	"testing"
	"time"

	"stagedoor/actors/kit"
	"stagedoor/actors/kit/kittest"
)

// crash makes the actor panic: there is no such ticket.
func (c *Client) crash() { c.send((*releasing)(nil)) }

func TestACrashRefusesTheQueueAndRestartsCarefully(t *testing.T) {
	kittest.Run(t, func(t *testing.T, sys *kit.System) {
		c, err := Spawn(sys, "provider", Config{RequestsPerMinute: 60, MaxInFlight: 2})
		if err != nil {
			t.Fatal(err)
		}
		kittest.Quiesce()
		before := make([]*Permit, 2)
		for i := range before {
			if before[i], err = c.Acquire(t.Context(), Ask{}); err != nil {
				t.Fatal(err)
			}
		}
		var wg sync.WaitGroup
		begin := time.Now()
		for range 10 {
			wg.Go(func() {
				_, err := c.Acquire(t.Context(), Ask{})
				refused, ok := errors.AsType[*Refused](err)
				if !ok || refused.Reason != Closed || time.Since(begin) != 0 {
					t.Errorf("got %v after %v, want closed at once", err, time.Since(begin))
				}
			})
		}
		kittest.Quiesce()
		c.crash()
		wg.Wait()
		kittest.Quiesce()
		if _, err := c.Acquire(t.Context(), Ask{}); err == nil {
			t.Error("granted while restarting")
		}
		kittest.Pass(time.Second)
		s, err := c.Stats(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		if s.Breaker != HalfOpen || s.InFlight != 2 || s.Requests.Remaining > 1 {
			t.Errorf("after the restart: %s, %d in flight, %+v", s.Breaker, s.InFlight, s.Requests)
		}
		for _, p := range before {
			p.Release(Outcome{}) // of the incarnation that is gone
		}
		kittest.Pass(time.Second)
		probe, err := c.Acquire(t.Context(), Ask{})
		if err != nil {
			t.Fatal(err)
		}
		ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
		defer cancel()
		wg.Go(func() {
			p, err := c.Acquire(ctx, Ask{})
			if err != nil || p.Waited() < 5*time.Second {
				t.Errorf("behind the probe: %v", err)
				return
			}
			p.Release(Outcome{})
		})
		kittest.Pass(5 * time.Second)
		probe.Release(Outcome{})
		wg.Wait()
		kittest.Quiesce()
		if n := c.InFlight(); n != 0 {
			t.Errorf("%d in flight at the end", n)
		}
	})
}

func TestTheBypassClosesWithTheActor(t *testing.T) {
	kittest.Run(t, func(t *testing.T, sys *kit.System) {
		c, err := Spawn(sys, "provider", Config{})
		if err != nil {
			t.Fatal(err)
		}
		kittest.Quiesce()
		if c.free.Load() == nil {
			t.Fatal("not open")
		}
		p, err := c.Acquire(t.Context(), Ask{})
		if err != nil || p.ticket != nil {
			t.Fatalf("%v, with a ticket: %v", err, p.ticket != nil)
		}
		c.crash()
		kittest.Quiesce()
		if c.free.Load() != nil {
			t.Error("open after the crash")
		}
		p.Release(Outcome{})
		kittest.Pass(time.Second)
		probe, err := c.Acquire(t.Context(), Ask{})
		if err != nil {
			t.Fatal(err)
		}
		probe.Release(Outcome{})
		kittest.Quiesce()
		if c.free.Load() == nil || c.InFlight() != 0 {
			t.Errorf("open %v, %d in flight after the probe", c.free.Load() != nil, c.InFlight())
		}
	})
}

// A client without an actor, or whose actor has gone, refuses at once.
func TestClientWithoutActorIsClosed(t *testing.T) {
	kittest.Run(t, func(t *testing.T, sys *kit.System) {
		c := NewClient(sys, Config{})
		_, err := c.Acquire(t.Context(), Ask{})
		if refused, ok := errors.AsType[*Refused](err); !ok || refused.Reason != Closed {
			t.Errorf("got %v", err)
		}
		if _, err := c.Stats(t.Context()); err == nil {
			t.Error("Stats succeeded without an actor")
		}
		if err := c.Stop(t.Context()); err != nil {
			t.Error(err)
		}
	})
}
