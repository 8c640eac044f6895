package main

import (
	"context"
	"log/slog"
	"time"

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

// keepDeleting deletes responses at their providers that have left by age or by number, and the videos of erased users,
// until ctx ends.
func keepDeleting(ctx context.Context, g *gateway) {
	tick := time.NewTicker(deletionsEvery)
	defer tick.Stop()
	remove := func(ctx context.Context, d work.UpstreamDeletion) error {
		return g.runtime.Text().
			DeleteStored(ctx, responses.Shape, string(d.Owner), d.Provider, responses.StoredPath(d.Response))
	}
	for lost := int64(0); ; {
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		}
		deleteUpstream(ctx, g.state, remove, g.logger)
		deleteErasedVideos(ctx, g.state, g.runtime.Videos().DeleteUpstream, g.logger)
		if n := work.StatsOf(g.state).DeletionsWithoutRoom; n > lost {
			g.logger.Warn("responses are not deleted at their providers, because too many of one owner wait for it",
				"responses", n-lost)
			lost = n
		}
	}
}

// deleteUpstream runs the deletions of responses that are due. One that fails is due again later, so that it ends.
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

// deleteErasedVideos does the same for the videos of erased users.
func deleteErasedVideos(ctx context.Context, s *state.State, remove func(context.Context, *work.Video) error,
	logger *slog.Logger) {
	runDeletions(ctx, logger, func() []work.Video {
		return work.ListErasedVideos(s.View(), deletionsBatch)
	}, func(ctx context.Context, v work.Video) error {
		failure := remove(ctx, &v)
		if ctx.Err() != nil {
			return ctx.Err()
		}
		givenUp, err := work.EndVideoDeletion(ctx, s, v.ID, failure != nil)
		if givenUp {
			logger.Warn("the video of an erased user was not deleted at its provider", "provider", v.Provider,
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
