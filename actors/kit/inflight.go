package kit

import (
	"context"
	"sync/atomic"
	"time"
)

// InFlight counts what is under way, so that a drain can wait for its end. It is
// safe for concurrent use.
type InFlight struct {
	count    atomic.Int64
	refusing atomic.Bool
	idle     chan struct{} // told, without waiting, when the last one ends
}

// NewInFlight counts from none.
func NewInFlight() *InFlight { return &InFlight{idle: make(chan struct{}, 1)} }

// Enter counts one in and reports whether it may begin. It leaves in any case.
func (f *InFlight) Enter() bool {
	// Counted first: a drain that counted none has its refusal seen by all others.
	f.count.Add(1)
	return !f.refusing.Load()
}

// Leave counts one out.
func (f *InFlight) Leave() {
	if f.count.Add(-1) > 0 {
		return
	}
	select {
	case f.idle <- struct{}{}:
	default:
	}
}

// Count is how many are under way.
func (f *InFlight) Count() int { return int(f.count.Load()) }

// Drain waits until nothing is under way, or ctx ends, and has whoever comes from
// then on refused. If some are left it calls cut and waits for them up to grace. It
// returns how many were left, and is called once.
func (f *InFlight) Drain(ctx context.Context, grace time.Duration, cut func()) (left int) {
	f.wait(ctx)
	f.refusing.Store(true)
	if left = f.Count(); left == 0 {
		return 0
	}
	cut()
	ctx, cancel := context.WithTimeout(context.Background(), grace)
	defer cancel()
	f.wait(ctx)
	return left
}

func (f *InFlight) wait(ctx context.Context) {
	for f.Count() > 0 {
		select {
		case <-f.idle:
		case <-ctx.Done():
			return
		}
	}
}
