package translator

import (
	"context"
	"testing"

	"stagedoor/actors/kit"
)

// An order in the hands of a shard that fails is answered, and counted out once.
func TestTheOrderAShardFailsWithIsAnswered(t *testing.T) {
	svc := &Service{inFlight: kit.NewInFlight()}
	svc.inFlight.Enter()
	ctx, cancel := context.WithCancelCause(t.Context())
	o := &open{svc: svc, ctx: ctx, cancel: cancel, conduit: &conduit{frames: make(chan Frame, window)}}
	s := &shard{svc: svc, pending: o, live: map[string]*open{}}
	s.Failed("anything")
	s.Failed("again")
	o.Reject(0)
	if f := <-o.conduit.frames; f.Err == nil || f.Err.Status != 500 {
		t.Errorf("got %+v, want an internal error", f)
	}
	if _, more := <-o.conduit.frames; more {
		t.Error("a second frame")
	}
	if svc.InFlight() != 0 || ctx.Err() == nil {
		t.Errorf("%d in flight, cancelled: %v", svc.InFlight(), ctx.Err())
	}
}
