package painter

import (
	"testing"
	"time"

	"stagedoor/providers/upstream"
)

// What may have been made is never asked for again.
func TestDecide(t *testing.T) {
	base := facts{allowed: 2, candidates: 1, remaining: time.Minute}
	with := func(change func(*facts)) facts {
		f := base
		change(&f)
		return f
	}
	for name, tc := range map[string]struct {
		progress progress
		facts    facts
		want     verdict
	}{
		"not sent":                 {progress{}, with(func(f *facts) { f.class = upstream.NotSent }), again},
		"not sent, elsewhere then": {progress{tries: 1, retries: 1}, with(func(f *facts) { f.class, f.candidates = upstream.NotSent, 2 }), elsewhere},
		"often enough":             {progress{tries: 2, retries: 2}, with(func(f *facts) { f.class = upstream.NotSent }), giveUp},
		"maybe sent":               {progress{}, with(func(f *facts) { f.class, f.candidates = upstream.MaybeSent, 2 }), giveUp},
		"timed out":                {progress{}, with(func(f *facts) { f.class, f.candidates = upstream.TimedOut, 2 }), giveUp},
		"caller's fault":           {progress{}, with(func(f *facts) { f.class, f.candidates = upstream.CallerFault, 2 }), giveUp},
		"cancelled":                {progress{}, with(func(f *facts) { f.class = upstream.Cancelled }), giveUp},
		"500":                      {progress{}, with(func(f *facts) { f.class, f.refused, f.status = upstream.Transient, true, 500 }), again},
		"502":                      {progress{}, with(func(f *facts) { f.class, f.refused, f.status = upstream.Transient, true, 502 }), giveUp},
		"an unusable reply":        {progress{}, with(func(f *facts) { f.class, f.status = upstream.Transient, 502 }), giveUp},
		"overloaded":               {progress{}, with(func(f *facts) { f.class, f.refused = upstream.Overloaded, true }), again},
		"rate, soon":               {progress{}, with(func(f *facts) { f.class, f.retryAfter = upstream.RateLimited, time.Second }), again},
		"rate, not soon":           {progress{}, with(func(f *facts) { f.class, f.retryAfter = upstream.RateLimited, time.Hour }), giveUp},
		"rate, another key":        {progress{}, with(func(f *facts) { f.class, f.spareKeys = upstream.RateLimited, 1 }), again},
		"rate, another provider":   {progress{}, with(func(f *facts) { f.class, f.candidates = upstream.RateLimited, 2 }), elsewhere},
		"the key":                  {progress{}, with(func(f *facts) { f.class = upstream.Credential }), giveUp},
		"the key, another":         {progress{}, with(func(f *facts) { f.class, f.spareKeys = upstream.Credential, 1 }), again},
		"no permit":                {progress{}, with(func(f *facts) { f.class, f.gated, f.candidates = upstream.NotSent, true, 2 }), elsewhere},
		"a picture was shown":      {progress{}, with(func(f *facts) { f.class, f.committed = upstream.NotSent, true }), giveUp},
		"no time":                  {progress{}, with(func(f *facts) { f.class, f.remaining = upstream.NotSent, 0 }), giveUp},
		"no time for the wait": {progress{}, with(func(f *facts) {
			f.class, f.retryAfter, f.remaining = upstream.RateLimited, 5*time.Second, time.Second
		}), giveUp},
	} {
		if _, got, wait := decide(tc.progress, tc.facts); got != tc.want || wait < 0 || wait > longestWait {
			t.Errorf("%s: %d after %v, want %d", name, got, wait, tc.want)
		}
	}
}

func TestWellFormed(t *testing.T) {
	for in, want := range map[string]bool{"aGk=": true, "aGkh": true, "aA==": true, "": true, "aGk": false, "a===": false, "aG k": false, "aGk=aGk=": false, "aG-_": false} {
		if got := wellFormed([]byte(in)); got != want {
			t.Errorf("%q: %v", in, got)
		}
	}
}
