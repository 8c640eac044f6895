package auth

import (
	"net/http"
	"time"
)

// Attempts counts wrong secrets that are not gateway keys, such as passwords, by address.
type Attempts struct{ failures *failures }

// NewAttempts returns an Attempts that allows an address `most` failures a minute.
func NewAttempts(most int) *Attempts {
	a := &Attempts{failures: newFailures()}
	a.failures.most.Store(int64(most))
	return a
}

// Failed counts a failure of the address that sent r. It returns how long the address has to wait
// before its next attempt, or 0 if it has failures left.
func (a *Attempts) Failed(r *http.Request, now time.Time) time.Duration {
	return a.failures.add(Remote(r), now)
}
