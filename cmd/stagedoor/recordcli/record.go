// Package recordcli implements the commands record and replay, with which a fault that a client saw becomes a file that
// shows it again.
//
// # Usage
//
//	stagedoor record --key ID --to FILE  keep the text requests of one key for a while
//	stagedoor replay FILE                run a recording through the translators of this version
//
// A file has what clients and providers sent, without credentials. Replaying needs no network and no configuration, so
// a user can send the file to the maintainers of a translator.
//
// # Errors
//
// The command replay prints each difference between what is made now and what was recorded, and ends with an error if
// there is one, so that a script can run it over many files.
package recordcli

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"os/signal"
	"syscall"
	"time"

	"github.com/spf13/cobra"

	"stagedoor/actors/kit"
	"stagedoor/actors/replay"
	"stagedoor/cmd/stagedoor/admincli"
	"stagedoor/cmd/stagedoor/cli"
	"stagedoor/cmd/stagedoor/datadir"
	"stagedoor/http/admin"
	"stagedoor/providers/shapes/registry"
)

// Commands returns the commands record and replay.
func Commands(a *cli.App) []*cobra.Command {
	return []*cobra.Command{recordCommand(a), replayCommand(a)}
}

// recordCommand returns the command that records one key. It needs a gateway that runs, because the exchanges are
// seen only there. The limits of time and size end a recording whose operator forgets it.
func recordCommand(a *cli.App) *cobra.Command {
	var key, file string
	var d time.Duration
	var megabytes int64
	c := &cobra.Command{
		Use: "record --key ID --to FILE", Short: "Record the text requests of one key for a while",
		Args: cli.NoArgs,
		Long: `Record the text requests of one key: the bytes between gateway, clients and upstreams,
with their times. The file is for stagedoor replay. Only its owner can read it, because
it contains prompts and answers. Keys, cookies and other credentials in headers are
replaced by [redacted], and so are members of requests that are named as credentials.

Recording never slows the gateway down: exchanges that do not fit are dropped, and the
last line of the file counts them. An interrupt (^C) ends the recording.`,
		Example: `  stagedoor record --key laptop --for 10m --to fault.jsonl`,
	}
	o := datadir.AddFlags(c, a)
	c.Flags().StringVar(&key, "key", "",
		"the `key`, by its id, a prefix of the id, or its name if it has no user;\n"+
			"cfg_NAME: of the configuration file")
	c.Flags().StringVar(&file, "to", "", "`file` to write, which must not exist")
	c.Flags().DurationVar(&d, "for", 10*time.Minute, "duration, at most "+admin.MaxRecordingTime.String())
	c.Flags().Int64Var(&megabytes, "megabytes", 64, "largest size of the file in MiB, 1 to 1024")
	c.RunE = func(c *cobra.Command, _ []string) error {
		if key == "" || file == "" {
			return fmt.Errorf("%w: record needs --key KEY and --to FILE", cli.ErrUsage)
		}
		_, running, err := o.Dial()
		if err == nil && running == nil {
			err = errors.New("no gateway runs on this data directory")
		}
		if err != nil {
			return err
		}
		if key, err = admincli.FindKey(c.Context(), running.API(), key); err != nil {
			return err
		}
		// The file is made before the recording begins, so that a path which cannot be written fails at once. It has
		// prompts and answers, so only its owner may read it.
		f, err := os.OpenFile(file, os.O_CREATE|os.O_EXCL|os.O_WRONLY, 0o600)
		if err != nil {
			return err
		}
		// An interrupt is the usual end of a recording. The gateway then stops and writes the last line, which counts
		// what was dropped.
		ctx, stop := signal.NotifyContext(c.Context(), syscall.SIGTERM, syscall.SIGINT)
		defer stop()
		err = errors.Join(running.Record(ctx, key, d, megabytes<<20, f), f.Close())
		if info, missing := os.Stat(file); missing == nil && info.Size() == 0 {
			err = errors.Join(err, os.Remove(file)) // nothing was recorded
		}
		if err != nil {
			return err
		}
		_, err = fmt.Fprintln(a.Out, "recorded to", file)
		return err
	}
	return c
}

// errDifferent ends the program with exit code 1.
var errDifferent = errors.New("the recording and this version differ")

// replayCommand returns the command that runs a recording through the translation of this version.
func replayCommand(a *cli.App) *cobra.Command {
	return &cobra.Command{
		Use: "replay FILE", Short: "Run a recording through this version's translation and print what differs",
		Args: cobra.ExactArgs(1),
		Long: `Run the requests of a recording through the translation of this version, without a
network. The recording supplies the answers of the upstreams. Every difference between
the recording and this version's requests and replies is printed. The exit code is 1 if
there are differences.`,
		Example: `  stagedoor replay fault.jsonl`,
		RunE: func(c *cobra.Command, args []string) error {
			f, err := os.Open(args[0])
			if err != nil {
				return err
			}
			defer f.Close()
			return run(c.Context(), a, f)
		},
	}
}

// run replays the recording in f and prints the differences and a summary. The error is errDifferent if anything
// differs, so that a script sees it in the exit code. A recording that was cut off or that lacks requests is reported
// and is no error by itself, because what it has was compared.
func run(ctx context.Context, a *cli.App, f *os.File) error {
	system := kit.NewSystem(kit.Options{Logger: slog.New(slog.DiscardHandler)})
	r, err := replay.New(system, registry.All)
	if err != nil {
		return errors.Join(err, system.Stop(ctx))
	}
	result, err := r.Run(ctx, f, a.Out)
	if err = errors.Join(err, system.Stop(ctx)); err != nil {
		return err
	}
	_, err = fmt.Fprintf(a.Out, "%d the same, %d different, %d without an upstream\n", result.Same, result.Different,
		result.Skipped)
	switch e := result.Ending; {
	case err != nil:
		return err
	case e == nil:
		_, err = fmt.Fprintln(a.Out, "the recording was cut off: its last line is missing")
	case e.Dropped+e.Unfinished > 0:
		_, err = fmt.Fprintf(a.Out, "the recording lacks %s that did not fit and %d that had not ended\n",
			cli.Count(int(e.Dropped), "request"), e.Unfinished)
	}
	if err == nil && result.Different > 0 {
		err = errDifferent
	}
	return err
}
