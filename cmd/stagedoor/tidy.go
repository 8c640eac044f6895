package main

import (
	"context"
	"time"

	"stagedoor/state/money"
)

const (
	// tidyEvery is the interval of removals. Expired records are not found any more,
	// they only take room.
	tidyEvery = time.Minute
	// tidyBatch limits the records that one commit removes.
	tidyBatch = 500
	// tidyYields is the number of waiting commands, of the 4,096 that may wait, at
	// which tidying pauses.
	tidyYields = 1024
	// tidyStep is the length of a pause.
	tidyStep = 100 * time.Millisecond
)

// keepTidy removes what has expired every tidyEvery, and packs and folds ledger entries, until ctx ends. Replies in
// memory are removed on each gateway. Of several gateways on one database only the first does the rest, so that they do
// not do it twice.
func keepTidy(ctx context.Context, g *gateway) {
	if g.state.Stats().Journal.CutBack {
		g.logger.Warn("the last commit was not whole and was cut back; if the power did not fail, run stagedoor state verify and compare with a backup")
	}
	tick := time.NewTicker(tidyEvery)
	defer tick.Stop()
	busy := func() bool { return g.state.Stats().Waiting > tidyYields }
	for {
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		}
		g.kept.Sweep()
		if !g.isFirstNode(ctx) {
			continue
		}
		err := tidy(ctx, busy, func() (int, error) { return g.state.Sweep(ctx, tidyBatch) })
		if err != nil && ctx.Err() == nil {
			g.logger.Warn("what has expired was not removed", "cause", err)
		}
		err = tidy(ctx, busy, func() (int, error) { return money.Pack(ctx, g.state, tidyBatch) })
		if err != nil && ctx.Err() == nil {
			g.logger.Warn("ledger entries were not packed", "cause", err)
		}
		keep := time.Duration(g.config.Load().Ledger.Keep)
		if keep == 0 {
			continue
		}
		before := g.state.Now().Add(-keep)
		err = tidy(ctx, busy, func() (int, error) { return money.Fold(ctx, g.state, before, tidyBatch) })
		if err != nil && ctx.Err() == nil {
			g.logger.Warn("old ledger entries were not folded", "cause", err)
		}
	}
}

// tidy runs batches until one is not full. After each it rests as long as that
// took, so that it never has more than half of the store, and steps aside while
// it is busy.
func tidy(ctx context.Context, busy func() bool, batch func() (int, error)) error {
	for {
		began := time.Now()
		n, err := batch()
		if err != nil || n < tidyBatch {
			return err
		}
		if err := rest(ctx, time.Since(began)); err != nil {
			return err
		}
		for busy() {
			if err := rest(ctx, tidyStep); err != nil {
				return err
			}
		}
	}
}

func rest(ctx context.Context, d time.Duration) error {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-t.C:
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}
