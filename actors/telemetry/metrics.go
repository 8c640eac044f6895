package telemetry

import (
	"context"
	"errors"
	"sync/atomic"
	"time"

	"go.opentelemetry.io/otel/metric"
	"go.opentelemetry.io/otel/semconv/v1.41.0/genaiconv"
	"go.opentelemetry.io/otel/semconv/v1.41.0/httpconv"
)

// Names of the gateway's own metrics that are recorded as things happen.
const (
	metricQueueWait    = "stagedoor.queue.wait"
	metricRetries      = "stagedoor.retries"
	metricUnpriced     = "stagedoor.unpriced"
	metricLosses       = "stagedoor.losses"
	metricDegradations = "stagedoor.degradations"
	metricCost         = "stagedoor.cost.usd"
	metricSlowClients  = "stagedoor.slow_clients"
)

// chunkDoc differs from the description in the conventions, which read the clock for every chunk. That would be once
// for each token.
const chunkDoc = "Time per output chunk after the first one: the mean of a streamed call, recorded once a call."

// Buckets of the conventions: seconds, and numbers of tokens.
var (
	secondBuckets = []float64{0.01, 0.02, 0.04, 0.08, 0.16, 0.32, 0.64, 1.28, 2.56, 5.12, 10.24, 20.48, 40.96, 81.92}
	chunkBuckets  = []float64{0.01, 0.025, 0.05, 0.075, 0.1, 0.15, 0.2, 0.3, 0.4, 0.5, 0.75, 1.0, 2.5}
	firstBuckets  = []float64{
		0.001, 0.005, 0.01, 0.02, 0.04, 0.06, 0.08, 0.1, 0.25, 0.5, 0.75, 1.0, 2.5, 5.0, 7.5, 10.0,
	}
	tokenBuckets = []float64{1, 4, 16, 64, 256, 1024, 4096, 16384, 65536, 262144, 1048576, 4194304, 16777216, 67108864}
	waitBuckets  = []float64{0.001, 0.01, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 60, 120}
	httpBuckets  = []float64{0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 60, 300}
)

// Metrics records calls and requests as they end. A nil Metrics records nothing.
type Metrics struct {
	duration, first, chunk, wait, http  metric.Float64Histogram
	tokens                              metric.Int64Histogram
	retries, losses, degradations, slow metric.Int64Counter
	unpriced                            metric.Int64Counter
	cost                                metric.Float64Counter

	streams atomic.Int64

	calls    cache[callKey]
	named    cache[namedKey]
	requests cache[requestKey]
}

// NewMetrics returns Metrics with its instruments.
func NewMetrics(meter metric.Meter) (*Metrics, error) {
	m := &Metrics{}
	var errs []error
	seconds := func(name, doc string, buckets []float64) metric.Float64Histogram {
		h, err := meter.Float64Histogram(name, metric.WithUnit("s"), metric.WithDescription(doc),
			metric.WithExplicitBucketBoundaries(buckets...))
		errs = append(errs, err)
		return h
	}
	count := func(name, unit, doc string) metric.Int64Counter {
		c, err := meter.Int64Counter(name, metric.WithUnit(unit), metric.WithDescription(doc))
		errs = append(errs, err)
		return c
	}
	m.duration = seconds(genaiconv.ClientOperationDuration{}.Name(),
		genaiconv.ClientOperationDuration{}.Description(), secondBuckets)
	m.first = seconds(genaiconv.ClientOperationTimeToFirstChunk{}.Name(),
		genaiconv.ClientOperationTimeToFirstChunk{}.Description(), firstBuckets)
	m.chunk = seconds(genaiconv.ClientOperationTimePerOutputChunk{}.Name(), chunkDoc, chunkBuckets)
	m.http = seconds(httpconv.ServerRequestDuration{}.Name(), httpconv.ServerRequestDuration{}.Description(),
		httpBuckets)
	m.wait = seconds(metricQueueWait, "How long requests waited for a provider's limits.", waitBuckets)
	m.retries = count(metricRetries, "{retry}", "Further attempts after a failure, by the class of the failure.")
	m.unpriced = count(metricUnpriced, "{attempt}", "Attempts at models whose price is not known, by provider.")
	m.losses = count(metricLosses, "{loss}", "What an upstream's shape could not say, by name.")
	m.degradations = count(metricDegradations, "{request}",
		"Structured output that was asked for and not enforced, by reason.")
	m.slow = count(metricSlowClients, "{request}", "Replies that had to wait for their client to read.")
	var err error
	m.tokens, err = meter.Int64Histogram(genaiconv.ClientTokenUsage{}.Name(), metric.WithUnit("{token}"),
		metric.WithDescription(genaiconv.ClientTokenUsage{}.Description()),
		metric.WithExplicitBucketBoundaries(tokenBuckets...))
	errs = append(errs, err)
	m.cost, err = meter.Float64Counter(metricCost, metric.WithUnit("{USD}"),
		metric.WithDescription("What calls cost by the catalogue's prices."))
	if err := errors.Join(append(errs, err)...); err != nil {
		return nil, err
	}
	m.slow.Add(context.Background(), 0) // makes the series exist from the start
	return m, nil
}

// call records the metrics of one call. Only the duration has a label for the kind of failure.
func (m *Metrics) call(c *Call, took time.Duration) {
	if m == nil {
		return
	}
	ctx, t := context.Background(), &c.target
	key := callKey{
		operation: t.Operation,
		kind:      t.Kind,
		provider:  t.Provider,
		model:     Text(t.Model),
		failure:   c.reply.Failure,
	}
	m.duration.Record(ctx, took.Seconds(), m.calls.get(key).record...)
	key.failure = ""
	good := m.calls.get(key)
	if c.first > 0 && t.Stream {
		m.first.Record(ctx, c.first.Seconds(), good.record...)
		if c.pieces > 1 {
			m.chunk.Record(ctx, (took-c.first).Seconds()/float64(c.pieces-1), good.record...)
		}
	}
	if c.reply.Cost > 0 {
		m.cost.Add(ctx, Dollars(c.reply.Cost), good.add...)
	}
	if n := c.reply.Usage.InputTotal; n >= 0 {
		key.tokens = "input"
		m.tokens.Record(ctx, n, m.calls.get(key).record...)
	}
	if n := c.reply.Usage.OutputTotal; n >= 0 {
		key.tokens = "output"
		m.tokens.Record(ctx, n, m.calls.get(key).record...)
	}
}

// Waited records the time that a request spent in a provider's queue.
func (m *Metrics) Waited(provider string, d time.Duration) {
	if m != nil {
		m.wait.Record(context.Background(), d.Seconds(), m.named.get(namedKey{provider: provider}).record...)
	}
}

// Retried counts a further attempt.
func (m *Metrics) Retried(provider, class string) {
	if m != nil {
		m.retries.Add(context.Background(), 1, m.named.get(namedKey{provider: provider, class: class}).add...)
	}
}

// Unpriced counts an attempt at a model whose price is not known.
func (m *Metrics) Unpriced(provider string) {
	if m != nil {
		m.unpriced.Add(context.Background(), 1, m.named.get(namedKey{provider: provider}).add...)
	}
}

// Lost counts a loss of translation. Unknown fields are lost under the name that their client gave them. A name that
// does not look like a field's is counted as Overflowed, because it may be anything, such as a key or a sentence.
func (m *Metrics) Lost(name string) {
	if m != nil {
		if !plain(name) {
			name = Overflowed
		}
		m.losses.Add(context.Background(), 1, m.named.get(namedKey{loss: name}).add...)
	}
}

// Degraded counts structured output that was not enforced.
func (m *Metrics) Degraded(reason string) {
	if m != nil {
		m.degradations.Add(context.Background(), 1, m.named.get(namedKey{reason: reason}).add...)
	}
}

// Slow counts a reply that had to wait for its client.
func (m *Metrics) Slow() {
	if m != nil {
		m.slow.Add(context.Background(), 1)
	}
}

// StreamOpened counts a stream that is written to its client, until closed is called.
func (m *Metrics) StreamOpened() (closed func()) {
	if m == nil {
		return func() {}
	}
	m.streams.Add(1)
	return m.streamClosed
}

func (m *Metrics) streamClosed() { m.streams.Add(-1) }

// Streams returns the number of streams that are being written.
func (m *Metrics) Streams() int64 { return m.streams.Load() }

// Request records a request to the gateway. scheme, method and route are from fixed sets.
func (m *Metrics) Request(ctx context.Context, scheme, method, route string, status int, took time.Duration) {
	if m != nil {
		m.http.Record(ctx, took.Seconds(), m.requests.get(requestKey{scheme, method, route, status}).record...)
	}
}
