package runtime_test

import (
	"context"
	"errors"
	"log/slog"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"stagedoor/actors/throttle"
	"stagedoor/state"
	"stagedoor/state/journal"
	"stagedoor/state/statetest"
	"stagedoor/state/work"
	"stagedoor/test/harness"
)

// limiterPaused asks a provider's limiter itself.
func (s *stage) limiterPaused(name string) bool {
	s.t.Helper()
	for _, p := range s.Providers() {
		if p.Spec.Name != name {
			continue
		}
		stats, err := p.Limiter.Stats(s.t.Context())
		if err != nil {
			s.t.Fatal(err)
		}
		return stats.Paused
	}
	s.t.Fatalf("there is no provider %s", name)
	return false
}

func (s *stage) setPaused(name string, paused bool) {
	s.t.Helper()
	if err := s.SetPaused(s.t.Context(), name, paused); err != nil {
		s.t.Fatal(err)
	}
}

func TestPauseLastsOverRestartsAndConfigurations(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		store := journal.NewMemory()
		first := begin(t, store)
		first.mustConfigure(sandbox("one"), sandbox("two"))
		first.setPaused("one", true)
		changed := sandbox("one")
		changed.Limits.RPM = 600
		first.mustConfigure(changed, sandbox("two"))
		if !first.limiterPaused("one") || first.limiterPaused("two") {
			t.Error("a new configuration let a paused provider go on, or paused another")
		}
		since, _ := first.Pause("one")
		first.end()

		time.Sleep(time.Hour)
		second := begin(t, store)
		second.mustConfigure(changed, sandbox("two"))
		if again, ok := second.Pause("one"); !ok || !again.Since.Equal(since.Since) || !second.limiterPaused("one") {
			t.Errorf("after a restart: %+v, %v", again, ok)
		}
		// No request passes, not even in the first moment.
		asked := time.Now()
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		if _, err := second.Providers()[0].Limiter.Acquire(ctx, throttle.Ask{}); err == nil ||
			time.Since(asked) < time.Second {
			t.Errorf("a paused provider answers %v after %v", err, time.Since(asked))
		}
		cancel()
		second.setPaused("one", false)
		second.end()

		third := begin(t, store)
		third.mustConfigure(changed)
		if third.limiterPaused("one") {
			t.Error("a pause that was ended is back after a restart")
		}
		third.end()
	})
}

func TestAPauseHoldsOnAllNodes(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		cluster := statetest.NewCluster()
		a, b := begin(t, cluster.Join("a")), begin(t, cluster.Join("b"))
		a.mustConfigure(sandbox("one"), sandbox("two"))
		b.mustConfigure(sandbox("one"), sandbox("two"))
		for _, paused := range []bool{true, false} {
			a.setPaused("one", paused)
			if err := b.TakeOver(t.Context(), nil); err != nil {
				t.Fatal(err)
			}
			if b.limiterPaused("one") != paused || b.limiterPaused("two") {
				t.Errorf("not as on the other node, where the provider is paused: %t", paused)
			}
		}
		a.end()
		b.end()
	})
}

// TestNothingIsTakenOverAfterTheContextHasEnded: it ends when a gateway begins to drain.
func TestNothingIsTakenOverAfterTheContextHasEnded(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		cluster := statetest.NewCluster()
		a, b := begin(t, cluster.Join("a")), begin(t, cluster.Join("b"))
		err := work.PutResponse(t.Context(), a.store, work.StoredResponse{Body: []byte(`{"id":"resp_1"}`),
			ResponseHeader: work.ResponseHeader{ID: "resp_1", Owner: "key:k", Status: "in_progress"}})
		if err != nil {
			t.Fatal(err)
		}
		a.end()
		if done, err := cluster.Join("operator").Members().Expel(t.Context(), "a", 1); err != nil {
			t.Fatal(done, err)
		}
		drained, cancel := context.WithCancel(t.Context())
		cancel()
		if err := b.TakeOver(drained, nil); err == nil || len(work.Nodes(b.store.View())) != 1 {
			t.Errorf("it was taken over: %v", err)
		}
		if err := b.TakeOver(t.Context(), nil); err != nil || len(work.Nodes(b.store.View())) != 0 {
			t.Errorf("it was not taken over before the end: %v", err)
		}
		b.end()
	})
}

// TestAPauseOutlivesANodeWithoutTheProvider: the pause is that of the nodes that have the provider.
func TestAPauseOutlivesANodeWithoutTheProvider(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		cluster := statetest.NewCluster()
		a := begin(t, cluster.Join("a"))
		a.mustConfigure(sandbox("one"), sandbox("two"))
		a.setPaused("one", true)
		b := begin(t, cluster.Join("b"))
		b.mustConfigure(sandbox("two"))
		if err := a.TakeOver(t.Context(), nil); err != nil {
			t.Fatal(err)
		}
		if !a.limiterPaused("one") {
			t.Error("a node that does not know the provider has ended its pause")
		}
		a.end()
		b.end()
	})
}

func TestPauseOfAProviderThatIsGoneIsForgotten(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := begin(t, journal.NewMemory())
		s.mustConfigure(sandbox("one"), sandbox("two"))
		s.setPaused("one", true)
		s.mustConfigure(sandbox("two"))
		if _, ok := s.Pause("one"); ok {
			t.Error("it is remembered")
		}
		s.mustConfigure(sandbox("one"))
		if s.limiterPaused("one") {
			t.Error("one of the same name is paused")
		}
		if err := s.SetPaused(t.Context(), "two", true); !errors.Is(err, state.ErrNotFound) {
			t.Errorf("pausing one that is not there: %v", err)
		}
		s.end()
	})
}

func TestPauseThatCouldNotBeEndedIsNotSaidToBe(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		store, log := statetest.NewFaulty(), new(harness.Buffer)
		s := beginLogging(t, store, slog.New(slog.NewTextHandler(log, nil)))
		s.mustConfigure(sandbox("one"), sandbox("two"))
		s.setPaused("one", true)
		store.Refuse(journal.ErrReadOnly)
		s.mustConfigure(sandbox("two"))
		store.Refuse(nil)
		if _, ok := s.Pause("one"); !ok {
			t.Error("the pause was ended")
		}
		if got := log.String(); !strings.Contains(got, "could not be ended") ||
			strings.Contains(got, "pauses of removed providers ended") {
			t.Errorf("the log says %s", got)
		}
		s.end()
	})
}
