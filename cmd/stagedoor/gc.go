package main

import (
	"context"
	"os"
	"runtime"
	"runtime/debug"
	"runtime/metrics"
	"time"
)

// Each garbage collection costs as much as the heap that is live, and a gateway with little to keep would run one
// for every few megabytes of garbage, which is a tenth of its time. The heap therefore grows by heapRoom between
// collections. More room than that makes nothing faster. A heap that is larger than that is collected as the runtime
// would by itself.
const (
	heapRoom   = 64 << 20
	usualGC    = 100
	mostGC     = 3200
	paceEvery  = time.Second
	gcVariable = "GOGC"

	heapLive      = "/gc/heap/live:bytes"
	heapAllocated = "/gc/heap/allocs:bytes"
)

// paceGC sets the pace of garbage collections and returns unused memory to the system, until ctx ends. The pace is
// not changed if the operator has set GOGC. inFlight returns the number of requests under way. release, which returns
// memory that is not of the heap, is called as well.
func paceGC(ctx context.Context, inFlight func() int, release func()) {
	sample := []metrics.Sample{{Name: heapLive}, {Name: heapAllocated}}
	tick := time.NewTicker(paceEvery)
	defer tick.Stop()
	last, own := 0, os.Getenv(gcVariable) == ""
	var quiet idleDetector
	for {
		metrics.Read(sample)
		if p := gcPercent(sample[0].Value.Uint64()); own && p != last {
			debug.SetGCPercent(p)
			last = p
		}
		if quiet.begins(sample[1].Value.Uint64(), inFlight()) {
			runtime.GC() // two collections empty the pools of buffers, and FreeOSMemory makes one
			debug.FreeOSMemory()
			release()
		}
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		}
	}
}

// gcPercent returns the value of GOGC with which a heap of live bytes grows by heapRoom before the next collection. It
// is between usualGC and mostGC.
func gcPercent(live uint64) int {
	if live == 0 {
		return mostGC
	}
	p := int(heapRoom * 100 / live)
	return min(max(p, usualGC), mostGC)
}

// After a load, most of the heap is garbage that the runtime would keep for two minutes, and the room that it took
// for much longer. A process that has become quiet gives both back at once. One that holds thousands of streams
// allocates little, too, but a collection of their memory would delay their tokens and free nothing.
const (
	quietRate    = 1 << 20  // bytes that a quiet process allocates between two looks, at most
	quietFlight  = 256      // requests under way in a quiet process, at most
	quietLooks   = 10       // as many looks in a row make it quiet
	worthRelease = 32 << 20 // bytes that were allocated since the last release, at least
)

// idleDetector finds the moments at which a load has ended.
type idleDetector struct {
	allocated uint64 // at the last look
	released  uint64 // what was allocated at the last release
	looks     int    // in a row with little allocated
}

// begins reports whether memory should be released now. It is called at regular intervals with the bytes that the
// process has allocated so far, and the number of requests under way.
func (q *idleDetector) begins(allocated uint64, inFlight int) bool {
	if allocated-q.allocated > quietRate || inFlight > quietFlight {
		q.looks = 0
	} else {
		q.looks++
	}
	q.allocated = allocated
	if q.looks < quietLooks || allocated-q.released < worthRelease {
		return false
	}
	q.released = allocated
	return true
}
