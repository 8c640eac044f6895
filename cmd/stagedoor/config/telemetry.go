package config

import (
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"stagedoor/state/identity"
)

// Telemetry says where traces and metrics go. Without a place to go to there are
// none.
type Telemetry struct {
	Traces  Traces  `yaml:"traces" doc:"one trace of every request"`
	Metrics Metrics `yaml:"metrics" doc:"counts and durations"`
}

// Traces configures tracing.
type Traces struct {
	OTLP      OTLP     `yaml:"otlp" doc:"the collector; default: OTEL_EXPORTER_OTLP_TRACES_ENDPOINT or OTEL_EXPORTER_OTLP_ENDPOINT, else none"`
	Sample    *Ratio   `yaml:"sample" doc:"share of the requests whose traces are kept, 0 to 1; default: OTEL_TRACES_SAMPLER, else all"`
	Errors    *bool    `yaml:"errors" doc:"keep the traces of all failed requests, regardless of sample; default: true"`
	Slow      Duration `yaml:"slow" doc:"keep the traces of all requests that took longer, regardless of sample; 0: off"`
	Content   bool     `yaml:"content" doc:"write prompts and replies into traces"`
	Trust     Strings  `yaml:"trust" doc:"networks whose traceparent header is trusted: it decides the trace and whether it is kept"`
	Propagate Strings  `yaml:"propagate" doc:"names of providers that receive traceparent"`
}

// Metrics configures metrics.
type Metrics struct {
	OTLP       OTLP     `yaml:"otlp" doc:"the collector; default: OTEL_EXPORTER_OTLP_METRICS_ENDPOINT or OTEL_EXPORTER_OTLP_ENDPOINT, else none"`
	Interval   Duration `yaml:"interval" doc:"time between two exports"`
	Prometheus bool     `yaml:"prometheus" doc:"serve /metrics"`
	Allow      Strings  `yaml:"allow" doc:"networks that may read /metrics; default: this machine"`
}

// OTLP is a collector.
type OTLP struct {
	Endpoint string      `yaml:"endpoint" doc:"host:port, or an address with http:// or https://"`
	Protocol string      `yaml:"protocol" doc:"grpc or http" enum:"grpc,http"`
	Headers  Map[Secret] `yaml:"headers" doc:"headers sent with every export"`
	Insecure bool        `yaml:"insecure" doc:"use no TLS"`
}

var defaultTelemetry = Telemetry{
	Traces:  Traces{Slow: Duration(10 * time.Second)},
	Metrics: Metrics{Interval: Duration(time.Minute), Allow: Strings{"127.0.0.0/8", "::1"}},
}

// Ratio is a share, 0 to 1.
type Ratio float64

// parse implements scalar. NaN is refused by its comparison with itself.
func (r *Ratio) parse(text string) error {
	v, err := strconv.ParseFloat(text, 64)
	if err == nil && (v < 0 || v > 1 || v != v) {
		err = errors.New("no share")
	}
	*r = Ratio(v)
	return err
}

func (r *Ratio) expected() string { return "a share from 0 to 1 such as 0.1" }

// checkTelemetry checks collectors, networks and the names of providers that get traceparent.
func (c *Config) checkTelemetry(d *decoder) {
	t := &c.Telemetry
	t.Traces.OTLP.check(d, "telemetry.traces.otlp")
	t.Metrics.OTLP.check(d, "telemetry.metrics.otlp")
	checkNetworks(d, "telemetry.traces.trust", t.Traces.Trust)
	checkNetworks(d, "telemetry.metrics.allow", t.Metrics.Allow)
	if t.Metrics.Interval < Duration(time.Second) {
		d.at("telemetry.metrics.interval", "expected 1s or more")
	}
	for i, name := range t.Traces.Propagate {
		if !slices.Contains(c.Providers.names(), name) {
			d.at(fmt.Sprintf("telemetry.traces.propagate[%d]", i), "%q is no provider of this file, expected one of %s",
				name, strings.Join(c.Providers.names(), ", "))
		}
	}
}

// check checks a collector at path. Without an endpoint the other settings have no effect and are not checked.
func (o *OTLP) check(d *decoder, path string) {
	if o.Endpoint == "" {
		return
	}
	if webAddress(o.Endpoint) == nil && !Address(o.Endpoint) {
		d.at(path+".endpoint", "expected host:port or an address, for example collector:4317 or https://collector.example.com")
	}
	for _, h := range o.Headers {
		if !headerName(h.Name) {
			d.at(path+".headers."+h.Name, "expected the name of a header")
		}
	}
}

// checkNetworks records a mistake for each text that is neither an address nor a network.
// It takes the path as an argument, because the same notation is used for trusted proxies, for
// callers with traceparent and for readers of metrics.
func checkNetworks(d *decoder, path string, networks Strings) {
	for i, s := range networks {
		if _, err := identity.ParseNetworks([]string{s}); err != nil {
			d.at(fmt.Sprintf("%s[%d]", path, i), "expected an address or a network such as 192.0.2.0/24")
		}
	}
}
