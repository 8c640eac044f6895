package work

import (
	"cmp"
	"iter"
	"maps"
	"slices"

	"stagedoor/state"
)

// sweepResponses returns a command that removes at most limit responses and returns how many: the
// expired ones, and then finished ones beyond maxResponses, the oldest ones of the owners with most
// responses first. Those are chosen before the command runs, because choosing reads all headers.
// The command looks again whether they are still there.
func (m *memory) sweepResponses(s *state.State, limit int) func(*state.Tx, int) int {
	rows, _ := m.kept.totals()
	excess := rows - m.maxResponses
	var chosen []string
	if excess > 0 {
		chosen = responsesOfTheLargest(s.View(), min(excess, limit))
	}
	return func(tx *state.Tx, limit int) int {
		now := tx.Now()
		leaving := responses.Expired(tx.View(), limit)
		for _, id := range chosen {
			if len(leaving) >= min(excess, limit) {
				break
			}
			// Expired responses are in the list already.
			if r := responses.Get(tx.View(), id); r != nil && !r.Rec.expired(now) {
				leaving = append(leaving, r)
			}
		}
		for _, r := range leaving {
			var pending *pendingDeletion
			if r.Rec.Provider != "" {
				pending = &pendingDeletion{ID: r.Rec.ID, Provider: r.Rec.Provider, Due: now}
			}
			m.removeResponse(tx, r, pending)
		}
		return len(leaving)
	}
}

// responsesOfTheLargest returns the ids of n finished responses: the oldest ones of the owners with
// most. The owners are reduced to the same number, so an owner with few loses nothing to owners
// with many.
func responsesOfTheLargest(v state.View, n int) (ids []string) {
	counts := make(map[state.Owner]int)
	for h := range finishedResponses(v) {
		counts[h.Owner]++
	}
	surplus := surplusOfOwners(counts, n)
	for h := range finishedResponses(v) {
		if surplus[h.Owner] > 0 {
			surplus[h.Owner]--
			ids = append(ids, h.ID)
		}
		if len(ids) == n {
			break
		}
	}
	return ids
}

// finishedResponses returns the responses that have ended and not expired, oldest first.
func finishedResponses(v state.View) iter.Seq[*ResponseHeader] {
	return func(yield func(*ResponseHeader) bool) {
		for h := range responses.All(v) {
			if h.Finished() && !h.expired(v.Now()) && !yield(h) {
				return
			}
		}
	}
}

// surplusOfOwners returns how many of n responses each owner loses, so that the largest number that
// any owner keeps is as small as possible.
func surplusOfOwners(counts map[state.Owner]int, n int) map[state.Owner]int {
	owners := slices.SortedFunc(maps.Keys(counts), func(a, b state.Owner) int {
		return cmp.Or(cmp.Compare(counts[b], counts[a]), cmp.Compare(a, b))
	})
	// The first k owners have sum responses, and keep as many as they have beyond n.
	k, sum := 0, 0
	for k < len(owners) && (k == 0 || sum-n < k*counts[owners[k]]) {
		sum += counts[owners[k]]
		k++
	}
	kept := max(sum-n, 0)
	surplus := make(map[state.Owner]int, k)
	for i, owner := range owners[:k] {
		left := kept / k
		if i < kept%k {
			left++
		}
		surplus[owner] = counts[owner] - left
	}
	return surplus
}
