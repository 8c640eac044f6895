package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"runtime/debug"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"stagedoor/cmd/stagedoor/config"
	"stagedoor/state"
)

// version is set by the release build.
var version = ""

// Exit codes, as --help lists them. 75 and 78 are EX_TEMPFAIL and EX_CONFIG of
// sysexits.h, which service managers know.
const (
	exitOK      = 0
	exitFailure = 1
	exitUsage   = 2
	exitStorage = 75
	exitConfig  = 78
)

// errUsage marks a command line that cannot be understood.
var errUsage = errors.New("usage")

func exitCode(err error) int {
	var issues config.Issues
	switch {
	case err == nil:
		return exitOK
	case errors.Is(err, errUsage):
		return exitUsage
	case errors.As(err, &issues):
		return exitConfig
	case errors.Is(err, state.ErrUnavailable):
		return exitStorage
	default:
		return exitFailure
	}
}

// app is what every command needs of the world.
type app struct {
	env         func(string) (string, bool)
	out, errOut io.Writer
}

// run is the whole program, so that tests can run it.
func run(ctx context.Context, args []string, env func(string) (string, bool), out, errOut io.Writer) error {
	a := &app{env: env, out: out, errOut: errOut}
	root := a.root()
	root.SetArgs(args)
	root.SetOut(out)
	root.SetErr(errOut)
	return root.ExecuteContext(ctx)
}

func (a *app) root() *cobra.Command {
	root := &cobra.Command{
		Use:   "stagedoor",
		Short: "A model gateway: one key, every API shape, any upstream",
		Long: `Stagedoor serves chat completions, responses, messages, legacy completions and
generateContent with one gateway key, from upstreams of any of these shapes.

Every flag can be given in the environment too, as STAGEDOOR_ and its name in
capitals (--log-level is STAGEDOOR_LOG_LEVEL). Flags come before the environment,
the environment before the configuration file.

Exit codes: 0 stopped as asked, 1 failed, 2 wrong usage, 75 the data directory
cannot be used (try again), 78 the configuration is wrong.`,
		SilenceUsage:  true,
		SilenceErrors: true,
		PersistentPreRunE: func(c *cobra.Command, _ []string) error {
			return a.fromEnvironment(c.Flags())
		},
		Args: cobra.NoArgs,
		RunE: func(c *cobra.Command, _ []string) error { return c.Help() },
	}
	root.SetFlagErrorFunc(func(c *cobra.Command, err error) error {
		return fmt.Errorf("%w: %w (see %s --help)", errUsage, err, c.CommandPath())
	})
	root.AddCommand(a.serveCommand(), a.configCommand(), a.keysCommand(), a.modelsCommand(), a.sandboxCommand(), a.versionCommand())
	return root
}

// fromEnvironment fills in flags that were not given.
func (a *app) fromEnvironment(flags *pflag.FlagSet) error {
	var errs []error
	flags.VisitAll(func(f *pflag.Flag) {
		if f.Changed || f.Name == "help" {
			return
		}
		name := "STAGEDOOR_" + strings.ToUpper(strings.ReplaceAll(f.Name, "-", "_"))
		v, ok := a.env(name)
		if !ok || v == "" {
			return
		}
		if err := flags.Set(f.Name, v); err != nil {
			errs = append(errs, fmt.Errorf("%w: %s: %w", errUsage, name, err))
		}
	})
	return errors.Join(errs...)
}

func (a *app) versionCommand() *cobra.Command {
	return &cobra.Command{
		Use: "version", Short: "Print the version", Args: cobra.NoArgs,
		RunE: func(*cobra.Command, []string) error {
			_, err := fmt.Fprintln(a.out, "stagedoor", versionText())
			return err
		},
	}
}

// versionText is the release's version, else what the build knows of itself.
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
