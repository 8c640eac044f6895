package throttle_test

import (
	"fmt"
	"sync/atomic"
	"testing"
	"time"

	"stagedoor/actors/kit/kittest"
	"stagedoor/actors/throttle"
)

func benchmarkGate(b *testing.B, config throttle.Config, parallel int) {
	sys := kittest.Start(b)
	client, err := throttle.Spawn(sys, "provider", config)
	if err != nil {
		b.Fatal(err)
	}
	if _, err := client.Stats(b.Context()); err != nil { // it has started
		b.Fatal(err)
	}
	ctx := b.Context()
	var names atomic.Int64
	b.ReportAllocs()
	b.SetParallelism(parallel)
	b.ResetTimer()
	b.RunParallel(func(pb *testing.PB) {
		ask := throttle.Ask{Owner: fmt.Sprint(names.Add(1)), Class: throttle.Normal, Tokens: 100}
		for pb.Next() {
			permit, err := client.Acquire(ctx, ask)
			if err != nil {
				b.Error(err)
				return
			}
			permit.Release(throttle.Outcome{Kind: throttle.Success, TokensUsed: 90})
		}
	})
}

// BenchmarkFree is a provider without limits: goal 200 ns.
func BenchmarkFree(b *testing.B) { benchmarkGate(b, throttle.Config{}, 1) }

// BenchmarkActor is a provider with limits that are not reached: goal 1.5 µs.
func BenchmarkActor(b *testing.B) {
	benchmarkGate(b, throttle.Config{RequestsPerMinute: 1e9, TokensPerMinute: 1e9, MaxInFlight: 1e6}, 1)
}

// BenchmarkContended is 64 callers for 8 places.
func BenchmarkContended(b *testing.B) {
	benchmarkGate(b, throttle.Config{MaxInFlight: 8, QueueTotal: 1000}, 32)
}

func BenchmarkKeys(b *testing.B) {
	keys := throttle.NewKeys(1000)
	limits := throttle.KeyLimits{RequestsPerMinute: 1e9, TokensPerMinute: 1e9, MaxInFlight: 1e6}
	b.ReportAllocs()
	for b.Loop() {
		pass, refused := admit(keys, "k", limits, 100, time.Now())
		if refused != nil {
			b.Fatal(refused)
		}
		pass.Release(90)
	}
}
