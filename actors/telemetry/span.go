package telemetry

import (
	"context"
	"sync/atomic"

	"go.opentelemetry.io/otel/codes"
	"go.opentelemetry.io/otel/trace"

	"stagedoor/providers/dialogue"
)

// nothing is a span that records nothing.
var nothing = trace.SpanFromContext(context.Background())

// Start starts a span below the one in ctx. If that one does not record, Start only looks into ctx, and callers should
// not make attributes; see trace.Span.IsRecording.
func Start(ctx context.Context, name string, options ...trace.SpanStartOption) (context.Context, trace.Span) {
	parent := trace.SpanFromContext(ctx)
	if !parent.IsRecording() {
		return ctx, nothing
	}
	return tracerOf(parent).Start(ctx, name, options...)
}

// Recording reports whether ctx has a span that records.
func Recording(ctx context.Context) bool { return trace.SpanFromContext(ctx).IsRecording() }

// Fail marks a span as failed. kind is one of a few words, because messages may quote clients. A client that left is
// not a failure.
func Fail(span trace.Span, kind string) {
	if !span.IsRecording() {
		return
	}
	if kind != Cancelled {
		span.SetStatus(codes.Error, kind)
	}
	span.SetAttributes(ErrorType.String(kind))
}

// Cancelled is the kind of an end that a client or an operator caused.
const Cancelled = "cancelled"

// Carry returns into with the span of from, for a context that may outlive the span.
func Carry(into, from context.Context) context.Context {
	span := trace.SpanFromContext(from)
	if !span.IsRecording() {
		return into
	}
	return trace.ContextWithSpan(into, outlived{span})
}

// outlived is a span that may have ended when spans below it begin.
type outlived struct{ trace.Span }

// IsRecording returns true, so that the spans below are recorded.
func (outlived) IsRecording() bool { return true }

// tracers keeps the tracer of the provider that was used last, because a process has one and finding it takes a lock.
var tracers atomic.Pointer[tracer]

// tracer is the tracer that a provider has returned.
type tracer struct {
	provider trace.TracerProvider
	tracer   trace.Tracer
}

// tracerOf returns the tracer that children of span are made with. The last one is kept, so that
// most calls need not ask the provider.
func tracerOf(span trace.Span) trace.Tracer {
	provider := span.TracerProvider()
	if last := tracers.Load(); last != nil && last.provider == provider {
		return last.tracer
	}
	next := &tracer{provider, provider.Tracer(Scope, trace.WithSchemaURL(SchemaURL))}
	tracers.Store(next)
	return next.tracer
}

// ErrorName returns the code of an error, or its type if it has no code, as the label of a metric. The message would
// not do, because it may quote a client and differs from request to request.
func ErrorName(e *dialogue.Error) string {
	if code, ok := e.Code.(string); ok && code != "" {
		return code
	}
	return e.Type
}
