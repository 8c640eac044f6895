package state

import "context"

// MaxSweep is how many records one Sweep removes at most.
const MaxSweep = 500

// transient are the tables that Sweep clears, beside the responses.
var transient = []interface{ sweep(*Tx, int) int }{&sessions, &accessTokens, &grants, &consents, &redeemCodes, videoSweep{}, &deliveries}

// Sweep removes up to limit records (MaxSweep if 0) and tells how many: expired
// ones of every table, then the oldest finished responses beyond MaxResponses.
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
	return Do(ctx, s, func(tx *Tx) (int, error) {
		swept := tx.sweepResponses(limit, excess)
		for _, t := range transient {
			swept += t.sweep(tx, limit-swept)
		}
		return swept, tx.markTime()
	})
}

func (tx *Tx) sweepResponses(limit, excess int) int {
	doomed := responses.expired(tx.mem, tx.now, limit)
	if keep := excess - len(doomed); keep > 0 && len(doomed) < limit {
		doomed = append(doomed, tx.oldestResponses(min(keep, limit-len(doomed)))...)
	}
	for _, r := range doomed {
		tx.removeResponse(r)
	}
	return len(doomed)
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
