package videocli

import (
	"context"
	"errors"
	"fmt"

	"github.com/sourcegraph/conc/pool"
	"github.com/spf13/cobra"

	"stagedoor/cmd/stagedoor/cli"
	"stagedoor/cmd/stagedoor/videoclient"
)

// mostWatched bounds the jobs that one command watches, because each uses a connection.
const mostWatched = 64

// watchCommand returns the command that watches jobs until they have ended. It fails if any of them has failed.
func (a app) watchCommand(r *gateway) *cobra.Command {
	var asJSON bool
	c := &cobra.Command{
		Use: "watch [ID...]", Short: "Watch video jobs until they end",
		Long: `Watch video jobs until all of them have ended. Without ids, the command watches all
unfinished jobs, at most 64.`,
		Example: `  stagedoor videos watch
  stagedoor videos watch video_0198 video_0199 --json`,
		Args: func(c *cobra.Command, args []string) error {
			if len(args) > mostWatched {
				return fmt.Errorf("%s takes at most %d ids, got %d", c.CommandPath(), mostWatched, len(args))
			}
			return nil
		},
		RunE: func(c *cobra.Command, ids []string) error {
			t := a.newPrinter(asJSON)
			return a.withClient(c.Context(), r, t, func(ctx context.Context, client *videoclient.Client) error {
				ids, err := idsToWatch(ctx, client, ids)
				if err != nil {
					return err
				}
				if len(ids) == 0 {
					t.printNote("no job is under way")
					return nil
				}
				return t.runWithScreen(ctx, func(ctx context.Context) error { return watchAll(ctx, client, ids, t) })
			})
		},
	}
	c.Flags().BoolVar(&asJSON, "json", false, "print JSON: one line for every state of a job")
	return c
}

// idsToWatch returns the given ids without duplicates, or those of all unfinished jobs if none are given.
func idsToWatch(ctx context.Context, client *videoclient.Client, ids []string) ([]string, error) {
	if len(ids) > 0 {
		return distinct(ids), nil
	}
	jobs, err := client.Unfinished(ctx)
	for i := range jobs[:min(len(jobs), mostWatched)] {
		ids = append(ids, jobs[i].ID)
	}
	return ids, err
}

// distinct returns ids in their order without duplicates. A job that was named twice would be watched over two
// connections and printed twice.
func distinct(ids []string) []string {
	seen := map[string]bool{}
	var all []string
	for _, id := range ids {
		if !seen[id] {
			seen[id] = true
			all = append(all, id)
		}
	}
	return all
}

// watchAll watches jobs concurrently. It continues with the others if one cannot be watched.
func watchAll(ctx context.Context, client *videoclient.Client, ids []string, t *printer) error {
	p := pool.New().WithErrors()
	for _, id := range ids {
		p.Go(func() error { return watchOne(ctx, client, id, t) })
	}
	err := p.Wait()
	// Every watcher ends with its own error when the user stops. One error says it better than one for each job.
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	return err
}

// watchOne watches a job until it ends. It returns an error if the job has failed.
func watchOne(ctx context.Context, client *videoclient.Client, id string, t *printer) error {
	var last videoclient.Job
	err := client.Watch(ctx, id, func(j *videoclient.Job) {
		last = *j
		t.printJob(j)
	})
	var refused *videoclient.Error
	switch {
	case errors.As(err, &refused):
		return fmt.Errorf("%s: %w", id, err)
	case err != nil:
		return err
	case last.Status == videoclient.Failed && last.Fault != nil:
		return fmt.Errorf("%s failed: %s (%s)", id, cli.Printable(last.Fault.Message), cli.Printable(last.Fault.Code))
	case last.Status == videoclient.Failed:
		return fmt.Errorf("%s failed", id)
	}
	// A job that cost nothing, or whose receipt cannot be read, has no line about its cost.
	if cost, ok := client.Cost(ctx, id); ok {
		t.printCost(id, cost)
	}
	return nil
}
