package telemetry

import (
	"context"
	"sync"
	"sync/atomic"
	"time"

	"go.opentelemetry.io/otel/codes"
	sdktrace "go.opentelemetry.io/otel/sdk/trace"
	"go.opentelemetry.io/otel/trace"

	"stagedoor/state/share"
)

const (
	// maxHeld bounds the spans of all requests that wait for the end of their request. Each has about a kilobyte.
	maxHeld = 32 << 10
	// maxHeldEach bounds those of one request.
	maxHeldEach = 128
	// remembered is the number of kept traces that are known, for spans that end
	// after their request.
	remembered = 4096
	tailShards = 16
)

// tail is a span processor. It passes sampled spans on at once. The other spans wait for the end of their
// request and are passed on if the request failed or was slow.
type tail struct {
	next   func(sdktrace.ReadOnlySpan)
	errors bool
	slow   time.Duration // 0: no request is slow

	shards  [tailShards]tailShard
	kept    *share.Cache[struct{}] // the traces that were kept, under one owner
	held    atomic.Int64
	dropped atomic.Int64
}

type tailShard struct {
	mu   sync.Mutex
	live map[trace.TraceID]*waiting
}

// waiting has the spans of one trace whose request is in flight.
type waiting struct {
	roots  int // spans without a parent in this process, that have not ended
	spans  []sdktrace.ReadOnlySpan
	failed bool
}

var _ sdktrace.SpanProcessor = (*tail)(nil)

// newTail returns a tail that passes spans to next.
func newTail(errors bool, slow time.Duration, next func(sdktrace.ReadOnlySpan)) *tail {
	t := &tail{next: next, errors: errors, slow: slow, kept: share.NewCache[struct{}](remembered, 0, nil)}
	for i := range t.shards {
		t.shards[i].live = make(map[trace.TraceID]*waiting)
	}
	return t
}

// shard returns the part of the map that has a trace. Sixteen locks keep requests from waiting for each other.
func (t *tail) shard(id trace.TraceID) *tailShard { return &t.shards[id[15]%tailShards] }

// root reports whether a span is the first of its trace in this process.
func root(s sdktrace.ReadOnlySpan) bool { return !s.Parent().IsValid() || s.Parent().IsRemote() }

// OnStart implements sdktrace.SpanProcessor.
func (t *tail) OnStart(_ context.Context, s sdktrace.ReadWriteSpan) {
	if s.SpanContext().IsSampled() || !root(s) {
		return
	}
	id := s.SpanContext().TraceID()
	shard := t.shard(id)
	shard.mu.Lock()
	defer shard.mu.Unlock()
	w := shard.live[id]
	if w == nil {
		w = &waiting{}
		shard.live[id] = w
	}
	w.roots++
}

// OnEnd implements sdktrace.SpanProcessor.
func (t *tail) OnEnd(s sdktrace.ReadOnlySpan) {
	if s.SpanContext().IsSampled() {
		t.next(s)
		return
	}
	for _, s := range t.decide(s) {
		t.next(kept{s})
	}
}

// decide returns the spans that are kept now that s has ended.
func (t *tail) decide(s sdktrace.ReadOnlySpan) []sdktrace.ReadOnlySpan {
	id := s.SpanContext().TraceID()
	shard := t.shard(id)
	shard.mu.Lock()
	defer shard.mu.Unlock()
	w := shard.live[id]
	if w == nil {
		// The request of this span has ended, so its trace was decided. A late span goes where its trace went.
		if _, ok := t.kept.Get("", string(id[:])); ok {
			return []sdktrace.ReadOnlySpan{s}
		}
		return nil
	}
	w.failed = w.failed || s.Status().Code == codes.Error
	if !root(s) {
		t.hold(w, s)
		return nil
	}
	w.roots--
	// A trace that other processes call into several times has several roots. The first one that is kept decides for
	// all.
	keep := w.failed && t.errors || t.slow > 0 && s.EndTime().Sub(s.StartTime()) >= t.slow
	spans := w.spans
	if keep || w.roots <= 0 {
		t.held.Add(-int64(len(w.spans)))
		w.spans = nil
	}
	if w.roots <= 0 {
		delete(shard.live, id)
	}
	if !keep {
		return nil
	}
	t.kept.Put("", string(id[:]), struct{}{}, 1)
	return append(spans, s)
}

// hold keeps a span until its request ends, if there is room.
func (t *tail) hold(w *waiting, s sdktrace.ReadOnlySpan) {
	if len(w.spans) >= maxHeldEach || t.held.Load() >= maxHeld {
		t.dropped.Add(1)
		return
	}
	t.held.Add(1)
	w.spans = append(w.spans, s)
}

// Shutdown implements sdktrace.SpanProcessor. It does nothing, because the queue after it has another owner.
func (t *tail) Shutdown(context.Context) error { return nil }

// ForceFlush implements sdktrace.SpanProcessor. Spans that wait for the end of a request cannot be flushed.
func (t *tail) ForceFlush(context.Context) error { return nil }

// kept is a span that was not sampled and is passed on nevertheless.
type kept struct{ sdktrace.ReadOnlySpan }

// SpanContext marks the span as sampled, because collectors drop others.
func (k kept) SpanContext() trace.SpanContext {
	c := k.ReadOnlySpan.SpanContext()
	return c.WithTraceFlags(c.TraceFlags().WithSampled(true))
}
