package throttle_test

import (
	"fmt"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"stagedoor/actors/throttle"
)

var noon = time.Unix(1_700_000_000, 0)

// admit admits a request of tokens, as a caller does that knows them at once.
func admit(keys *throttle.Keys, key string, limits throttle.KeyLimits, tokens int,
	now time.Time) (*throttle.Pass, *throttle.Refused) {
	pass, refused := keys.Admit(key, limits, now)
	if refused != nil {
		return nil, refused
	}
	if refused := pass.Charge(tokens, now); refused != nil {
		pass.Release(0)
		return nil, refused
	}
	return pass, nil
}

func TestKeyLimitsRequests(t *testing.T) {
	keys := throttle.NewKeys(100)
	limits := throttle.KeyLimits{RequestsPerMinute: 3}
	for want := 2; want >= 0; want-- {
		pass, refused := admit(keys, "k", limits, 0, noon)
		if refused != nil {
			t.Fatal(refused)
		}
		if pass.Requests.Limit != 3 || pass.Requests.Remaining != want {
			t.Errorf("level %+v, want %d remaining", pass.Requests, want)
		}
		pass.Release(0)
	}
	_, refused := admit(keys, "k", limits, 0, noon)
	if refused == nil || refused.Limit != throttle.LimitRequests || refused.RetryAfter != 20*time.Second ||
		refused.Requests.Remaining != 0 || refused.Requests.Reset != time.Minute {
		t.Fatalf("got %+v", refused)
	}
	if _, refused := admit(keys, "other", limits, 0, noon); refused != nil {
		t.Error("another key was refused")
	}
	if _, refused := admit(keys, "k", limits, 0, noon.Add(refused.RetryAfter)); refused != nil {
		t.Errorf("the retry was refused: %v", refused)
	}
}

func TestKeyLimitsTokensAndSettles(t *testing.T) {
	keys := throttle.NewKeys(100)
	limits := throttle.KeyLimits{TokensPerMinute: 1000}
	pass, _ := admit(keys, "k", limits, 900, noon)
	if _, refused := admit(keys, "k", limits, 200, noon); refused == nil || refused.Limit != throttle.LimitTokens {
		t.Fatalf("got %+v", refused)
	}
	pass.Release(100)
	pass.Release(0) // must not count
	again, refused := admit(keys, "k", limits, 200, noon)
	if refused != nil || again.Tokens.Remaining != 700 {
		t.Fatalf("got %+v, %v", again, refused)
	}
	again.Release(-1) // not known: the estimate stays
	if last, _ := admit(keys, "k", limits, 0, noon); last.Tokens.Remaining != 700 {
		t.Errorf("remaining %d", last.Tokens.Remaining)
	}
}

func TestKeyLimitsConcurrency(t *testing.T) {
	keys := throttle.NewKeys(100)
	limits := throttle.KeyLimits{MaxInFlight: 2}
	var held, most, refusals atomic.Int64
	var wg sync.WaitGroup
	for range 8 {
		wg.Go(func() {
			for range 200 {
				pass, refused := admit(keys, "k", limits, 0, noon)
				if refused != nil {
					refusals.Add(1)
					continue
				}
				if n := held.Add(1); n > most.Load() {
					most.Store(n)
				}
				held.Add(-1)
				pass.Release(0)
			}
		})
	}
	wg.Wait()
	if most.Load() > 2 {
		t.Errorf("%d at once", most.Load())
	}
	a, _ := admit(keys, "k", limits, 0, noon)
	b, _ := admit(keys, "k", limits, 0, noon)
	if _, refused := admit(keys, "k", limits, 0, noon); refused == nil || refused.Limit != throttle.LimitConcurrency {
		t.Errorf("got %+v", refused)
	}
	a.Release(0)
	b.Release(0)
	if _, refused := admit(keys, "k", limits, 0, noon); refused != nil {
		t.Error(refused)
	}
}

func TestKeyWithoutLimitsIsNotCounted(t *testing.T) {
	keys := throttle.NewKeys(1)
	pass, refused := admit(keys, "k", throttle.KeyLimits{}, 1<<40, noon)
	if refused != nil || pass.Requests.Limit != 0 {
		t.Errorf("got %+v, %v", pass, refused)
	}
	pass.Release(5)
}

func TestChangedLimitsActAtOnce(t *testing.T) {
	keys := throttle.NewKeys(100)
	for range 5 {
		pass, _ := admit(keys, "k", throttle.KeyLimits{RequestsPerMinute: 10}, 0, noon)
		pass.Release(0)
	}
	pass, refused := admit(keys, "k", throttle.KeyLimits{RequestsPerMinute: 100}, 0, noon)
	if refused != nil || pass.Requests.Remaining != 49 { // half of it was used
		t.Errorf("got %+v, %v", pass, refused)
	}
}

func TestKeyTableIsBoundedAndKeepsBusyKeys(t *testing.T) {
	keys := throttle.NewKeys(64)
	limits := throttle.KeyLimits{RequestsPerMinute: 1, MaxInFlight: 1}
	busy, refused := admit(keys, "busy", limits, 0, noon)
	if refused != nil {
		t.Fatal(refused)
	}
	for i := range 10_000 {
		pass, refused := admit(keys, fmt.Sprint("key-", i), limits, 0, noon)
		if refused != nil {
			t.Fatal(refused)
		}
		pass.Release(0)
	}
	if n := throttle.KeyCount(keys); n > 64+16 {
		t.Errorf("%d keys are remembered", n)
	}
	if _, refused := admit(keys, "busy", limits, 0, noon.Add(time.Hour)); refused == nil {
		t.Error("a key with a request in flight was forgotten")
	}
	busy.Release(0)
}

// A request whose tokens do not fit has used one of the key's rate and gives its place
// back; so has one that is refused for another reason later.
func TestRequestThatIsRefusedLaterCostsOneOfTheRateAndNoPlace(t *testing.T) {
	keys := throttle.NewKeys(10)
	limits := throttle.KeyLimits{RequestsPerMinute: 2, TokensPerMinute: 100, MaxInFlight: 1}
	pass, refused := keys.Admit("k", limits, noon)
	if refused != nil {
		t.Fatal(refused)
	}
	full, _ := admit(keys, "other", limits, 100, noon)
	if refused := pass.Charge(100, noon); refused != nil {
		t.Fatal(refused)
	}
	pass.Release(-1)
	full.Release(-1)
	second, refused := keys.Admit("k", limits, noon)
	if refused != nil {
		t.Fatalf("the place was not given back: %+v", refused)
	}
	if refused := second.Charge(1, noon); refused == nil || refused.Limit != throttle.LimitTokens ||
		refused.RetryAfter <= 0 {
		t.Errorf("tokens beyond the limit: %+v", refused)
	}
	second.Release(0)
	if _, refused := keys.Admit("k", limits, noon); refused == nil || refused.Limit != throttle.LimitRequests {
		t.Errorf("the refused request cost nothing of the rate: %+v", refused)
	}
}

// TestAKeyHasItsLimitsOverAllProcesses: each of them has an equal part, and at least 1.
func TestAKeyHasItsLimitsOverAllProcesses(t *testing.T) {
	limits := throttle.KeyLimits{RequestsPerMinute: 10, MaxInFlight: 1}
	const processes = 3
	admitted := 0
	now := time.Unix(1e9, 0)
	for range processes {
		k := throttle.NewKeys(16)
		k.ShareLimits(processes)
		for range 10 {
			if p, refused := k.Admit("key", limits, now); refused == nil {
				p.Release(-1)
				admitted++
			}
		}
	}
	if admitted != 9 {
		t.Errorf("%d requests of a limit of 10 were admitted by %d processes", admitted, processes)
	}
	k := throttle.NewKeys(16)
	k.ShareLimits(processes)
	if _, refused := k.Admit("key", limits, now); refused != nil {
		t.Errorf("a process refuses the only request: %+v", refused)
	}
}
