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

// errUsage marks a command line that cannot be understood.
var errUsage = errors.New("wrong usage")

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

// complain says why the program ends. The mistakes of a file stand at the
// beginning of their lines, where editors look for them.
func complain(w io.Writer, err error) {
	var issues config.Issues
	switch {
	case err == nil:
	case errors.As(err, &issues):
		fmt.Fprintf(w, "%v\nstagedoor: the configuration has %s\n", err, counted(len(issues), "mistake"))
	default:
		fmt.Fprintln(w, "stagedoor:", err)
	}
}

func counted(n int, what string) string {
	if n == 1 {
		return "1 " + what
	}
	return fmt.Sprintf("%d %ss", n, what)
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
	root.SetArgs(append([]string{}, args...)) // nil would be those of the process
	return root.ExecuteContext(ctx)
}

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
			return a.fromEnvironment(c.Flags())
		},
		Args: noArgs,
		RunE: help,
	}
	root.SetFlagErrorFunc(func(c *cobra.Command, err error) error {
		return fmt.Errorf("%w: %w (see %s --help)", errUsage, err, c.CommandPath())
	})
	root.AddCommand(a.serveCommand(), a.configCommand(), a.keysCommand(), a.usersCommand(), a.groupsCommand(), a.appsCommand(), a.creditsCommand(), a.codesCommand(), a.receiptsCommand(), a.usageCommand(), a.adminCommand(), a.topCommand(), a.stateCommand(), a.modelsCommand(), a.sandboxCommand(), a.videosCommand(), a.doctorCommand(), a.healthcheckCommand(), a.versionCommand())
	root.SetOut(a.out) // before completion is made, which remembers it
	root.SetErr(a.errOut)
	root.InitDefaultHelpCmd()
	root.InitDefaultCompletionCmd()
	for _, c := range root.Commands() {
		if c.Name() == "completion" { // else it takes any word for a wish to be helped
			c.Args, c.RunE = noArgs, help
		}
	}
	markUsage(root)
	return root
}

// showOnce prints a secret alone, so that KEY=$(stagedoor keys create) is the key;
// what there is to say about it goes beside it.
func (a *app) showOnce(secret, about string, args ...any) error {
	if _, err := fmt.Fprintln(a.out, secret); err != nil {
		return err
	}
	_, err := fmt.Fprintf(a.errOut, "\n"+about+" It is not shown again.\n", args...)
	return err
}

func help(c *cobra.Command, _ []string) error { return c.Help() }

// noArgs refuses arguments, and guesses which command was meant.
func noArgs(c *cobra.Command, args []string) error {
	if len(args) == 0 {
		return nil
	}
	if !c.HasAvailableSubCommands() {
		return fmt.Errorf("%s takes no argument, got %q", c.CommandPath(), args[0])
	}
	hint := fmt.Sprintf("see %s --help", c.CommandPath())
	c.SuggestionsMinimumDistance = 2
	if like := c.SuggestionsFor(args[0]); len(like) > 0 {
		hint = "did you mean " + strings.Join(like, " or ") + "?"
	}
	return fmt.Errorf("there is no command %q (%s)", c.CommandPath()+" "+args[0], hint)
}

// markUsage makes wrong arguments of every command, the library's own too, a
// mistake in usage.
func markUsage(c *cobra.Command) {
	if check := c.Args; check != nil {
		c.Args = func(c *cobra.Command, args []string) error {
			if err := check(c, args); err != nil {
				return fmt.Errorf("%w: %w", errUsage, err)
			}
			return nil
		}
	}
	for _, sub := range c.Commands() {
		markUsage(sub)
	}
}

// inEnvironment is the annotation of a flag with the variable that fills it in.
const inEnvironment = "stagedoor_environment"

// settings lets flags be given in the environment, too. It is for what is so for
// every command: where the gateway is and how it runs. What one command is to do
// is said in its own line only: an --admin that somebody exported long ago must
// not make administrators.
func settings(flags *pflag.FlagSet, names ...string) {
	for _, name := range names {
		variable := "STAGEDOOR_" + strings.ToUpper(strings.ReplaceAll(name, "-", "_"))
		if err := flags.SetAnnotation(name, inEnvironment, []string{variable}); err != nil {
			panic(err) // there is no such flag: a slip in this package
		}
		flags.Lookup(name).Usage += " [$" + variable + "]"
	}
}

// fromEnvironment fills in settings that were not given as flags.
func (a *app) fromEnvironment(flags *pflag.FlagSet) error {
	var errs []error
	flags.VisitAll(func(f *pflag.Flag) {
		variable := f.Annotations[inEnvironment]
		if f.Changed || variable == nil {
			return
		}
		name := variable[0]
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
		Use: "version", Short: "Print the version", Args: noArgs,
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

// complete offers words for a flag.
func complete(c *cobra.Command, flag string, words ...cobra.Completion) {
	err := c.RegisterFlagCompletionFunc(flag, cobra.FixedCompletions(words, cobra.ShellCompDirectiveNoFileComp))
	if err != nil {
		panic(err) // there is no such flag: a slip in this package
	}
}

// completePaths offers files and directories for flags that subcommands inherit.
func completePaths(c *cobra.Command, file, directory string) {
	if err := errors.Join(c.MarkPersistentFlagFilename(file, "yaml", "yml"), c.MarkPersistentFlagDirname(directory)); err != nil {
		panic(err) // as above
	}
}

// completeFile offers the files a flag can name.
func completeFile(c *cobra.Command, flag string, extensions ...string) {
	if err := c.MarkFlagFilename(flag, extensions...); err != nil {
		panic(err) // as above
	}
}
