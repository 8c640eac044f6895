package throttle_test

import (
	"context"
	"errors"
	"sync"
	"testing"
	"time"

	"stagedoor/actors/kit"
	"stagedoor/actors/kit/kittest"
	"stagedoor/actors/throttle"
)

// gate is a client under test with a record of who was served when.
type gate struct {
	*throttle.Client
	t     *testing.T
	begin time.Time
	wg    sync.WaitGroup
	mu    sync.Mutex
	got   map[string][]result
}

type result struct {
	at     time.Duration // since the beginning
	waited time.Duration
	err    error
}

func run(t *testing.T, config throttle.Config, body func(t *testing.T, g *gate)) {
	t.Helper()
	kittest.Run(t, func(t *testing.T, sys *kit.System) {
		client, err := throttle.Spawn(sys, "provider", config)
		if err != nil {
			t.Fatal(err)
		}
		kittest.Quiesce()
		g := &gate{Client: client, t: t, begin: time.Now(), got: make(map[string][]result)}
		body(t, g)
		g.wg.Wait()
		kittest.Quiesce()
		if n := client.InFlight(); n != 0 {
			t.Errorf("%d in flight at the end", n)
		}
	})
}

// request asks beside the test, holds the permit for service and releases it.
func (g *gate) request(name string, ask throttle.Ask, service time.Duration, outcome throttle.Outcome) {
	g.requestCtx(g.t.Context(), name, ask, service, outcome)
}

func (g *gate) requestCtx(ctx context.Context, name string, ask throttle.Ask, service time.Duration,
	outcome throttle.Outcome) {
	g.wg.Go(func() {
		permit, err := g.Acquire(ctx, ask)
		r := result{at: time.Since(g.begin), err: err}
		if err == nil {
			r.waited = permit.Waited()
		}
		g.mu.Lock()
		g.got[name] = append(g.got[name], r)
		g.mu.Unlock()
		if err == nil {
			time.Sleep(service)
			permit.Release(outcome)
			permit.Release(outcome) // the second one must not count
		}
	})
}

// hold takes a permit that must be granted at once.
func (g *gate) hold(ask throttle.Ask) *throttle.Permit {
	g.t.Helper()
	permit, err := g.Acquire(g.t.Context(), ask)
	if err != nil {
		g.t.Fatalf("acquire: %v", err)
	}
	return permit
}

// refused asks and must be refused at once for reason.
func (g *gate) refused(ask throttle.Ask, reason throttle.Reason) *throttle.Refused {
	g.t.Helper()
	before := time.Now()
	permit, err := g.Acquire(g.t.Context(), ask)
	if err == nil {
		permit.Release(throttle.Outcome{Kind: throttle.Unused})
	}
	refused, ok := errors.AsType[*throttle.Refused](err)
	if !ok || refused.Reason != reason {
		g.t.Fatalf("got %v, want a refusal: %s", err, reason)
	}
	if took := time.Since(before); took != 0 {
		g.t.Fatalf("refused after %v, not at once", took)
	}
	return refused
}

func (g *gate) stats() throttle.Stats {
	g.t.Helper()
	kittest.Quiesce() // a question overtakes a release
	s, err := g.Stats(g.t.Context())
	if err != nil {
		g.t.Fatal(err)
	}
	return s
}

// served counts and returns the times of those that were granted.
func (g *gate) served(name string) (times []time.Duration) {
	g.mu.Lock()
	defer g.mu.Unlock()
	for _, r := range g.got[name] {
		if r.err == nil {
			times = append(times, r.at)
		}
	}
	return times
}

func (g *gate) refusals(name string) map[throttle.Reason]int {
	g.mu.Lock()
	defer g.mu.Unlock()
	counts := make(map[throttle.Reason]int)
	for _, r := range g.got[name] {
		if refused, ok := errors.AsType[*throttle.Refused](r.err); ok {
			counts[refused.Reason]++
		}
	}
	return counts
}

func in(d time.Duration) time.Time { return time.Now().Add(d) }

func TestRequestsPerMinuteAreKept(t *testing.T) {
	run(t, throttle.Config{RequestsPerMinute: 60}, func(t *testing.T, g *gate) {
		for range 70 {
			g.request("a", throttle.Ask{Owner: "a", Deadline: in(time.Minute), Class: throttle.Normal}, 0,
				throttle.Outcome{})
		}
		g.wg.Wait()
		times := g.served("a")
		if len(times) != 70 {
			t.Fatalf("served %d of 70", len(times))
		}
		if times[59] != 0 || times[60] != time.Second || times[69] != 10*time.Second {
			t.Errorf("served the 60th, 61st and 70th at %v, %v, %v", times[59], times[60], times[69])
		}
	})
}

func TestTokensAreEstimatedThenSettled(t *testing.T) {
	run(t, throttle.Config{TokensPerMinute: 6000}, func(t *testing.T, g *gate) {
		p := g.hold(throttle.Ask{Tokens: 6000})
		if left := g.stats().Tokens.Remaining; left != 0 {
			t.Errorf("remaining %d after the estimate", left)
		}
		p.Release(throttle.Outcome{TokensUsed: 1000})
		if left := g.stats().Tokens.Remaining; left != 5000 {
			t.Errorf("remaining %d after the settlement, want 5000", left)
		}
		g.hold(throttle.Ask{Tokens: 10}).Release(throttle.Outcome{TokensUsed: 7000})
		refused := g.refused(throttle.Ask{Tokens: 100, Deadline: in(10 * time.Second)}, throttle.TooLate)
		// 2000 in debt, 100 wanted, 100 a second
		if refused.RetryAfter != 21*time.Second || refused.Limit != throttle.LimitTokens {
			t.Errorf("refused %+v", refused)
		}
		time.Sleep(refused.RetryAfter)
		g.hold(throttle.Ask{Tokens: 100, Deadline: in(time.Millisecond)}).Release(throttle.Outcome{})
	})
}

func TestRequestLargerThanTheBucketIsServedWhenItIsFull(t *testing.T) {
	run(t, throttle.Config{TokensPerMinute: 600}, func(t *testing.T, g *gate) {
		g.hold(throttle.Ask{Tokens: 100}).Release(throttle.Outcome{})
		g.request("large", throttle.Ask{Tokens: 100_000, Deadline: in(time.Minute)}, 0,
			throttle.Outcome{TokensUsed: 100_000})
		g.wg.Wait()
		if times := g.served("large"); len(times) != 1 || times[0] != 10*time.Second {
			t.Errorf("served at %v", times)
		}
	})
}

func TestInFlightIsKept(t *testing.T) {
	run(t, throttle.Config{MaxInFlight: 2}, func(t *testing.T, g *gate) {
		for range 6 {
			g.request("a", throttle.Ask{Deadline: in(time.Minute)}, time.Second, throttle.Outcome{})
		}
		kittest.Quiesce()
		if s := g.stats(); s.InFlight != 2 || s.Queued != 4 {
			t.Errorf("in flight %d, queued %d", s.InFlight, s.Queued)
		}
		g.wg.Wait()
		if times := g.served("a"); len(times) != 6 || times[5] != 2*time.Second {
			t.Errorf("served at %v", times)
		}
	})
}

func TestTrickleIsServedBesideAFlood(t *testing.T) {
	run(t, throttle.Config{RequestsPerMinute: 600, Burst: time.Second}, func(t *testing.T, g *gate) {
		for range 600 {
			g.request("flood", throttle.Ask{Owner: "flood", Class: throttle.Normal, Deadline: in(20 * time.Second)},
				0, throttle.Outcome{})
		}
		kittest.Quiesce()
		for range 10 {
			g.request("trickle",
				throttle.Ask{Owner: "trickle", Class: throttle.Normal, Deadline: in(2 * time.Second)}, 0,
				throttle.Outcome{})
			kittest.Pass(time.Second)
		}
		g.wg.Wait()
		if n := len(g.served("trickle")); n != 10 {
			t.Errorf("served %d of 10 of the trickle: %v", n, g.refusals("trickle"))
		}
		for _, r := range g.got["trickle"] {
			if r.waited > 600*time.Millisecond {
				t.Errorf("the trickle waited %v", r.waited)
			}
		}
		if n := g.refusals("flood")[throttle.Shed]; n == 0 {
			t.Errorf("nothing of the flood was shed: %v", g.refusals("flood"))
		}
	})
}

func TestManyFloodsDoNotCloseTheQueue(t *testing.T) {
	config := throttle.Config{MaxInFlight: 1, QueuePerOwner: 64, QueueTotal: 128, Reserve: 1}
	run(t, config, func(t *testing.T, g *gate) {
		held := g.hold(throttle.Ask{})
		for _, key := range []string{"a", "b", "c"} {
			for range 100 {
				g.request(key, throttle.Ask{Owner: key, Class: throttle.Normal}, 0, throttle.Outcome{})
			}
		}
		kittest.Quiesce()
		if s := g.stats(); s.Queued != 128 {
			t.Fatalf("queued %d", s.Queued)
		}
		g.request("late", throttle.Ask{Owner: "late", Class: throttle.Normal}, 0, throttle.Outcome{})
		kittest.Quiesce()
		held.Release(throttle.Outcome{})
		g.wg.Wait()
		if n := len(g.served("late")); n != 1 {
			t.Errorf("the late key was not served: %v", g.refusals("late"))
		}
	})
}

func TestInteractiveGoesFirstAndHasAReserve(t *testing.T) {
	run(t, throttle.Config{MaxInFlight: 1, QueuePerOwner: 100, QueueTotal: 4, Reserve: 1}, func(t *testing.T, g *gate) {
		held := g.hold(throttle.Ask{})
		for range 6 {
			g.request("normal", throttle.Ask{Owner: "k", Class: throttle.Normal}, time.Second, throttle.Outcome{})
			kittest.Quiesce()
		}
		g.request("urgent", throttle.Ask{Owner: "k", Class: throttle.Interactive}, time.Second, throttle.Outcome{})
		kittest.Quiesce()
		held.Release(throttle.Outcome{})
		g.wg.Wait()
		if times := g.served("urgent"); len(times) != 1 || times[0] != 0 {
			t.Errorf("urgent served at %v, %v", times, g.refusals("urgent"))
		}
		if n := len(g.served("normal")); n != 4 {
			t.Errorf("normal served %d, %v", n, g.refusals("normal"))
		}
	})
}

func TestBackgroundAgesInsteadOfStarvingBehindItsOwnKey(t *testing.T) {
	run(t, throttle.Config{MaxInFlight: 1}, func(t *testing.T, g *gate) {
		held := g.hold(throttle.Ask{})
		g.request("poll", throttle.Ask{Owner: "k", Class: throttle.Background, Deadline: in(20 * time.Second)},
			time.Second, throttle.Outcome{})
		kittest.Quiesce()
		for range 10 { // more than can be served, without end
			g.request("urgent", throttle.Ask{Owner: "k", Class: throttle.Interactive, Deadline: in(time.Minute)},
				time.Second, throttle.Outcome{})
		}
		kittest.Quiesce()
		held.Release(throttle.Outcome{})
		for range 20 {
			g.request("urgent", throttle.Ask{Owner: "k", Class: throttle.Interactive, Deadline: in(time.Minute)},
				time.Second, throttle.Outcome{})
			kittest.Pass(time.Second)
		}
		g.wg.Wait()
		times := g.served("poll")
		if len(times) != 1 || times[0] < 10*time.Second || times[0] >= 20*time.Second {
			t.Errorf("the poll was served at %v, want in the second half of its time; %v", times, g.refusals("poll"))
		}
	})
}

func TestDeadlineInTheQueueExpires(t *testing.T) {
	run(t, throttle.Config{MaxInFlight: 1}, func(t *testing.T, g *gate) {
		held := g.hold(throttle.Ask{})
		g.request("a", throttle.Ask{Deadline: in(3 * time.Second)}, 0, throttle.Outcome{})
		g.wg.Wait()
		if g.refusals("a")[throttle.Expired] != 1 || g.got["a"][0].at != 3*time.Second {
			t.Errorf("got %+v", g.got["a"])
		}
		held.Release(throttle.Outcome{})
	})
}

func TestMaxWaitBoundsEveryTicket(t *testing.T) {
	run(t, throttle.Config{MaxInFlight: 1, MaxWait: 2 * time.Second}, func(t *testing.T, g *gate) {
		held := g.hold(throttle.Ask{})
		g.request("a", throttle.Ask{Deadline: in(time.Hour)}, 0, throttle.Outcome{})
		g.wg.Wait()
		if g.refusals("a")[throttle.Expired] != 1 || g.got["a"][0].at != 2*time.Second {
			t.Errorf("got %+v", g.got["a"])
		}
		held.Release(throttle.Outcome{})
	})
}

func TestTooLateIsRefusedWithoutQueueing(t *testing.T) {
	run(t, throttle.Config{RequestsPerMinute: 6, Burst: 10 * time.Second}, func(t *testing.T, g *gate) {
		g.hold(throttle.Ask{}).Release(throttle.Outcome{})
		refused := g.refused(throttle.Ask{Deadline: in(5 * time.Second)}, throttle.TooLate)
		if refused.RetryAfter != 10*time.Second || refused.Limit != throttle.LimitRequests {
			t.Errorf("refused %+v", refused)
		}
		// A request that waits as long as RetryAfter says is served.
		time.Sleep(refused.RetryAfter)
		g.hold(throttle.Ask{Deadline: in(time.Second)}).Release(throttle.Outcome{})
	})
}

func TestTooLateLearnsHowLongAPlaceIsTaken(t *testing.T) {
	run(t, throttle.Config{MaxInFlight: 2}, func(t *testing.T, g *gate) {
		for range 2 {
			g.request("first", throttle.Ask{}, 10*time.Second, throttle.Outcome{})
		}
		g.wg.Wait()
		a, b := g.hold(throttle.Ask{}), g.hold(throttle.Ask{})
		refused := g.refused(throttle.Ask{Deadline: in(2 * time.Second)}, throttle.TooLate)
		if refused.Limit != throttle.LimitConcurrency || refused.RetryAfter != 5*time.Second {
			t.Errorf("refused %+v", refused)
		}
		a.Release(throttle.Outcome{})
		b.Release(throttle.Outcome{})
	})
}

func TestCoolDownFromTheUpstream(t *testing.T) {
	zero := 0
	for name, outcome := range map[string]throttle.Outcome{
		"429 with retry-after": {Kind: throttle.RateLimited, RetryAfter: 7 * time.Second},
		"503 with retry-after": {Kind: throttle.Overloaded, RetryAfter: 7 * time.Second},
		"nothing remaining":    {RemainingRequests: &zero, ResetRequests: 7 * time.Second},
		"no tokens remaining":  {RemainingTokens: &zero, ResetTokens: 7 * time.Second},
		"the longer of the two": {RemainingTokens: &zero, ResetTokens: 7 * time.Second, RemainingRequests: &zero,
			ResetRequests: time.Second},
		"cancelled but informed": {Kind: throttle.Cancelled, RemainingRequests: &zero, ResetRequests: 7 * time.Second},
	} {
		for kind, config := range map[string]throttle.Config{"unlimited": {}, "limited": {MaxInFlight: 100}} {
			t.Run(name+"/"+kind, func(t *testing.T) {
				run(t, config, func(t *testing.T, g *gate) {
					g.hold(throttle.Ask{}).Release(outcome)
					kittest.Quiesce()
					refused := g.refused(throttle.Ask{Deadline: in(5 * time.Second)}, throttle.TooLate)
					if refused.RetryAfter != 7*time.Second {
						t.Errorf("retry after %v", refused.RetryAfter)
					}
					g.request("a", throttle.Ask{Deadline: in(10 * time.Second)}, 0, throttle.Outcome{})
					g.wg.Wait()
					if times := g.served("a"); len(times) != 1 || times[0] != 7*time.Second {
						t.Errorf("served at %v", times)
					}
				})
			})
		}
	}
}

func TestRemainingHeadersLowerTheBucket(t *testing.T) {
	run(t, throttle.Config{RequestsPerMinute: 60, TokensPerMinute: 6000}, func(t *testing.T, g *gate) {
		requests, tokens := 10, 100
		g.hold(throttle.Ask{}).Release(throttle.Outcome{RemainingRequests: &requests, RemainingTokens: &tokens})
		if s := g.stats(); s.Requests.Remaining != 10 || s.Tokens.Remaining != 100 {
			t.Errorf("requests %+v, tokens %+v", s.Requests, s.Tokens)
		}
		requests = 59
		g.hold(throttle.Ask{}).Release(throttle.Outcome{RemainingRequests: &requests})
		if s := g.stats(); s.Requests.Remaining != 9 {
			t.Errorf("raised to %d", s.Requests.Remaining)
		}
	})
}

func TestUnnumbered429sBackOff(t *testing.T) {
	run(t, throttle.Config{}, func(t *testing.T, g *gate) {
		for _, want := range []time.Duration{time.Second, 2 * time.Second, 4 * time.Second} {
			// Two at once are one hint, not two.
			a, b := g.hold(throttle.Ask{}), g.hold(throttle.Ask{})
			a.Release(throttle.Outcome{Kind: throttle.RateLimited})
			b.Release(throttle.Outcome{Kind: throttle.RateLimited})
			if cool := g.stats().CoolDown; cool != want {
				t.Errorf("cool-down %v, want %v", cool, want)
			}
			kittest.Pass(want)
		}
	})
}

func TestBreakerOpensProbesAndRecovers(t *testing.T) {
	for name, config := range map[string]throttle.Config{"unlimited": {}, "limited": {MaxInFlight: 10}} {
		t.Run(name, func(t *testing.T) {
			run(t, config, func(t *testing.T, g *gate) {
				for range 5 {
					g.hold(throttle.Ask{}).Release(throttle.Outcome{Kind: throttle.Transient})
					kittest.Quiesce()
				}
				refused := g.refused(throttle.Ask{}, throttle.BreakerOpen)
				if refused.RetryAfter != 5*time.Second {
					t.Errorf("retry after %v", refused.RetryAfter)
				}
				for _, open := range []time.Duration{5, 10, 20, 40, 60, 60} {
					kittest.Pass(open * time.Second)
					probe := g.hold(throttle.Ask{})
					g.request("behind", throttle.Ask{Deadline: in(time.Minute)}, 0, throttle.Outcome{})
					kittest.Quiesce()
					if s := g.stats(); s.Breaker != throttle.HalfOpen || s.InFlight != 1 {
						t.Fatalf("%s with %d in flight", s.Breaker, s.InFlight)
					}
					probe.Release(throttle.Outcome{Kind: throttle.Overloaded})
					g.wg.Wait()
				}
				if n := g.refusals("behind")[throttle.BreakerOpen]; n != 6 {
					t.Errorf("%d of 6 behind a failed probe were refused", n)
				}
				kittest.Pass(time.Minute)
				probe := g.hold(throttle.Ask{})
				g.request("after", throttle.Ask{Deadline: in(time.Minute)}, 0, throttle.Outcome{})
				probe.Release(throttle.Outcome{Kind: throttle.Success})
				g.wg.Wait()
				if s := g.stats(); s.Breaker != throttle.Shut || len(g.served("after")) != 1 {
					t.Errorf("%s, served %v", s.Breaker, g.served("after"))
				}
			})
		})
	}
}

func TestBreakerCountsOnlyTheUpstreamsFaults(t *testing.T) {
	run(t, throttle.Config{}, func(t *testing.T, g *gate) {
		for _, kind := range []throttle.Kind{throttle.Cancelled, throttle.CallerFault, throttle.Unused} {
			for range 50 {
				g.hold(throttle.Ask{}).Release(throttle.Outcome{Kind: kind})
			}
		}
		if s := g.stats(); s.Breaker != throttle.Shut {
			t.Errorf("breaker %s", s.Breaker)
		}
	})
}

func TestBreakerOpensAtHalfFailuresThoughSomeSucceed(t *testing.T) {
	run(t, throttle.Config{}, func(t *testing.T, g *gate) {
		for i := range 200 {
			kind := throttle.Transient
			if i%4 == 3 { // never five in a row
				kind = throttle.Success
			}
			g.hold(throttle.Ask{}).Release(throttle.Outcome{Kind: kind})
			kittest.Pass(100 * time.Millisecond)
			if g.stats().Breaker == throttle.Open {
				if i+1 != 20+1 && i+1 != 20 {
					t.Errorf("opened after %d outcomes", i+1)
				}
				return
			}
		}
		t.Error("never opened")
	})
}

func TestOldFailuresLeaveTheRatio(t *testing.T) {
	run(t, throttle.Config{}, func(t *testing.T, g *gate) {
		for range 40 {
			for _, kind := range []throttle.Kind{throttle.Transient, throttle.Transient, throttle.Transient,
				throttle.Success} {
				g.hold(throttle.Ask{}).Release(throttle.Outcome{Kind: kind})
			}
			kittest.Pass(20 * time.Second) // eight in thirty seconds: too few to judge
		}
		if s := g.stats(); s.Breaker != throttle.Shut {
			t.Errorf("breaker %s", s.Breaker)
		}
	})
}

func TestTheLastProviderIsTriedOneAtATime(t *testing.T) {
	alone := map[string]throttle.Outcome{
		"failing": {
			Kind: throttle.Transient,
		}, "credential refused": {Kind: throttle.Credential}, "long cool-down": {Kind: throttle.RateLimited,
			RetryAfter: time.Hour},
	}
	for name, outcome := range alone {
		t.Run(name, func(t *testing.T) {
			run(t, throttle.Config{}, func(t *testing.T, g *gate) {
				for range 5 {
					g.hold(throttle.Ask{}).Release(outcome)
					kittest.Quiesce()
					if outcome.Kind != throttle.Transient {
						break
					}
				}
				trial := g.hold(throttle.Ask{Last: true})
				reason := throttle.BreakerOpen
				if outcome.Kind == throttle.RateLimited {
					reason = throttle.TooLate
				}
				g.refused(throttle.Ask{Deadline: in(time.Second)}, reason)
				g.refused(throttle.Ask{Last: true, Deadline: in(time.Second)}, reason) // one at a time
				trial.Release(outcome)
				kittest.Quiesce()
				kittest.Pass(time.Second) // for a rate limit
				g.refused(throttle.Ask{Deadline: in(time.Second)}, reason)
				g.hold(throttle.Ask{Last: true}).Release(throttle.Outcome{Kind: throttle.Success})
				kittest.Quiesce()
				g.hold(throttle.Ask{}).Release(throttle.Outcome{Kind: throttle.Success})
				if s := g.stats(); s.Breaker != throttle.Shut || s.CoolDown != 0 {
					t.Errorf("after a good trial: %s, cool-down %s", s.Breaker, s.CoolDown)
				}
			})
		})
	}
}

func TestTrialsOfARateLimitedProviderKeepADistance(t *testing.T) {
	run(t, throttle.Config{}, func(t *testing.T, g *gate) {
		again := throttle.Outcome{Kind: throttle.RateLimited, RetryAfter: time.Minute}
		g.hold(throttle.Ask{}).Release(again)
		kittest.Quiesce()
		g.hold(throttle.Ask{Last: true}).Release(again)
		kittest.Quiesce()
		g.request("a", throttle.Ask{Last: true, Deadline: in(10 * time.Second)}, 0, throttle.Outcome{})
		g.wg.Wait()
		if times := g.served("a"); len(times) != 1 || times[0] != time.Second {
			t.Errorf("served at %v", times)
		}
	})
}

func TestARateLimitIsASignOfLife(t *testing.T) {
	run(t, throttle.Config{}, func(t *testing.T, g *gate) {
		for range 5 {
			g.hold(throttle.Ask{}).Release(throttle.Outcome{Kind: throttle.Transient})
		}
		kittest.Quiesce()
		g.hold(throttle.Ask{Last: true}).
			Release(throttle.Outcome{Kind: throttle.RateLimited, RetryAfter: 7 * time.Second})
		kittest.Quiesce()
		g.request("a", throttle.Ask{Last: true, Deadline: in(10 * time.Second)}, 0, throttle.Outcome{})
		g.wg.Wait()
		if times := g.served("a"); len(times) != 1 || times[0] != 7*time.Second {
			t.Errorf("served at %v", times)
		}
	})
}

func TestRefusedCredentialIsLeftAlone(t *testing.T) {
	run(t, throttle.Config{}, func(t *testing.T, g *gate) {
		g.hold(throttle.Ask{}).Release(throttle.Outcome{Kind: throttle.Credential})
		kittest.Quiesce()
		if r := g.refused(throttle.Ask{}, throttle.BreakerOpen); r.RetryAfter != 10*time.Minute {
			t.Errorf("retry after %v", r.RetryAfter)
		}
	})
}

func TestCancelWhileQueuedFreesThePlace(t *testing.T) {
	run(t, throttle.Config{MaxInFlight: 1}, func(t *testing.T, g *gate) {
		held := g.hold(throttle.Ask{})
		ctx, cancel := context.WithCancel(t.Context())
		for range 10 {
			g.requestCtx(ctx, "gone", throttle.Ask{}, time.Hour, throttle.Outcome{})
		}
		kittest.Quiesce()
		cancel()
		kittest.Quiesce()
		if s := g.stats(); s.Queued != 0 || s.InFlight != 1 {
			t.Errorf("queued %d, in flight %d", s.Queued, s.InFlight)
		}
		for _, r := range g.got["gone"] {
			if !errors.Is(r.err, context.Canceled) {
				t.Errorf("got %v", r.err)
			}
		}
		held.Release(throttle.Outcome{})
		g.hold(throttle.Ask{}).Release(throttle.Outcome{})
	})
}

func TestContextDeadlineIsTheTicketsDeadline(t *testing.T) {
	run(t, throttle.Config{RequestsPerMinute: 1}, func(t *testing.T, g *gate) {
		g.hold(throttle.Ask{}).Release(throttle.Outcome{})
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		_, err := g.Acquire(ctx, throttle.Ask{})
		if refused, ok := errors.AsType[*throttle.Refused](err); !ok || refused.Reason != throttle.TooLate {
			t.Errorf("got %v", err)
		}
	})
}

func TestStopRefusesTheQueue(t *testing.T) {
	run(t, throttle.Config{MaxInFlight: 1}, func(t *testing.T, g *gate) {
		held := g.hold(throttle.Ask{})
		for range 50 {
			g.request("a", throttle.Ask{}, 0, throttle.Outcome{})
		}
		kittest.Quiesce()
		if err := g.Stop(t.Context()); err != nil {
			t.Fatal(err)
		}
		g.wg.Wait()
		if n := g.refusals("a")[throttle.Closed]; n != 50 {
			t.Errorf("%d of 50 closed", n)
		}
		g.refused(throttle.Ask{}, throttle.Closed)
		held.Release(throttle.Outcome{}) // counts to the end
	})
}

func TestConfigureActsAtOnce(t *testing.T) {
	run(t, throttle.Config{}, func(t *testing.T, g *gate) {
		a, b := g.hold(throttle.Ask{}), g.hold(throttle.Ask{}) // counted by atomics
		g.Configure(throttle.Config{MaxInFlight: 2})
		kittest.Quiesce()
		g.request("queued", throttle.Ask{}, 0, throttle.Outcome{})
		kittest.Quiesce()
		if s := g.stats(); s.Queued != 1 || s.InFlight != 2 {
			t.Fatalf("queued %d, in flight %d", s.Queued, s.InFlight)
		}
		a.Release(throttle.Outcome{})
		g.wg.Wait()
		b.Release(throttle.Outcome{})
		g.Configure(throttle.Config{})
		kittest.Quiesce()
		for range 10 {
			defer g.hold(throttle.Ask{}).Release(throttle.Outcome{})
		}
	})
}

func TestPauseHoldsRequestsUntilResume(t *testing.T) {
	run(t, throttle.Config{}, func(t *testing.T, g *gate) {
		g.Pause()
		kittest.Quiesce()
		g.request("a", throttle.Ask{}, 0, throttle.Outcome{})
		g.request("late", throttle.Ask{Deadline: in(time.Second)}, 0, throttle.Outcome{})
		kittest.Pass(10 * time.Second)
		g.Resume()
		g.wg.Wait()
		if times := g.served("a"); len(times) != 1 || times[0] != 10*time.Second {
			t.Errorf("served at %v", times)
		}
		if g.refusals("late")[throttle.Expired] != 1 {
			t.Errorf("late: %+v", g.got["late"])
		}
	})
}

// No request bypasses an actor that has not received the pause yet.
func TestPauseIsInForceWhenItReturns(t *testing.T) {
	run(t, throttle.Config{}, func(t *testing.T, g *gate) {
		for range 100 {
			g.hold(throttle.Ask{}).Release(throttle.Outcome{})
			g.Pause()
			p, err := g.Acquire(t.Context(), throttle.Ask{Deadline: in(time.Second)})
			if refused, ok := errors.AsType[*throttle.Refused](err); !ok || refused.Reason != throttle.Expired {
				t.Fatalf("got %+v, %v of a gate that is paused", p, err)
			}
			g.Resume()
			kittest.Quiesce()
		}
	})
}

func TestWaitAndPositionAreVisible(t *testing.T) {
	run(t, throttle.Config{MaxInFlight: 1}, func(t *testing.T, g *gate) {
		held := g.hold(throttle.Ask{})
		if held.Position() != 0 || held.Waited() != 0 {
			t.Errorf("position %d, waited %v", held.Position(), held.Waited())
		}
		for i := range 3 {
			g.wg.Go(func() {
				p, err := g.Acquire(t.Context(), throttle.Ask{Owner: "k"})
				if err != nil {
					t.Error(err)
					return
				}
				if p.Position() != i+1 || p.Waited() != 4*time.Second {
					t.Errorf("position %d, want %d; waited %v", p.Position(), i+1, p.Waited())
				}
				p.Release(throttle.Outcome{})
			})
			kittest.Quiesce()
		}
		kittest.Pass(4 * time.Second)
		s := g.stats()
		if len(s.Queues) != 1 ||
			s.Queues[0] != (throttle.OwnerQueue{Owner: "k", Class: 0, Count: 3, Oldest: 4 * time.Second}) {
			t.Errorf("queues %+v", s.Queues)
		}
		held.Release(throttle.Outcome{})
	})
}
