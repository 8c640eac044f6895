package runtime_test

import (
	"context"
	"errors"
	"log/slog"
	"net/http"
	"testing"
	"testing/synctest"
	"time"

	"stagedoor/actors/engine"
	"stagedoor/actors/kit/kittest"
	"stagedoor/actors/runtime"
	"stagedoor/actors/text"
	"stagedoor/actors/throttle"
	"stagedoor/providers/catalog"
	"stagedoor/providers/dialogue"
	"stagedoor/providers/dialogue/dialoguetest"
	"stagedoor/providers/shapes"
	"stagedoor/providers/shapes/registry"
	"stagedoor/state"
	"stagedoor/state/journal"
	"stagedoor/state/money"
	"stagedoor/state/schema"
	"stagedoor/state/statetest"
)

// stage is a runtime whose sandbox answers after a while.
type stage struct {
	*runtime.Runtime
	t     *testing.T
	store *state.State
	// takes is the duration of a reply after its first chunk.
	takes time.Duration
}

// begin starts a runtime on a store, inside a bubble.
func begin(t *testing.T, journal journal.Store) *stage {
	t.Helper()
	return beginLogging(t, journal, kittest.Logger(t))
}

func beginLogging(t *testing.T, journal journal.Store, logger *slog.Logger, change ...func(*runtime.Options)) *stage {
	t.Helper()
	s := &stage{t: t}
	var err error
	if s.store, err = schema.Open(journal, time.Now); err != nil {
		t.Fatal(err)
	}
	env := dialoguetest.NewLiveEnv()
	options := runtime.Options{Logger: logger, Env: env, Shapes: registry.All, State: s.store, Simulate: s.simulate}
	for _, f := range change {
		f(&options)
	}
	s.Runtime, err = runtime.Start(t.Context(), options)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// end stops the runtime and what the stage has opened.
func (s *stage) end() {
	s.t.Helper()
	s.stop()
	time.Sleep(2 * time.Second) // the actor library's last timer
	if err := s.store.Close(); err != nil {
		s.t.Error(err)
	}
}

// play runs body in a runtime inside a bubble, and stops it.
func play(t *testing.T, body func(t *testing.T, s *stage)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		s := begin(t, journal.NewMemory())
		body(t, s)
		s.end()
	})
}

func (s *stage) stop() {
	s.t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	if err := s.Stop(ctx); err != nil {
		s.t.Errorf("stop: %v", err)
	}
}

func (s *stage) simulate(ctx context.Context, _ *dialogue.Request, _ http.Header,
	emit func(*dialogue.Event) error) error {
	events := []dialogue.Event{
		{Kind: dialogue.EventStart, ID: "x", Model: "m"},
		{Kind: dialogue.EventOpen, PartKind: dialogue.TextPart},
		{Kind: dialogue.EventDelta, Text: "Hello"},
		{Kind: dialogue.EventClose},
		{Kind: dialogue.EventFinish},
		{Kind: dialogue.EventEnd},
	}
	for i := range events {
		if err := emit(&events[i]); err != nil {
			return err
		}
		if i != 2 {
			continue
		}
		select {
		case <-time.After(s.takes):
		case <-ctx.Done():
			return ctx.Err()
		}
	}
	return nil
}

// TestSeveralNodesShareTheLimitsOfAProvider: each has an equal part, and at least one of each kind.
func TestSeveralNodesShareTheLimitsOfAProvider(t *testing.T) {
	play(t, func(t *testing.T, s *stage) {
		spec := sandbox("one")
		spec.Limits.Concurrency = 7
		for _, c := range []struct{ nodes, granted int }{{2, 3}, {10, 1}, {1, 7}} {
			s.ShareLimits(c.nodes)
			s.mustConfigure(spec)
			var permits []*throttle.Permit
			for {
				ctx, cancel := context.WithTimeout(t.Context(), time.Second)
				permit, err := s.Providers()[0].Limiter.Acquire(ctx, throttle.Ask{})
				cancel()
				if err != nil {
					break
				}
				permits = append(permits, permit)
			}
			if len(permits) != c.granted {
				t.Errorf("one of %d nodes was granted %d of 7 at a time, want %d", c.nodes, len(permits), c.granted)
			}
			for _, p := range permits {
				p.Release(throttle.Outcome{Kind: throttle.Success})
			}
		}
	})
}

func sandbox(name string) catalog.Provider {
	return catalog.Provider{Name: name, Shape: catalog.Sandbox}
}

// configure puts providers in force, with model m on the first and the others
// as its fallbacks.
func (s *stage) configure(specs ...catalog.Provider) error {
	s.t.Helper()
	var routes []catalog.Route
	for _, spec := range specs {
		routes = append(routes, catalog.Route{Provider: spec.Name, Model: "m"})
	}
	c, mistakes := catalog.New(specs, []catalog.Model{{Pattern: "m", Targets: routes[:1], Fallback: routes[1:]}})
	if len(mistakes) > 0 {
		s.t.Fatal(mistakes)
	}
	return s.Configure(context.Background(), c, specs)
}

func (s *stage) mustConfigure(specs ...catalog.Provider) {
	s.t.Helper()
	if err := s.configure(specs...); err != nil {
		s.t.Fatal(err)
	}
}

func (s *stage) provider(name string) *engine.Provider {
	for _, p := range s.Providers() {
		if p.Spec.Name == name {
			return p
		}
	}
	return nil
}

// ask begins a streamed chat of m and returns what it ends with.
func (s *stage) ask() <-chan text.Outcome {
	s.t.Helper()
	const body = `{"model":"m","stream":true,"messages":[{"role":"user","content":"hi"}]}`
	in := shapes.Params{Header: http.Header{}}
	chat := registry.ByName()[dialoguetest.Chat]
	head, err := chat.Check([]byte(body), in)
	if err != nil {
		s.t.Fatal(err)
	}
	r, ok := s.Catalog().Resolve("m")
	if !ok {
		s.t.Fatal("no model m")
	}
	reply := s.Text().
		Begin(context.Background(), &text.Request{ID: "r", Inbound: chat, Mode: shapes.Stream, In: in, Head: head,
			Body: []byte(body), Plan: r.Plan(func(int) int { return 0 }), Key: "k", Owner: "key:k"})
	out := make(chan text.Outcome, 1)
	go func() {
		for f := range reply.Chunks() {
			if f.Data != nil {
				f.Data.Free()
			}
		}
		out <- reply.Outcome()
	}()
	return out
}

func TestProvidersComeChangeAndGoWhileRequestsRun(t *testing.T) {
	play(t, func(t *testing.T, s *stage) {
		s.takes = time.Minute
		s.mustConfigure(sandbox("a"), sandbox("b"))
		running := s.ask()
		kittest.Quiesce()

		kept, changed := s.provider("a"), s.provider("b")
		b := sandbox("b")
		b.Limits.Concurrency = 1
		s.mustConfigure(sandbox("a"), b, sandbox("c"))
		if s.provider("a") != kept {
			t.Error("a provider that did not change was exchanged")
		}
		if now := s.provider("b"); now == changed || now.Limiter != changed.Limiter ||
			now.Spec.Limits.Concurrency != 1 {
			t.Error("a provider that changed is not the same throttle under other limits")
		}
		s.mustConfigure(sandbox("c"))
		if len(s.Providers()) != 1 {
			t.Errorf("%d providers", len(s.Providers()))
		}
		if got := <-running; got.Err != nil || got.Provider != "a" {
			t.Errorf("a request under way ended with %v from %q", got.Err, got.Provider)
		}
		if got := <-s.ask(); got.Err != nil || got.Provider != "c" {
			t.Errorf("a request after it ended with %v from %q", got.Err, got.Provider)
		}
		if n := kept.Limiter.InFlight(); n != 0 {
			t.Errorf("%d permits of a provider that is gone are out", n)
		}
	})
}

func TestAChangedLimitHoldsAtOnce(t *testing.T) {
	play(t, func(t *testing.T, s *stage) {
		s.takes = time.Minute
		s.mustConfigure(sandbox("a"))
		limited := sandbox("a")
		limited.Limits.Concurrency = 2
		s.mustConfigure(limited)
		var all []<-chan text.Outcome
		for range 4 {
			all = append(all, s.ask())
		}
		kittest.Quiesce()
		if n := s.provider("a").Limiter.InFlight(); n != 2 {
			t.Errorf("%d at once, want 2", n)
		}
		for _, got := range all {
			if got := <-got; got.Err != nil {
				t.Error(got.Err)
			}
		}
	})
}

func TestAConfigurationIsTakenWhollyOrNotAtAll(t *testing.T) {
	play(t, func(t *testing.T, s *stage) {
		s.mustConfigure(sandbox("a"))
		before, catalogue := s.provider("a"), s.Catalog()
		changed, bad := sandbox("a"), catalog.Provider{
			Name:    "bad",
			Shape:   dialoguetest.Chat,
			BaseURL: "http://bad\x7f.test",
		}
		changed.Retries = 9
		c, _ := catalog.New([]catalog.Provider{changed, sandbox("new")},
			[]catalog.Model{{Pattern: "m", Targets: []catalog.Route{{Provider: "a", Model: "m"}}}})
		if err := s.Configure(context.Background(), c, []catalog.Provider{changed, sandbox("new"), bad}); err == nil {
			t.Fatal("taken")
		}
		if s.provider("a") != before || s.provider("new") != nil || s.Catalog() != catalogue {
			t.Error("a part of it was taken")
		}
		if got := <-s.ask(); got.Err != nil {
			t.Error(got.Err)
		}
	})
}

// The parent of the throttles has nothing to lose but its children's names.
func TestThrottlesSurviveTheirParent(t *testing.T) {
	play(t, func(t *testing.T, s *stage) {
		s.takes = time.Minute
		s.mustConfigure(sandbox("a"), sandbox("gone"))
		s.mustConfigure(sandbox("a"))
		running := s.ask()
		kittest.Quiesce()
		s.BreakProviders()
		kittest.Pass(time.Second)
		for range 3 {
			if got := <-s.ask(); got.Err != nil {
				t.Errorf("after the failure: %v", got.Err)
			}
		}
		if got := <-running; got.Err != nil {
			t.Errorf("a request under way: %v", got.Err)
		}
		s.mustConfigure(sandbox("a"), sandbox("b"))
		if _, err := s.provider("b").Limiter.Stats(context.Background()); err != nil {
			t.Errorf("a provider that came after the failure: %v", err)
		}
		if n := s.provider("a").Limiter.InFlight(); n != 0 {
			t.Errorf("%d permits are out", n)
		}
	})
}

func TestStopEndsWhatRuns(t *testing.T) {
	play(t, func(t *testing.T, s *stage) {
		s.takes = time.Hour
		s.mustConfigure(sandbox("a"))
		running := s.ask()
		kittest.Quiesce()
		ctx, cancel := context.WithTimeout(context.Background(), time.Second)
		defer cancel()
		if n := s.Drain(ctx, time.Second); n != 1 {
			t.Errorf("%d were cut", n)
		}
		if got := <-running; got.Err == nil || got.Err.Code != "shutting_down" {
			t.Errorf("ended with %v", got.Err)
		}
		s.stop()
		if got := <-s.ask(); got.Err == nil || got.Err.Code != "shutting_down" {
			t.Errorf("a request after the end: %v", got.Err)
		}
		if err := s.configure(sandbox("a"), sandbox("late")); err == nil {
			t.Error("a provider was added after the end")
		}
	})
}

func TestAHouseThatCannotStartLeavesNothing(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		faulty := statetest.NewFaulty()
		store, err := schema.Open(faulty, time.Now)
		if err != nil {
			t.Fatal(err)
		}
		defer store.Close()
		// What an earlier process left is to be settled, and cannot be.
		_, _, err = money.CommitPostings(t.Context(), store,
			"a",
			[]money.Posting{
				{Kind: money.Credit, Amount: 9},
				{Kind: money.Begin, Amount: 5, Receipt: &money.Receipt{Request: "r"}},
			},
		)
		if err != nil {
			t.Fatal(err)
		}
		faulty.Refuse(errors.New("broken"))
		env := &dialogue.Env{Now: time.Now, ID: func() string { return "x" }, Signatures: dialoguetest.NoSignatures{}}
		if _, err := runtime.Start(t.Context(), runtime.Options{Logger: kittest.Logger(t), Env: env,
			Shapes: registry.All, State: store}); err == nil {
			t.Error("started")
		}
		time.Sleep(2 * time.Second) // the actor library's last timer
	})
}
