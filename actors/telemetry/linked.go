package telemetry

import (
	"context"

	"go.opentelemetry.io/otel/propagation"
	"go.opentelemetry.io/otel/trace"
)

// Traceparent returns the span in ctx as text, for work that outlives it and perhaps this process. It is "" if the span
// is not recorded.
func Traceparent(ctx context.Context) string {
	if !Recording(ctx) {
		return ""
	}
	carrier := propagation.MapCarrier{}
	propagation.TraceContext{}.Inject(ctx, carrier)
	return carrier.Get("traceparent")
}

// Linked starts a trace for work that an earlier request asked for, with a link to the Traceparent of that request.
func (t *Telemetry) Linked(ctx context.Context, traceparent, name string,
	options ...trace.SpanStartOption) (context.Context, trace.Span) {
	if t == nil || t.Tracer == nil {
		return ctx, nothing
	}
	from := propagation.TraceContext{}.Extract(context.Background(), propagation.MapCarrier{"traceparent": traceparent})
	if origin := trace.SpanContextFromContext(from); origin.IsValid() {
		options = append(options, trace.WithLinks(trace.Link{SpanContext: origin}))
	}
	return t.Tracer.Start(ctx, name, append(options, trace.WithNewRoot())...)
}

// Origin is the span in which work began that continues without it in this process. The zero Origin links to no span.
type Origin struct{ span trace.Span }

// OriginOf returns the span in ctx as an Origin.
func OriginOf(ctx context.Context) Origin {
	if span := trace.SpanFromContext(ctx); span.IsRecording() {
		return Origin{span}
	}
	return Origin{}
}

// Begin starts a trace that is linked to the origin.
func (o Origin) Begin(ctx context.Context, name string,
	options ...trace.SpanStartOption) (context.Context, trace.Span) {
	if o.span == nil {
		return ctx, nothing
	}
	options = append(options, trace.WithNewRoot(), trace.WithLinks(trace.Link{SpanContext: o.span.SpanContext()}))
	return tracerOf(o.span).Start(ctx, name, options...)
}
