package telemetry

import (
	"log/slog"
	"sync/atomic"
	"time"
)

// reporter logs errors of the SDK, and a repeated one only once in a while, because every export fails while a
// collector is down.
type reporter struct {
	log  *slog.Logger
	last atomic.Int64 // unix nanoseconds
}

// Handle implements otel.ErrorHandler.
func (r *reporter) Handle(err error) {
	now := time.Now().UnixNano()
	last := r.last.Load()
	if now-last < int64(logEvery) || !r.last.CompareAndSwap(last, now) {
		return
	}
	r.log.Warn("telemetry", "cause", err)
}
