package accesslog_test

import (
	"io"
	"log/slog"
	"net/http/httptest"
	"testing"

	"stagedoor/http/accesslog"
)

// BenchmarkLine measures the log line of one request for text.
func BenchmarkLine(b *testing.B) {
	logger := slog.New(slog.NewTextHandler(io.Discard, nil))
	w, r := httptest.NewRecorder(), httptest.NewRequest("POST", "/v1/chat/completions", nil)
	b.ReportAllocs()
	for b.Loop() {
		a := accesslog.Begin(logger, w, r)
		accesslog.Note(a, slog.String("shape", "chat"), slog.String("model", "m"), slog.String("key", "k"),
			slog.Bool("stream", true))
		accesslog.Note(a, slog.String("provider", "p"), slog.Int("attempts", 1), slog.Bool("untouched", true),
			slog.Int64("input_tokens", 9), slog.Int64("output_tokens", 9), slog.String("degraded", ""),
			slog.String("losses", ""))
		a.End("req_1")
	}
}
