package videojob

import (
	"context"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/trace"

	"stagedoor/actors/telemetry"
	"stagedoor/state/work"
)

// Observe traces steps from now on. Jobs of earlier processes may be in flight already.
func (s *Service) Observe(t *telemetry.Telemetry) { s.telemetry.Store(t) }

// actionNames are the actions in the names of spans.
var actionNames = [...]string{submit: "submit", poll: "poll", settle: "settle", nothing: "end"}

// runTraced runs act in a trace of its own. The trace is linked to the request for the video, which
// was answered long ago, perhaps by another process.
func (s *step) runTraced(ctx context.Context, act func(context.Context)) {
	before := s.video.Phase
	ctx, span := s.svc.telemetry.Load().Linked(ctx, s.video.Traceparent, "video."+actionNames[nextAction(&s.video)],
		trace.WithSpanKind(trace.SpanKindClient),
		trace.WithAttributes(telemetry.Operation.String(telemetry.OperationVideo),
			telemetry.JobID.String(s.video.ID), telemetry.Provider.String(s.video.Provider),
			telemetry.RequestModel.String(s.video.UpstreamModel), telemetry.Attempt.Int(s.video.Attempts)))
	act(ctx)
	if span.IsRecording() {
		s.describeOutcome(span, before)
	}
	span.End()
}

// describeOutcome records the result of the step in its span.
func (s *step) describeOutcome(span trace.Span, before work.VideoPhase) {
	span.SetAttributes(telemetry.JobStatus.String(string(s.video.Phase)))
	if s.video.Phase != before {
		span.AddEvent(
			"stagedoor.job.transition",
			trace.WithAttributes(attribute.String("stagedoor.job.from", string(before)),
				telemetry.JobStatus.String(string(s.video.Phase))),
		)
	}
	if s.video.Error != nil {
		telemetry.Fail(span, s.video.Error.Code)
	}
	if s.video.Cost > 0 {
		span.SetAttributes(telemetry.Cost.Float64(telemetry.Dollars(s.video.Cost)))
	}
}
