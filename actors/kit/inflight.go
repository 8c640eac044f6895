package kit

import (
	"context"
	"sync/atomic"
	"time"
)

// InFlight counts operations in flight, so that a drain can wait for their end. It is safe for concurrent use.
type InFlight struct {
	count    atomic.Int64
	refusing atomic.Bool
	idle     chan struct{} // signalled without waiting when the last one ends
}

// NewInFlight returns an InFlight with a count of zero.
func NewInFlight() *InFlight { return &InFlight{idle: make(chan struct{}, 1)} }

// Enter counts an operation and reports whether it may begin. The caller calls Leave in either case.
func (f *InFlight) Enter() bool {
	// The count comes first, so that a drain which saw zero has its refusal seen by every later Enter.
	f.count.Add(1)
	return !f.refusing.Load()
}

// Leave counts the end of an operation.
func (f *InFlight) Leave() {
	if f.count.Add(-1) > 0 {
		return
	}
	select {
	case f.idle <- struct{}{}:
	default:
	}
}

// Count returns the number of operations in flight.
func (f *InFlight) Count() int { return int(f.count.Load()) }

// Drain waits until nothing is in flight or ctx ends, while Enter still accepts operations. From then on Enter refuses.
// If operations are left, Drain calls cut and waits for them up to grace. It returns how many were left. It must be
// called once.
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

// wait returns when nothing is in flight, or ctx has ended.
func (f *InFlight) wait(ctx context.Context) {
	for f.Count() > 0 {
		select {
		case <-f.idle:
		case <-ctx.Done():
			return
		}
	}
}
