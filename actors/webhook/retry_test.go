package webhook

import (
	"errors"
	"testing"
	"time"

	"stagedoor/state/work"
)

func TestOnlyTwoHundredsAreDelivered(t *testing.T) {
	at := time.Unix(1_760_000_000, 0)
	for _, c := range []struct {
		o    outcome
		want verdict
	}{
		{outcome{status: 200}, done}, {outcome{status: 204}, done}, {outcome{status: 299}, done},
		{outcome{status: 300}, again}, {outcome{status: 302}, again}, {outcome{status: 400}, again},
		{outcome{status: 404}, again},
		{outcome{status: 410}, giveUp}, {outcome{status: 429}, again}, {outcome{status: 500}, again},
		{outcome{status: 199}, again},
		{outcome{err: errors.New("gone")}, again},
	} {
		if got, _ := decide(&work.Delivery{Created: at, Due: at}, c.o, at, 0); got != c.want {
			t.Errorf("%+v: %v, want %v", c.o, got, c.want)
		}
	}
}

func TestRetriesGrowFurtherApartAndEndAfterThreeDays(t *testing.T) {
	for _, chance := range []float64{0, 0.5, 0.999} {
		at := time.Unix(1_760_000_000, 0)
		d := work.Delivery{Created: at, Due: at}
		var waits []time.Duration
		for {
			what, due := decide(&d, outcome{status: 500}, at, chance)
			if what == giveUp {
				break
			}
			wait := due.Sub(at)
			if n := len(waits); n > 0 && wait < waits[n-1] {
				t.Errorf("%s after %s", wait, waits[n-1])
			}
			waits = append(waits, wait)
			at, d.Tries = due, d.Tries+1
		}
		if first := waits[0]; first > 5*time.Second || first < 4*time.Second {
			t.Errorf("the first retry is after %s", first)
		}
		if span := at.Sub(d.Created); span > work.DeliveryTTL || span < work.DeliveryTTL-maxRetry {
			t.Errorf("given up after %s", span)
		}
		if len(waits) < 10 || len(waits) > 25 {
			t.Errorf("%d retries", len(waits))
		}
	}
}
