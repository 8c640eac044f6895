package telemetry

import "go.opentelemetry.io/otel/trace"

// Telemetry is what the actors need of it. A nil Telemetry measures nothing and
// tells nobody.
type Telemetry struct {
	// Tracer, if set, begins the traces of work that no request waits for.
	Tracer trace.Tracer
	// Metrics, if set, are recorded.
	Metrics *Metrics
	// Propagate names the providers that are told which trace a call is of.
	// Others learn nothing from which calls could be related to one another.
	Propagate map[string]bool
	// Content: prompts and replies become attributes of calls.
	Content bool
}

func (t *Telemetry) metricsOrNil() *Metrics {
	if t == nil {
		return nil
	}
	return t.Metrics
}

// Propagates reports whether a provider is told of traces.
func (t *Telemetry) Propagates(provider string) bool { return t != nil && t.Propagate[provider] }

// WithContent reports whether prompts and replies are to be kept.
func (t *Telemetry) WithContent() bool { return t != nil && t.Content }
