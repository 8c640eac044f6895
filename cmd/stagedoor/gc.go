package main

import (
	"context"
	"os"
	"runtime/debug"
	"runtime/metrics"
	"time"
)

// Garbage collection costs by the cycle, and a gateway with little to keep
// would run one for every few megabytes of garbage: a tenth of its time. The heap is
// therefore let grow by heapRoom between cycles. One that is larger than that is
// collected as the runtime would by itself.
const (
	heapRoom   = 128 << 20
	usualGC    = 100
	mostGC     = 3200
	paceEvery  = time.Second
	heapLive   = "/gc/heap/live:bytes"
	gcVariable = "GOGC"
)

// paceGC keeps the collector's pace until ctx ends. An operator's own GOGC rules.
func paceGC(ctx context.Context) {
	if os.Getenv(gcVariable) != "" {
		return
	}
	sample := []metrics.Sample{{Name: heapLive}}
	tick := time.NewTicker(paceEvery)
	defer tick.Stop()
	last := 0
	for {
		metrics.Read(sample)
		if p := gcPercent(sample[0].Value.Uint64()); p != last {
			debug.SetGCPercent(p)
			last = p
		}
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		}
	}
}

// gcPercent is the GOGC with which a heap of live bytes grows by heapRoom.
func gcPercent(live uint64) int {
	if live == 0 {
		return mostGC
	}
	p := int(heapRoom * 100 / live)
	return min(max(p, usualGC), mostGC)
}
