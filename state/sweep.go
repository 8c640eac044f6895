package state

import (
	"cmp"
	"context"
	"maps"
	"slices"
)

// MaxSweep is how many records one Sweep removes at most.
const MaxSweep = 500

// transient are the tables that Sweep clears, beside the responses.
var transient = []interface{ sweep(*Tx, int) int }{
	&sessions, &accessTokens, &grants, &consents, &redeemCodes, videoSweep{}, &deliveries, &goneResponses,
}

// Sweep removes up to limit records (MaxSweep if 0) and tells how many: expired
// ones of every table, then finished responses beyond MaxResponses, the oldest of the owners that have most.
// If it removed limit there may be more. It only frees space: what has expired
// is not found from that moment on, swept or not.
//
// Its caller decides when, once a minute for instance, and leaves it out while
// commands wait (Stats.Waiting). It keeps the time of an idle gateway, too.
func (s *State) Sweep(ctx context.Context, limit int) (int, error) {
	if limit <= 0 || limit > MaxSweep {
		limit = MaxSweep
	}
	excess := int(s.responses.Load()) - s.maxResponses
	var chosen []string // outside of the command, because choosing reads all responses
	if excess > 0 {
		chosen = s.View().responsesOfTheLargest(min(excess, limit))
	}
	return Do(ctx, s, func(tx *Tx) (int, error) {
		swept := s.sweepResponses(tx, limit, excess, chosen)
		for _, t := range transient {
			swept += t.sweep(tx, limit-swept)
		}
		return swept, tx.markTime()
	})
}

func (s *State) sweepResponses(tx *Tx, limit, excess int, chosen []string) int {
	doomed := responses.expired(tx.mem, tx.now, limit)
	for _, id := range chosen {
		if len(doomed) >= min(excess, limit) {
			break
		}
		if r := responses.get(tx.mem, id); r != nil && !r.rec.expired(tx.now) { // others are on their way out already
			doomed = append(doomed, r)
		}
	}
	for _, r := range doomed {
		var pending *pendingDeletion
		if r.rec.Provider != "" {
			pending = &pendingDeletion{ID: r.rec.ID, Provider: r.rec.Provider, Due: tx.now}
		}
		s.removeResponse(tx, r, pending)
	}
	return len(doomed)
}

// responsesOfTheLargest returns the ids of n finished responses: the oldest ones of the
// owners that have most. Owners are brought down to the same number, so an owner with few
// loses nothing to owners with many.
func (v View) responsesOfTheLargest(n int) (ids []string) {
	all := func(yield func(h *ResponseHeader) bool) {
		responses.from(v.txn, byID, nil, func(r *row[ResponseHeader]) bool {
			return !r.rec.Finished() || r.rec.expired(v.now) || yield(&r.rec)
		})
	}
	counts := make(map[Owner]int)
	for h := range all {
		counts[h.Owner]++
	}
	surplus := surpluses(counts, n)
	for h := range all {
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

// surpluses returns how many of n each owner gives up, so that the largest number that an
// owner has left is as small as possible.
func surpluses(counts map[Owner]int, n int) map[Owner]int {
	owners := slices.SortedFunc(maps.Keys(counts), func(a, b Owner) int {
		return cmp.Or(cmp.Compare(counts[b], counts[a]), cmp.Compare(a, b))
	})
	// The first k owners have sum responses, and keep as many as they have beyond n.
	k, sum := 0, 0
	for k < len(owners) && (k == 0 || sum-n < k*counts[owners[k]]) {
		sum += counts[owners[k]]
		k++
	}
	kept := max(sum-n, 0)
	surplus := make(map[Owner]int, k)
	for i, owner := range owners[:k] {
		left := kept / k
		if i < kept%k {
			left++
		}
		surplus[owner] = counts[owner] - left
	}
	return surplus
}
