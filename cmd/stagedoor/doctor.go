package main

import (
	"errors"
	"os"
	"path/filepath"

	"github.com/spf13/cobra"

	"stagedoor/cmd/stagedoor/cli"
	"stagedoor/cmd/stagedoor/doctor"
	"stagedoor/http/admin"
)

// errUnfit ends doctor with the exit code of a failure; its report has said why.
var errUnfit = errors.New("the gateway cannot run as it is configured, see above")

// doctorCommand returns "stagedoor doctor". It reads the configuration as serve does, with the changes of pages, so
// that it examines what would start.
func (a *app) doctorCommand() *cobra.Command {
	var o overrides
	var offline, asJSON bool
	c := &cobra.Command{
		Use: "doctor", Short: "Check whether the gateway can run here and reach its providers", Args: cli.NoArgs,
		Long: `Check whether the gateway can run here and reach its providers: the configuration,
the data directory, the limits of the system, the addresses, the certificate, the
clock, and each provider with each of its keys. The check of a provider
reads the list of its models, which costs nothing. Nothing is changed, and no secret is
printed.

The exit code is 0 if every check passed, 1 if one failed, and 78 if the configuration
has mistakes.`,
		Example: `  stagedoor doctor --config stagedoor.yaml
  stagedoor doctor --config stagedoor.yaml --offline --json`,
		RunE: func(c *cobra.Command, _ []string) error {
			cfg, err := o.loadWithData(a.Env)
			if err != nil {
				return err
			}
			memory := allowedMemory(os.DirFS("/"), cfg.Limits.MemoryMiB)
			cfg.Limits = withMemory(cfg.Limits, memory)
			report := doctor.Examine(c.Context(),
				doctor.Options{Config: cfg, Offline: offline, Running: runs(cfg.Data), Memory: memory})
			if asJSON {
				err = cli.PrintJSON(a.Out, report)
			} else {
				err = report.Print(a.Out)
			}
			if err == nil && report.Status == doctor.Failed {
				err = errUnfit
			}
			return err
		},
	}
	c.Flags().StringVarP(&o.file, "config", "c", "", "configuration `file`; without one the embedded sandbox answers")
	c.Flags().StringSliceVar(&o.listen, "listen", nil, "`address` to listen on, host:port; may be repeated")
	c.Flags().StringVar(&o.data, "data", "", "`directory` of the durable state, or memory")
	c.Flags().BoolVar(&offline, "offline", false, "make no connection to other machines")
	c.Flags().BoolVar(&asJSON, "json", false, "print JSON")
	cli.FromEnvironment(c.Flags(), "config", "listen", "data")
	cli.CompleteFiles(c, "config", "yaml", "yml")
	return c
}

// runs reports whether a gateway runs on a data directory.
func runs(data string) bool {
	if data == "memory" {
		return false
	}
	_, err := admin.Dial(filepath.Join(data, admin.SocketName))
	return err == nil
}
