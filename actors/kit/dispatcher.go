package kit

import (
	"runtime"
	"sync"
	"sync/atomic"
)

// reuse is a dispatcher that keeps some goroutines parked between wake-ups. The library starts a goroutine for each
// wake-up, and its first frame is larger than the stack of a new goroutine. Growing and copying that stack makes such
// a wake-up four times as expensive.
type reuse struct {
	hand    chan func() // unbuffered, so that a send succeeds only if a worker is parked
	idle    atomic.Int64
	maxIdle int64
	closing atomic.Bool
	workers sync.WaitGroup
}

const throughput = 300 // messages after which a busy actor lets others run

// newReuse returns a dispatcher that parks at most so many goroutines.
func newReuse(maxIdle int) *reuse {
	return &reuse{hand: make(chan func()), maxIdle: int64(maxIdle)}
}

// Schedule runs fn on a parked goroutine, or on a new one if none is parked. It never waits, so that actors which block
// cannot delay others.
func (d *reuse) Schedule(fn func()) {
	select {
	case d.hand <- fn:
	default:
		d.workers.Add(1)
		go d.work(fn)
	}
}

// Throughput implements actor.Dispatcher.
func (d *reuse) Throughput() int { return throughput }

// work runs functions until there are enough parked goroutines, or close hands it nil.
func (d *reuse) work(fn func()) {
	defer d.workers.Done() // deferred because Goexit in an actor must not lose the count
	for fn != nil {
		fn()
		if d.idle.Add(1) > d.maxIdle || d.closing.Load() {
			d.idle.Add(-1)
			return
		}
		// A worker waits for this channel alone, because a select would make each wake-up slower.
		fn = <-d.hand
		d.idle.Add(-1)
	}
}

// close ends the parked goroutines and waits for them. Functions that are scheduled later still run, on goroutines of
// their own.
func (d *reuse) close() {
	d.closing.Store(true)
	for d.idle.Load() > 0 {
		select {
		case d.hand <- nil:
		default:
			runtime.Gosched() // a worker is about to park
		}
	}
	d.workers.Wait()
}
