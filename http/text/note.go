package text

import (
	"log/slog"

	"go.opentelemetry.io/otel/trace"

	"stagedoor/actors/telemetry"
	"stagedoor/actors/text"
	"stagedoor/http/accesslog"
	"stagedoor/providers/dialogue"
)

// note adds the shape, model, key and outcome to the request's line in the log. out is nil for a
// request that was not begun.
func (rc *requestContext) note(out *text.Outcome) {
	if out != nil && out.Err != nil {
		accesslog.Outcome(rc.w, out.Err.Status) // for metrics, also if no line is written
	}
	if !accesslog.Wanted(rc.w) {
		return
	}
	accesslog.Note(rc.w, slog.String("shape", string(rc.shape.Name)), slog.Bool("stream", rc.head.Stream))
	for _, known := range [...]slog.Attr{slog.String("model", short(rc.head.Model)), slog.String("key", rc.key.ID)} {
		if known.Value.String() != "" {
			accesslog.Note(rc.w, known)
		}
	}
	if out == nil {
		return
	}
	accesslog.Note(rc.w, slog.String("provider", out.Provider), slog.Duration("queued", out.Queued),
		slog.Int("attempts", out.Attempts), slog.Bool("untouched", out.Untouched))
	if out.Err != nil && out.Committed { // otherwise answer has noted it
		accesslog.Note(rc.w, slog.String("error", telemetry.ErrorName(out.Err)))
	}
	if n := out.Usage.InputTotal; n >= 0 {
		accesslog.Note(rc.w, slog.Int64("input_tokens", n))
	}
	if n := out.Usage.OutputTotal; n >= 0 {
		accesslog.Note(rc.w, slog.Int64("output_tokens", n))
	}
	for _, change := range [...]slog.Attr{slog.String("degraded", out.Degraded), slog.String("losses", out.Losses)} {
		if change.Value.String() != "" {
			accesslog.Note(rc.w, change)
		}
	}
}

// trace sets the same attributes on the request's span.
func (rc *requestContext) trace(out *text.Outcome) {
	span := trace.SpanFromContext(rc.r.Context())
	if !span.IsRecording() {
		return
	}
	span.SetAttributes(telemetry.Shape.String(string(rc.shape.Name)),
		telemetry.RequestModel.String(short(rc.head.Model)), telemetry.KeyID.String(rc.key.ID),
		telemetry.RequestStream.Bool(rc.head.Stream))
	if out == nil {
		return
	}
	span.SetAttributes(telemetry.Provider.String(out.Provider), telemetry.Attempts.Int(out.Attempts),
		telemetry.Untouched.Bool(out.Untouched), telemetry.QueueWait.Float64(out.Queued.Seconds()))
	if out.Degraded != "" {
		span.SetAttributes(telemetry.Degraded.String(out.Degraded))
	}
	if out.Losses != "" {
		span.SetAttributes(telemetry.Losses.String(out.Losses))
	}
	switch {
	case out.Err == nil:
	case out.Err.Status == dialogue.StatusClientClosed:
		telemetry.Fail(span, telemetry.Cancelled)
	case out.Err.Status >= 500 || out.Committed:
		telemetry.Fail(span, telemetry.ErrorName(out.Err))
	default:
		span.SetAttributes(telemetry.ErrorType.String(telemetry.ErrorName(out.Err)))
	}
}

// short cuts text of a client for a message or a log line.
func short(s string) string {
	const most = 128
	if len(s) > most {
		return s[:most]
	}
	return s
}
