package kit

import (
	"runtime"
	"sync"
	"sync/atomic"
)

// reuse is a dispatcher that keeps some goroutines parked between wake-ups. The
// library starts a new one per wake, and its first frame is larger than a new
// goroutine's stack: a wake-up then costs four times as much, all of it growing
// and copying that stack.
type reuse struct {
	hand    chan func() // unbuffered: a send succeeds only if a worker is parked
	idle    atomic.Int64
	maxIdle int64
	closing atomic.Bool
	workers sync.WaitGroup
}

const throughput = 300 // messages before a busy actor lets others run

func newReuse(maxIdle int) *reuse {
	return &reuse{hand: make(chan func()), maxIdle: int64(maxIdle)}
}

// Schedule never waits, so actors that block cannot starve the others.
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

func (d *reuse) work(fn func()) {
	defer d.workers.Done() // deferred: Goexit in an actor must not lose the count
	for fn != nil {
		fn()
		if d.idle.Add(1) > d.maxIdle || d.closing.Load() {
			d.idle.Add(-1)
			return
		}
		// Parked on this channel alone: a select would make a wake-up dearer.
		fn = <-d.hand
		d.idle.Add(-1)
	}
}

// close sends the parked goroutines home and waits for them. What is scheduled
// later still runs, on a goroutine that is not kept.
func (d *reuse) close() {
	d.closing.Store(true)
	for d.idle.Load() > 0 {
		select {
		case d.hand <- nil:
		default:
			runtime.Gosched() // one is about to park
		}
	}
	d.workers.Wait()
}
