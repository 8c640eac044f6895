package images

import (
	"testing"

	"stagedoor/providers/dialogue"
	"stagedoor/providers/upstream"
)

func TestAPictureThatMayHaveBeenMadeIsNotRequestedAgain(t *testing.T) {
	for name, tc := range map[string]struct {
		class    upstream.Class
		answered bool
		status   int
		want     bool
	}{
		"not sent":          {upstream.NotSent, false, 503, true},
		"maybe sent":        {upstream.MaybeSent, false, 502, false},
		"timed out":         {upstream.TimedOut, false, 504, false},
		"caller's fault":    {upstream.CallerFault, true, 400, false},
		"cancelled":         {upstream.Cancelled, false, 499, false},
		"500":               {upstream.Transient, true, 500, true},
		"502":               {upstream.Transient, true, 502, false},
		"500 in a reply":    {upstream.Transient, false, 500, false},
		"an unusable reply": {upstream.Transient, false, 502, false},
		"overloaded":        {upstream.Overloaded, true, 503, true},
		"rate limited":      {upstream.RateLimited, true, 429, true},
		"the key":           {upstream.Credential, true, 502, true},
	} {
		policy := new(exchange).Policy()
		f := &upstream.Failure{Class: tc.class, Answered: tc.answered, Err: &dialogue.Error{Status: tc.status}}
		if got := policy.Repeatable(f); got != tc.want || !policy.MoveOn {
			t.Errorf("%s: %v", name, got)
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
