package kit_test

import (
	"context"
	"testing"

	"github.com/asynkron/protoactor-go/actor"

	"stagedoor/actors/kit"
	"stagedoor/actors/kit/kittest"
)

// BenchmarkWake is one message to an idle actor and its answer.
func BenchmarkWake(b *testing.B) {
	sys := kittest.Start(b)
	answer := make(chan struct{}, 1)
	pid := spawn(b, sys, func(c actor.Context) {
		if _, ok := c.Message().(bomb); ok {
			answer <- struct{}{}
		}
	})
	for b.Loop() {
		sys.Send(pid, bomb{})
		<-answer
	}
}

func BenchmarkAsk(b *testing.B) {
	sys := kittest.Start(b)
	pid := spawn(b, sys, func(c actor.Context) {
		if q, ok := c.Message().(*question); ok {
			q.Resolve(q.number, nil)
		}
	})
	b.ReportAllocs()
	for b.Loop() {
		if _, err := kit.Ask(b.Context(), sys, pid, &question{}); err != nil {
			b.Fatal(err)
		}
	}
}

func BenchmarkSpawnAndStop(b *testing.B) {
	sys := kittest.Start(b)
	props := sys.Props("brief", func() actor.Actor { return &script{} })
	b.ReportAllocs()
	for b.Loop() {
		pid, err := sys.SpawnUnique(props, "brief")
		if err != nil {
			b.Fatal(err)
		}
		if err := sys.StopActor(b.Context(), pid); err != nil {
			b.Fatal(err)
		}
	}
}

// BenchmarkGo is work beside an actor that needs more stack than a new goroutine
// has, as an HTTP call does.
func BenchmarkGo(b *testing.B) {
	sys := kittest.Start(b)
	pid := spawn(b, sys, func(actor.Context) {})
	done := make(chan struct{})
	b.ReportAllocs()
	for b.Loop() {
		sys.Go(pid, "work", func(context.Context) any {
			deep(40)
			done <- struct{}{}
			return nil
		})
		<-done
	}
}

//go:noinline
func deep(n int) int {
	var frame [128]byte
	if n == 0 {
		return int(frame[n])
	}
	return deep(n-1) + int(frame[n])
}
