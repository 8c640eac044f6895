package telemetry

import (
	"context"

	"go.opentelemetry.io/otel/propagation"
	"go.opentelemetry.io/otel/trace"
)

// Traceparent writes down which span ctx is in, for work that outlives it, and
// perhaps this process; "" if nobody records it.
func Traceparent(ctx context.Context) string {
	if !Recording(ctx) {
		return ""
	}
	carrier := propagation.MapCarrier{}
	propagation.TraceContext{}.Inject(ctx, carrier)
	return carrier.Get("traceparent")
}

// Linked begins a trace of its own for work that another request has asked for,
// and links to where that wrote down its Traceparent.
func (t *Telemetry) Linked(ctx context.Context, traceparent, name string, options ...trace.SpanStartOption) (context.Context, trace.Span) {
	if t == nil || t.Tracer == nil {
		return ctx, nothing
	}
	from := propagation.TraceContext{}.Extract(context.Background(), propagation.MapCarrier{"traceparent": traceparent})
	if origin := trace.SpanContextFromContext(from); origin.IsValid() {
		options = append(options, trace.WithLinks(trace.Link{SpanContext: origin}))
	}
	return t.Tracer.Start(ctx, name, append(options, trace.WithNewRoot())...)
}

// Origin is the span that work began with which goes on without it, in this
// process. The zero Origin is nobody's.
type Origin struct{ span trace.Span }

// OriginOf is the span in ctx.
func OriginOf(ctx context.Context) Origin {
	if span := trace.SpanFromContext(ctx); span.IsRecording() {
		return Origin{span}
	}
	return Origin{}
}

// Begin begins a trace of its own, linked to the origin.
func (o Origin) Begin(ctx context.Context, name string, options ...trace.SpanStartOption) (context.Context, trace.Span) {
	if o.span == nil {
		return ctx, nothing
	}
	options = append(options, trace.WithNewRoot(), trace.WithLinks(trace.Link{SpanContext: o.span.SpanContext()}))
	return tracerOf(o.span).Start(ctx, name, options...)
}
