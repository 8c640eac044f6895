package cli_test

import (
	"bytes"
	"errors"
	"strings"
	"testing"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"stagedoor/cmd/stagedoor/cli"
)

// TestAMistypedNameIsGuessed if it is near enough to one name, and not otherwise.
func TestAMistypedNameIsGuessed(t *testing.T) {
	names := []string{"laptop", "ci", "Staff", "a\u202eb", strings.Repeat("x", 65)}
	for word, want := range map[string]string{
		"labtop": "laptop", "laptpo": "laptop", "LAPTOP": "laptop", "staf": "Staff", "cj": "ci", "a\u202ec": "a?b",
		"server": "", "": "", "xy": "", strings.Repeat("x", 65): "",
	} {
		if want != "" {
			want = " (did you mean " + want + "?)"
		}
		if got := cli.DidYouMean(word, names); got != want {
			t.Errorf("%q: %q, want %q", word, got, want)
		}
	}
}

// TestTheEnvironmentFillsInOnlyTheFlagsThatNameIt, and the command line counts more.
func TestTheEnvironmentFillsInOnlyTheFlagsThatNameIt(t *testing.T) {
	env := map[string]string{"STAGEDOOR_DATA": "/env", "STAGEDOOR_ADMIN": "true", "STAGEDOOR_LOG_LEVEL": "",
		"STAGEDOOR_RETRIES": "many"}
	app := &cli.App{Env: func(name string) (string, bool) { v, ok := env[name]; return v, ok }}
	for name, c := range map[string]struct {
		args []string
		data string
	}{"without a flag": {nil, "/env"}, "with one": {[]string{"--data", "/flag"}, "/flag"}} {
		flags := pflag.NewFlagSet("", pflag.ContinueOnError)
		data, admin := flags.String("data", "", "where"), flags.Bool("admin", false, "who")
		level := flags.String("log-level", "info", "what")
		cli.FromEnvironment(flags, "data", "log-level")
		if err := errors.Join(flags.Parse(c.args), app.FillFlags(flags)); err != nil {
			t.Fatal(err)
		}
		if *data != c.data || *admin || *level != "info" {
			t.Errorf("%s: data %q, admin %v, level %q", name, *data, *admin, *level)
		}
		if usage := flags.Lookup("data").Usage; usage != "where [$STAGEDOOR_DATA]" {
			t.Errorf("the help says %q", usage)
		}
	}
	flags := pflag.NewFlagSet("", pflag.ContinueOnError)
	flags.Int("retries", 0, "")
	cli.FromEnvironment(flags, "retries")
	err := app.FillFlags(flags)
	if !errors.Is(err, cli.ErrUsage) || !strings.Contains(err.Error(), "STAGEDOOR_RETRIES") {
		t.Errorf("a value that is no number: %v", err)
	}
}

// TestArgumentsThatACommandDoesNotTakeAreRefused with a hint at the command that was probably meant.
func TestArgumentsThatACommandDoesNotTakeAreRefused(t *testing.T) {
	group := &cobra.Command{Use: "keys"}
	run := func(*cobra.Command, []string) {}
	group.AddCommand(&cobra.Command{Use: "create", Run: run}, &cobra.Command{Use: "list", Run: run})
	alone := &cobra.Command{Use: "version", Run: run}
	for _, c := range []struct {
		command *cobra.Command
		args    []string
		want    string
	}{
		{group, nil, ""}, {alone, nil, ""},
		{group, []string{"creat"}, `there is no command "keys creat" (did you mean create?)`},
		{group, []string{"zzz"}, `there is no command "keys zzz" (see keys --help)`},
		{alone, []string{"x"}, `version takes no argument, got "x"`},
	} {
		got := ""
		if err := cli.NoArgs(c.command, c.args); err != nil {
			got = err.Error()
		}
		if got != c.want {
			t.Errorf("%s %v: %q, want %q", c.command.Name(), c.args, got, c.want)
		}
	}
	for n, want := range map[int]string{0: "version takes one key, got 0 arguments", 1: "",
		2: "version takes one key, got 2 arguments"} {
		got := ""
		if err := cli.ExactArgs(1, "one key")(alone, make([]string, n)); err != nil {
			got = err.Error()
		}
		if got != want {
			t.Errorf("%d: %q, want %q", n, got, want)
		}
	}
}

// TestASecretIsAloneOnStandardOutput, so that a script can take it from there.
func TestASecretIsAloneOnStandardOutput(t *testing.T) {
	var out, errOut bytes.Buffer
	app := &cli.App{Out: &out, ErrOut: &errOut}
	if err := app.ShowOnce("sd-1", "This is key %s.", "ci"); err != nil {
		t.Fatal(err)
	}
	if out.String() != "sd-1\n" || errOut.String() != "\nThis is key ci. It is not shown again.\n" {
		t.Errorf("%q and %q", out.String(), errOut.String())
	}
	app.Out = failing{}
	if err := app.ShowOnce("sd-1", "This is key %s.", "ci"); !errors.Is(err, errFull) {
		t.Errorf("with an output that is full: %v", err)
	}
}

var errFull = errors.New("full")

// failing is an output that takes nothing.
type failing struct{}

func (failing) Write([]byte) (int, error) { return 0, errFull }

// TestTextIsCutByCharacters and shows that it was cut.
func TestTextIsCutByCharacters(t *testing.T) {
	for text, want := range map[string]string{"": "", "abcd": "abcd", "abcde": "abc…", "äöüßé": "äöü…"} {
		if got := cli.Shorten(text, 4); got != want {
			t.Errorf("%q is shortened to %q, want %q", text, got, want)
		}
	}
	if _, err := cli.ParseDollars("1,5"); !errors.Is(err, cli.ErrUsage) {
		t.Errorf("1,5: %v", err)
	}
	if n, err := cli.ParseDollars("-0.000001"); err != nil || n != -1 {
		t.Errorf("-0.000001: %d, %v", n, err)
	}
}
