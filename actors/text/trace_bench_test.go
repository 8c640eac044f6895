package text_test

import (
	"context"
	"net/http"
	"strings"
	"testing"

	sdkmetric "go.opentelemetry.io/otel/sdk/metric"
	sdktrace "go.opentelemetry.io/otel/sdk/trace"
	"go.opentelemetry.io/otel/trace"
	"go.opentelemetry.io/otel/trace/noop"

	"stagedoor/actors/kit/kittest"
	"stagedoor/actors/telemetry"
	"stagedoor/providers/catalog"
	"stagedoor/providers/dialogue/dialoguetest"
)

// recorded records everything and keeps nothing, as for a request that was not
// sampled and may yet turn out to be slow.
type recorded struct{}

func (recorded) ShouldSample(sdktrace.SamplingParameters) sdktrace.SamplingResult {
	return sdktrace.SamplingResult{Decision: sdktrace.RecordOnly}
}
func (recorded) Description() string { return "recorded" }

// nowhere is an exporter that discards spans.
type nowhere struct{}

func (nowhere) OnStart(context.Context, sdktrace.ReadWriteSpan) {}
func (nowhere) OnEnd(sdktrace.ReadOnlySpan)                     {}
func (nowhere) Shutdown(context.Context) error                  { return nil }
func (nowhere) ForceFlush(context.Context) error                { return nil }

// BenchmarkTraced is BenchmarkRequest for a stream of 100 tokens, by who looks on.
func BenchmarkTraced(b *testing.B) {
	long := chatRole + strings.Repeat(chatText("Hello"), 100) + chatStop + chatDone
	for _, bench := range []struct {
		name    string
		sampler sdktrace.Sampler
		metrics bool
	}{{"off", nil, false}, {"metrics", nil, true}, {"unsampled", sdktrace.NeverSample(), false},
		{"recorded", recorded{}, false},
		{"sampled", sdktrace.AlwaysSample(), false}, {"sampled+metrics", sdktrace.AlwaysSample(), true}} {
		b.Run(bench.name, func(b *testing.B) {
			s := newStage(b, kittest.Start(b))
			s.add(catalog.Provider{Name: "a", Shape: dialoguetest.Chat, BaseURL: "http://a.test",
				APIKeys: []string{"k"}},
				&canned{http.Header{"Content-Type": {"text/event-stream"}}, long})
			if bench.metrics {
				m, err := telemetry.NewMetrics(sdkmetric.NewMeterProvider(sdkmetric.WithReader(sdkmetric.NewManualReader())).Meter("bench"))
				if err != nil {
					b.Fatal(err)
				}
				s.engine.Observe(&telemetry.Telemetry{Metrics: m})
			}
			var tracer trace.Tracer = noop.NewTracerProvider().Tracer("bench")
			if bench.sampler != nil {
				tracer = sdktrace.NewTracerProvider(sdktrace.WithSampler(bench.sampler),
					sdktrace.WithSpanProcessor(nowhere{})).Tracer("bench")
			}
			o := s.request(dialoguetest.Chat, chatAskStream)
			b.ReportAllocs()
			for b.Loop() {
				ctx, span := tracer.Start(context.Background(), "request")
				r := s.service.Begin(ctx, o)
				for f := range r.Chunks() {
					if f.Err != nil {
						b.Fatal(f.Err)
					}
					f.Data.Free()
				}
				span.End()
			}
		})
	}
}
