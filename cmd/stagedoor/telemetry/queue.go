package telemetry

import (
	"context"
	"log/slog"
	"sync"
	"sync/atomic"
	"time"

	"github.com/sourcegraph/conc"
	sdktrace "go.opentelemetry.io/otel/sdk/trace"
)

// Limits of the export. The exporter's own time-out bounds one call.
const (
	queueSize     = 16 << 10
	batchSize     = 2048
	batchDelay    = 2 * time.Second
	exportTimeout = 5 * time.Second
	// logEvery is the shortest time between two log lines about dropped spans.
	logEvery = 10 * time.Second
)

// queue passes spans to an exporter. The SDK's own processor also drops spans while its exporter stalls, but does not
// count them.
type queue struct {
	exporter sdktrace.SpanExporter
	log      *slog.Logger
	spans    chan sdktrace.ReadOnlySpan
	stopping chan struct{}
	stop     sync.Once
	group    conc.WaitGroup

	exported atomic.Int64
	dropped  atomic.Int64 // there was no room
	failed   atomic.Int64 // the exporter failed

	logged   int64 // lost spans in the log; used by run only
	loggedAt time.Time
}

// newQueue returns a queue whose goroutine exports to exporter until close is called.
func newQueue(exporter sdktrace.SpanExporter, log *slog.Logger) *queue {
	q := &queue{exporter: exporter, log: log, spans: make(chan sdktrace.ReadOnlySpan, queueSize),
		stopping: make(chan struct{})}
	q.group.Go(q.run)
	return q
}

// put adds a span. It never waits and drops the span if the queue is full.
func (q *queue) put(s sdktrace.ReadOnlySpan) {
	select {
	case q.spans <- s:
	default:
		q.dropped.Add(1)
	}
}

// run collects spans into batches. It exports a batch when it is full or when batchDelay has passed.
func (q *queue) run() {
	ticker := time.NewTicker(batchDelay)
	defer ticker.Stop()
	batch := make([]sdktrace.ReadOnlySpan, 0, batchSize)
	for {
		select {
		case s := <-q.spans:
			if batch = append(batch, s); len(batch) == batchSize {
				batch = q.export(batch)
			}
		case <-ticker.C:
			batch = q.export(batch)
			q.logLost()
		case <-q.stopping:
			q.drain(batch)
			q.logLost()
			return
		}
	}
}

// drain exports the spans in the queue. It stops at the first failure of the exporter, because close waits for it.
func (q *queue) drain(batch []sdktrace.ReadOnlySpan) []sdktrace.ReadOnlySpan {
	for {
		select {
		case s := <-q.spans:
			if batch = append(batch, s); len(batch) < batchSize {
				continue
			}
		default:
		}
		if len(batch) == 0 {
			return batch
		}
		before := q.failed.Load()
		if batch = q.export(batch); q.failed.Load() > before {
			return batch
		}
	}
}

// export sends one batch and returns it empty, with its memory, for the next one. A batch that fails is counted and
// not sent again, because the next ones would wait behind it while the collector is down.
func (q *queue) export(batch []sdktrace.ReadOnlySpan) []sdktrace.ReadOnlySpan {
	if len(batch) == 0 {
		return batch
	}
	ctx, cancel := context.WithTimeout(context.Background(), exportTimeout)
	defer cancel()
	for i := range batch {
		batch[i] = valid(batch[i])
	}
	if err := q.exporter.ExportSpans(ctx, batch); err != nil {
		q.failed.Add(int64(len(batch)))
	} else {
		q.exported.Add(int64(len(batch)))
	}
	clear(batch)
	return batch[:0]
}

// logLost logs how many spans were lost since the last time.
func (q *queue) logLost() {
	lost := q.dropped.Load() + q.failed.Load()
	if lost == q.logged || time.Since(q.loggedAt) < logEvery {
		return
	}
	q.log.Warn("spans were dropped: the collector did not take them", "count", lost-q.logged, "total", lost)
	q.logged, q.loggedAt = lost, time.Now()
}

// close exports the spans that are left and stops the goroutine.
func (q *queue) close(ctx context.Context) error {
	q.stop.Do(func() { close(q.stopping) })
	q.group.Wait()
	return q.exporter.Shutdown(ctx)
}
