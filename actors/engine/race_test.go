package engine

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"stagedoor/actors/flow"
	"stagedoor/actors/kit/kittest"
	"stagedoor/providers/catalog"
	"stagedoor/providers/dialogue"
	"stagedoor/providers/upstream"
)

// forking is a fake whose forks do what a test says.
type forking struct {
	*fake
	fork      func() *fake
	overtaken []*upstream.Failure
}

func (f *forking) Fork() (Exchange[string], Money) {
	other := f.fork()
	return &forking{fake: other}, other
}

func (f *forking) Overtaken(failed *upstream.Failure) { f.overtaken = append(f.overtaken, failed) }

// hedge begins a request with three targets, whose second one may take over after a second.
func (s *stage) hedge(x *forking, most int) {
	spec := &catalog.Provider{Name: "a"}
	x.run.Begin(context.Background(), s.Engine, Request{About: flow.About{ID: "r", Owner: "o"}, Money: x.fake,
		Window: 1, Hedge: &catalog.Hedge{Model: "m", After: time.Second, Most: most},
		Plan: []catalog.Candidate{{Provider: spec}, {Provider: spec}, {Provider: spec}}}, x)
}

// patient waits for a time, unless it is cancelled, and sends a piece.
func patient(d time.Duration, piece string) func(context.Context, *Candidate, Sink[string]) *upstream.Failure {
	return func(ctx context.Context, _ *Candidate, out Sink[string]) *upstream.Failure {
		select {
		case <-time.After(d):
			if err := out.Send(ctx, piece); err != nil {
				return upstream.CancelledBy(err)
			}
			return nil
		case <-ctx.Done():
			return Cancelled(ctx)
		}
	}
}

func read(run *Run[string]) (pieces []string) {
	for piece := range run.Output() {
		pieces = append(pieces, piece)
	}
	return pieces
}

func TestARequestStartsAtMostAsManyHedgesAsItsModelSays(t *testing.T) {
	for most, want := range map[int]int{1: 1, 2: 2, 3: 2} { // there are two further targets
		t.Run(fmt.Sprint(most), func(t *testing.T) {
			play(t, func(t *testing.T, s *stage) {
				var forks []*fake
				x := &forking{fake: &fake{try: patient(9*time.Second, "first")}}
				x.fork = func() *fake {
					forks = append(forks, &fake{try: patient(time.Minute, "other")})
					return forks[len(forks)-1]
				}
				s.hedge(x, most)
				if got := read(&x.run); len(got) != 1 || got[0] != "first" || len(forks) != want {
					t.Errorf("got %v with %d hedges, want %d", got, len(forks), want)
				}
				kittest.Quiesce()
				for i, f := range forks {
					if f.settled != 1 || f.ends != 0 || f.tries != 1 {
						t.Errorf("hedge %d: settled %d times, ended %d times", i, f.settled, f.ends)
					}
				}
				if x.ends != 1 || x.settled != 1 || len(x.overtaken) != 0 {
					t.Errorf("the winner ended %d times, settled %d times", x.ends, x.settled)
				}
			})
		})
	}
}

// A panic in an attempt ends a request whose reply that attempt has begun, and no other attempt of it.
func TestAPanicInARaceEndsWhatItBelongsTo(t *testing.T) {
	crash := func(context.Context, *Candidate, Sink[string]) *upstream.Failure { panic("crash") }
	begunThenCrash := func(ctx context.Context, _ *Candidate, out Sink[string]) *upstream.Failure {
		_ = out.Send(ctx, "begun")
		panic("crash")
	}
	lateCrash := func(context.Context, *Candidate, Sink[string]) *upstream.Failure {
		time.Sleep(3 * time.Second)
		panic("crash")
	}
	for name, test := range map[string]struct {
		first, hedge func(context.Context, *Candidate, Sink[string]) *upstream.Failure
		want         string
		failed       bool
	}{
		"in a hedge":                   {patient(5*time.Second, "first"), crash, "first", false},
		"in a hedge that has begun":    {patient(time.Minute, "first"), begunThenCrash, "begun", true},
		"in the first one":             {lateCrash, patient(time.Minute, "other"), "", true},
		"in the first, of a lost race": {lateCrash, patient(time.Second, "other"), "other", true},
	} {
		t.Run(name, func(t *testing.T) {
			play(t, func(t *testing.T, s *stage) {
				other := &fake{try: test.hedge}
				x := &forking{fake: &fake{try: test.first}, fork: func() *fake { return other }}
				s.hedge(x, 1)
				var got strings.Builder
				for _, piece := range read(&x.run) {
					got.WriteString(piece)
				}
				ended := x.fake
				if other.ends == 1 {
					ended = other
				}
				if got.String() != test.want || x.ends+other.ends != 1 || (ended.failed != nil) != test.failed {
					t.Errorf("got %q, ended %d and %d times with %v", got.String(), x.ends, other.ends, ended.failed)
				}
			})
		})
	}
}

// Once a leg has claimed the request, another one can neither send nor settle, although its own work is done.
func TestOnlyOneLegSettlesAndDelivers(t *testing.T) {
	play(t, func(t *testing.T, s *stage) {
		late := func(ctx context.Context, _ *Candidate, out Sink[string]) *upstream.Failure {
			time.Sleep(4 * time.Second) // does not look at its context
			if out.Claim() || out.Settle(ctx) == nil || out.Send(ctx, "late") == nil {
				t.Error("the loser got through")
			}
			if out.Committed() || out.Context().Err() == nil || out.Flow() != nil {
				t.Error("the loser looks like the winner")
			}
			return nil
		}
		other := &fake{try: late}
		x := &forking{fake: &fake{try: func(ctx context.Context, _ *Candidate, out Sink[string]) *upstream.Failure {
			time.Sleep(2 * time.Second)
			if err := out.Settle(ctx); err != nil {
				t.Error(err)
			}
			_ = out.Send(ctx, "first")
			return nil
		}}, fork: func() *fake { return other }}
		s.hedge(x, 1)
		if got := read(&x.run); len(got) != 1 || got[0] != "first" {
			t.Errorf("got %v", got)
		}
		kittest.Quiesce()
		if x.settled != 1 || other.settled != 1 {
			t.Errorf("settled %d and %d times", x.settled, other.settled)
		}
	})
}

func TestAHedgedRequestIsRecordedWithAllItsAttemptsAndCharges(t *testing.T) {
	for name, test := range map[string]struct {
		first, hedge time.Duration
		want         []flow.Try
	}{
		"the first one wins": {3 * time.Second, time.Minute, []flow.Try{{Provider: "a"},
			{Provider: "a", Failure: "overtaken"}}},
		"the hedge wins": {time.Minute, time.Second, []flow.Try{{Provider: "a", Failure: "overtaken"},
			{Provider: "a"}}},
	} {
		t.Run(name, func(t *testing.T) {
			play(t, func(t *testing.T, s *stage) {
				var recorded *flow.Request
				s.Engine.flow.SetRecorder(func(q *flow.Request) {
					if recorded != nil {
						t.Error("recorded twice")
					}
					recorded = q
				}, func() bool { return true })
				other := &fake{try: patient(test.hedge, "other"), charge: 100}
				x := &forking{fake: &fake{try: patient(test.first, "first"), charge: 7}}
				x.fork = func() *fake { return other }
				loser, winner := other, 1
				if test.first > test.hedge {
					loser, winner = x.fake, 2
				}
				loser.settling = make(chan struct{})
				s.hedge(x, 1)
				read(&x.run)
				if kittest.Quiesce(); recorded != nil {
					t.Error("recorded before the loser is settled")
				}
				close(loser.settling)
				if kittest.Quiesce(); recorded == nil {
					t.Fatal("not recorded")
				}
				attempts := recorded.View(time.Now()).Attempts
				tries := slices.Clone(recorded.Tries())
				for i := range tries {
					if tries[i].Sent == 0 {
						t.Errorf("attempt %d got no permit", i+1)
					}
					tries[i].Sent = 0
				}
				if recorded.Charged() != 107 || !slices.Equal(tries, test.want) || attempts != winner {
					t.Errorf("charged %d, %+v, attempt %d", recorded.Charged(), tries, attempts)
				}
			})
		})
	}
}

// A request that is retried after a race without a winner does not go back to the target of its hedge.
func TestARetryAfterALostRaceIsNotAtTheHedgesTarget(t *testing.T) {
	play(t, func(t *testing.T, s *stage) {
		var mu sync.Mutex
		var at []int
		fail := func(d time.Duration) func(context.Context, *Candidate, Sink[string]) *upstream.Failure {
			return func(ctx context.Context, c *Candidate, out Sink[string]) *upstream.Failure {
				mu.Lock()
				at = append(at, c.index)
				mu.Unlock()
				if c.index == 2 {
					return patient(0, "third")(ctx, c, out)
				}
				time.Sleep(d)
				return &upstream.Failure{Class: upstream.Credential, Err: dialogue.Incomplete()}
			}
		}
		x := &forking{fake: &fake{try: fail(3 * time.Second)}}
		x.fork = func() *fake { return &fake{try: fail(time.Second)} }
		s.hedge(x, 1)
		if got := read(&x.run); len(got) != 1 || fmt.Sprint(at) != "[0 1 2]" {
			t.Errorf("got %v from %v", got, at)
		}
	})
}

func TestP95NeedsEnoughRecentTimes(t *testing.T) {
	var p firstPieces
	k, now := pieceKey{model: "m", provider: "p", target: "t"}, time.Unix(1000, 0)
	for i := range leastPieces {
		if got := p.p95(k, now); got != 0 {
			t.Fatalf("%s after %d times", got, i)
		}
		p.record(k, time.Duration(i+1)*time.Second, now)
	}
	if got := p.p95(k, now); got != 19*time.Second {
		t.Errorf("got %s, want the 19th of 20", got)
	}
	if p.p95(pieceKey{model: "m", provider: "p", target: "t", stream: true}, now) != 0 {
		t.Error("streams and whole replies are one")
	}
	for range keptPieces { // the ring forgets the oldest
		p.record(k, time.Second, now.Add(time.Minute))
	}
	if got := p.p95(k, now.Add(time.Minute)); got != time.Second {
		t.Errorf("got %s from the latest times", got)
	}
	if got := p.p95(k, now.Add(time.Minute+pieceAge+1)); got != 0 {
		t.Errorf("got %s from times that are too old", got)
	}
}

func TestTheTimesOfTargetsAreBounded(t *testing.T) {
	var p firstPieces
	for i := range maxPieceTargets + 10 {
		p.record(pieceKey{model: fmt.Sprint(i)}, time.Second, time.Unix(int64(i), 0))
	}
	if len(p.targets) != maxPieceTargets || p.targets[pieceKey{model: "9"}] != nil ||
		p.targets[pieceKey{model: "10"}] == nil {
		t.Errorf("%d targets are kept, or the wrong ones", len(p.targets))
	}
}
