package postgres

import (
	"slices"
	"testing"
	"time"
)

// look has the row of the only other node as one query of a stand-by returns it.
type look struct {
	at    time.Duration // of the query and its answer
	beat  time.Duration // of the other node, by the clock of the database
	epoch int64
	lost  bool // the database did not answer
}

func TestANodeIsSilentOnlyAfterItsBeatWasSeenUnchangedForALease(t *testing.T) {
	const lease = 5 * time.Second
	every := func(from, to, beat time.Duration) (all []look) {
		for at := from; at <= to; at += lease / 10 {
			all = append(all, look{at: at, beat: beat})
		}
		return all
	}
	const hour = time.Hour
	almost := every(0, lease-1, 0)
	for name, c := range map[string]struct {
		looks  []look
		silent bool
	}{
		"a beat that never changes":       {every(0, lease, 0), true},
		"not for a lease yet":             {almost, false},
		"a beat that changes late":        {append(slices.Clone(almost), look{at: lease, beat: 1}), false},
		"a beat of long ago":              {[]look{{beat: -hour}, {at: 1e9, beat: -hour}}, false},
		"a beat of a clock that is ahead": {every(0, lease, hour), true},
		"a clock that is set back":        {append(slices.Clone(almost), look{at: lease, beat: -hour}), false},
		"a new epoch":                     {append(slices.Clone(almost), look{at: lease, epoch: 1}), false},
		"a database that is lost":         {append(slices.Clone(almost), look{lost: true}, look{at: lease}), false},
		"a database that did not answer":  {append(every(0, lease/2-1, 0), every(lease+1, lease+1, 0)...), false},
		"a lease after it is back":        {append(every(0, lease/2, 0), every(2*lease, 3*lease, 0)...), true},
	} {
		began, seen := time.Now(), &silence{}
		var silent []liveNode
		for _, l := range c.looks {
			if l.lost {
				seen.forget()
				continue
			}
			at := began.Add(l.at)
			silent = seen.note([]liveNode{{ID: "a", Epoch: l.epoch, Beat: began.Add(l.beat)}}, at, at, lease)
		}
		if (len(silent) == 1) != c.silent {
			t.Errorf("%s: silent %v", name, silent)
		}
	}
}
