package telemetry

import (
	sdktrace "go.opentelemetry.io/otel/sdk/trace"
	"go.opentelemetry.io/otel/trace"
)

// sampler decides which traces are recorded and which are kept in any case. Trusted callers have decided for their own
// traces; see server.Tracing.
type sampler struct {
	share sdktrace.Sampler
	// all is set if the other traces are recorded too, because the tail decides at their end.
	all bool
}

// ShouldSample implements sdktrace.Sampler.
func (s sampler) ShouldSample(p sdktrace.SamplingParameters) sdktrace.SamplingResult {
	parent := trace.SpanFromContext(p.ParentContext)
	caller := parent.SpanContext()
	result := sdktrace.SamplingResult{Decision: sdktrace.Drop, Tracestate: caller.TraceState()}
	var kept bool
	switch {
	case !caller.IsValid():
		kept = s.share.ShouldSample(p).Decision == sdktrace.RecordAndSample
	default:
		kept = caller.IsSampled()
	}
	local := caller.IsValid() && !caller.IsRemote()
	switch {
	case kept:
		result.Decision = sdktrace.RecordAndSample
	// A span below a recorded one is recorded with it, so that a trace which is kept at its end has all its spans.
	case local && parent.IsRecording(), !local && s.all:
		result.Decision = sdktrace.RecordOnly
	}
	return result
}

// Description implements sdktrace.Sampler.
func (s sampler) Description() string { return "stagedoor{" + s.share.Description() + "}" }
