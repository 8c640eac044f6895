package telemetry

import (
	"context"
	"time"

	"go.opentelemetry.io/otel/trace"
)

// queueSpan is how long a wait must be to have a span of its own (actors.md 4.1).
const queueSpan = time.Millisecond

// Wait is a request's time in the queue of a provider.
type Wait struct {
	Provider string
	Attempt  int
	Asked    time.Time
	Waited   time.Duration
	Position int    // from 1; 0: there was no queue
	Refused  string // why there was no permit, or ""
}

// Queued tells of a wait that is over: of every one in metrics, and in a span of
// those that took time or led to nothing.
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
	_, span := Start(ctx, SpanQueue, trace.WithTimestamp(w.Asked), trace.WithAttributes(Provider.String(w.Provider), Attempt.Int(w.Attempt)))
	if w.Refused != "" {
		Fail(span, w.Refused)
		span.End()
		return
	}
	span.SetAttributes(QueueWait.Float64(w.Waited.Seconds()), QueuePosition.Int(w.Position))
	span.End(trace.WithTimestamp(w.Asked.Add(w.Waited)))
}
