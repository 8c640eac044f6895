package state

import (
	"context"
	"time"
)

// MaxSweep is how many records one Sweep removes at most.
const MaxSweep = 500

// Sweep removes up to limit stored responses (MaxSweep if 0) and tells how many:
// first expired ones, then the oldest finished ones beyond MaxResponses. If it
// removed limit there may be more. It only frees space: what has expired is not
// found from that moment on, swept or not.
//
// Its caller decides when, once a minute for instance, and leaves it out while
// commands wait (Stats.Waiting).
func (s *State) Sweep(ctx context.Context, limit int) (int, error) {
	if limit <= 0 || limit > MaxSweep {
		limit = MaxSweep
	}
	excess := int(s.responses.Load()) - s.maxResponses
	return Do(ctx, s, func(tx *Tx) (int, error) {
		doomed := tx.expiredResponses(tx.now, limit)
		if keep := excess - len(doomed); keep > 0 && len(doomed) < limit {
			doomed = append(doomed, tx.oldestResponses(min(keep, limit-len(doomed)))...)
		}
		for _, r := range doomed {
			tx.removeResponse(r)
		}
		return len(doomed), nil
	})
}

// expiredResponses are found by minute and then looked at.
func (tx *Tx) expiredResponses(now time.Time, limit int) []*row[ResponseHeader] {
	var found []*row[ResponseHeader]
	responses.from(tx.mem, byExpiry, nil, func(r *row[ResponseHeader]) bool {
		if r.rec.expired(now) {
			found = append(found, r)
		}
		return len(found) < limit && r.rec.Expires.Unix()/60 <= now.Unix()/60
	})
	return found
}

// oldestResponses are the first finished ones that have not expired; the expired
// ones are on their way out already.
func (tx *Tx) oldestResponses(limit int) []*row[ResponseHeader] {
	var found []*row[ResponseHeader]
	responses.from(tx.mem, byID, nil, func(r *row[ResponseHeader]) bool {
		if r.rec.Finished() && !r.rec.expired(tx.now) {
			found = append(found, r)
		}
		return len(found) < limit
	})
	return found
}
