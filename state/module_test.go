package state_test

import (
	"bytes"
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	"stagedoor/state"
	"stagedoor/state/journal"
	"stagedoor/state/statetest"
)

// coin is the record of a toy table, which needs nothing but what "How to add a table" in ARCHITECTURE.md lists.
type coin struct {
	ID      string    `json:"id"`
	Face    string    `json:"face"`
	Expires time.Time `json:"expires"`
}

var coins = state.Table[coin]{
	Name:    journal.Session, // the store knows the names of tables, and this test has no other module
	ID:      func(c *coin) string { return c.ID },
	Expires: func(c *coin) time.Time { return c.Expires },
	Indexes: map[string]state.Index[coin]{
		"face": {Key: func(c *coin) []byte { return state.TextKey(c.Face) }},
	},
}

// toy counts coins in memory, durable ones and those of the group that is being decided.
type toy struct{ durable, decided int }

func toyModule() state.Module {
	m := &toy{}
	return state.Module{
		Memory: m,
		Tables: []state.Registration{state.Register(&coins, state.Hooks[coin]{
			Loaded: func(s *state.State) {
				for range coins.All(s.View()) {
					m.durable++
					m.decided++
				}
			},
			Written:   func(_ *state.Tx, before, after *coin) { m.decided += coinsAdded(before, after) },
			Committed: func(_ *state.State, before, after *coin) { m.durable += coinsAdded(before, after) },
		})},
		Verify: func(_ context.Context, v *state.Verifier) error {
			for c := range coins.All(v.State.View()) {
				if c.Face == "" {
					v.Report("coin %s has no face", c.ID)
				}
			}
			return nil
		},
	}
}

func coinsAdded(before, after *coin) (n int) {
	if before != nil {
		n--
	}
	if after != nil {
		n++
	}
	return n
}

// A table needs its declaration and its registration. With them it is loaded, indexed, decided twice, exported,
// imported, verified and swept.
func TestAToyTableNeedsOnlyItsModule(t *testing.T) {
	store, clock := journal.NewMemory(), newClock()
	openToy := func(store journal.Store) *state.State {
		s, err := state.Open(statetest.DecideTwice(store), clock.Now, toyModule())
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { s.Close() })
		return s
	}
	s := openToy(store)
	refused := errors.New("refused")
	for _, c := range []struct {
		coin coin
		end  error
	}{
		{coin{ID: "a", Face: "head", Expires: start.Add(time.Hour)}, nil},
		{coin{ID: "b", Face: "tail", Expires: start.Add(2 * time.Hour)}, nil},
		{coin{ID: "c", Face: "head", Expires: start.Add(2 * time.Hour)}, nil},
		{coin{ID: "d", Face: "head", Expires: start.Add(2 * time.Hour)}, refused},
	} {
		err := state.Run(ctx, s, func(tx *state.Tx) error { return errors.Join(coins.Put(tx, c.coin), c.end) })
		if !errors.Is(err, c.end) {
			t.Fatal(err)
		}
	}
	counted := func(s *state.State, want int) {
		t.Helper()
		if m := state.MemoryOf[*toy](s); m.durable != want || m.decided != want {
			t.Errorf("%d durable and %d decided coins, want %d", m.durable, m.decided, want)
		}
	}
	counted(s, 3)
	if heads := coins.List(s.View(), "face", state.TextKey("head")); len(heads) != 2 || heads[1].ID != "c" {
		t.Errorf("by its index: %+v", heads)
	}

	var file bytes.Buffer
	if _, err := journal.Export(ctx, store, &file); err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	if _, err := journal.Import(ctx, dir, &file, nil); err != nil {
		t.Fatal(err)
	}
	copied, err := journal.OpenBolt(dir, journal.Options{LowWater: -1})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { copied.Close() })
	clock.Add(90 * time.Minute)
	again := openToy(copied)
	counted(again, 3)
	if n, err := again.Sweep(ctx, 0); n != 1 || err != nil {
		t.Errorf("%d swept, %v", n, err)
	}
	counted(again, 2)

	verify := func(want string) {
		t.Helper()
		v, err := state.Verify(ctx, copied, toyModule())
		if got := strings.Join(v.Problems, "; "); got != want || err != nil {
			t.Errorf("verified: %q, %v, want %q", got, err, want)
		}
	}
	verify("")
	if err := state.Run(ctx, again, func(tx *state.Tx) error { return coins.Put(tx, coin{ID: "e"}) }); err != nil {
		t.Fatal(err)
	}
	verify("coin e has no face")
}

func TestTwoModulesCannotHaveOneTable(t *testing.T) {
	_, err := state.Open(journal.NewMemory(), time.Now, toyModule(), toyModule())
	if err == nil || !strings.Contains(err.Error(), `"session"`) {
		t.Errorf("opened: %v", err)
	}
}
