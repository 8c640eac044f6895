// Package videocli implements "stagedoor videos", which creates, lists, watches and downloads video jobs. It shows
// what package videoclient reports, as bars on a terminal, as lines of text or as lines of JSON.
//
// # Files
//
//	videos.go create.go download.go watch.go   the commands
//	printer.go                                 lines and JSON; it is the only one that writes to the output
//	screen.go                                  bars, as a program of bubbletea
//
// The output is decided once for each command: bars if it is a terminal, lines if not. Both get the same calls, so a
// command does not know which of them it has.
//
// # Errors
//
// An error of the gateway ends the command with its message. A lost connection does not: package videoclient
// goes on with the job, and the output says what it waits for. A command that is interrupted leaves the job
// running at the provider, and watch or download continues it by its id.
package videocli

import (
	"context"
	"errors"
	"fmt"
	"os/signal"
	"syscall"
	"time"

	"github.com/spf13/cobra"

	"stagedoor/cmd/stagedoor/cli"
	"stagedoor/cmd/stagedoor/videoclient"
)

// gateway is the address of the gateway that the commands call, and their key.
type gateway struct{ url, key string }

// app holds what all commands of this package share.
type app struct{ *cli.App }

// Command returns "stagedoor videos" with its subcommands.
func Command(shared *cli.App) *cobra.Command {
	a := app{shared}
	var r gateway
	c := &cobra.Command{
		Use: "videos", Short: "Create, list, watch, download and remix video jobs", Args: cli.NoArgs,
		Long: `Create, list, watch, download and remix video jobs, over the public API of any
gateway. Set the key as STAGEDOOR_KEY, because other users of the machine can read flags.

On a terminal, jobs have progress bars. Elsewhere every change is a line, and with --json
a line of JSON. A lost connection is opened again. To stop watching, press q or ^C; the
jobs continue.

The exit code is also 1 if a watched job failed, or if you stopped watching before it
ended.`,
		Example: `  export STAGEDOOR_KEY=sd-...
  stagedoor videos create 'a paper boat in the rain' --download boat.mp4
  stagedoor videos list
  stagedoor videos watch
  stagedoor videos remix video_0198 'the same at night' --watch`,
		RunE: cli.Help,
	}
	c.PersistentFlags().StringVar(&r.url, "url", "http://127.0.0.1:8080", "`address` of the gateway")
	c.PersistentFlags().StringVar(&r.key, "key", "", "gateway `key`")
	cli.FromEnvironment(c.PersistentFlags(), "url", "key")
	c.AddCommand(a.createCommand(&r), a.listCommand(&r), a.watchCommand(&r), a.downloadCommand(&r), a.remixCommand(&r))
	return c
}

// withClient calls use with a client of the gateway. SIGINT and SIGTERM cancel its context.
func (a app) withClient(ctx context.Context, r *gateway, t *printer,
	use func(context.Context, *videoclient.Client) error) error {
	if r.key == "" {
		return fmt.Errorf("%w: no key: set STAGEDOOR_KEY, or give --key", cli.ErrUsage)
	}
	client, err := videoclient.New(r.url, r.key)
	if err != nil {
		return fmt.Errorf("%w: %w", cli.ErrUsage, err)
	}
	// A client that waits for a lost connection looks as if it hung. The note says what it waits for.
	client.Waits = func(cause error, wait time.Duration) {
		t.printNote(fmt.Sprintf("%v; trying again in %s", cause, wait.Round(100*time.Millisecond)))
	}
	ctx, stop := signal.NotifyContext(ctx, syscall.SIGINT, syscall.SIGTERM)
	defer stop()
	err = use(ctx, client)
	if errors.Is(err, context.Canceled) {
		return errStopped
	}
	return err
}

var errStopped = errors.New("stopped; jobs that were begun go on")

// listCommand returns the command that lists jobs, one page at a time.
func (a app) listCommand(r *gateway) *cobra.Command {
	var which videoclient.Which
	var asJSON bool
	c := &cobra.Command{
		Use: "list", Short: "List video jobs", Args: cli.NoArgs,
		Example: `  stagedoor videos list
  stagedoor videos list --limit 100 --order asc --json`,
		RunE: func(c *cobra.Command, _ []string) error {
			if which.Limit < 1 || which.Limit > 100 {
				return fmt.Errorf("%w: --limit %d: use 1 to 100", cli.ErrUsage, which.Limit)
			}
			return a.withClient(
				c.Context(),
				r,
				a.newPrinter(asJSON),
				func(ctx context.Context, client *videoclient.Client) error {
					page, err := client.List(ctx, which)
					if err != nil {
						return err
					}
					if asJSON {
						return cli.PrintJSON(a.Out, page)
					}
					var next *string
					if page.HasMore {
						next = page.LastID
					}
					return cli.Table(
						a.Out,
						"ID STATUS PROGRESS MODEL SIZE SECONDS CREATED PROMPT",
						next,
						func(line func(...any)) {
							for i := range page.Data {
								j := &page.Data[i]
								line(j.ID, j.Status, fmt.Sprintf("%d%%", j.Progress), j.Model, j.Size, j.Seconds,
									time.Unix(j.CreatedAt, 0).UTC().Format(time.RFC3339), cli.Shorten(j.Text(), 60))
							}
						},
					)
				},
			)
		},
	}
	c.Flags().IntVar(&which.Limit, "limit", 20, "largest number of jobs, 1 to 100")
	c.Flags().StringVar(&which.After, "after", "", "continue after the job with this id")
	c.Flags().StringVar(&which.Order, "order", "desc", "desc (newest first) or asc")
	c.Flags().BoolVar(&asJSON, "json", false, "print JSON")
	cli.CompleteWords(c, "order", "asc", "desc")
	return c
}
