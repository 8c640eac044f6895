package postgres

import "context"

// Tidy deletes what is older than an age of nothing, as far as no live node needs it.
func (s *Store) Tidy(ctx context.Context) error { return s.tidy(ctx, s.pool, 0) }
