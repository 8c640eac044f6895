package telemetry

import (
	"context"
	"errors"
	"log/slog"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"go.opentelemetry.io/otel/codes"
	sdktrace "go.opentelemetry.io/otel/sdk/trace"
	"go.opentelemetry.io/otel/trace"

	"stagedoor/cmd/stagedoor/config"
)

// bench is a tracer whose spans are not sampled, behind a tail.
type bench struct {
	tail   *tail
	tracer trace.Tracer
	passed []string
}

func newBench(share float64, keepErrors bool, slow time.Duration) *bench {
	b := &bench{}
	b.tail = newTail(keepErrors, slow, func(s sdktrace.ReadOnlySpan) {
		if !s.SpanContext().IsSampled() {
			panic("a span that collectors drop")
		}
		b.passed = append(b.passed, s.Name())
	})
	b.tracer = sdktrace.NewTracerProvider(sdktrace.WithSpanProcessor(b.tail),
		sdktrace.WithSampler(sampler{share: sdktrace.TraceIDRatioBased(share), all: true})).Tracer("test")
	return b
}

func TestTailKeepsWhatFailedOrWasSlow(t *testing.T) {
	for _, c := range []struct {
		name   string
		share  float64
		errors bool
		slow   time.Duration
		fail   string // name of the span that fails
		took   time.Duration
		want   []string
	}{
		{name: "neither", errors: true, slow: time.Second},
		{name: "sampled", share: 1, want: []string{"call", "request", "late"}},
		{name: "slow", slow: time.Second, took: time.Second, want: []string{"call", "request", "late"}},
		{name: "almost slow", slow: time.Second, took: time.Second - 1},
		{name: "request failed", errors: true, fail: "request", want: []string{"call", "request", "late"}},
		{name: "call failed", errors: true, fail: "call", want: []string{"call", "request", "late"}},
		{name: "failures are not wanted", fail: "call"},
	} {
		t.Run(c.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				b := newBench(c.share, c.errors, c.slow)
				ctx, request := b.tracer.Start(context.Background(), "request")
				_, call := b.tracer.Start(ctx, "call")
				_, late := b.tracer.Start(ctx, "late")
				for name, s := range map[string]trace.Span{"request": request, "call": call} {
					if name == c.fail {
						s.SetStatus(codes.Error, "")
					}
				}
				call.End()
				time.Sleep(c.took)
				request.End()
				late.End()
				if !slices.Equal(b.passed, c.want) {
					t.Errorf("passed %q, want %q", b.passed, c.want)
				}
				if n := b.tail.held.Load(); n != 0 {
					t.Errorf("%d spans are still held", n)
				}
			})
		})
	}
}

func TestTailHoldsNoMoreThanItsBounds(t *testing.T) {
	b := newBench(0, true, 0)
	ctx, request := b.tracer.Start(context.Background(), "request")
	for range maxHeldEach + 5 {
		_, s := b.tracer.Start(ctx, "call")
		s.End()
	}
	if held, dropped := b.tail.held.Load(), b.tail.dropped.Load(); held != maxHeldEach || dropped != 5 {
		t.Errorf("holds %d and dropped %d, want %d and 5", held, dropped, maxHeldEach)
	}
	request.End()
	// The traces that are remembered are bounded, too.
	for range remembered * 2 {
		_, s := b.tracer.Start(context.Background(), "request")
		s.SetStatus(codes.Error, "")
		s.End()
	}
	if n := b.tail.kept.Len(); n > remembered {
		t.Errorf("%d traces are remembered, want %d at most", n, remembered)
	}
	for i := range b.tail.shards {
		if n := len(b.tail.shards[i].live); n != 0 {
			t.Errorf("shard %d has %d traces under way, want none", i, n)
		}
	}
}

func TestTwoRequestsOfOneTraceAreHeldUntilBothEnd(t *testing.T) {
	b := newBench(0, true, 0)
	caller := trace.NewSpanContext(
		trace.SpanContextConfig{TraceID: trace.TraceID{1}, SpanID: trace.SpanID{2}, Remote: true},
	)
	ctx := trace.ContextWithRemoteSpanContext(context.Background(), caller)
	_, first := b.tracer.Start(ctx, "first")
	_, second := b.tracer.Start(ctx, "second")
	first.End()
	second.SetStatus(codes.Error, "")
	second.End()
	if !slices.Contains(b.passed, "second") {
		t.Errorf("passed %q, want the one that failed", b.passed)
	}
}

// jammed is an exporter that does not return until release is closed.
type jammed struct {
	release chan struct{}
	mu      sync.Mutex
	got     int
	err     error
}

func (j *jammed) ExportSpans(ctx context.Context, spans []sdktrace.ReadOnlySpan) error {
	select {
	case <-j.release:
	case <-ctx.Done():
		return ctx.Err()
	}
	j.mu.Lock()
	defer j.mu.Unlock()
	j.got += len(spans)
	return j.err
}
func (*jammed) Shutdown(context.Context) error { return nil }

func TestAStalledExporterCostsItsSpansAndSaysHowMany(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var lines strings.Builder
		exporter := &jammed{release: make(chan struct{})}
		q := newQueue(exporter, slog.New(slog.NewTextHandler(&lines, nil)))
		tracer := sdktrace.NewTracerProvider(sdktrace.WithSpanProcessor(newTail(true, 0, q.put))).Tracer("test")
		began := time.Now()
		const total = queueSize + 3*batchSize
		for range total {
			_, s := tracer.Start(context.Background(), "request")
			s.End()
		}
		if took := time.Since(began); took > 0 {
			t.Errorf("requests waited %v for the exporter", took)
		}
		time.Sleep(time.Minute)
		close(exporter.release)
		time.Sleep(time.Minute)
		if err := q.close(context.Background()); err != nil {
			t.Error(err)
		}
		lost := q.dropped.Load() + q.failed.Load()
		if lost == 0 || int64(exporter.got) != q.exported.Load() || lost+q.exported.Load() != total {
			t.Errorf("of %d spans %d were exported (%d counted), %d dropped and %d failed", total, exporter.got,
				q.exported.Load(), q.dropped.Load(), q.failed.Load())
		}
		if !strings.Contains(lines.String(), "spans were dropped") {
			t.Errorf("the log says nothing of it: %s", lines.String())
		}
	})
}

func TestQueueExportsWhatIsLeftWhenItCloses(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		exporter := &jammed{release: make(chan struct{})}
		close(exporter.release)
		q := newQueue(exporter, slog.New(slog.DiscardHandler))
		tracer := sdktrace.NewTracerProvider(sdktrace.WithSpanProcessor(newTail(true, 0, q.put))).Tracer("test")
		for range 7 {
			_, s := tracer.Start(context.Background(), "request")
			s.End()
		}
		if err := q.close(context.Background()); err != nil || exporter.got != 7 {
			t.Errorf("exported %d of 7: %v", exporter.got, err)
		}
	})
}

func TestSamplerBelievesTrustedCallersAndKeepsChildrenTogether(t *testing.T) {
	for _, c := range []struct {
		name         string
		share        float64
		all          bool
		caller       trace.TraceFlags
		remote       bool
		sampled, rec bool
	}{
		{name: "share of all", share: 1, sampled: true, rec: true},
		{name: "share of none", rec: false},
		{name: "share of none, all recorded", all: true, rec: true},
		{name: "caller keeps", remote: true, caller: trace.FlagsSampled, sampled: true, rec: true},
		{name: "caller does not", share: 1, remote: true},
		{name: "caller does not, all recorded", share: 1, all: true, remote: true, rec: true},
	} {
		t.Run(c.name, func(t *testing.T) {
			tracer := sdktrace.NewTracerProvider(
				sdktrace.WithSampler(sampler{share: sdktrace.TraceIDRatioBased(c.share), all: c.all})).
				Tracer("test")
			ctx := context.Background()
			if c.remote {
				ctx = trace.ContextWithRemoteSpanContext(ctx, trace.NewSpanContext(trace.SpanContextConfig{
					TraceID: trace.TraceID{1}, SpanID: trace.SpanID{1}, TraceFlags: c.caller, Remote: true}))
			}
			ctx, root := tracer.Start(ctx, "request")
			_, child := tracer.Start(ctx, "call")
			for _, s := range []trace.Span{root, child} {
				if s.SpanContext().IsSampled() != c.sampled || s.IsRecording() != c.rec {
					t.Errorf("sampled %t and recording %t, want %t and %t", s.SpanContext().IsSampled(),
						s.IsRecording(), c.sampled, c.rec)
				}
			}
		})
	}
}

func TestNothingIsSetUpWithoutAPlaceToGo(t *testing.T) {
	none := func(string) (string, bool) { return "", false }
	tel, err := Start(context.Background(),
		Options{Logger: slog.New(slog.DiscardHandler), Config: config.Default().Telemetry, Env: none})
	if err != nil || tel.Tracer != nil || tel.Actors != nil || tel.Scrape != nil {
		t.Errorf("set up %+v, %v, want nothing", tel, err)
	}
}

func TestStandardVariables(t *testing.T) {
	half := config.Ratio(0.5)
	for _, c := range []struct {
		name   string
		env    map[string]string
		sample *config.Ratio
		want   float64
		bad    bool
	}{
		{name: "none", want: 1},
		{name: "always_off", env: map[string]string{"OTEL_TRACES_SAMPLER": "always_off"}, want: 0},
		{name: "ratio", env: map[string]string{"OTEL_TRACES_SAMPLER": "parentbased_traceidratio",
			"OTEL_TRACES_SAMPLER_ARG": "0.25"}, want: 0.25},
		{name: "ratio without", env: map[string]string{"OTEL_TRACES_SAMPLER": "traceidratio"}, want: 1},
		{name: "the file first", env: map[string]string{"OTEL_TRACES_SAMPLER": "always_off"}, sample: &half, want: 0.5},
		{name: "no number", env: map[string]string{"OTEL_TRACES_SAMPLER": "traceidratio",
			"OTEL_TRACES_SAMPLER_ARG": "x"}, bad: true},
		{name: "unknown", env: map[string]string{"OTEL_TRACES_SAMPLER": "jaeger_remote"}, bad: true},
	} {
		t.Run(c.name, func(t *testing.T) {
			o := Options{Env: func(name string) (string, bool) { v, ok := c.env[name]; return v, ok }}
			o.Config.Traces.Sample = c.sample
			got, err := shareOf(o)
			if (err != nil) != c.bad || got != c.want && !c.bad {
				t.Errorf("share %v, %v, want %v", got, err, c.want)
			}
		})
	}
	for _, c := range []struct {
		env  map[string]string
		own  string
		want bool
	}{
		{nil, "", false}, {nil, "h:1", true},
		{map[string]string{"OTEL_EXPORTER_OTLP_ENDPOINT": "http://h:1"}, "", true},
		{map[string]string{"OTEL_EXPORTER_OTLP_METRICS_ENDPOINT": "http://h:1"}, "", false},
		{map[string]string{"OTEL_EXPORTER_OTLP_ENDPOINT": "http://h:1", "OTEL_TRACES_EXPORTER": "none"}, "", false},
		{map[string]string{"OTEL_SDK_DISABLED": "true"}, "h:1", false},
	} {
		collector := collector{config.OTLP{Endpoint: c.own}, "TRACES"}
		if got := collector.wanted(func(name string) (string, bool) { v, ok := c.env[name]; return v, ok }); got != c.want {
			t.Errorf("%v with endpoint %q: wanted %t, want %t", c.env, c.own, got, c.want)
		}
	}
}

func TestReporterDoesNotFloodTheLog(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var lines strings.Builder
		r := &reporter{log: slog.New(slog.NewTextHandler(&lines, nil))}
		for range 100 {
			r.Handle(errors.New("unreachable"))
		}
		time.Sleep(logEvery)
		r.Handle(errors.New("unreachable"))
		if n := strings.Count(lines.String(), "\n"); n != 2 {
			t.Errorf("%d lines, want 2", n)
		}
	})
}
