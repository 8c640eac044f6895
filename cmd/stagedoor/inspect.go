package main

import (
	_ "embed"
	"fmt"
	"io"
	"strings"
	"text/tabwriter"

	"github.com/spf13/cobra"

	"stagedoor/cmd/stagedoor/cli"
	"stagedoor/cmd/stagedoor/config"
)

//go:embed example.yaml
var exampleConfig string

// configCommand returns "stagedoor config", which reads configuration files and changes nothing.
func (a *app) configCommand() *cobra.Command {
	c := &cobra.Command{
		Use: "config", Short: "Check a configuration file, or print an example or a reference", Args: cli.NoArgs,
		RunE: cli.Help,
	}
	c.AddCommand(&cobra.Command{
		Use: "check FILE", Short: "Report every mistake in a configuration file", Args: cli.ExactArgs(1, "a file"),
		Long: `Report every mistake in a configuration file, one per line, as file:line:column.
Warnings are about valid settings that are probably not intended; they do not change the
exit code. The environment variables and secret files that the file names are read too.`,
		RunE: func(_ *cobra.Command, args []string) error {
			cfg, err := config.Load(args[0], a.Env)
			if err != nil {
				return err
			}
			for _, w := range cfg.Warnings {
				fmt.Fprintln(a.ErrOut, "warning:", w)
			}
			_, err = fmt.Fprintf(a.Out, "%s is fine: %s\n", args[0], cfg.Summary())
			return err
		},
	}, &cobra.Command{
		Use: "example", Short: "Print a configuration file with every setting, explained", Args: cli.NoArgs,
		RunE: func(*cobra.Command, []string) error {
			_, err := io.WriteString(a.Out, exampleConfig)
			return err
		},
	}, &cobra.Command{
		Use: "reference", Short: "Print the description of every setting, as Markdown", Args: cli.NoArgs,
		RunE: func(*cobra.Command, []string) error { return config.Reference(a.Out) },
	})
	return c
}

// modelsCommand returns "stagedoor models". It lists the models of a file, not those of a gateway that runs.
func (a *app) modelsCommand() *cobra.Command {
	var o overrides
	var asJSON bool
	c := &cobra.Command{
		Use: "models", Short: "List the models of a configuration and where they are served", Args: cli.NoArgs,
		RunE: func(*cobra.Command, []string) error {
			cfg, err := o.load(a.Env)
			if err != nil {
				return err
			}
			list := modelsOf(cfg)
			if asJSON {
				return cli.PrintJSON(a.Out, list)
			}
			return printModels(a.Out, list)
		},
	}
	c.Flags().StringVarP(&o.file, "config", "c", "", "configuration `file`")
	cli.FromEnvironment(c.Flags(), "config")
	c.Flags().BoolVar(&asJSON, "json", false, "print JSON")
	cli.CompleteFiles(c, "config", "yaml", "yml")
	return c
}

// modelLine is a model as the list shows it.
type modelLine struct {
	Name     string       `json:"name"`
	Aliases  []string     `json:"aliases,omitempty"`
	Targets  []targetLine `json:"targets"`
	Fallback []targetLine `json:"fallback,omitempty"`
}

// targetLine is a target as the list shows it.
type targetLine struct {
	Provider string `json:"provider"`
	Model    string `json:"model"`
	Shape    string `json:"shape"` // what requests of other shapes are translated to
	Weight   int    `json:"weight,omitempty"`
}

// String returns the target as the table shows it. A weight of 1 is left out.
func (t targetLine) String() string {
	s := fmt.Sprintf("%s/%s (%s)", t.Provider, t.Model, t.Shape)
	if t.Weight > 1 {
		s += fmt.Sprintf(" x%d", t.Weight)
	}
	return s
}

// modelsOf returns the models of a configuration in the order of the file.
func modelsOf(c *config.Config) []modelLine {
	lines := make([]modelLine, 0, len(c.Models))
	for _, m := range c.Models {
		lines = append(lines, modelLine{Name: m.Name, Aliases: m.Value.Aliases,
			Targets: targetsOf(c, m.Value.Targets), Fallback: targetsOf(c, m.Value.Fallback)})
	}
	return lines
}

// targetsOf returns targets with the shapes of their providers.
func targetsOf(c *config.Config, targets []config.Target) []targetLine {
	var lines []targetLine
	for _, t := range targets {
		p, _ := c.Providers.Get(t.Provider)
		line := targetLine{Provider: t.Provider, Model: t.Model, Shape: p.Shape}
		if t.Weight != nil {
			line.Weight = *t.Weight
		}
		lines = append(lines, line)
	}
	return lines
}

// printModels prints the models as a table.
func printModels(out io.Writer, list []modelLine) error {
	w := tabwriter.NewWriter(out, 0, 0, 2, ' ', 0)
	fmt.Fprintln(w, "MODEL\tTARGETS\tFALLBACK")
	for _, m := range list {
		fmt.Fprintf(w, "%s\t%s\t%s\n", strings.Join(append([]string{m.Name}, m.Aliases...), ", "), joined(m.Targets),
			joined(m.Fallback))
	}
	return w.Flush()
}

// joined returns targets on one line, or "-" if there are none.
func joined(targets []targetLine) string {
	if len(targets) == 0 {
		return "-"
	}
	out := make([]string, len(targets))
	for i, t := range targets {
		out[i] = t.String()
	}
	return strings.Join(out, ", ")
}
