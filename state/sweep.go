package state

import "context"

// MaxSweep limits the records that one Sweep removes.
const MaxSweep = 500

// Sweep removes up to limit records (MaxSweep if 0) that have expired or are too many, as the tables' registrations
// say, and returns how many. If it removed limit there may be more. It only frees space, because an expired record is
// not found from the moment on at which it expires.
//
// Its caller decides when, for example once a minute, and waits while commands wait (Stats.Waiting). It also keeps the
// time of an idle gateway. The error is one of those of Do, and nothing is removed then.
func (s *State) Sweep(ctx context.Context, limit int) (int, error) {
	if limit <= 0 || limit > MaxSweep {
		limit = MaxSweep
	}
	var sweeps []func(*Tx, int) int
	for _, r := range s.registrations() {
		if r.sweep != nil {
			sweeps = append(sweeps, r.sweep(s, limit))
		}
	}
	return Do(ctx, s, func(tx *Tx) (int, error) {
		swept := 0
		for _, sweep := range sweeps {
			swept += sweep(tx, limit-swept)
		}
		return swept, tx.markTime()
	})
}
