package throttle

import (
	"errors"
	"fmt"
	"time"
)

// Reason says why a request was refused. Its String is the word used in metrics and replies.
type Reason uint8

// The reasons. Closed and BreakerOpen mean that the upstream cannot be used now (503). All
// others are limits of the gateway itself (429).
const (
	Shed         Reason = iota // the queue is full
	Expired                    // the deadline passed in the queue
	TooLate                    // the deadline would pass before its turn, so it is not queued
	Closed                     // stopped, or restarting
	BreakerOpen                // the upstream fails, and the breaker is open
	LimitReached               // a gateway key's own limit
	reasonCount
)

// reasonNames are the names of the reasons in metrics.
var reasonNames = [reasonCount]string{"shed", "expired", "too_late", "closed", "breaker_open", "limit_reached"}

// String returns the name of the reason, or "unknown".
func (r Reason) String() string {
	if r >= reasonCount {
		return "unknown"
	}
	return reasonNames[r]
}

// Limit names of a Refused.
const (
	LimitRequests    = "requests"
	LimitTokens      = "tokens"
	LimitConcurrency = "concurrency"
)

// Refused is the error of a request that got no permit.
type Refused struct {
	Reason Reason
	// RetryAfter is the estimated time after which a retry could be served.
	RetryAfter time.Duration
	// Limit names the limit that was reached, if a limit is the cause.
	Limit string
	// Requests and Tokens are the levels of the key's limits, for LimitReached.
	Requests, Tokens Level
}

// Error implements error.
func (r *Refused) Error() string {
	return fmt.Sprintf("refused: %s, retry after %s", r.Reason, r.RetryAfter.Round(time.Millisecond))
}

// Why returns the reason of an error of Acquire in one word, for metrics.
func Why(err error) string {
	var r *Refused
	if errors.As(err, &r) {
		return r.Reason.String()
	}
	return Cancelled.String()
}
