package throttle_test

import (
	"context"
	"errors"
	"math/rand/v2"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"stagedoor/actors/kit"
	"stagedoor/actors/kit/kittest"
	"stagedoor/actors/throttle"
)

// Callers come, wait, leave and fail while the limits change under them. The
// bubble fails the test if a request waits forever.
func TestEveryRequestIsAnsweredWhileLimitsChange(t *testing.T) {
	kittest.Run(t, func(t *testing.T, sys *kit.System) {
		client, err := throttle.Spawn(sys, "provider", throttle.Config{})
		if err != nil {
			t.Fatal(err)
		}
		kinds := []throttle.Kind{throttle.Success, throttle.Success, throttle.Success, throttle.Transient,
			throttle.NotSent, throttle.CallerFault, throttle.Cancelled, throttle.Unused}
		var wg sync.WaitGroup
		var granted, refused, left atomic.Int64
		for g := range 16 {
			wg.Go(func() {
				random := rand.New(rand.NewPCG(uint64(g), 1))
				for range 500 {
					ctx, cancel := context.WithTimeout(t.Context(), time.Duration(random.IntN(2000))*time.Millisecond)
					permit, err := client.Acquire(ctx, throttle.Ask{
						Owner: string(rune('a' + g%3)), Class: random.IntN(3), Tokens: random.IntN(100),
						Deadline: time.Now().Add(time.Duration(random.IntN(3000)) * time.Millisecond)})
					switch _, typed := errors.AsType[*throttle.Refused](err); {
					case typed:
						refused.Add(1)
						time.Sleep(time.Millisecond)
					case err != nil:
						left.Add(1)
					default:
						granted.Add(1)
						time.Sleep(time.Duration(random.IntN(5)) * time.Millisecond)
						permit.Release(throttle.Outcome{Kind: kinds[random.IntN(len(kinds))]})
					}
					cancel()
				}
			})
		}
		for i := range 200 {
			config := throttle.Config{}
			if i%2 == 0 {
				config = throttle.Config{MaxInFlight: 1 + i%4, RequestsPerMinute: 60_000, TokensPerMinute: 600_000}
			}
			config.Breaker.OpenFor, config.Breaker.OpenMax = 10*time.Millisecond, 20*time.Millisecond
			client.Configure(config)
			time.Sleep(7 * time.Millisecond)
		}
		wg.Wait()
		kittest.Quiesce()
		s, err := client.Stats(t.Context())
		if err != nil || s.InFlight != 0 || s.Queued != 0 {
			t.Errorf("at the end: %+v, %v", s, err)
		}
		if all := granted.Load() + refused.Load() + left.Load(); all != 16*500 || granted.Load() < 1000 {
			t.Errorf("%d granted, %d refused, %d left", granted.Load(), refused.Load(), left.Load())
		}
	})
}

// With real parallelism there are never more permits out than allowed.
func TestNeverMoreInFlightThanAllowed(t *testing.T) {
	sys := kittest.Start(t)
	client, err := throttle.Spawn(sys, "provider", throttle.Config{MaxInFlight: 3, QueueTotal: 1000})
	if err != nil {
		t.Fatal(err)
	}
	var wg sync.WaitGroup
	var out, most atomic.Int64
	for range 32 {
		wg.Go(func() {
			for range 200 {
				permit, err := client.Acquire(t.Context(), throttle.Ask{})
				if err != nil {
					t.Error(err)
					return
				}
				n := out.Add(1)
				for m := most.Load(); n > m && !most.CompareAndSwap(m, n); m = most.Load() {
				}
				out.Add(-1)
				permit.Release(throttle.Outcome{})
			}
		})
	}
	wg.Wait()
	if most.Load() > 3 {
		t.Errorf("%d at once", most.Load())
	}
}
