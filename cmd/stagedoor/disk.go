package main

import (
	"context"
	"log/slog"
	"sync/atomic"
	"time"
)

// diskEvery is the longest time until the log and /readyz report a change of free disk space.
const diskEvery = 10 * time.Second

// disk knows whether there is room for changes where the store is.
type disk struct{ full atomic.Bool }

// watchDisk watches the disk of the store, if it is on one: memory has none, and
// counts all it has for its Stats.
func (g *gateway) watchDisk(ctx context.Context) {
	if g.store.Stats().DiskFree >= 0 {
		g.disk.watch(ctx, g.logger, func() error { return g.store.Stats().Full })
	}
}

// watch calls why every diskEvery and logs each change of its answer, until ctx ends. why returns the reason for which
// changes are refused for want of room, and nil if they are not. The log would otherwise learn of a full disk only by
// the first refusal, which a client gets.
func (d *disk) watch(ctx context.Context, logger *slog.Logger, why func() error) {
	tick := time.NewTicker(diskEvery)
	defer tick.Stop()
	for {
		switch cause := why(); {
		case cause != nil && !d.full.Swap(true):
			logger.Error("changes are refused until there is room on the disk", "cause", cause)
		case cause == nil && d.full.Swap(false):
			logger.Info("there is room on the disk again")
		}
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		}
	}
}
