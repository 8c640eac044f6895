package telemetry

import "go.opentelemetry.io/otel/trace"

// Telemetry has what actors need to report. A nil Telemetry reports nothing.
type Telemetry struct {
	// Tracer, if set, begins the traces of work that no request waits for.
	Tracer trace.Tracer
	// Metrics, if set, are recorded.
	Metrics *Metrics
	// Propagate has the providers that receive the trace context of calls. Other providers get nothing by which
	// calls could be related to each other.
	Propagate map[string]bool
	// Content is set if prompts and replies become attributes of calls.
	Content bool
}

// metricsOrNil returns the metrics. It may be called on nil.
func (t *Telemetry) metricsOrNil() *Metrics {
	if t == nil {
		return nil
	}
	return t.Metrics
}

// Propagates reports whether a provider receives the trace context.
func (t *Telemetry) Propagates(provider string) bool { return t != nil && t.Propagate[provider] }

// WithContent reports whether prompts and replies are kept.
func (t *Telemetry) WithContent() bool { return t != nil && t.Content }
