package telemetry

import (
	"context"
	"sync/atomic"

	"go.opentelemetry.io/otel/codes"
	"go.opentelemetry.io/otel/trace"

	"stagedoor/providers/dialogue"
)

// nothing is the span of whoever is not traced.
var nothing = trace.SpanFromContext(context.Background())

// Start begins a span below the one in ctx. Without one that records it costs a
// look into ctx, and attributes should not be made: see trace.Span.IsRecording.
func Start(ctx context.Context, name string, options ...trace.SpanStartOption) (context.Context, trace.Span) {
	parent := trace.SpanFromContext(ctx)
	if !parent.IsRecording() {
		return ctx, nothing
	}
	return tracerOf(parent).Start(ctx, name, options...)
}

// Recording reports whether ctx has a span that records.
func Recording(ctx context.Context) bool { return trace.SpanFromContext(ctx).IsRecording() }

// Fail marks a span as failed. kind is one of a small set of words: messages may
// quote what clients sent. That a client left is nobody's failure.
func Fail(span trace.Span, kind string) {
	if !span.IsRecording() {
		return
	}
	if kind != Cancelled {
		span.SetStatus(codes.Error, kind)
	}
	span.SetAttributes(ErrorType.String(kind))
}

// Cancelled is the kind of an end that a client or an operator wanted.
const Cancelled = "cancelled"

// Carry puts the span of one context into another, which may live longer than the
// span.
func Carry(into, from context.Context) context.Context {
	span := trace.SpanFromContext(from)
	if !span.IsRecording() {
		return into
	}
	return trace.ContextWithSpan(into, outlived{span})
}

// outlived is a span that may have ended when others begin below it.
type outlived struct{ trace.Span }

// IsRecording reports that those below are to be recorded.
func (outlived) IsRecording() bool { return true }

// tracers keeps the tracer of the provider that was asked last: a process has
// one, and to ask it takes a lock.
var tracers atomic.Pointer[tracer]

type tracer struct {
	provider trace.TracerProvider
	tracer   trace.Tracer
}

func tracerOf(span trace.Span) trace.Tracer {
	provider := span.TracerProvider()
	if last := tracers.Load(); last != nil && last.provider == provider {
		return last.tracer
	}
	next := &tracer{provider, provider.Tracer(Scope, trace.WithSchemaURL(SchemaURL))}
	tracers.Store(next)
	return next.tracer
}

// ErrorName is what an error is called where it is counted: its code, for its
// message may quote what a client sent.
func ErrorName(e *dialogue.Error) string {
	if code, ok := e.Code.(string); ok && code != "" {
		return code
	}
	return e.Type
}
