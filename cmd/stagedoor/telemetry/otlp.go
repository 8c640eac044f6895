package telemetry

import (
	"cmp"
	"context"
	"fmt"
	"strings"
	"time"

	"go.opentelemetry.io/otel/exporters/otlp/otlpmetric/otlpmetricgrpc"
	"go.opentelemetry.io/otel/exporters/otlp/otlpmetric/otlpmetrichttp"
	"go.opentelemetry.io/otel/exporters/otlp/otlptrace/otlptracegrpc"
	"go.opentelemetry.io/otel/exporters/otlp/otlptrace/otlptracehttp"
	sdkmetric "go.opentelemetry.io/otel/sdk/metric"
	sdktrace "go.opentelemetry.io/otel/sdk/trace"

	"stagedoor/cmd/stagedoor/config"
)

// collector is the destination of one signal. The standard variables of the environment give what the configuration
// leaves out, and the exporters read most of them themselves.
type collector struct {
	config.OTLP
	signal string // TRACES or METRICS
}

// environment returns a standard variable, the signal's own one first.
func (c collector) environment(env Env, name string) string {
	own, _ := env("OTEL_EXPORTER_OTLP_" + c.signal + "_" + name)
	general, _ := env("OTEL_EXPORTER_OTLP_" + name)
	return cmp.Or(own, general)
}

// wanted reports whether there is a collector for the signal.
func (c collector) wanted(env Env) bool {
	if off, _ := env("OTEL_SDK_DISABLED"); strings.EqualFold(off, "true") {
		return false
	}
	if kind, _ := env("OTEL_" + c.signal + "_EXPORTER"); kind == "none" && c.Endpoint == "" {
		return false
	}
	return c.Endpoint != "" || c.environment(env, "ENDPOINT") != ""
}

// http reports whether the protocol is HTTP.
func (c collector) http(env Env) (bool, error) {
	switch p := cmp.Or(c.Protocol, c.environment(env, "PROTOCOL"), "grpc"); p {
	case "grpc":
		return false, nil
	case "http", "http/protobuf":
		return true, nil
	default:
		return false, fmt.Errorf("OTEL_EXPORTER_OTLP_PROTOCOL %q is unknown, use grpc or http/protobuf", p)
	}
}

// url returns the endpoint as an address.
func (c collector) url() string {
	if c.Endpoint == "" || strings.Contains(c.Endpoint, "://") {
		return c.Endpoint
	}
	if c.Insecure {
		return "http://" + c.Endpoint
	}
	return "https://" + c.Endpoint
}

// below returns the endpoint with the signal's path, which the standard requires if the endpoint has none.
func (c collector) below(path string) string {
	u := c.url()
	if _, rest, _ := strings.Cut(u, "://"); !strings.Contains(strings.TrimSuffix(rest, "/"), "/") {
		return strings.TrimSuffix(u, "/") + path
	}
	return u
}

// headers returns the headers of every export with their values revealed.
func (c collector) headers() map[string]string {
	headers := make(map[string]string, len(c.Headers))
	for _, h := range c.Headers {
		headers[h.Name] = h.Value.Reveal()
	}
	return headers
}

// exportOptions returns the options of an exporter. The four exporters have options of different types with the same
// constructors. What the configuration leaves out is not set, so that the exporter reads it from the environment.
func exportOptions[O any](c collector, url string, timeout func(time.Duration) O, endpoint func(string) O,
	headers func(map[string]string) O) []O {
	options := []O{timeout(exportTimeout)}
	if c.Endpoint != "" {
		options = append(options, endpoint(url))
	}
	if len(c.Headers) > 0 {
		options = append(options, headers(c.headers()))
	}
	return options
}

// spans returns the exporter of traces.
func (c collector) spans(ctx context.Context, env Env) (sdktrace.SpanExporter, error) {
	overHTTP, err := c.http(env)
	if err != nil {
		return nil, err
	}
	if overHTTP {
		return otlptracehttp.New(ctx, exportOptions(c, c.below("/v1/traces"), otlptracehttp.WithTimeout,
			otlptracehttp.WithEndpointURL, otlptracehttp.WithHeaders)...)
	}
	return otlptracegrpc.New(ctx, exportOptions(c, c.url(), otlptracegrpc.WithTimeout,
		otlptracegrpc.WithEndpointURL, otlptracegrpc.WithHeaders)...)
}

// metrics returns the exporter of metrics.
func (c collector) metrics(ctx context.Context, env Env) (sdkmetric.Exporter, error) {
	overHTTP, err := c.http(env)
	if err != nil {
		return nil, err
	}
	if overHTTP {
		return otlpmetrichttp.New(ctx, exportOptions(c, c.below("/v1/metrics"), otlpmetrichttp.WithTimeout,
			otlpmetrichttp.WithEndpointURL, otlpmetrichttp.WithHeaders)...)
	}
	return otlpmetricgrpc.New(ctx, exportOptions(c, c.url(), otlpmetricgrpc.WithTimeout,
		otlpmetricgrpc.WithEndpointURL, otlpmetricgrpc.WithHeaders)...)
}
