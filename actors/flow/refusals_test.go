package flow

import (
	"fmt"
	"testing"
	"time"
)

func TestTheNumbersOfEarlierHoursAreBoundedAndTheLastHourComesFirst(t *testing.T) {
	var r refusals
	at := func(hour int) time.Time { return time.Unix(int64(hour)*3600, 0) }
	for hour := range 3 {
		for i := range maxRefusedKeys {
			key := fmt.Sprint(hour, " ", i)
			for range refusedEach + 1 {
				r.admit(key, at(hour))
			}
		}
	}
	left, ok := r.admit("2 0", at(3))
	if len(r.earlier) != maxRefusedKeys-1 || left != 1 || !ok {
		t.Errorf("%d keys of earlier hours are kept, and %d requests of one of them were left out", len(r.earlier), left)
	}
}
