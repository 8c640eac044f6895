package text

import (
	"log/slog"

	"go.opentelemetry.io/otel/trace"

	"stagedoor/actors/telemetry"
	"stagedoor/actors/text"
	"stagedoor/http/accesslog"
)

// note adds what the door knows to the line of the request. out is nil for one
// that did not get as far as the text.
func (v *visit) note(out *text.Outcome) {
	if out != nil && out.Err != nil {
		accesslog.Outcome(v.w, out.Err.Status) // metrics ask for it whatever is logged
	}
	if !accesslog.Wanted(v.w) {
		return
	}
	accesslog.Note(v.w, slog.String("shape", string(v.shape.Name)), slog.Bool("stream", v.head.Stream))
	for _, known := range [...]slog.Attr{slog.String("model", short(v.head.Model)), slog.String("key", v.key.ID)} {
		if known.Value.String() != "" {
			accesslog.Note(v.w, known)
		}
	}
	if out == nil {
		return
	}
	accesslog.Note(v.w, slog.String("provider", out.Provider), slog.Duration("queued", out.Queued), slog.Int("attempts", out.Attempts),
		slog.Bool("untouched", out.Untouched))
	if out.Err != nil && out.Committed { // else answer has said so
		accesslog.Note(v.w, slog.String("error", telemetry.ErrorName(out.Err)))
	}
	if n := out.Usage.InputTotal; n >= 0 {
		accesslog.Note(v.w, slog.Int64("input_tokens", n))
	}
	if n := out.Usage.OutputTotal; n >= 0 {
		accesslog.Note(v.w, slog.Int64("output_tokens", n))
	}
	for _, told := range [...]slog.Attr{slog.String("degraded", out.Degraded), slog.String("losses", out.Losses)} {
		if told.Value.String() != "" {
			accesslog.Note(v.w, told)
		}
	}
}

// trace adds what the door knows to the span of the request, as note does to its
// line.
func (v *visit) trace(out *text.Outcome) {
	span := trace.SpanFromContext(v.r.Context())
	if !span.IsRecording() {
		return
	}
	span.SetAttributes(telemetry.Shape.String(string(v.shape.Name)), telemetry.RequestModel.String(short(v.head.Model)),
		telemetry.KeyID.String(v.key.ID), telemetry.RequestStream.Bool(v.head.Stream))
	if out == nil {
		return
	}
	span.SetAttributes(telemetry.Provider.String(out.Provider), telemetry.Attempts.Int(out.Attempts), telemetry.Untouched.Bool(out.Untouched),
		telemetry.QueueWait.Float64(out.Queued.Seconds()))
	if out.Degraded != "" {
		span.SetAttributes(telemetry.Degraded.String(out.Degraded))
	}
	if out.Losses != "" {
		span.SetAttributes(telemetry.Losses.String(out.Losses))
	}
	switch {
	case out.Err == nil:
	case out.Err.Status == statusClientLeft:
		telemetry.Fail(span, telemetry.Cancelled)
	case out.Err.Status >= 500 || out.Committed:
		telemetry.Fail(span, telemetry.ErrorName(out.Err))
	default:
		span.SetAttributes(telemetry.ErrorType.String(telemetry.ErrorName(out.Err)))
	}
}

// statusClientLeft is how upstream.Cancelled names a client that has left.
const statusClientLeft = 499

// short cuts what a client sent to what a message or log line can bear.
func short(s string) string {
	const most = 128
	if len(s) > most {
		return s[:most]
	}
	return s
}
