package telemetry

import (
	"log/slog"
	"sync/atomic"
	"time"
)

// reporter writes the SDK's complaints into the log, one of a kind every while: a
// collector that is away fails each export.
type reporter struct {
	log  *slog.Logger
	last atomic.Int64 // unix nanoseconds
}

// Handle implements otel.ErrorHandler.
func (r *reporter) Handle(err error) {
	now := time.Now().UnixNano()
	last := r.last.Load()
	if now-last < int64(tellEvery) || !r.last.CompareAndSwap(last, now) {
		return
	}
	r.log.Warn("telemetry", "cause", err)
}
