package meter

import (
	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/trace"

	"stagedoor/actors/ledger"
	"stagedoor/actors/telemetry"
)

// endSpan ends the span of a hold or a settlement with its attributes and its error.
func endSpan(span trace.Span, err error, attributes ...attribute.KeyValue) {
	if span.IsRecording() {
		span.SetAttributes(attributes...)
		if err != nil {
			telemetry.Fail(span, telemetry.ErrorName(ledger.Refusal(err)))
		}
	}
	span.End()
}
