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

// Bounds of the way out. The exporter's own time-out bounds one call of it.
const (
	queueSize     = 16 << 10
	batchSize     = 2048
	batchDelay    = 2 * time.Second
	exportTimeout = 5 * time.Second
	// tellEvery is how often the log is told of dropped spans, at most.
	tellEvery = 10 * time.Second
)

// queue hands spans to an exporter. The SDK's own processor drops as well when
// its exporter stalls, and does not say how many.
type queue struct {
	exporter sdktrace.SpanExporter
	log      *slog.Logger
	spans    chan sdktrace.ReadOnlySpan
	stopping chan struct{}
	stop     sync.Once
	group    conc.WaitGroup

	exported atomic.Int64
	dropped  atomic.Int64 // there was no room
	failed   atomic.Int64 // the exporter did not get rid of them

	told   int64 // of lost spans; the loop's
	toldAt time.Time
}

func newQueue(exporter sdktrace.SpanExporter, log *slog.Logger) *queue {
	q := &queue{exporter: exporter, log: log, spans: make(chan sdktrace.ReadOnlySpan, queueSize),
		stopping: make(chan struct{})}
	q.group.Go(q.run)
	return q
}

// put never waits.
func (q *queue) put(s sdktrace.ReadOnlySpan) {
	select {
	case q.spans <- s:
	default:
		q.dropped.Add(1)
	}
}

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
			q.tell()
		case <-q.stopping:
			q.drain(batch)
			q.tell()
			return
		}
	}
}

// drain exports what is there. An exporter that fails is not asked again: at the
// end somebody waits.
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

func (q *queue) export(batch []sdktrace.ReadOnlySpan) []sdktrace.ReadOnlySpan {
	if len(batch) == 0 {
		return batch
	}
	ctx, cancel := context.WithTimeout(context.Background(), exportTimeout)
	defer cancel()
	for i := range batch {
		batch[i] = legal(batch[i])
	}
	if err := q.exporter.ExportSpans(ctx, batch); err != nil {
		q.failed.Add(int64(len(batch)))
	} else {
		q.exported.Add(int64(len(batch)))
	}
	clear(batch)
	return batch[:0]
}

// tell logs how many spans were lost since the last time.
func (q *queue) tell() {
	lost := q.dropped.Load() + q.failed.Load()
	if lost == q.told || time.Since(q.toldAt) < tellEvery {
		return
	}
	q.log.Warn("spans were dropped: the collector did not take them", "count", lost-q.told, "total", lost)
	q.told, q.toldAt = lost, time.Now()
}

// close exports what is left and ends.
func (q *queue) close(ctx context.Context) error {
	q.stop.Do(func() { close(q.stopping) })
	q.group.Wait()
	return q.exporter.Shutdown(ctx)
}
