package state_test

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"stagedoor/state"
	"stagedoor/state/journal"
	"stagedoor/state/statetest"
)

// medal is the record of a grouped toy table.
type medal struct {
	ID    string `json:"id"`
	Metal string `json:"metal"`
}

var medals = state.Table[medal]{
	Name:    journal.Key, // the store knows the names of tables
	ID:      func(m *medal) string { return m.ID },
	Grouped: true,
	Compact: func(m, before *medal) {
		if before != nil && before.Metal == m.Metal {
			m.Metal = before.Metal
		}
	},
}

// TestAGroupedTableIsReadAsWritten puts and removes rows, also in commands that are refused, opens the state again now
// and then, and compares what Get and All return with a map. Views from before a change keep showing what they showed.
func TestAGroupedTableIsReadAsWritten(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		store, clock := journal.NewMemory(), newClock()
		open := func() *state.State {
			module := state.Module{Tables: []state.Registration{state.Register(&medals, state.Hooks[medal]{})}}
			s, err := state.Open(statetest.DecideTwice(store), clock.Now, module)
			if err != nil {
				t.Fatal(err)
			}
			return s
		}
		s, want := open(), map[string]string{}
		defer func() { s.Close() }()
		id := rapid.OneOf(rapid.StringMatching(`[a-c]{0,3}z`), rapid.StringMatching(`m[0-9]{3}`))
		refused := errors.New("refused")
		for range rapid.IntRange(1, 12).Draw(t, "steps") {
			before, shown := s.View(), maps.Clone(want)
			puts := rapid.SliceOfN(id, 0, 150).Draw(t, "puts")
			removals := rapid.SliceOfN(id, 0, 60).Draw(t, "removals")
			metal := rapid.SampledFrom([]string{"gold", "iron"}).Draw(t, "metal")
			refuse := rapid.IntRange(0, 3).Draw(t, "refuse") == 0
			err := state.Run(ctx, s, func(tx *state.Tx) error {
				for _, id := range puts {
					if err := medals.Put(tx, medal{id, metal}); err != nil {
						return err
					}
				}
				for _, id := range removals {
					if r := medals.Get(tx.View(), id); r != nil {
						medals.Remove(tx, r)
					}
				}
				if refuse {
					return refused
				}
				return nil
			})
			if refuse != errors.Is(err, refused) || !refuse && err != nil {
				t.Fatalf("got %v, refused: %v", err, refuse)
			}
			if !refuse {
				for _, id := range puts {
					want[id] = metal
				}
				for _, id := range removals {
					delete(want, id)
				}
			}
			expectMedals(t, before, shown)
			expectMedals(t, s.View(), want)
			if rapid.IntRange(0, 2).Draw(t, "open again") == 0 {
				s.Close()
				s = open()
				expectMedals(t, s.View(), want)
			}
		}
	})
}

// expectMedals compares all medals of a view with those wanted, by id.
func expectMedals(t *rapid.T, v state.View, want map[string]string) {
	t.Helper()
	got := map[string]string{}
	var order []string
	for m := range medals.All(v) {
		got[m.ID] = m.Metal
		order = append(order, m.ID)
	}
	if !maps.Equal(got, want) || len(order) != len(want) || !slices.IsSorted(order) {
		t.Fatalf("All returns %d medals in the order %v, want %v", len(order), order, want)
	}
	for id := range want {
		if m, found := medals.Get(v, id).Record(); !found || m.Metal != want[id] {
			t.Fatalf("Get(%q) returns %v, %v, want %q", id, m, found, want[id])
		}
	}
	for _, id := range []string{"a", "m", "m99", "zz"} {
		if _, found := want[id]; !found && medals.Get(v, id) != nil {
			t.Fatalf("Get(%q) returns a medal that does not exist", id)
		}
	}
}

// TestAGroupedTableHasNoOtherIndex expects a panic, because rows in groups cannot be swept or found by other keys.
func TestAGroupedTableHasNoOtherIndex(t *testing.T) {
	for name, table := range map[string]state.Table[coin]{
		"Expires": {Name: journal.Key, ID: coins.ID, Grouped: true, Expires: coins.Expires},
		"Indexes": {Name: journal.Key, ID: coins.ID, Grouped: true, Indexes: coins.Indexes},
	} {
		func() {
			defer func() {
				if r := recover(); !strings.Contains(fmt.Sprint(r), "grouped") {
					t.Errorf("%s: Register ended with %v", name, r)
				}
			}()
			state.Register(&table, state.Hooks[coin]{})
		}()
	}
}
