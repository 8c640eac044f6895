package telemetry

import (
	"context"
	"sync"
	"sync/atomic"
	"time"

	"go.opentelemetry.io/otel/codes"
	sdktrace "go.opentelemetry.io/otel/sdk/trace"
	"go.opentelemetry.io/otel/trace"
)

const (
	// maxHeld bounds the spans that wait for the end of their request, of all
	// requests together: about a kilobyte each.
	maxHeld = 32 << 10
	// maxHeldEach bounds those of one request.
	maxHeldEach = 128
	// remembered is how many traces that were kept a shard knows, for spans that
	// end after their request.
	remembered = 256
	tailShards = 16
)

// tail is a span processor. Spans that were sampled pass at once; the others wait
// for their request's end, and pass if it failed or was slow.
type tail struct {
	next   func(sdktrace.ReadOnlySpan)
	errors bool
	slow   time.Duration // 0: no request is slow

	shards  [tailShards]tailShard
	held    atomic.Int64
	dropped atomic.Int64
}

type tailShard struct {
	mu   sync.Mutex
	live map[trace.TraceID]*waiting
	// kept are the traces that were decided on last, order their age.
	kept  map[trace.TraceID]struct{}
	order [remembered]trace.TraceID
	next  int
}

// waiting are the spans of one trace whose request is under way.
type waiting struct {
	roots  int // spans without a parent in this process, that have not ended
	spans  []sdktrace.ReadOnlySpan
	failed bool
}

var _ sdktrace.SpanProcessor = (*tail)(nil)

func newTail(errors bool, slow time.Duration, next func(sdktrace.ReadOnlySpan)) *tail {
	t := &tail{next: next, errors: errors, slow: slow}
	for i := range t.shards {
		t.shards[i].live = make(map[trace.TraceID]*waiting)
		t.shards[i].kept = make(map[trace.TraceID]struct{})
	}
	return t
}

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
		if _, ok := shard.kept[id]; ok {
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
	shard.remember(id)
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

func (s *tailShard) remember(id trace.TraceID) {
	if _, ok := s.kept[id]; ok {
		return
	}
	delete(s.kept, s.order[s.next])
	s.order[s.next], s.next = id, (s.next+1)%remembered
	s.kept[id] = struct{}{}
}

// Shutdown implements sdktrace.SpanProcessor. The queue behind is its owner's.
func (t *tail) Shutdown(context.Context) error { return nil }

// ForceFlush implements sdktrace.SpanProcessor: what waits for the end of a
// request has none to flush yet.
func (t *tail) ForceFlush(context.Context) error { return nil }

// kept is a span that was not sampled and is kept all the same.
type kept struct{ sdktrace.ReadOnlySpan }

// SpanContext says that the span is sampled: collectors drop others.
func (k kept) SpanContext() trace.SpanContext {
	c := k.ReadOnlySpan.SpanContext()
	return c.WithTraceFlags(c.TraceFlags().WithSampled(true))
}
