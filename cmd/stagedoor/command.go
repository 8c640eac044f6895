package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"runtime/debug"
	"strings"

	"github.com/spf13/cobra"

	"stagedoor/cmd/stagedoor/admincli"
	"stagedoor/cmd/stagedoor/cli"
	"stagedoor/cmd/stagedoor/config"
	"stagedoor/cmd/stagedoor/recordcli"
	"stagedoor/cmd/stagedoor/statecli"
	"stagedoor/cmd/stagedoor/topcli"
	"stagedoor/cmd/stagedoor/videocli"
	"stagedoor/state"
)

// version is set by the release build.
var version = ""

// Exit codes, as --help lists them. 64, 75 and 78 are EX_USAGE, EX_TEMPFAIL and
// EX_CONFIG of sysexits.h, which service managers know. 2 is never used: the Go
// runtime exits with it after a fatal error, which a restart does mend.
const (
	exitOK      = 0
	exitFailure = 1
	exitUsage   = 64
	exitStorage = 75
	exitConfig  = 78
)

// exitCode returns the exit code for the error of a command.
func exitCode(err error) int {
	var issues config.Issues
	switch {
	case err == nil:
		return exitOK
	case errors.Is(err, cli.ErrUsage):
		return exitUsage
	case errors.As(err, &issues):
		return exitConfig
	case errors.Is(err, state.ErrUnavailable):
		return exitStorage
	default:
		return exitFailure
	}
}

// complain prints the error with which the program ends. Each mistake of a file begins a line, where editors look for
// it.
func complain(w io.Writer, err error) {
	var issues config.Issues
	switch {
	case err == nil:
	case errors.As(err, &issues):
		fmt.Fprintf(w, "%v\nstagedoor: the configuration has %s\n", err, cli.Count(len(issues), "mistake"))
	default:
		fmt.Fprintln(w, "stagedoor:", err)
	}
}

// app makes the commands of the process itself.
type app struct{ cli.App }

// run runs the whole program with these arguments, environment and outputs, so that tests can run it.
func run(ctx context.Context, args []string, env func(string) (string, bool), out, errOut io.Writer) error {
	a := &app{cli.App{Env: env, Out: out, ErrOut: errOut}}
	root := a.root()
	root.SetArgs(append([]string{}, args...)) // nil would be those of the process
	return root.ExecuteContext(ctx)
}

// root returns the whole tree of commands.
func (a *app) root() *cobra.Command {
	root := &cobra.Command{
		Use:   "stagedoor",
		Short: "A model gateway: one key, every API shape, any upstream",
		Long: `Stagedoor serves chat completions, responses, messages, legacy completions and
generateContent with one gateway key, from upstreams of any of these shapes.

Settings can be given in the environment too: flags that show a name as
[$STAGEDOOR_DATA] in the help of their command. Flags come before the environment,
the environment before the configuration file.

Exit codes:
  0   done, or stopped as asked
  1   failed, or stopped by a second signal
  64  wrong usage
  75  the data directory cannot be used: another process has it, or it is broken
  78  the configuration is wrong`,
		Example: `  stagedoor serve
  stagedoor config example > stagedoor.yaml
  stagedoor serve --config stagedoor.yaml`,
		SilenceUsage:  true,
		SilenceErrors: true,
		PersistentPreRunE: func(c *cobra.Command, _ []string) error {
			return a.FillFlags(c.Flags())
		},
		Args:    cli.NoArgs,
		RunE:    cli.Help,
		Version: versionText(), // --version
	}
	root.SetVersionTemplate("stagedoor {{.Version}}\n")
	root.SetFlagErrorFunc(func(c *cobra.Command, err error) error {
		return fmt.Errorf("%w: %w (see %s --help)", cli.ErrUsage, err, c.CommandPath())
	})
	root.AddCommand(admincli.Commands(&a.App)...)
	root.AddCommand(statecli.Command(&a.App), statecli.NodesCommand(&a.App))
	root.AddCommand(topcli.Command(&a.App), videocli.Command(&a.App))
	root.AddCommand(recordcli.Commands(&a.App)...)
	root.AddCommand(a.serveCommand(), a.configCommand(), a.catalogCommand(), a.modelsCommand(), a.sandboxCommand(),
		a.doctorCommand(), a.healthcheckCommand(), a.initCommand(), a.versionCommand())
	root.SetOut(a.Out) // before completion is made, which remembers it
	root.SetErr(a.ErrOut)
	root.InitDefaultHelpCmd()
	root.InitDefaultCompletionCmd()
	for _, c := range root.Commands() {
		if c.Name() == "completion" { // else it takes any word for a wish to be helped
			c.Args, c.RunE = cli.NoArgs, cli.Help
		}
	}
	markUsage(root)
	return root
}

// markUsage makes wrong arguments of every command, the library's own too, a
// mistake in usage.
func markUsage(c *cobra.Command) {
	if check := c.Args; check != nil {
		c.Args = func(c *cobra.Command, args []string) error {
			if err := check(c, args); err != nil {
				return fmt.Errorf("%w: %w", cli.ErrUsage, err)
			}
			return nil
		}
	}
	for _, sub := range c.Commands() {
		markUsage(sub)
	}
}

// versionCommand returns "stagedoor version", which prints the same as the flag --version.
func (a *app) versionCommand() *cobra.Command {
	return &cobra.Command{
		Use: "version", Short: "Print the version", Args: cli.NoArgs,
		RunE: func(*cobra.Command, []string) error {
			_, err := fmt.Fprintln(a.Out, "stagedoor", versionText())
			return err
		},
	}
}

// versionText returns the version of the release, or what the build recorded about itself if there is none.
func versionText() string {
	if version != "" {
		return version
	}
	info, ok := debug.ReadBuildInfo()
	if !ok {
		return "unknown"
	}
	revision := ""
	for _, s := range info.Settings {
		if s.Key == "vcs.revision" {
			revision = " " + s.Value[:min(12, len(s.Value))]
		}
	}
	return strings.Trim(info.Main.Version, "()") + revision + " " + info.GoVersion
}
