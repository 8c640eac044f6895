package webhook

import (
	"net/http"
	"time"

	"stagedoor/state"
)

// Back-off: 5 s, 20 s, 80 s, ... up to 8 h, until state.DeliveryTTL is over.
const (
	firstRetry = 5 * time.Second
	growth     = 4
	maxRetry   = 8 * time.Hour
)

// outcome is how a try went.
type outcome struct {
	status int // 0: there was no answer
	err    error
}

func (o outcome) delivered() bool { return o.status >= 200 && o.status < 300 }

// verdict is what becomes of a delivery after a try.
type verdict int

const (
	done verdict = iota
	again
	giveUp
)

// decide says what becomes of d after a try that ended at now, and when to try
// again. chance is in [0,1): retries are spread by it. Everything but 2xx is a
// failure, redirects too; 410 asks not to be told any more.
func decide(d *state.Delivery, o outcome, now time.Time, chance float64) (verdict, time.Time) {
	if o.delivered() {
		return done, time.Time{}
	}
	if o.status == http.StatusGone {
		return giveUp, time.Time{}
	}
	due := now.Add(retryAfter(d.Tries, chance))
	if last := d.Ends(); due.After(last) {
		return giveUp, time.Time{}
	}
	return again, due
}

// retryAfter is how long to wait after tries failures and one more: the full
// interval, less up to a fifth of it.
func retryAfter(tries int, chance float64) time.Duration {
	wait := firstRetry
	for range tries {
		if wait *= growth; wait >= maxRetry {
			wait = maxRetry
			break
		}
	}
	return wait - time.Duration(chance*float64(wait)/5)
}
