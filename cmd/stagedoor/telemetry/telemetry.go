package telemetry

import (
	"context"
	"errors"
	"log/slog"
	"net/http"
	"strconv"
	"strings"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/collectors"
	"github.com/prometheus/client_golang/prometheus/promhttp"
	"go.opentelemetry.io/otel"
	promexporter "go.opentelemetry.io/otel/exporters/prometheus"
	"go.opentelemetry.io/otel/metric"
	sdkmetric "go.opentelemetry.io/otel/sdk/metric"
	"go.opentelemetry.io/otel/sdk/resource"
	sdktrace "go.opentelemetry.io/otel/sdk/trace"
	semconv "go.opentelemetry.io/otel/semconv/v1.41.0"
	"go.opentelemetry.io/otel/trace"

	"stagedoor/actors/telemetry"
	"stagedoor/cmd/stagedoor/config"
)

// Env looks up a variable of the environment.
type Env func(name string) (string, bool)

// Options configure Start.
type Options struct {
	Logger  *slog.Logger
	Config  config.Telemetry
	Env     Env
	Version string
	// Instance distinguishes this process from others of the same service.
	Instance string
	// Processors get the spans of all requests, independently of any exporter. Watched, if not nil, reports
	// whether they need them at the moment.
	Processors []sdktrace.SpanProcessor
	Watched    func() bool
}

// Telemetry has the providers and exporters that Start made. Its zero value does nothing.
type Telemetry struct {
	traces  *sdktrace.TracerProvider
	metrics *sdkmetric.MeterProvider
	queue   *queue // nil if nothing is exported
	tail    *tail
	watched func() bool

	// Tracer starts the traces of requests. It is nil if there are none.
	Tracer trace.Tracer
	// Actors is for the actors and handlers. It is nil if nothing is measured.
	Actors *telemetry.Telemetry
	// Scrape serves the metrics for Prometheus. It is nil if they are off.
	Scrape http.Handler
}

// Start starts the exporters and processors that the configuration and the environment request. An error closes what
// was started before it. If neither traces nor metrics are wanted, it starts nothing and returns a Telemetry whose
// methods do nothing.
func Start(ctx context.Context, o Options) (*Telemetry, error) {
	t := &Telemetry{watched: o.Watched}
	otel.SetErrorHandler(&reporter{log: o.Logger})
	about, err := about(ctx, o)
	if err != nil {
		return nil, err
	}
	if err := t.startTraces(ctx, o, about); err != nil {
		return nil, err
	}
	if err := t.startMetrics(ctx, o, about); err != nil {
		return nil, errors.Join(err, t.Close(ctx))
	}
	if t.Tracer == nil && t.metrics == nil {
		return t, nil
	}
	t.Actors = &telemetry.Telemetry{
		Tracer:    t.Tracer,
		Content:   o.Config.Traces.Content,
		Propagate: make(map[string]bool),
	}
	for _, name := range o.Config.Traces.Propagate {
		t.Actors.Propagate[name] = true
	}
	if t.metrics == nil {
		return t, nil
	}
	t.Actors.Metrics, err = telemetry.NewMetrics(t.meter())
	if err != nil {
		return nil, errors.Join(err, t.Close(ctx))
	}
	return t, nil
}

// Wanted reports whether spans are needed at the moment.
func (t *Telemetry) Wanted() bool { return t.queue != nil || t.watched == nil || t.watched() }

// Counts returns the metrics that are recorded as things happen, or nil.
func (t *Telemetry) Counts() *telemetry.Metrics {
	if t.Actors == nil {
		return nil
	}
	return t.Actors.Metrics
}

// meter returns the meter of the gateway's own instruments.
func (t *Telemetry) meter() metric.Meter {
	return t.metrics.Meter(telemetry.Scope, metric.WithSchemaURL(telemetry.SchemaURL))
}

// about describes the process. OTEL_SERVICE_NAME and OTEL_RESOURCE_ATTRIBUTES take precedence.
func about(ctx context.Context, o Options) (*resource.Resource, error) {
	r, err := resource.New(
		ctx,
		resource.WithTelemetrySDK(),
		resource.WithAttributes(semconv.ServiceName("stagedoor"), semconv.ServiceVersion(o.Version),
			semconv.ServiceInstanceID(o.Instance)),
		resource.WithFromEnv(),
	)
	if errors.Is(err, resource.ErrSchemaURLConflict) || errors.Is(err, resource.ErrPartialResource) {
		o.Logger.Warn("some attributes of the telemetry resource are not usable", "cause", err)
		return r, nil
	}
	return r, err
}

// startTraces sets up traces if they are exported or a processor wants them.
func (t *Telemetry) startTraces(ctx context.Context, o Options, about *resource.Resource) error {
	c := collector{o.Config.Traces.OTLP, "TRACES"}
	exported := c.wanted(o.Env)
	if !exported && len(o.Processors) == 0 {
		return nil
	}
	share, err := shareOf(o)
	if err != nil {
		return err
	}
	keepErrors := o.Config.Traces.Errors == nil || *o.Config.Traces.Errors
	slow := time.Duration(o.Config.Traces.Slow)
	// Without an exporter no trace is kept, but all are recorded, because the processors decide at any time whether
	// they look.
	rule := sampler{share: sdktrace.NeverSample(), all: true}
	options := []sdktrace.TracerProviderOption{sdktrace.WithResource(about)}
	if exported {
		exporter, err := c.spans(ctx, o.Env)
		if err != nil {
			return err
		}
		t.queue = newQueue(exporter, o.Logger)
		t.tail = newTail(keepErrors, slow, t.queue.put)
		rule = sampler{share: sdktrace.TraceIDRatioBased(share), all: keepErrors || slow > 0 || len(o.Processors) > 0}
		options = append(options, sdktrace.WithSpanProcessor(t.tail))
	}
	for _, p := range o.Processors {
		options = append(options, sdktrace.WithSpanProcessor(p))
	}
	t.traces = sdktrace.NewTracerProvider(append(options, sdktrace.WithSampler(rule))...)
	t.Tracer = t.traces.Tracer(telemetry.Scope, trace.WithSchemaURL(telemetry.SchemaURL))
	return nil
}

// shareOf returns the share of traces that are kept, from the configuration or else from the standard variables.
func shareOf(o Options) (float64, error) {
	if o.Config.Traces.Sample != nil {
		return float64(*o.Config.Traces.Sample), nil
	}
	name, _ := o.Env("OTEL_TRACES_SAMPLER")
	switch strings.TrimPrefix(name, "parentbased_") {
	case "", "always_on":
		return 1, nil
	case "always_off":
		return 0, nil
	case "traceidratio":
		text, given := o.Env("OTEL_TRACES_SAMPLER_ARG")
		share, err := strconv.ParseFloat(text, 64)
		if given && (err != nil || share < 0 || share > 1) {
			return 0, errors.New("OTEL_TRACES_SAMPLER_ARG: expected a share from 0 to 1")
		}
		if !given {
			share = 1
		}
		return share, nil
	}
	return 0, errors.New(
		"OTEL_TRACES_SAMPLER: expected always_on, always_off or traceidratio, with parentbased_ before it or without",
	)
}

// startMetrics sets up metrics if they are exported, scraped or both.
func (t *Telemetry) startMetrics(ctx context.Context, o Options, about *resource.Resource) error {
	c := collector{o.Config.Metrics.OTLP, "METRICS"}
	options := []sdkmetric.Option{sdkmetric.WithResource(about)}
	if c.wanted(o.Env) {
		exporter, err := c.metrics(ctx, o.Env)
		if err != nil {
			return err
		}
		options = append(options, sdkmetric.WithReader(sdkmetric.NewPeriodicReader(exporter,
			sdkmetric.WithInterval(time.Duration(o.Config.Metrics.Interval)), sdkmetric.WithTimeout(exportTimeout))))
	}
	if o.Config.Metrics.Prometheus {
		registry := prometheus.NewRegistry()
		registry.MustRegister(collectors.NewGoCollector(),
			collectors.NewProcessCollector(collectors.ProcessCollectorOpts{}))
		reader, err := promexporter.New(promexporter.WithRegisterer(registry), promexporter.WithoutScopeInfo())
		if err != nil {
			return err
		}
		options = append(options, sdkmetric.WithReader(reader))
		t.Scrape = promhttp.HandlerFor(
			registry,
			promhttp.HandlerOpts{MaxRequestsInFlight: maxScrapes, Timeout: scrapeTimeout,
				// One broken series must not hide the others.
				ErrorHandling: promhttp.ContinueOnError,
				ErrorLog:      slog.NewLogLogger(o.Logger.Handler(), slog.LevelWarn)},
		)
	}
	// The first option is the description of the process, which alone measures nothing.
	if len(options) > 1 {
		t.metrics = sdkmetric.NewMeterProvider(options...)
	}
	return nil
}

// Limits of requests for /metrics.
const (
	maxScrapes    = 4
	scrapeTimeout = 10 * time.Second
)

// Close exports what is left, as long as ctx lets it. All parts are closed, also after an error of one of them, and
// their errors are joined.
func (t *Telemetry) Close(ctx context.Context) error {
	var errs []error
	if t.metrics != nil {
		errs = append(errs, t.metrics.Shutdown(ctx))
	}
	if t.traces != nil {
		errs = append(errs, t.traces.Shutdown(ctx))
	}
	if t.queue != nil {
		errs = append(errs, t.queue.close(ctx))
	}
	return errors.Join(errs...)
}
