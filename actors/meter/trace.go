package meter

import (
	"context"

	"go.opentelemetry.io/otel/trace"

	"stagedoor/actors/ledger"
	"stagedoor/actors/telemetry"
)

// endHoldSpan ends the span of a hold with its amount or its error.
func endHoldSpan(span trace.Span, amount int64, err error) {
	if span.IsRecording() {
		span.SetAttributes(telemetry.Held.Float64(telemetry.Dollars(amount)))
		if err != nil {
			telemetry.Fail(span, telemetry.ErrorName(ledger.Refusal(err)))
		}
	}
	span.End()
}

// endSettleSpan ends the span of a settlement or a release.
func endSettleSpan(span trace.Span, amount int64, reason string, err error) {
	if span.IsRecording() {
		span.SetAttributes(telemetry.Cost.Float64(telemetry.Dollars(amount)), telemetry.EndReason.String(reason))
		if err != nil {
			telemetry.Fail(span, telemetry.ErrorName(ledger.Refusal(err)))
		}
	}
	span.End()
}

// release ends a hold without a charge.
func release(ctx context.Context, end func(), reason string) {
	_, span := telemetry.Start(ctx, telemetry.SpanSettle)
	end()
	endSettleSpan(span, 0, reason, nil)
}
