package webhook

import (
	"net/http"
	"time"

	"stagedoor/state/work"
)

// The back-off is 5 s, 20 s, 80 s and so on up to 8 h, until state.DeliveryTTL has passed.
const (
	firstRetry = 5 * time.Second
	growth     = 4
	maxRetry   = 8 * time.Hour
)

// outcome is the result of a try.
type outcome struct {
	status int // 0 if there was no reply
	err    error
}

func (o outcome) delivered() bool { return o.status >= 200 && o.status < 300 }

// verdict is the decision about a delivery after a try.
type verdict int

const (
	done verdict = iota
	again
	giveUp
)

// decide returns the verdict about d after a try that ended at now, and the time of the next try. chance, in [0,1),
// spreads retries. Every status but 2xx is a failure, including redirects. With 410 the endpoint asks for no further
// tries.
func decide(d *work.Delivery, o outcome, now time.Time, chance float64) (verdict, time.Time) {
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

// retryAfter returns the wait after tries failures and one more, which is the full interval less up to a fifth of it.
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
