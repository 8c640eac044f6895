package runtime_test

import (
	"context"
	"errors"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"stagedoor/actors/kit/kittest"
	"stagedoor/actors/runtime"
	"stagedoor/providers/catalog"
	"stagedoor/providers/dialogue"
	"stagedoor/providers/dialogue/dialoguetest"
	"stagedoor/providers/modellist"
	"stagedoor/providers/upstream"
	"stagedoor/state/journal"
)

// lists is a stage whose providers list what reply returns.
type lists struct {
	*stage
	mu    sync.Mutex
	reads int
	reply func(ctx context.Context) ([]string, error)
}

// will makes the provider answer so from now on.
func (l *lists) will(reply func(ctx context.Context) ([]string, error)) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.reply = reply
}

// read returns what the provider answers now.
func (l *lists) read(ctx context.Context, _ dialogue.Shape, _ *upstream.Client) ([]string, bool, error) {
	l.mu.Lock()
	l.reads++
	reply := l.reply
	l.mu.Unlock()
	names, err := reply(ctx)
	return names, false, err
}

// playLists runs body in a runtime that reads lists, inside a bubble.
func playLists(t *testing.T, body func(t *testing.T, s *lists)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		l := &lists{reply: func(context.Context) ([]string, error) { return []string{"gpt-1", "other"}, nil }}
		set := func(o *runtime.Options) { o.ListModels = l.read }
		l.stage = beginLogging(t, journal.NewMemory(), kittest.Logger(t), set)
		body(t, l)
		l.end()
	})
}

// serve puts a pattern in force that a provider serves, and a model with a name.
func (l *lists) serve(base string) {
	l.t.Helper()
	specs := []catalog.Provider{{Name: "a", Shape: dialoguetest.Chat, BaseURL: base}, sandbox("s")}
	c, mistakes := catalog.New(specs, []catalog.Model{
		{Pattern: "mine", Targets: []catalog.Route{{Provider: "a", Model: "x"}}},
		{Pattern: "gpt-*", Targets: []catalog.Route{{Provider: "a", Model: "*"}}},
		{Pattern: "*", Targets: []catalog.Route{{Provider: "s", Model: "*"}}},
	})
	if len(mistakes) > 0 {
		l.t.Fatal(mistakes)
	}
	if err := l.Configure(l.t.Context(), c, specs); err != nil {
		l.t.Fatal(err)
	}
}

// has checks which models the lists have, and how often the provider was asked.
func (l *lists) has(when, want string, reads int) {
	l.t.Helper()
	kittest.Quiesce()
	var names []string
	for _, m := range l.Catalog().Models() {
		names = append(names, m.ID)
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	if got := strings.Join(names, " "); got != want || l.reads != reads {
		l.t.Errorf("%s: %q after %d reads, want %q after %d", when, got, l.reads, want, reads)
	}
}

// Lists are read at the start, after six hours and when the configuration changes.
func TestListsOfModelsAreReadAtTheStartEverySixHoursAndOnReload(t *testing.T) {
	playLists(t, func(t *testing.T, l *lists) {
		l.serve("http://a.test")
		l.has("start", "mine gpt-1", 1)
		l.will(func(context.Context) ([]string, error) { return []string{"gpt-2"}, nil })
		kittest.Pass(6*time.Hour - time.Second)
		l.has("before six hours", "mine gpt-1", 1)
		kittest.Pass(time.Second)
		l.has("after six hours", "mine gpt-2", 2)
		l.will(func(context.Context) ([]string, error) { return nil, errors.New("broken") })
		l.serve("http://a.test")
		l.has("reload", "mine gpt-2", 3)
		l.serve("http://b.test")
		l.has("a reload with another address", "mine", 4)
	})
}

// A list that cannot be read leaves the last one for a day, and then the names of the configuration. It is tried again.
func TestAListThatCannotBeReadLeavesTheLastOneForADay(t *testing.T) {
	playLists(t, func(t *testing.T, l *lists) {
		good := l.reply
		bad := func(context.Context) ([]string, error) { return nil, errors.New("broken") }
		l.will(bad)
		l.serve("http://a.test")
		l.has("never read", "mine", 1)
		l.will(good)
		kittest.Pass(10 * time.Minute)
		l.has("read at last", "mine gpt-1", 2)
		l.will(bad)
		kittest.Pass(24 * time.Hour)
		l.has("a day", "mine gpt-1", 2+1+18*6)
		kittest.Pass(10 * time.Minute)
		l.has("more than a day", "mine", 2+1+18*6+1)
		l.will(func(context.Context) ([]string, error) { return nil, modellist.ErrNone })
		kittest.Pass(10 * time.Minute)
		l.has("no list", "mine", 2+1+18*6+2)
		kittest.Pass(time.Hour)
		l.has("no list is no failure", "mine", 2+1+18*6+2)
	})
}

// A list that fails for good is tried again, and the other ones are not read more often for it.
func TestAListThatFailsLeavesTheOthersToTheirSixHours(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var mu sync.Mutex
		reads := make(map[dialogue.Shape]int)
		s := beginLogging(t, journal.NewMemory(), kittest.Logger(t), func(o *runtime.Options) {
			o.ListModels = func(_ context.Context, shape dialogue.Shape, _ *upstream.Client) ([]string, bool, error) {
				mu.Lock()
				defer mu.Unlock()
				if reads[shape]++; shape == dialoguetest.Messages {
					return nil, false, errors.New("the key may not read lists")
				}
				return []string{"gpt-1"}, false, nil
			}
		})
		specs := []catalog.Provider{{Name: "a", Shape: dialoguetest.Chat, BaseURL: "http://a.test"},
			{Name: "b", Shape: dialoguetest.Messages, BaseURL: "http://b.test"}}
		c, mistakes := catalog.New(specs, []catalog.Model{{Pattern: "gpt-*",
			Targets: []catalog.Route{{Provider: "a", Model: "*"}, {Provider: "b", Model: "*"}}}})
		if len(mistakes) > 0 {
			t.Fatal(mistakes)
		}
		if err := s.Configure(t.Context(), c, specs); err != nil {
			t.Fatal(err)
		}
		kittest.Pass(24 * time.Hour)
		kittest.Quiesce()
		mu.Lock()
		good, bad := reads[dialoguetest.Chat], reads[dialoguetest.Messages]
		mu.Unlock()
		if good != 5 || bad != 1+24*6 {
			t.Errorf("in a day the list was read %d times, and the one that fails %d times", good, bad)
		}
		s.end()
	})
}

// A paused provider gets no request for its list, which counts for a day and is read soon after the pause. A reading
// under way ends with the gateway.
func TestListsOfPausedProvidersAreNotRead(t *testing.T) {
	playLists(t, func(t *testing.T, l *lists) {
		l.serve("http://a.test")
		kittest.Quiesce()
		if err := l.SetPaused(t.Context(), "a", true); err != nil {
			t.Fatal(err)
		}
		l.serve("http://a.test")
		l.has("paused", "mine gpt-1", 1)
		kittest.Pass(24 * time.Hour)
		l.has("paused for a day", "mine gpt-1", 1)
		kittest.Pass(10 * time.Minute)
		l.has("paused for more than a day", "mine", 1)
		if err := l.SetPaused(t.Context(), "a", false); err != nil {
			t.Fatal(err)
		}
		kittest.Pass(10 * time.Minute)
		l.has("no longer paused", "mine gpt-1", 2)
		l.will(func(ctx context.Context) ([]string, error) {
			<-ctx.Done()
			return nil, ctx.Err()
		})
		l.serve("http://a.test")
		l.has("under way", "mine gpt-1", 3)
	})
}

// A reading that panics does not end the gateway.
func TestAListThatPanicsIsReadAgain(t *testing.T) {
	playLists(t, func(t *testing.T, l *lists) {
		good := l.reply
		l.will(func(context.Context) ([]string, error) { panic("boom") })
		l.serve("http://a.test")
		l.has("panicked", "mine", 1)
		l.will(good)
		kittest.Pass(10 * time.Minute)
		l.has("again", "mine gpt-1", 2)
	})
}
