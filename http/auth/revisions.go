package auth

import (
	"sync/atomic"
	"time"
)

// revisions count what makes keys unusable beside changes of the store: other keys in
// the configuration, and the time.
type revisions struct {
	count  atomic.Uint64
	expiry atomic.Int64 // when the next key in use expires, in nanoseconds; 0: none does
}

// expire notes that a key in use expires at t. It reports whether that is the next one.
func (r *revisions) expire(t time.Time) bool {
	at := t.UnixNano()
	for {
		next := r.expiry.Load()
		if next != 0 && next <= at {
			return false
		}
		if r.expiry.CompareAndSwap(next, at) {
			return true
		}
	}
}

// next is when the next key in use expires; zero: none does.
func (r *revisions) next() time.Time {
	if at := r.expiry.Load(); at != 0 {
		return time.Unix(0, at)
	}
	return time.Time{}
}

// advance counts a key that has expired by now. What expires next is noted anew by
// those who look through the keys in use.
func (r *revisions) advance(now time.Time) {
	if at := r.expiry.Load(); at != 0 && at <= now.UnixNano() && r.expiry.CompareAndSwap(at, 0) {
		r.count.Add(1)
	}
}
