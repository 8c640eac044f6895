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
