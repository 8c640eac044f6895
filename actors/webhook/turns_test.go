package webhook

import (
	"fmt"
	"maps"
	"slices"
	"testing"

	"pgregory.net/rapid"

	"stagedoor/state"
	"stagedoor/state/work"
)

// TestOwnersTakeTurnsAtAnEndpoint: for generated deliveries that are due and tries that end, no
// owner has more than its share of the slots, no slot is left free while an owner below its share
// waits, and while an owner waits that has no try under way, no other owner is served twice.
func TestOwnersTakeTurnsAtAnEndpoint(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		turns, due := newTurns(), make(map[string][]*work.Delivery)
		passed := make(map[string]map[string]int) // turns of others, by owner that waits with nothing under way
		count := func(owner string) (n int) {
			for _, o := range turns.under {
				if o == owner {
					n++
				}
			}
			return n
		}
		names := []string{"a", "b", "c", "d", "e", "f", "g", "h", "i", "j", "k"}
		for step := range rapid.IntRange(1, 60).Draw(t, "steps") {
			if owner := rapid.SampledFrom(names).Draw(t, "owner"); rapid.Bool().Draw(t, "new") {
				for n := range rapid.IntRange(1, 12).Draw(t, "n") {
					d := &work.Delivery{ID: fmt.Sprint(owner, step, n), Owner: state.Owner(owner)}
					due[owner] = append(due[owner], d)
				}
			}
			for _, id := range slices.Sorted(maps.Keys(turns.under)) {
				if rapid.Bool().Draw(t, "ends") {
					turns.ended(id)
				}
			}
			var w waiting
			for _, owner := range names {
				for _, d := range due[owner] {
					w.add(d)
				}
			}
			for _, d := range turns.begin(&w) {
				owner := string(d.Owner)
				if due[owner][0] != d {
					t.Fatalf("%s is served before an older delivery of its owner", d.ID)
				}
				due[owner] = due[owner][1:]
				delete(passed, owner)
				for waits, others := range passed {
					if others[owner]++; others[owner] > 1 {
						t.Fatalf("%s was served twice while %s waits with nothing under way", owner, waits)
					}
				}
			}
			used := len(turns.under)
			for _, owner := range names {
				own := count(owner)
				if share := max((perEndpoint-(used-own))/2, 1); own > 0 && own > max(share, perEndpoint/2) {
					t.Fatalf("%s has %d slots of %d", owner, own, perEndpoint)
				} else if own+1 <= share && used < perEndpoint && len(due[owner]) > 0 {
					t.Fatalf("%s waits with %d slots while %d of %d are used", owner, own, used, perEndpoint)
				}
				if own == 0 && len(due[owner]) > 0 && passed[owner] == nil {
					passed[owner] = make(map[string]int)
				}
			}
		}
	})
}
