package upstream_test

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"stagedoor/providers/dialogue"
	"stagedoor/providers/upstream"
)

func TestARateLimitRestsItsKeyForItsModelOnly(t *testing.T) {
	k, now := upstream.NewKeys([]string{"k1", "k2"}), time.Unix(1000, 0)
	limited := &upstream.Failure{Class: upstream.RateLimited, RetryAfter: time.Minute}
	taken := func(model string) map[string]bool {
		keys := map[string]bool{}
		for range 4 {
			keys[k.Take(now, model)] = true
		}
		return keys
	}
	k.RecordFailure("k1", "busy", limited, now)
	if got := taken("busy"); got["k1"] || !got["k2"] {
		t.Errorf("for the model: %v", got)
	}
	if got := taken("idle"); !got["k1"] || !got["k2"] {
		t.Errorf("for another model: %v", got)
	}
	if k.Usable("busy", now) != 1 || k.Usable("idle", now) != 2 || k.Rest("busy", now) != 0 {
		t.Errorf("usable: %d and %d, rest %v", k.Usable("busy", now), k.Usable("idle", now), k.Rest("busy", now))
	}
	k.RecordFailure("k2", "busy", &upstream.Failure{Class: upstream.RateLimited, RetryAfter: 20 * time.Second}, now)
	if k.Rest("busy", now) != 20*time.Second || k.Rest("idle", now) != 0 {
		t.Errorf("both refused: the model rests for %v", k.Rest("busy", now))
	}
	k.RecordFailure("k1", "idle", &upstream.Failure{Class: upstream.RateLimited, TooLarge: true}, now)
	if k.Usable("idle", now) != 2 {
		t.Error("a request that can never fit rests a key")
	}
	k.RecordFailure("k1", "idle", &upstream.Failure{Class: upstream.Credential}, now)
	if got := taken("other"); got["k1"] {
		t.Error("a key whose credentials were refused is used for another model")
	}
	k.RecordFailure("k2", "idle", &upstream.Failure{Class: upstream.Overloaded}, now)
	if k.Usable("idle", now) != 1 {
		t.Error("an overload without a time rests a key")
	}
	k.RecordFailure("k2", "full", &upstream.Failure{Class: upstream.Overloaded, RetryAfter: time.Minute}, now)
	if k.Usable("full", now) != 0 || k.Usable("idle", now) != 1 {
		t.Error("an overload with a time does not rest its key for its model only")
	}
	if resting, of := k.Resting(now); resting != 2 || of != 2 {
		t.Errorf("%d of %d rest", resting, of)
	}
	now = now.Add(upstream.RefusedRest)
	if resting, _ := k.Resting(now); resting != 0 || len(taken("busy")) != 2 {
		t.Errorf("%d rest after their time", resting)
	}
}

func TestARequestThatNeverFitsIsKnownByItsMessage(t *testing.T) {
	for message, want := range map[string]bool{
		"Request too large for gpt-4o in organization org-x on tokens per min (TPM): Limit 30000, Requested 41000. The input or output tokens must be reduced in order to run successfully.": true,
		"Rate limit reached for gpt-4o on tokens per min (TPM): Limit 30,000, Requested 41,000.":                                                                                             true,
		"Rate limit reached for gpt-4o on tokens per min (TPM): Limit 30000, Used 29000, Requested 2000.":                                                                                    false,
		"Rate limit reached for requests": false, "": false, "limit 10": false, "Limit: 3, requested: 4": true,
	} {
		f := upstream.Refused(dialogue.Traits{}, 429, nil, &dialogue.Error{Status: 429, Message: message})
		if f.TooLarge != want || f.Err.NoRetry != want || f.Class != upstream.RateLimited {
			t.Errorf("%q: too large %t, no retry %t", message, f.TooLarge, f.Err.NoRetry)
		}
	}
	f := upstream.Refused(dialogue.Traits{}, 429, map[string][]string{"Retry-After": {"2"}},
		&dialogue.Error{Status: 429, Message: "request too large"})
	if f.TooLarge {
		t.Error("the provider named a time, so waiting helps")
	}
}

func TestManyRateLimitsDoNotGrowWhatIsKeptOfKeys(t *testing.T) {
	k, now := upstream.NewKeys([]string{"k1", "k2"}), time.Unix(1000, 0)
	k.Refuse("k1", now, upstream.RefusedRest)
	for i := range 1000 {
		limited := &upstream.Failure{Class: upstream.RateLimited, RetryAfter: time.Hour + time.Duration(i)*time.Second}
		k.RecordFailure("k2", fmt.Sprint("m", i), limited, now)
	}
	resting := 0
	for i := range 1000 {
		if k.Usable(fmt.Sprint("m", i), now) == 0 {
			resting++
		}
	}
	if resting != 255 || k.Usable("m999", now) != 0 {
		t.Errorf("the second key rests for %d models, want the latest 255", resting)
	}
	if k.Take(now, "idle") != "k2" {
		t.Error("the refused key does not rest any more")
	}
}

func TestTheStateOfAKeyNamesItsRefusalUntilItWorks(t *testing.T) {
	now := time.Unix(1000, 0)
	refused := &upstream.Failure{Class: upstream.Credential}
	only := upstream.NewKeys([]string{"k"})
	only.RecordFailure("k", "m", refused, now)
	if got := only.States(now.Add(time.Hour)); !got[0].Refused || got[0].Rest > 0 {
		t.Errorf("the only key: %+v", got)
	}
	only.RecordSuccess("k")
	if got := only.States(now); got[0] != (upstream.KeyState{}) {
		t.Errorf("the only key has worked: %+v", got)
	}
	two := upstream.NewKeys([]string{"a", "b"})
	two.RecordFailure("a", "m", refused, now)
	two.RecordFailure("b", "m", &upstream.Failure{Class: upstream.RateLimited, RetryAfter: time.Minute}, now)
	want := []upstream.KeyState{{Refused: true, Rest: upstream.RefusedRest}, {Rest: time.Minute}}
	if got := two.States(now); !slices.Equal(got, want) {
		t.Errorf("%+v, want %+v", got, want)
	}
	two.RecordSuccess("a")
	two.RecordSuccess("b") // was not refused, so that its rest stays
	if got := two.States(now); got[0] != (upstream.KeyState{}) || got[1].Rest != time.Minute {
		t.Errorf("after a success: %+v", got)
	}
}
