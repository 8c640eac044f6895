package auth

import (
	"net/http"
	"time"
)

// Attempts counts the wrong secrets of another kind that addresses send, as the
// unknown gateway keys are counted.
type Attempts struct{ failures *failures }

// NewAttempts lets an address fail so often a minute.
func NewAttempts(most int) *Attempts {
	a := &Attempts{failures: newFailures()}
	a.failures.most.Store(int64(most))
	return a
}

// Failed counts a failure of whoever sent r. It returns how long to stay away, 0
// while there are failures left.
func (a *Attempts) Failed(r *http.Request, now time.Time) time.Duration {
	return a.failures.add(Remote(r), now)
}
