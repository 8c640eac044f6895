// Package cli holds what the commands of stagedoor share: their streams and environment, checks of
// arguments, flags that the environment can fill in, and the printing of tables, JSON and amounts.
//
// It knows neither the gateway nor its data directory (see package datadir).
//
// # Usage
//
// Each package of commands takes an App, which holds the streams and the environment, so that a
// test can run a command without a process. The program ends with EX_USAGE after an error that
// wraps ErrUsage. Printable makes text from outside safe for a terminal, and must be used for every
// such text that a command prints.
package cli

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
)

// ErrUsage marks a command line that is wrong. The program ends with EX_USAGE after it.
var ErrUsage = errors.New("wrong usage")

// App gives commands their environment and their output streams, so that tests can replace them.
type App struct {
	Env         func(string) (string, bool)
	Out, ErrOut io.Writer
}

// ShowOnce prints a secret alone on standard output, so that KEY=$(stagedoor keys create) is the key. The
// explanation goes to standard error.
func (a *App) ShowOnce(secret, about string, args ...any) error {
	if _, err := fmt.Fprintln(a.Out, secret); err != nil {
		return err
	}
	_, err := fmt.Fprintf(a.ErrOut, "\n"+about+" It is not shown again.\n", args...)
	return err
}

// PrintJSON writes v as indented JSON.
func PrintJSON(out io.Writer, v any) error {
	e := json.NewEncoder(out)
	e.SetIndent("", "  ")
	return e.Encode(v)
}

// Help runs a command that only groups others: it prints the command's help.
func Help(c *cobra.Command, _ []string) error { return c.Help() }

// NoArgs rejects arguments. For a group of commands it suggests the command that was probably meant.
func NoArgs(c *cobra.Command, args []string) error {
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

// maxWord bounds the work of comparing words.
const maxWord = 64

// DidYouMean returns a question about the name that is nearest to word, to put after an error, or "" if none is near.
func DidYouMean(word string, names []string) string {
	best, distance := "", max(1, min(len(word)/2, 3))+1
	for _, name := range names {
		if len(word) > maxWord || len(name) > maxWord {
			continue
		}
		if d := editDistance(strings.ToLower(word), strings.ToLower(name)); d < distance {
			best, distance = name, d
		}
	}
	if best == "" {
		return ""
	}
	return fmt.Sprintf(" (did you mean %s?)", Printable(best))
}

// editDistance counts the bytes to insert, remove or replace to make b of a.
func editDistance(a, b string) int {
	row := make([]int, len(b)+1)
	for j := range row {
		row[j] = j
	}
	for i := range len(a) {
		before := row[0]
		row[0] = i + 1
		for j := range len(b) {
			cost := before
			if a[i] != b[j] {
				cost++
			}
			before = row[j+1]
			row[j+1] = min(cost, row[j]+1, before+1)
		}
	}
	return row[len(b)]
}

// ExactArgs rejects any number of arguments except n. The error describes them with the words of what.
func ExactArgs(n int, what string) cobra.PositionalArgs {
	return func(c *cobra.Command, args []string) error {
		if len(args) != n {
			return fmt.Errorf("%s takes %s, got %s", c.CommandPath(), what, Count(len(args), "argument"))
		}
		return nil
	}
}

// EnvironmentAnnotation is the annotation of a flag that names the environment variable that fills it in.
const EnvironmentAnnotation = "stagedoor_environment"

// FromEnvironment lets the environment fill in the named flags. Use it only for settings that hold for every
// command, such as where the gateway is. A flag that decides what one command does must be on its command line,
// because an --admin that was exported long ago must not create administrators.
func FromEnvironment(flags *pflag.FlagSet, names ...string) {
	for _, name := range names {
		variable := "STAGEDOOR_" + strings.ToUpper(strings.ReplaceAll(name, "-", "_"))
		if err := flags.SetAnnotation(name, EnvironmentAnnotation, []string{variable}); err != nil {
			panic(err) // the program names a flag that does not exist
		}
		flags.Lookup(name).Usage += " [$" + variable + "]"
	}
}

// FillFlags sets the flags that FromEnvironment named and the command line did not give. An empty variable counts as
// one that is not set. Values that a flag does not take are ErrUsage, all of them in one error, and the error names the
// variable.
func (a *App) FillFlags(flags *pflag.FlagSet) error {
	var errs []error
	flags.VisitAll(func(f *pflag.Flag) {
		variable := f.Annotations[EnvironmentAnnotation]
		if f.Changed || variable == nil {
			return
		}
		name := variable[0]
		v, ok := a.Env(name)
		if !ok || v == "" {
			return
		}
		if err := flags.Set(f.Name, v); err != nil {
			errs = append(errs, fmt.Errorf("%w: %s: %w", ErrUsage, name, err))
		}
	})
	return errors.Join(errs...)
}

// CompleteWords makes shells offer words as values of a flag.
func CompleteWords(c *cobra.Command, flag string, words ...cobra.Completion) {
	err := c.RegisterFlagCompletionFunc(flag, cobra.FixedCompletions(words, cobra.ShellCompDirectiveNoFileComp))
	if err != nil {
		panic(err) // the program names a flag that does not exist
	}
}

// CompleteFiles makes shells offer files with these extensions as values of a flag.
func CompleteFiles(c *cobra.Command, flag string, extensions ...string) {
	if err := c.MarkFlagFilename(flag, extensions...); err != nil {
		panic(err) // the program names a flag that does not exist
	}
}
