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

// Limits of the spans that are kept.
const (
	maxTraces        = 20_000 // of requests in flight and ended ones together
	maxSpans         = 64     // of one request
	maxText          = 200    // of one attribute
	enabledFor       = 15 * time.Minute
	maxEventsPerSpan = 8
)

type traceID = api.TraceID

// Spans collects the spans of requests, independently of any exporter. A trace is kept while its request is in flight
// or among the ended ones.
type Spans struct {
	mu   sync.Mutex
	open map[traceID]*trace
	// until is the time until which spans are collected, in nanoseconds of Unix time.
	until atomic.Int64
}

var _ sdk.SpanProcessor = (*Spans)(nil)

// trace has the spans of one request.
type trace struct {
	trace traceID
	root  api.SpanID

	mu      sync.Mutex
	claimed bool
	spans   []sdk.ReadOnlySpan
}

// Enable makes the spans of requests that begin within enabledFor be collected, because an administrator looks at them.
// Without that and without an exporter no spans are made.
func (s *Spans) Enable(now time.Time) { s.until.Store(now.Add(enabledFor).UnixNano()) }

// Enabled reports whether Enable was called within enabledFor before now.
func (s *Spans) Enabled(now time.Time) bool { return now.UnixNano() < s.until.Load() }

// OnStart implements sdktrace.SpanProcessor. A trace begins with a span of kind server, even if another process began
// the trace.
func (s *Spans) OnStart(_ context.Context, span sdk.ReadWriteSpan) {
	if span.SpanKind() != api.SpanKindServer {
		return
	}
	id := span.SpanContext()
	s.mu.Lock()
	defer s.mu.Unlock()
	if len(s.open) >= maxTraces {
		return // the request is shown without spans
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
	if !kept { // not a request for a model
		s.forget(t)
	}
}

// Shutdown implements sdktrace.SpanProcessor.
func (*Spans) Shutdown(context.Context) error { return nil }

// ForceFlush implements sdktrace.SpanProcessor.
func (*Spans) ForceFlush(context.Context) error { return nil }

// claim returns the trace of the request in ctx and keeps it, or returns nil if none is recorded.
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
		return nil // another request of the same trace has claimed it
	}
	t.claimed = true
	return t
}

// forget removes a trace.
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

// id returns the id of the trace as text, or "" if the request is not traced.
func (t *trace) id() string {
	if t == nil {
		return ""
	}
	return hex.EncodeToString(t.trace[:])
}

// Span is one step of a request.
type Span struct {
	ID, Parent string // Parent is "" if it is not in this gateway
	Name, Kind string
	Start      time.Time
	Took       time.Duration
	// Failed is set if the step failed, and Failure names the kind of failure.
	Failed     bool
	Failure    string
	Attributes []Attribute
	Events     []Event
}

// Attribute is an attribute of a span.
type Attribute struct{ Key, Value string }

// Event is something that happened during a span.
type Event struct {
	Name string
	At   time.Time
}

// view returns the spans that have ended so far.
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

// viewOf copies what is shown of a span. A child of the root has no parent here, because the root
// itself is not among the spans. Texts and events are bounded, because a provider may have chosen
// them.
func viewOf(span sdk.ReadOnlySpan, root api.SpanID) Span {
	v := Span{
		ID:    span.SpanContext().SpanID().String(),
		Name:  span.Name(),
		Kind:  span.SpanKind().String(),
		Start: span.StartTime(),
		Took:  span.EndTime().Sub(span.StartTime()),
	}
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

// short cuts a long text and marks the cut.
func short(s string) string {
	if len(s) > maxText {
		return s[:maxText] + "…"
	}
	return s
}
