package auth

import (
	"sync/atomic"
	"time"
)

// revisions counts the events besides changes of the store that make keys unusable: new keys in
// the configuration, and the expiry of a key.
type revisions struct {
	count  atomic.Uint64
	expiry atomic.Int64 // when the next key in use expires, in Unix nanoseconds, or 0
}

// expire records that a key in use expires at t. It reports whether that is now the earliest time at which one expires.
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

// next returns when the next key in use expires, or the zero time.
func (r *revisions) next() time.Time {
	if at := r.expiry.Load(); at != 0 {
		return time.Unix(0, at)
	}
	return time.Time{}
}

// advance increments the count if a key has expired by now. The next look through the keys in use
// notes the next expiry.
func (r *revisions) advance(now time.Time) {
	if at := r.expiry.Load(); at != 0 && at <= now.UnixNano() && r.expiry.CompareAndSwap(at, 0) {
		r.count.Add(1)
	}
}
