package telemetry

import (
	"context"
	"time"

	"go.opentelemetry.io/otel/trace"
)

// queueSpan is the shortest wait that has a span of its own. Shorter ones would only clutter traces.
const queueSpan = time.Millisecond

// Wait describes the time of a request in the queue of a provider.
type Wait struct {
	Provider string
	Attempt  int
	Asked    time.Time
	Waited   time.Duration
	Position int    // from 1, or 0 if there was no queue
	Refused  string // the reason of a refusal, or ""
}

// Queued reports a wait that is over. Metrics get every wait, and a span is made of those that took time or were
// refused.
func (t *Telemetry) Queued(ctx context.Context, w Wait) {
	if w.Refused == "" {
		t.metricsOrNil().Waited(w.Provider, w.Waited)
		if w.Waited < queueSpan {
			return
		}
	}
	if !Recording(ctx) {
		return
	}
	_, span := Start(ctx, SpanQueue, trace.WithTimestamp(w.Asked),
		trace.WithAttributes(Provider.String(w.Provider), Attempt.Int(w.Attempt)))
	if w.Refused != "" {
		Fail(span, w.Refused)
		span.End()
		return
	}
	span.SetAttributes(QueueWait.Float64(w.Waited.Seconds()), QueuePosition.Int(w.Position))
	span.End(trace.WithTimestamp(w.Asked.Add(w.Waited)))
}
