package throttle

import (
	"errors"
	"fmt"
	"time"
)

// Reason is why a request was refused.
type Reason uint8

// The reasons. All but Closed and BreakerOpen are the gateway's own limit (429);
// those two are an upstream that cannot be used now (503).
const (
	Shed         Reason = iota // the queue is full
	Expired                    // the deadline passed in the queue
	TooLate                    // the deadline would pass before its turn: refused at the door
	Closed                     // stopped, or restarting
	BreakerOpen                // the upstream fails, and is left alone
	LimitReached               // a gateway key's own limit
	reasonCount
)

var reasonNames = [reasonCount]string{"shed", "expired", "too_late", "closed", "breaker_open", "limit_reached"}

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

// Refused is the error of a request that was not permitted.
type Refused struct {
	Reason Reason
	// RetryAfter is when a try could be served, as far as that can be known now.
	RetryAfter time.Duration
	// Limit is the limit that stands in the way, if it is one.
	Limit string
	// Requests and Tokens are the key's levels, for LimitReached.
	Requests, Tokens Level
}

func (r *Refused) Error() string {
	return fmt.Sprintf("refused: %s, retry after %s", r.Reason, r.RetryAfter.Round(time.Millisecond))
}

// Why is the reason of an error of Acquire, in one word.
func Why(err error) string {
	var r *Refused
	if errors.As(err, &r) {
		return r.Reason.String()
	}
	return Cancelled.String()
}
