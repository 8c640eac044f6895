package main

import (
	"crypto/sha256"
	"errors"
	"fmt"
	"io/fs"
	"strings"

	"github.com/spf13/cobra"

	"stagedoor/cmd/stagedoor/cli"
	"stagedoor/cmd/stagedoor/config"
	"stagedoor/providers/catalog"
)

// errSteep refuses a list in which a price moves too far to be right.
var errSteep = errors.New("a price changes more than tenfold, appears or goes (marked !), so nothing was written; " +
	"use --force if this is right")

// catalogCommand returns "stagedoor catalog", which replaces the list of models and prices on disk.
func (a *app) catalogCommand() *cobra.Command {
	c := &cobra.Command{
		Use: "catalog", Short: "Update the catalogue of models with their limits and prices", Args: cli.NoArgs,
		RunE: cli.Help,
	}
	var o overrides
	var force bool
	update := &cobra.Command{
		Use: "update FILE", Short: "Replace the catalogue on disk by a file", Args: cli.ExactArgs(1, "a file"),
		Long: `Replace the catalogue on disk by a file, which is in the form of
providers/catalog/list.json. Models that it does not have keep the limits and prices
of the built-in catalogue. The checksum and the differences are printed. Nothing is
fetched from the network. A running gateway reads the catalogue again on SIGHUP.

A file in which a price changes more than tenfold is refused without --force.`,
		Example: `  stagedoor catalog update list.json --config stagedoor.yaml`,
		RunE: func(_ *cobra.Command, args []string) error {
			o.newCatalog = true
			cfg, err := o.loadWithData(a.Env)
			if err != nil {
				return err
			}
			return a.updateCatalog(args[0], cfg.CatalogFile(), force)
		},
	}
	update.Flags().StringVarP(&o.file, "config", "c", "", "configuration `file` that names the catalogue")
	update.Flags().StringVar(&o.data, "data", "", "`directory` of the durable state, where the catalogue is")
	update.Flags().BoolVar(&force, "force", false, "accept prices that change more than tenfold")
	cli.FromEnvironment(update.Flags(), "config", "data")
	cli.CompleteFiles(update, "config", "yaml", "yml")
	c.AddCommand(update)
	return c
}

// updateCatalog replaces the list of models in target by that in file, and prints what changes. It returns errSteep and
// writes nothing if a price moves too far, unless force is set.
func (a *app) updateCatalog(file, target string, force bool) error {
	if target == "" {
		return fmt.Errorf("%w: data kept in memory has no catalogue on disk: set catalog.file, "+
			"or name a directory with --data", cli.ErrUsage)
	}
	text, after, err := config.ReadCatalog(file)
	if err != nil {
		return fmt.Errorf("the catalogue is unchanged: %w", err)
	}
	_, before, err := config.ReadCatalog(target)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		before = catalog.Builtin()
	case err != nil: // a broken file is replaced
		fmt.Fprintln(a.ErrOut, "warning: the catalogue on disk cannot be read and is replaced:", err)
		before = catalog.Builtin()
	}
	fmt.Fprintf(a.Out, "%s: version %s, SHA-256 %x\n", file, after.Version, sha256.Sum256(text))
	steep := false
	changes := catalog.Changes(before, after)
	for _, c := range changes {
		mark := " "
		if c.Steep {
			mark, steep = "!", true
		}
		line := fmt.Sprintf("%s %-7s %s", mark, c.What, c.Name)
		if len(c.Details) > 0 {
			line += ": " + strings.Join(c.Details, "; ")
		}
		fmt.Fprintln(a.Out, line)
	}
	// A price that is off by a factor of ten is a typing mistake more often than a decision of a vendor, and it
	// charges every request until it is found.
	if steep && !force {
		return errSteep
	}
	if err := replaceFile(target, text, 0o644, nil); err != nil {
		return fmt.Errorf("the catalogue is unchanged: %w", err)
	}
	_, err = fmt.Fprintf(a.Out, "%s written with %s in the catalogue; a running gateway reads it on SIGHUP\n", target,
		cli.Count(len(changes), "change"))
	return err
}
