package main

import (
	_ "embed"
	"fmt"
	"strings"
	"text/tabwriter"

	"github.com/spf13/cobra"

	"stagedoor/cmd/stagedoor/config"
)

//go:embed example.yaml
var exampleConfig string

func (a *app) configCommand() *cobra.Command {
	c := &cobra.Command{
		Use: "config", Short: "Check a configuration file, or print an example", Args: cobra.NoArgs,
		RunE: func(c *cobra.Command, _ []string) error { return c.Help() },
	}
	c.AddCommand(&cobra.Command{
		Use: "check FILE", Short: "Report every mistake in a configuration file",
		Args: func(_ *cobra.Command, args []string) error {
			if len(args) != 1 {
				return fmt.Errorf("%w: give one file", errUsage)
			}
			return nil
		},
		RunE: func(_ *cobra.Command, args []string) error {
			cfg, err := config.Load(args[0], a.env)
			if err != nil {
				return err
			}
			_, err = fmt.Fprintf(a.out, "%s is fine: %d providers, %d models, %d keys\n", args[0], len(cfg.Providers), len(cfg.Models), len(cfg.Keys))
			return err
		},
	}, &cobra.Command{
		Use: "example", Short: "Print a commented configuration file", Args: cobra.NoArgs,
		RunE: func(*cobra.Command, []string) error {
			_, err := fmt.Fprint(a.out, exampleConfig)
			return err
		},
	})
	return c
}

func (a *app) modelsCommand() *cobra.Command {
	var o overrides
	c := &cobra.Command{
		Use: "models", Short: "List the models of a configuration and where they are served", Args: cobra.NoArgs,
		RunE: func(*cobra.Command, []string) error {
			cfg, err := o.load(a.env)
			if err != nil {
				return err
			}
			w := tabwriter.NewWriter(a.out, 0, 0, 2, ' ', 0)
			fmt.Fprintln(w, "MODEL\tTARGETS\tFALLBACK")
			for _, m := range cfg.Models {
				fmt.Fprintf(w, "%s\t%s\t%s\n", m.Name, targets(m.Value.Targets), targets(m.Value.Fallback))
			}
			return w.Flush()
		},
	}
	c.Flags().StringVarP(&o.file, "config", "c", "", "configuration `file`")
	return c
}

func targets(list []config.Target) string {
	var out []string
	for _, t := range list {
		s := t.Provider + "/" + t.Model
		if t.Weight != nil {
			s += fmt.Sprintf(" x%d", *t.Weight)
		}
		out = append(out, s)
	}
	return strings.Join(out, ", ")
}
