// Package statecli implements "stagedoor state", which verifies, backs up, restores, exports, imports and compacts the
// durable state. Every command except the backup needs a data directory on which no gateway runs.
//
// Commands that read take a file, a database or a data directory (app.with) and change nothing. Commands
// that write make something new and never change what is there: a store appears under its name after it was verified,
// so that a power cut leaves either nothing or all of it.
//
// # Usage
//
//	stagedoor state verify [BACKUP]      look at every page, record, reference and sum
//	stagedoor state backup FILE          copy the store, also while a gateway runs
//	stagedoor state restore BACKUP       make a store of a backup
//	stagedoor state export, import       the records as text, between stores and versions
//	stagedoor state compact              give the room of removed records back to the disk
//	stagedoor nodes [leave, expel NAME]  the gateways of one database
//
// # Errors
//
// A command that finds damage ends with an error and prints each problem on a line of its own, so that scripts can
// count them. It repairs nothing: which record of two is right is the decision of an operator, who has the backups.
package statecli

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"text/tabwriter"

	"github.com/spf13/cobra"

	"stagedoor/cmd/stagedoor/cli"
	"stagedoor/cmd/stagedoor/datadir"
	"stagedoor/state"
	"stagedoor/state/journal"
	"stagedoor/state/schema"
)

// app holds what all commands of this package share.
type app struct{ *cli.App }

// Command returns "stagedoor state" with its subcommands.
func Command(shared *cli.App) *cobra.Command {
	a := app{shared}
	c := &cobra.Command{
		Use: "state", Short: "Verify, back up, move and compact the durable state", Args: cli.NoArgs,
		Long: `Verify, back up, move and compact the durable state. Only backup works while a gateway
runs on the data directory. To verify or export the state of a running gateway, make a
backup and use that.`,
		RunE: cli.Help,
	}
	o := datadir.AddFlags(c, a.App)
	c.AddCommand(a.verifyCommand(o), a.backupCommand(o), a.restoreCommand(o), a.exportCommand(o), a.importCommand(o),
		a.compactCommand(o))
	return c
}

// storeFile returns the file that was given, or the store of the data directory if none was.
func (a app) storeFile(o *datadir.Flags, given []string) (string, error) {
	if len(given) > 0 {
		return given[0], nil
	}
	data, err := o.Path()
	if err != nil {
		return "", err
	}
	return filepath.Join(data, journal.FileName), nil
}

// with opens the file that was given, or the store of the cluster or of the data directory if none was, calls use with
// its name and closes it.
func (a app) with(ctx context.Context, o *datadir.Flags, given []string,
	use func(name string, s journal.Store) error) error {
	if len(given) == 0 {
		store, err := o.OpenShared()
		if err != nil {
			return err
		}
		if store != nil {
			return errors.Join(use("the database", store), store.Close())
		}
	}
	path, err := a.storeFile(o, given)
	if err != nil {
		return err
	}
	return withStore(ctx, path, func(s journal.Store) error { return use(path, s) })
}

// withStore opens the file of a store or of a backup for reading, calls use with it and closes it.
func withStore(ctx context.Context, path string, use func(journal.Store) error) error {
	if journal.IsChangesBackup(path) {
		// An incremental backup consists of several files, so it is restored into a temporary directory beside them.
		dir, err := os.MkdirTemp(filepath.Dir(path), "reading-")
		if err != nil {
			return err
		}
		defer os.RemoveAll(dir)
		if err := journal.Restore(ctx, path, dir, nil); err != nil {
			return datadir.Unavailable(err)
		}
		path = filepath.Join(dir, journal.FileName)
	}
	b, err := journal.ReadBolt(path, journal.Options{Timeout: datadir.LockWait})
	switch {
	case errors.Is(err, journal.ErrLocked):
		return datadir.Unavailable(fmt.Errorf(
			"a gateway is running on %s: stop it, or make a backup (stagedoor state backup FILE) and use that",
			filepath.Dir(path),
		))
	case err != nil:
		return datadir.Unavailable(err)
	}
	return errors.Join(use(b), b.Close())
}

// atMostOne rejects more than one argument. what describes the argument in the error.
func atMostOne(what string) cobra.PositionalArgs {
	return func(c *cobra.Command, args []string) error {
		if len(args) > 1 {
			return fmt.Errorf("%s takes at most one argument, %s", c.CommandPath(), what)
		}
		return nil
	}
}

// verifyCommand returns the command that checks a store or a backup and prints what it found.
func (a app) verifyCommand(o *datadir.Flags) *cobra.Command {
	return &cobra.Command{
		Use: "verify [BACKUP]", Short: "Check every page, record, reference and sum",
		Args: atMostOne("the file of a backup"),
		Long: `Check a store that no gateway has open, or a backup: every page, the checksum and
form of every record, the references between records, and whether the ledger adds up
to the balances. Nothing is changed. The exit code is 0 if the store is sound, and 75
if it is not.`,
		RunE: func(c *cobra.Command, args []string) error {
			return a.with(c.Context(), o, args, func(path string, s journal.Store) error {
				v, err := schema.Verify(c.Context(), s)
				if err != nil {
					return datadir.Unavailable(err)
				}
				return a.printReport(path, s.Stats(), &v)
			})
		},
	}
}

// printReport prints the result of a verification. It returns an error if there are problems.
func (a app) printReport(path string, s journal.Stats, v *schema.Verification) error {
	w := tabwriter.NewWriter(a.Out, 0, 0, 2, ' ', tabwriter.AlignRight)
	fmt.Fprintf(a.Out, "%s: %s, %s of it free, commit %d\n", path, formatSize(s.Size), formatSize(s.Free), s.LSN)
	fmt.Fprintln(w, "table\trecords\tbytes\t")
	total := state.TableSize{}
	for _, t := range v.Tables {
		if t.Records > 0 {
			fmt.Fprintf(w, "%s\t%d\t%d\t\n", t.Table, t.Records, t.Bytes)
		}
		total.Records += t.Records
		total.Bytes += t.Bytes
	}
	fmt.Fprintf(w, "all\t%d\t%d\t\n", total.Records, total.Bytes)
	if err := w.Flush(); err != nil {
		return err
	}
	if s.CutBack {
		fmt.Fprintln(a.Out,
			"the last commit is not whole and will be cut back: a power cut does that, and so does a damaged disk")
	}
	if v.Sound() {
		_, err := fmt.Fprintf(a.Out,
			"ledger: %d entries and %d folded ones add up to %s with %s, spent %s, held %s\nnothing is wrong\n",
			v.Ledger.Entries, v.Ledger.Folded, cli.Count(v.Ledger.Accounts, "account"), formatDollars(v.Ledger.Credits),
			formatDollars(v.Ledger.Spent), formatDollars(v.Ledger.Held))
		return err
	}
	for _, p := range v.Problems {
		fmt.Fprintln(a.Out, "wrong:", p)
	}
	return datadir.Unavailable(
		fmt.Errorf("%s in %s: restore a backup", cli.Count(len(v.Problems)+v.More, "problem"), path),
	)
}

// formatDollars returns micro-dollars with all six decimals, because sums of a ledger are compared digit by digit.
func formatDollars(micros int64) string {
	return fmt.Sprintf("$%d.%06d", micros/1_000_000, micros%1_000_000)
}

// formatSize returns a number of bytes in KiB, or in MiB from 10 MiB on.
func formatSize(bytes int64) string {
	if bytes < 10<<20 {
		return fmt.Sprintf("%d KiB", bytes>>10)
	}
	return fmt.Sprintf("%d MiB", bytes>>20)
}

// backupCommand returns the command that copies the store to a file.
func (a app) backupCommand(o *datadir.Flags) *cobra.Command {
	return &cobra.Command{
		Use: "backup FILE", Short: "Write a backup, also of a running gateway",
		Args: cli.ExactArgs(1, "the file to make"),
		Long: `Write a consistent copy of the store to a new file, which appears when it is complete
and its pages have been checked. A gateway that runs on the data directory keeps serving.
The setting backups makes copies at an interval.`,
		RunE: func(c *cobra.Command, args []string) error {
			// A running gateway writes the file, and its working directory is not that of the command.
			path, err := filepath.Abs(args[0])
			if err != nil {
				return err
			}
			bytes, err := a.backup(c.Context(), o, path)
			if err != nil {
				return err
			}
			_, err = fmt.Fprintf(a.Out, "backed up to %s (%s)\n", path, formatSize(bytes))
			return err
		},
	}
}

// backup copies the store to path and returns the size of the copy. A gateway that runs on the directory makes the
// copy, since it has the store locked. Otherwise this process reads the store.
func (a app) backup(ctx context.Context, o *datadir.Flags, path string) (bytes int64, err error) {
	_, client, err := o.Dial()
	if err != nil {
		return 0, err
	}
	if client != nil {
		b, err := client.Backup(ctx, path)
		return b.Bytes, err
	}
	err = a.with(ctx, o, nil, func(_ string, s journal.Store) error {
		bytes, err = journal.BackupFile(ctx, s, path)
		return err
	})
	return bytes, err
}

// restoreCommand returns the command that makes a store of a backup. The backup is verified before it becomes the
// store, so a damaged one cannot take the place of the state.
func (a app) restoreCommand(o *datadir.Flags) *cobra.Command {
	return &cobra.Command{
		Use: "restore BACKUP", Short: "Restore a backup into an empty data directory",
		Args: cli.ExactArgs(1, "the file of a backup"),
		Long: `Restore a backup into a data directory that has no store. The backup is verified first
(see verify). An incremental backup, as the setting backups makes them, needs the earlier
files of its series in the same directory.`,
		RunE: func(c *cobra.Command, args []string) error {
			data, err := o.FilesPath()
			if err != nil {
				return err
			}
			if err := journal.Restore(c.Context(), args[0], data, storeCheck(c.Context())); err != nil {
				return datadir.Unavailable(err)
			}
			_, err = fmt.Fprintf(a.Out, "restored %s into %s\n", args[0], data)
			return err
		},
	}
}

// storeCheck returns a function that returns an error for a store with which Verify finds something wrong.
func storeCheck(ctx context.Context) func(journal.Store) error {
	return func(s journal.Store) error {
		v, err := schema.Verify(ctx, s)
		if err != nil || v.Sound() {
			return err
		}
		return fmt.Errorf("it has %s: %s", cli.Count(len(v.Problems)+v.More, "problem"), v.Problems[0])
	}
}

// exportCommand returns the command that writes a store as text, to a file or to standard output.
func (a app) exportCommand(o *datadir.Flags) *cobra.Command {
	var from string
	c := &cobra.Command{
		Use: "export [FILE]", Short: "Write every record as a line of JSON", Args: atMostOne("the file to make"),
		Long: `Write every record of a store that no gateway has open, or of a backup (--from),
as text: a header with schema, counts and checksum, then one line of JSON per record.
Equal records give equal bytes. Keys, tokens and passwords are hashes, as in the store.
The sealing secret of the installation is included, so keep the file safe.`,
		Example: `  stagedoor state export state.ndjson
  stagedoor state export --from backup.db | zstd > state.ndjson.zst`,
		RunE: func(c *cobra.Command, args []string) error {
			given := []string{}
			if from != "" {
				given = append(given, from)
			}
			return a.with(c.Context(), o, given, func(_ string, s journal.Store) error {
				if len(args) == 0 {
					// Standard output has the records only. A line about the result would be one record too many for
					// the reader of the pipe.
					_, err := journal.Export(c.Context(), s, a.Out)
					return err
				}
				h, err := exportFile(c.Context(), s, args[0])
				if err != nil {
					return err
				}
				_, err = fmt.Fprintf(a.Out, "exported %d records to %s (sha256 %s)\n", h.Records, args[0], h.SHA256)
				return err
			})
		},
	}
	c.Flags().StringVar(&from, "from", "", "`file` of a backup to export")
	return c
}

// exportFile writes an export to a new file. It removes the file if the export fails.
func exportFile(ctx context.Context, s journal.Store, path string) (journal.Header, error) {
	// An export has every hash and the sealing secret, so only its owner may read it.
	f, err := os.OpenFile(path, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
	if err != nil {
		return journal.Header{}, err
	}
	h, err := journal.Export(ctx, s, f)
	if err == nil {
		err = f.Sync()
	}
	if err = errors.Join(err, f.Close()); err != nil {
		return journal.Header{}, errors.Join(err, os.Remove(path))
	}
	return h, nil
}

// importCommand returns the command that makes a store of an export, in an empty data directory or an empty database.
func (a app) importCommand(o *datadir.Flags) *cobra.Command {
	return &cobra.Command{
		Use: "import FILE", Short: "Import an export into an empty data directory",
		Args: cli.ExactArgs(1, "the file of an export, or - for standard input"),
		Long: `Import an export into a data directory that has no store. The import is refused if the
counts or the checksum of the export's header are wrong, or if the new store is not sound
(see verify).`,
		RunE: func(c *cobra.Command, args []string) error {
			data, err := o.Path()
			if err != nil {
				return err
			}
			in := c.InOrStdin()
			if args[0] != "-" {
				f, err := os.Open(args[0])
				if err != nil {
					return err
				}
				defer f.Close()
				in = f
			}
			shared, err := o.OpenShared()
			if err != nil {
				return err
			}
			var h journal.Header
			if shared != nil {
				data = "the database"
				h, err = importShared(c.Context(), shared, in)
				err = errors.Join(err, shared.Close())
			} else {
				h, err = importInto(c.Context(), data, in)
			}
			if err != nil {
				return err
			}
			_, err = fmt.Fprintf(a.Out, "imported %d records into %s\n", h.Records, data)
			return err
		},
	}
}

// importInto makes the store of a data directory of an export. The store appears only after it was verified.
func importInto(ctx context.Context, data string, in io.Reader) (journal.Header, error) {
	return journal.Import(ctx, data, in, storeCheck(ctx))
}

// importShared imports into the database of a cluster, which must not have any records. It does what importInto does
// for a data directory.
func importShared(ctx context.Context, store journal.Store, in io.Reader) (h journal.Header, err error) {
	// A database has no file that appears when it is whole. It is therefore refused if it has any record, and the
	// error after a failed import says how to empty it.
	for _, t := range journal.Tables() {
		err := store.Range(ctx, t, nil, nil, 1, func(journal.Record) error {
			return fmt.Errorf("%w: the database has records already", journal.ErrImport)
		})
		if err != nil {
			return h, err
		}
	}
	if h, err = journal.Fill(ctx, store, in); err == nil {
		err = storeCheck(ctx)(store)
	}
	if err != nil {
		err = fmt.Errorf("%w (before another try remove what was imported: DROP SCHEMA stagedoor CASCADE)", err)
	}
	return h, err
}

// compactCommand returns the command that writes the store anew to give free pages back to the disk.
func (a app) compactCommand(o *datadir.Flags) *cobra.Command {
	return &cobra.Command{
		Use: "compact", Short: "Rewrite the store without the space of removed records", Args: cli.NoArgs,
		Long: `Rewrite the store without the space that removed records left in it. The gateway must
not be running. The new file replaces the old one after it was written and checked.`,
		RunE: func(c *cobra.Command, _ []string) error {
			data, err := o.FilesPath()
			if err != nil {
				return err
			}
			sizes, err := journal.Compact(c.Context(), data, journal.Options{Timeout: datadir.LockWait})
			if err != nil {
				return datadir.Unavailable(err)
			}
			_, err = fmt.Fprintf(a.Out, "compacted %s from %s to %s\n", data, formatSize(sizes.Before),
				formatSize(sizes.After))
			return err
		},
	}
}
