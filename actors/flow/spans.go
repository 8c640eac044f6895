package flow

import (
	"context"
	"encoding/hex"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"go.opentelemetry.io/otel/codes"
	sdk "go.opentelemetry.io/otel/sdk/trace"
	api "go.opentelemetry.io/otel/trace"
)

// Bounds of what is kept of spans.
const (
	maxTraces        = 20_000 // at once: of requests under way and of those remembered
	maxSpans         = 64     // of one request
	maxText          = 200    // of one attribute
	wantedFor        = 15 * time.Minute
	maxEventsPerSpan = 8
)

type traceID = api.TraceID

// Spans collects the spans of requests, beside whoever exports them. A trace is kept
// as long as its request is under way or remembered.
type Spans struct {
	mu   sync.Mutex
	open map[traceID]*trace
	// wanted is until when somebody wants spans, in nanoseconds of Unix time.
	wanted atomic.Int64
}

var _ sdk.SpanProcessor = (*Spans)(nil)

// trace is the spans of one request.
type trace struct {
	trace traceID
	root  api.SpanID

	mu      sync.Mutex
	claimed bool
	spans   []sdk.ReadOnlySpan
}

// Want asks for spans of the requests to come: somebody looks at them. Without that,
// and without anybody who exports them, none need be made.
func (s *Spans) Want(now time.Time) { s.wanted.Store(now.Add(wantedFor).UnixNano()) }

// Wanted reports whether somebody looked lately.
func (s *Spans) Wanted(now time.Time) bool { return now.UnixNano() < s.wanted.Load() }

// Kept returns the number of traces that are kept now.
func (s *Spans) Kept() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return len(s.open)
}

// OnStart implements sdktrace.SpanProcessor: a trace begins with the span of a
// server, whoever may have begun it elsewhere.
func (s *Spans) OnStart(_ context.Context, span sdk.ReadWriteSpan) {
	if span.SpanKind() != api.SpanKindServer {
		return
	}
	id := span.SpanContext()
	s.mu.Lock()
	defer s.mu.Unlock()
	if len(s.open) >= maxTraces {
		return // its request is shown without spans
	}
	if s.open[id.TraceID()] == nil { // a caller may send several requests of one trace
		s.open[id.TraceID()] = &trace{trace: id.TraceID(), root: id.SpanID()}
	}
}

// OnEnd implements sdktrace.SpanProcessor.
func (s *Spans) OnEnd(span sdk.ReadOnlySpan) {
	id := span.SpanContext()
	s.mu.Lock()
	t := s.open[id.TraceID()]
	s.mu.Unlock()
	if t == nil {
		return
	}
	t.mu.Lock()
	if len(t.spans) < maxSpans {
		t.spans = append(t.spans, span)
	}
	kept := t.claimed || id.SpanID() != t.root
	t.mu.Unlock()
	if !kept { // a request that was none for a model
		s.forget(t)
	}
}

// Shutdown implements sdktrace.SpanProcessor.
func (*Spans) Shutdown(context.Context) error { return nil }

// ForceFlush implements sdktrace.SpanProcessor.
func (*Spans) ForceFlush(context.Context) error { return nil }

// claim is the trace of the request in ctx, to be kept; nil: none is recorded.
func (s *Spans) claim(ctx context.Context) *trace {
	span := api.SpanFromContext(ctx)
	if !span.IsRecording() {
		return nil
	}
	s.mu.Lock()
	t := s.open[span.SpanContext().TraceID()]
	s.mu.Unlock()
	if t == nil {
		return nil
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.claimed {
		return nil // another request of the same trace has it
	}
	t.claimed = true
	return t
}

// forget drops a trace.
func (s *Spans) forget(t *trace) {
	if t == nil {
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.open[t.trace] == t {
		delete(s.open, t.trace)
	}
}

func (t *trace) id() string {
	if t == nil {
		return ""
	}
	return hex.EncodeToString(t.trace[:])
}

// Span is a part of a request's work.
type Span struct {
	ID, Parent string // Parent is "" where it is somebody else's
	Name, Kind string
	Start      time.Time
	Took       time.Duration
	// Failure is what went wrong, in a word; Failed: something did.
	Failed     bool
	Failure    string
	Attributes []Attribute
	Events     []Event
}

// Attribute is what a span says of itself.
type Attribute struct{ Key, Value string }

// Event is something that happened during a span.
type Event struct {
	Name string
	At   time.Time
}

func (t *trace) view() []Span {
	if t == nil {
		return nil
	}
	t.mu.Lock()
	spans := slices.Clone(t.spans)
	t.mu.Unlock()
	all := make([]Span, len(spans))
	for i, span := range spans {
		all[i] = viewOf(span, t.root)
	}
	return all
}

func viewOf(span sdk.ReadOnlySpan, root api.SpanID) Span {
	v := Span{ID: span.SpanContext().SpanID().String(), Name: span.Name(), Kind: span.SpanKind().String(), Start: span.StartTime(),
		Took: span.EndTime().Sub(span.StartTime())}
	if parent := span.Parent(); parent.HasSpanID() && span.SpanContext().SpanID() != root {
		v.Parent = parent.SpanID().String()
	}
	if status := span.Status(); status.Code == codes.Error {
		v.Failed, v.Failure = true, status.Description
	}
	for _, a := range span.Attributes() {
		v.Attributes = append(v.Attributes, Attribute{string(a.Key), short(a.Value.String())})
	}
	for _, e := range span.Events()[:min(len(span.Events()), maxEventsPerSpan)] {
		v.Events = append(v.Events, Event{e.Name, e.Time})
	}
	return v
}

func short(s string) string {
	if len(s) > maxText {
		return s[:maxText] + "…"
	}
	return s
}
