package main

import (
	"context"
	"log/slog"
	"time"

	"github.com/sourcegraph/conc"
	"github.com/sourcegraph/conc/pool"

	"stagedoor/providers/shapes/responses"
	"stagedoor/state"
	"stagedoor/state/work"
)

// Deletions of responses and videos at their providers: how often the gateway looks for them, how many it takes
// at a time, and how many of those run at once.
const (
	deletionsEvery  = time.Minute
	deletionsBatch  = 64
	deletionsAtOnce = 4
)

// keepDeleting deletes, at their providers and until ctx ends, the responses that the gateway no longer keeps because
// of their age or number, and the videos that were deleted or whose user was erased. Of several nodes, only the first
// does this.
func keepDeleting(ctx context.Context, g *gateway) {
	remove := func(ctx context.Context, d work.UpstreamDeletion) error {
		return g.runtime.Text().
			DeleteStored(ctx, responses.Shape, string(d.Owner), d.Provider, responses.StoredPath(d.Response))
	}
	lost := int64(0)
	repeatApart(ctx, deletionsEvery, func() {
		if !g.isFirstNode(ctx) {
			return
		}
		deleteUpstream(ctx, g.state, remove, g.logger)
		if n := work.StatsOf(g.state).DeletionsWithoutRoom; n > lost {
			g.logger.Warn("responses are not deleted at their providers, because too many of one owner wait for it",
				"responses", n-lost)
			lost = n
		}
	}, func() {
		if !g.isFirstNode(ctx) {
			return
		}
		deleteVideos(ctx, g.state, g.runtime.Videos().DeleteUpstream, g.logger)
	})
}

// repeatApart calls each round at every interval until ctx ends. Each has its own goroutine, so that one that takes
// long, because its provider does not reply, does not delay the others.
func repeatApart(ctx context.Context, interval time.Duration, rounds ...func()) {
	var wg conc.WaitGroup
	defer wg.Wait()
	for _, round := range rounds {
		wg.Go(func() {
			tick := time.NewTicker(interval)
			defer tick.Stop()
			for {
				select {
				case <-ctx.Done():
					return
				case <-tick.C:
					round()
				}
			}
		})
	}
}

// deleteUpstream calls remove with each response whose deletion at its provider is due. A deletion that fails is tried
// again in a later round until the store gives it up, which is logged.
func deleteUpstream(ctx context.Context, s *state.State, remove func(context.Context, work.UpstreamDeletion) error,
	logger *slog.Logger) {
	runDeletions(ctx, logger, func() []work.UpstreamDeletion {
		return work.ListUpstreamDeletions(s.View(), deletionsBatch)
	}, func(ctx context.Context, d work.UpstreamDeletion) error {
		failure := remove(ctx, d)
		if ctx.Err() != nil {
			return ctx.Err() // it is due in the next process
		}
		givenUp, err := work.EndUpstreamDeletion(ctx, s, d, failure != nil)
		if givenUp {
			logger.Warn("a response was not deleted at its provider", "provider", d.Provider, "response", d.Response,
				"cause", failure)
		}
		return err
	})
}

// deleteVideos deletes videos at their providers as deleteUpstream deletes responses.
func deleteVideos(ctx context.Context, s *state.State, remove func(context.Context, *work.Video) error,
	logger *slog.Logger) {
	runDeletions(ctx, logger, func() []work.Video {
		return work.ListVideoDeletions(s.View(), deletionsBatch)
	}, func(ctx context.Context, v work.Video) error {
		failure := remove(ctx, &v)
		if ctx.Err() != nil {
			return ctx.Err()
		}
		givenUp, err := work.EndVideoDeletion(ctx, s, v.ID, failure != nil)
		if givenUp {
			logger.Warn("a deleted video stays at its provider", "provider", v.Provider,
				"upstream_id", v.UpstreamID, "cause", failure)
		}
		return err
	})
}

// runDeletions calls remove with everything that is due, some at once, until nothing is. remove must postpone what
// fails, and returns only errors of the store, which end the round.
func runDeletions[T any](ctx context.Context, logger *slog.Logger, list func() []T,
	remove func(context.Context, T) error) {
	for ctx.Err() == nil {
		batch := list()
		if len(batch) == 0 {
			return
		}
		workers := pool.New().WithMaxGoroutines(deletionsAtOnce).WithContext(ctx)
		for _, d := range batch {
			workers.Go(func(ctx context.Context) error { return remove(ctx, d) })
		}
		if err := workers.Wait(); err != nil {
			if ctx.Err() == nil {
				logger.Warn("the store does not take what was deleted at providers", "cause", err)
			}
			return
		}
	}
}
