package work_test

import (
	"testing"

	"pgregory.net/rapid"

	"stagedoor/state"
	"stagedoor/state/journal"
	"stagedoor/state/work"
)

// Beyond MaxResponses, owners with many responses lose theirs. Owners with few lose none, however
// old theirs are.
func TestSweepTakesResponsesOfTheOwnersWithMost(t *testing.T) {
	s := open(t, journal.NewMemory(), newClock().Now, work.MaxResponses(20))
	n := 0
	put1 := func(owner state.Owner, count int) {
		for range count {
			r := newResponse(n, "completed")
			r.Owner = owner
			put(t, s, r)
			n++
		}
	}
	put1("user:small", 4) // the oldest
	put1("user:large", 30)
	put1("user:middle", 9)
	for swept := 1; swept > 0; {
		var err error
		if swept, err = s.Sweep(ctx, 7); err != nil {
			t.Fatal(err)
		}
	}
	for owner, want := range map[state.Owner]int{"user:small": 4, "user:large": 8, "user:middle": 8} {
		if got := work.KeptResponses(s, owner).Responses; got != want {
			t.Errorf("%s keeps %d, want %d", owner, got, want)
		}
	}
	left := work.LatestResponses(s.View(), "user:large", -1)
	if oldest := left[len(left)-1].ID; oldest != newResponse(26, "").ID {
		t.Error("what is left of the large owner is not its newest")
	}
}

// For generated numbers, exactly n responses are chosen, and no owner that loses some keeps fewer
// than another one.
func TestSurplusesLeaveOwnersEven(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		counts, sum := make(map[state.Owner]int), 0
		for _, owner := range []state.Owner{"a", "b", "c", "d"}[:rapid.IntRange(1, 4).Draw(t, "owners")] {
			counts[owner] = rapid.IntRange(1, 12).Draw(t, "count")
			sum += counts[owner]
		}
		n := rapid.IntRange(1, sum).Draw(t, "n")
		surplus, given, most := work.Surpluses(counts, n), 0, 0
		for owner, count := range counts {
			given += surplus[owner]
			most = max(most, count-surplus[owner])
		}
		for owner, count := range counts {
			if s := surplus[owner]; s < 0 || s > count || s > 0 && count-s < most-1 {
				t.Fatalf("%v gives %v of %d", counts, surplus, n)
			}
		}
		if given != n {
			t.Fatalf("%v gives %v, want %d", counts, surplus, n)
		}
	})
}
