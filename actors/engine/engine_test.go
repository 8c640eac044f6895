package engine

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/asynkron/protoactor-go/actor"

	"stagedoor/actors/flow"
	"stagedoor/actors/kit"
	"stagedoor/actors/kit/kittest"
	"stagedoor/actors/throttle"
	"stagedoor/providers/catalog"
	"stagedoor/providers/dialogue"
	"stagedoor/providers/upstream"
)

// stage is an engine with one provider.
type stage struct {
	*Engine
	t       *testing.T
	system  *kit.System
	limiter *throttle.Client
	broken  atomic.Bool // the provider's lookup panics
}

// play runs body on a stage and then checks that nothing is left.
func play(t *testing.T, body func(t *testing.T, s *stage)) {
	t.Helper()
	kittest.Run(t, func(t *testing.T, system *kit.System) {
		s := &stage{t: t, system: system}
		var err error
		if s.limiter, err = throttle.Spawn(system, "p/a", throttle.Config{}); err != nil {
			t.Fatal(err)
		}
		provider := &Provider{Spec: &catalog.Provider{Name: "a", Retries: 2}, Limiter: s.limiter}
		s.Engine, err = New(Options{System: system, Now: time.Now, Providers: func(string) *Provider {
			if s.broken.Load() {
				panic("no providers")
			}
			return provider
		}})
		if err != nil {
			t.Fatal(err)
		}
		s.Watch(flow.New(time.Now))
		body(t, s)
		kittest.Pass(time.Minute)
		if s.InFlight() != 0 || s.limiter.InFlight() != 0 || s.retries.retrying.Load() != 0 {
			t.Errorf("at the end: %d requests, %d permits, %d places of the retry budget",
				s.InFlight(), s.limiter.InFlight(), s.retries.retrying.Load())
		}
		for i := range s.shards {
			if s.shards[i].first != nil {
				t.Error("a shard has a request at the end")
			}
		}
		live := int64(0)
		for _, k := range system.Stats().Kinds {
			if k.Kind == "request" {
				live = k.Live()
			}
		}
		if live != 0 {
			t.Errorf("%d actors of requests at the end", live)
		}
	})
}

// fake is an exchange that does what a test says.
type fake struct {
	run    Run[string]
	try    func(ctx context.Context, c *Candidate, out Sink[string]) *upstream.Failure
	end    func(out Sink[string], f *upstream.Failure)
	policy Policy
	tries  int
	ends   int
	failed *upstream.Failure

	holdErr   *dialogue.Error
	settleErr *dialogue.Error
	charge    int64
	settling  chan struct{} // a settlement waits until it is closed; nil: it does not wait
	mu        sync.Mutex
	held      int
	settled   int
}

func (f *fake) Prepare(*Candidate) *upstream.Failure { return nil }

func (f *fake) Try(ctx context.Context, c *Candidate, _ *throttle.Permit, out Sink[string]) *upstream.Failure {
	f.tries++
	return f.try(ctx, c, out)
}

func (f *fake) Policy() Policy { return f.policy }

func (f *fake) End(out Sink[string], failed *upstream.Failure) {
	f.ends++
	f.failed = failed
	if f.end != nil {
		f.end(out, failed)
	}
}

func (f *fake) Result() flow.Result { return flow.Result{} }

func (f *fake) Hold(context.Context, *Candidate) *dialogue.Error {
	f.held++
	return f.holdErr
}

func (f *fake) Settlement() func(context.Context) *dialogue.Error {
	return func(ctx context.Context) *dialogue.Error {
		if f.settling != nil {
			<-f.settling
		}
		flow.AddCharge(ctx, f.charge)
		f.mu.Lock()
		defer f.mu.Unlock()
		f.settled++
		err := f.settleErr
		f.settleErr = nil
		return err
	}
}

// begin starts a request with two targets, which are the same provider.
func (s *stage) begin(ctx context.Context, f *fake) *fake {
	spec := &catalog.Provider{Name: "a"}
	f.run.Begin(ctx, s.Engine, Request{About: flow.About{ID: "r", Owner: "o"}, Money: f, Window: 1,
		Plan: []catalog.Candidate{{Provider: spec, Model: "m"}, {Provider: spec, Model: "m2"}}}, f)
	return f
}

// read reads the output to its end.
func (f *fake) read() string {
	var all []string
	for piece := range f.run.Output() {
		all = append(all, piece)
	}
	return strings.Join(all, "")
}

func say(pieces ...string) func(context.Context, *Candidate, Sink[string]) *upstream.Failure {
	return func(ctx context.Context, _ *Candidate, out Sink[string]) *upstream.Failure {
		for _, p := range pieces {
			if err := out.Send(ctx, p); err != nil {
				return upstream.CancelledBy(err)
			}
		}
		return nil
	}
}

func block(ctx context.Context, _ *Candidate, _ Sink[string]) *upstream.Failure {
	<-ctx.Done()
	return Cancelled(ctx)
}

func fail(class upstream.Class) *upstream.Failure {
	return &upstream.Failure{Class: class, Err: &dialogue.Error{Status: 500, Code: "failed"}}
}

// goroutine returns the number of the goroutine that calls it.
func goroutine() string {
	b := make([]byte, 64)
	return strings.Fields(string(b[:runtime.Stack(b, false)]))[1]
}

// observed notes the messages of a request's actor, and on which goroutine it got them.
type observed struct {
	actor.Actor
	messages   []string
	goroutines []string
}

func (o *observed) Receive(c actor.Context) {
	o.messages = append(o.messages, fmt.Sprintf("%T", c.Message()))
	o.goroutines = append(o.goroutines, goroutine())
	o.Actor.Receive(c)
}

// observe puts what it returns around the actors that begin from now on.
func (s *stage) observe() *observed {
	o := &observed{}
	for i := range s.shards {
		sh := &s.shards[i]
		sh.props = s.system.Props("request", func() actor.Actor {
			o.Actor = sh.pending
			return o
		}, kit.CountedByKind())
	}
	return o
}

func TestAGoodRequestTakesTwoMailboxPassesAndThreeGoroutines(t *testing.T) {
	play(t, func(t *testing.T, s *stage) {
		seen, loop := s.observe(), ""
		f := s.begin(t.Context(), &fake{try: func(ctx context.Context, c *Candidate,
			out Sink[string]) *upstream.Failure {
			loop = goroutine()
			return say("hello")(ctx, c, out)
		}})
		if got := f.read(); got != "hello" {
			t.Errorf("got %q", got)
		}
		kittest.Quiesce()
		// Stopping and Stopped are one pass: both are the library's handling of Stop.
		if want := []string{"*actor.Started", "*actor.Stopping", "*actor.Stopped"}; !slices.Equal(seen.messages, want) {
			t.Errorf("the actor received %v, want %v", seen.messages, want)
		}
		caller := goroutine()
		if loop == caller || slices.Contains(seen.goroutines, caller) || slices.Contains(seen.goroutines, loop) {
			t.Errorf("caller %s, loop %s and actor %v share a goroutine", caller, loop, seen.goroutines)
		}
	})
}

func TestTheActorAnswersWhileAnAttemptRuns(t *testing.T) {
	play(t, func(t *testing.T, s *stage) {
		seen := s.observe()
		f := s.begin(t.Context(), &fake{try: block})
		kittest.Quiesce()
		if err := s.flow.Cancel("r"); err != nil {
			t.Fatal(err)
		}
		kittest.Quiesce()
		if !slices.Contains(seen.messages, "*engine.cancel") {
			t.Errorf("the actor received %v", seen.messages)
		}
		if f.read(); f.failed == nil || f.failed.Class != upstream.Cancelled || f.tries != 1 || f.ends != 1 {
			t.Errorf("%d tries, %d ends, %v", f.tries, f.ends, f.failed)
		}
	})
}

func TestAPanicInAnActorEndsItsRequestOnly(t *testing.T) {
	play(t, func(t *testing.T, s *stage) {
		slow := func(ctx context.Context, c *Candidate, out Sink[string]) *upstream.Failure {
			select {
			case <-time.After(time.Second):
				return say("good")(ctx, c, out)
			case <-ctx.Done():
				return Cancelled(ctx)
			}
		}
		other, broken := s.begin(t.Context(), &fake{try: slow}), s.begin(t.Context(), &fake{try: slow})
		kittest.Quiesce()
		s.system.Send(broken.run.core.pid, (*cancel)(nil)) // Receive panics
		if broken.read(); broken.failed == nil || broken.failed.Err.Code != "internal_error" || broken.ends != 1 {
			t.Errorf("the broken one: %d ends, %v", broken.ends, broken.failed)
		}
		if got := other.read(); got != "good" || other.failed != nil {
			t.Errorf("the other one: %q, %v", got, other.failed)
		}
	})
}

// Whatever panics, the request ends once, its output is closed and everything is given back.
func TestAPanicEndsTheRequestOnce(t *testing.T) {
	for name, f := range map[string]*fake{
		"at once": {try: func(context.Context, *Candidate, Sink[string]) *upstream.Failure { panic("x") }},
		"after output": {try: func(ctx context.Context, c *Candidate, out Sink[string]) *upstream.Failure {
			_ = say("a")(ctx, c, out)
			panic("x")
		}},
		"at the end": {try: say("a"), end: func(Sink[string], *upstream.Failure) { panic("x") }},
		"after a retry": {try: func(ctx context.Context, c *Candidate, out Sink[string]) *upstream.Failure {
			if c.Number == 1 {
				return fail(upstream.Transient)
			}
			panic("x")
		}},
	} {
		t.Run(name, func(t *testing.T) {
			play(t, func(t *testing.T, s *stage) {
				s.begin(t.Context(), f).read()
				kittest.Quiesce()
				if f.ends != 1 || f.settled != 1 {
					t.Errorf("%d ends, settled %d times", f.ends, f.settled)
				}
				if name != "at the end" && (f.failed == nil || f.failed.Err.Code != "internal_error") {
					t.Errorf("ended with %v", f.failed)
				}
			})
		})
	}
}

func TestAPanicBetweenAttemptsEndsTheRequest(t *testing.T) {
	play(t, func(t *testing.T, s *stage) {
		f := s.begin(t.Context(), &fake{try: func(context.Context, *Candidate, Sink[string]) *upstream.Failure {
			s.broken.Store(true)
			return fail(upstream.Transient)
		}})
		if f.read(); f.failed == nil || f.failed.Err.Code != "internal_error" || f.ends != 1 {
			t.Errorf("%d ends, %v", f.ends, f.failed)
		}
	})
}

func TestARequestIsSettledBeforeItsEndOrAfterwards(t *testing.T) {
	refused := &dialogue.Error{Status: 503, Code: "storage_unavailable"}
	paid := func(ctx context.Context, c *Candidate, out Sink[string]) *upstream.Failure {
		if err := out.Settle(ctx); err != nil {
			return CallerFault(err)
		}
		return say("a")(ctx, c, out)
	}
	for name, tc := range map[string]struct {
		fake    *fake
		settled int
		code    string
	}{
		"before its end":        {&fake{try: paid}, 1, ""},
		"again, after an error": {&fake{try: paid, settleErr: refused}, 2, "storage_unavailable"},
		"afterwards, if it fails": {&fake{try: func(context.Context, *Candidate, Sink[string]) *upstream.Failure {
			return fail(upstream.CallerFault)
		}}, 1, "failed"},
		"without a hold": {&fake{try: paid, holdErr: &dialogue.Error{Status: 429, Code: "insufficient_quota"}}, 1, "insufficient_quota"},
	} {
		t.Run(name, func(t *testing.T) {
			play(t, func(t *testing.T, s *stage) {
				f := tc.fake
				s.begin(t.Context(), f).read()
				kittest.Quiesce()
				if f.held != 1 || f.settled != tc.settled || (f.failed == nil) != (tc.code == "") || f.failed != nil && f.failed.Err.Code != tc.code {
					t.Errorf("held %d times, settled %d times, ended with %v", f.held, f.settled, f.failed)
				}
			})
		})
	}
}

func TestNothingIsRepeatedAfterTheFirstOutput(t *testing.T) {
	play(t, func(t *testing.T, s *stage) {
		f := s.begin(t.Context(), &fake{try: func(ctx context.Context, c *Candidate,
			out Sink[string]) *upstream.Failure {
			_ = say("a")(ctx, c, out)
			return fail(upstream.Transient)
		}})
		if got := f.read(); got != "a" || f.tries != 1 || f.failed == nil {
			t.Errorf("%q after %d tries: %v", got, f.tries, f.failed)
		}
	})
}

// The first attempt is bounded by the clocks of its calls, and the others by the time that the request has in all.
func TestTheDeadlineBoundsRepeatedAttempts(t *testing.T) {
	play(t, func(t *testing.T, s *stage) {
		var deadlines []bool
		f := s.begin(t.Context(), &fake{try: func(ctx context.Context, c *Candidate, _ Sink[string]) *upstream.Failure {
			_, bounded := ctx.Deadline()
			deadlines = append(deadlines, bounded)
			if c.Number == 1 {
				return fail(upstream.Transient)
			}
			<-ctx.Done()
			return Cancelled(ctx)
		}})
		began := time.Now()
		f.read()
		if took := time.Since(began); took != upstream.DefaultTimeouts.Total || !slices.Equal(deadlines, []bool{false, true}) {
			t.Errorf("%v, ended after %s with %v", deadlines, took, f.failed)
		}
		if f.failed.Err.Status != 504 || !errors.Is(f.failed, upstream.ErrTotal) {
			t.Errorf("ended with %v", f.failed)
		}
	})
}

func TestTheRetryBudgetIsSharedByAllRequests(t *testing.T) {
	play(t, func(t *testing.T, s *stage) {
		for range budgetFloor { // others retry all the time
			s.retries.retrying.Add(1)
		}
		try := func(context.Context, *Candidate, Sink[string]) *upstream.Failure { return fail(upstream.Transient) }
		f := s.begin(t.Context(), &fake{try: try})
		if f.read(); f.tries != 2 { // one for each target
			t.Errorf("%d attempts without a place in the budget", f.tries)
		}
		s.retries.retrying.Add(-1)
		f = s.begin(t.Context(), &fake{try: try})
		if f.read(); f.tries != 4 {
			t.Errorf("%d attempts with a place in the budget", f.tries)
		}
		s.retries.retrying.Store(0)
	})
}

func TestADrainRefusesNewRequestsAndCancelsTheOthers(t *testing.T) {
	play(t, func(t *testing.T, s *stage) {
		waiting := s.begin(t.Context(), &fake{try: func(context.Context, *Candidate, Sink[string]) *upstream.Failure {
			return &upstream.Failure{Class: upstream.NotSent, RetryAfter: 2 * time.Second,
				Err: &dialogue.Error{Status: 503}}
		}})
		running := s.begin(t.Context(), &fake{try: block})
		kittest.Quiesce()
		ctx, stop := context.WithCancel(t.Context())
		stop()
		if n := s.Drain(ctx, time.Second); n != 2 {
			t.Errorf("%d were cancelled", n)
		}
		late := s.begin(t.Context(), &fake{try: block})
		for _, f := range []*fake{waiting, running, late} {
			if f.read(); f.failed == nil || f.failed.Err.Code != "shutting_down" || f.ends != 1 {
				t.Errorf("%d ends, %v", f.ends, f.failed)
			}
		}
		if late.tries != 0 {
			t.Error("a request was tried after the drain")
		}
	})
}

// The actors of accounts stop after a drain, so a drain ends only when requests that have failed are settled, too.
func TestADrainWaitsForSettlements(t *testing.T) {
	play(t, func(t *testing.T, s *stage) {
		f := s.begin(t.Context(), &fake{try: block, settling: make(chan struct{})})
		kittest.Quiesce()
		ctx, stop := context.WithCancel(t.Context())
		stop()
		drained := make(chan struct{})
		go func() {
			defer close(drained)
			s.Drain(ctx, time.Minute)
		}()
		f.read()
		kittest.Pass(time.Second)
		select {
		case <-drained:
			t.Error("the drain has ended before the request was settled")
		default:
		}
		close(f.settling)
		kittest.Pass(time.Second)
		if <-drained; f.settled != 1 {
			t.Errorf("%d settlements", f.settled)
		}
	})
}

func TestStoppingTheSystemEndsRequests(t *testing.T) {
	play(t, func(t *testing.T, s *stage) {
		f := s.begin(t.Context(), &fake{try: block})
		kittest.Quiesce()
		if err := s.system.Stop(t.Context()); err != nil {
			t.Error(err)
		}
		late := s.begin(t.Context(), &fake{try: block})
		for _, f := range []*fake{f, late} {
			if f.read(); f.failed == nil || f.failed.Err.Code != "shutting_down" || f.ends != 1 {
				t.Errorf("%d ends, %v", f.ends, f.failed)
			}
		}
	})
}

// A caller that reads nothing stops its own attempt, and one whose client has left is not waited for.
func TestOutputWaitsForItsCaller(t *testing.T) {
	play(t, func(t *testing.T, s *stage) {
		sent := 0
		f := s.begin(t.Context(), &fake{try: func(ctx context.Context, _ *Candidate,
			out Sink[string]) *upstream.Failure {
			for sent < 100 {
				if err := out.Send(ctx, "x"); err != nil {
					return upstream.CancelledBy(err)
				}
				sent++
			}
			return nil
		}})
		kittest.Pass(time.Minute)
		if sent != 1 {
			t.Errorf("%d pieces were sent, and the window has one", sent)
		}
		f.run.Abandon()
		if f.read(); f.failed == nil || !ClientLeft(f.failed) {
			t.Errorf("ended with %v", f.failed)
		}
	})
}
