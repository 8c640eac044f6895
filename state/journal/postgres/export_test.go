package postgres

import (
	"context"
	"time"
)

// Tidy deletes what is older than an age of nothing, as far as no live node needs it.
func (s *Store) Tidy(ctx context.Context) error { return s.tidy(ctx, s.pool, 0) }

// TidyingEvery returns options with which a store tidies that often.
func (o Options) TidyingEvery(d time.Duration) Options {
	o.tidyEvery = d
	return o
}

// Reading returns options of a program that reads formats of the log up to one.
func (o Options) Reading(format int) Options {
	o.reads = format
	return o
}
