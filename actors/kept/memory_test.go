package kept_test

import (
	"runtime"
	"strconv"
	"strings"
	"testing"
	"time"

	"stagedoor/actors/kept"
	"stagedoor/state/share"
)

// An event of 200 bytes has about what one token takes in a stream of chat or responses.
var event = eventOf(200)

func eventOf(bytes int) []byte { return []byte(strings.Repeat("x", bytes-2) + "\n\n") }

// keepStreams keeps the replies of streams of so many events. It returns the registry, the bytes that they take on the
// heap, and the bytes that the pool counts for them.
func keepStreams(streams, events int, event []byte) (g *kept.Registry, heap, counted int64) {
	allocated := func() int64 {
		runtime.GC()
		var m runtime.MemStats
		runtime.ReadMemStats(&m)
		return int64(m.HeapAlloc)
	}
	before := allocated()
	g = kept.New(share.New(share.Kept, 1<<30, 1), time.Now)
	for i := range streams {
		r, _, _ := g.Begin(kept.Request{ID: strconv.Itoa(i), Owner: "user:1"}, nothingStored)
		r.Start(200, nil)
		for range events {
			r.Append(event, []int{len(event)})
		}
		r.Close(false)
	}
	return g, allocated() - before, g.Pool().Used()
}

// The bound of the memory is that of what is counted.
func TestARecordTakesNoMoreThanIsCounted(t *testing.T) {
	for size, most := range map[int]int{30: 5200, 200: 5200, 1500: 513, 33_000: 20} {
		for _, events := range []int{1, 20, 257, 500, 513, 1300, 3500, 5200} {
			if events > most {
				continue
			}
			g, heap, counted := keepStreams(20, events, eventOf(size))
			if heap > counted {
				t.Errorf("%d events of %d bytes: a record takes %d bytes of memory and counts %d", events, size,
					heap/20, counted/20)
			}
			if most := int64(events*(2*size+16) + 8<<10); counted/20 > most {
				t.Errorf("%d events of %d bytes: %d bytes are counted", events, size, counted/20)
			}
			runtime.KeepAlive(g)
		}
	}
}

// BenchmarkRecord keeps a stream of 500 events, which is 100 kB. It reports the memory of a kept stream, what is
// counted for it, and the time for each event.
func BenchmarkRecord(b *testing.B) {
	g, heap, counted := keepStreams(100, 500, event)
	runtime.KeepAlive(g)
	one := kept.New(share.New(share.Kept, 1<<30, 1), time.Now)
	ends := []int{len(event)}
	b.ReportAllocs()
	for b.Loop() {
		r, _, _ := one.Begin(kept.Request{ID: "r", Owner: "user:1"}, nothingStored)
		for range 500 {
			r.Append(event, ends)
		}
		r.Close(false)
		r.Release(false)
		r.Leave()
		one.Sweep()
	}
	b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/500, "ns/event")
	b.ReportMetric(float64(heap)/100, "heap-B/stream")
	b.ReportMetric(float64(counted)/100, "counted-B/stream")
}
