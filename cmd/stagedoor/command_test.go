package main

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"reflect"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"stagedoor/cmd/stagedoor/cli"
	"stagedoor/cmd/stagedoor/config"
)

func TestWrongUsageEndsWithCode64AndAHint(t *testing.T) {
	for line, hint := range map[string]string{
		"wrong":                                `there is no command "stagedoor wrong" (see stagedoor --help)`,
		"serv":                                 "did you mean serve or users?",
		"keys lst":                             "did you mean list?",
		"keys revoke":                          "stagedoor keys revoke takes one key, by its id, the beginning of that, or its name if it has no user, got 0 arguments",
		"serve now":                            `stagedoor serve takes no argument, got "now"`,
		"completion tcsh":                      `there is no command "stagedoor completion tcsh"`,
		"completion bash x":                    "wrong usage",
		"--fast":                               "unknown flag: --fast (see stagedoor --help)",
		"serve --grace soon":                   "see stagedoor serve --help",
		"serve --grace -5s":                    "expected a duration such as 20s or 5m",
		"serve --listen nowhere":               `--listen "nowhere": expected host:port`,
		"serve --data memory --log-level loud": "use debug, info, warn or error",
		"config check":                         "takes a file, got 0 arguments",
		"keys create --scope fly":              `--scope "fly" is not known, use all or some of chat`,
		"keys create --rpm -1":                 "must not be negative",
		"keys create --allow-ip x":             "neither an address nor a network",
		"keys create --model=":                 "--model is empty",
		"keys create --scope= --name x":        "--scope is empty",
		"keys create --allow-ip=":              "--allow-ip is empty",
		"keys create --model a,,b":             "--model is empty",
		"keys update key_1 --allow-ip=":        "--allow-ip is empty",
		"keys list --data memory":              "keeps no keys",
		"sandbox --pace slow":                  "use tokens a second or max",
		"keys create --no-scopes --scope chat": "exclude each other",
	} {
		t.Run(line, func(t *testing.T) {
			command(t, nil, strings.Fields(line)...).check(t, exitUsage, "", hint)
		})
	}
}

// TestAFatalErrorOfGoIsRestartedAndWrongUsageIsNot: the Go runtime ends a process with
// status 2 after a fatal error such as a stack overflow, so no exit code of the program
// may be 2, and the service manager must restart after it.
func TestAFatalErrorOfGoIsRestartedAndWrongUsageIsNot(t *testing.T) {
	const goFatalError = 2
	if slices.Contains([]int{exitOK, exitFailure, exitUsage, exitStorage, exitConfig}, goFatalError) {
		t.Error("the program uses the exit status of a fatal error of the Go runtime")
	}
	if exitUsage != 64 {
		t.Errorf("wrong usage is %d, want EX_USAGE, 64", exitUsage)
	}
	unit, err := os.ReadFile("../../deploy/systemd/stagedoor.service")
	if err != nil {
		t.Fatal(err)
	}
	want := fmt.Sprintf("\nRestartPreventExitStatus=%d %d\n", exitUsage, exitConfig)
	if !strings.Contains(string(unit), want) {
		t.Errorf("the systemd unit does not have %q", strings.TrimSpace(want))
	}
}

func TestEveryCommandAndFlagExplainsItself(t *testing.T) {
	a := &app{cli.App{Env: os.LookupEnv}}
	var walk func(c *cobra.Command)
	walk = func(c *cobra.Command) {
		if c.Short == "" {
			t.Errorf("%s has no description", c.CommandPath())
		}
		help := command(t, nil, append(strings.Fields(c.CommandPath())[1:], "--help")...)
		help.check(t, exitOK, "Usage:", "")
		c.LocalFlags().VisitAll(func(f *pflag.Flag) {
			if f.Usage == "" {
				t.Errorf("%s --%s has no description", c.CommandPath(), f.Name)
			}
		})
		for _, sub := range c.Commands() {
			if sub.IsAvailableCommand() {
				walk(sub)
			}
		}
	}
	walk(a.root())
	command(t, nil).check(t, exitOK, "75  the data directory cannot be used", "")
}

func TestVersionNamesTheToolchain(t *testing.T) {
	command(t, nil, "version").check(t, exitOK, "go1.", "")
	command(t, nil, "--version").check(t, exitOK, command(t, nil, "version").out, "")
}

func TestShellsGetCompletion(t *testing.T) {
	for _, shell := range []string{"bash", "zsh", "fish", "powershell"} {
		command(t, nil, "completion", shell).check(t, exitOK, "stagedoor", "")
	}
	command(t, nil, "__complete", "serve", "--log-format", "").check(t, exitOK, "text\njson\n", "")
	command(t, nil, "__complete", "se").check(t, exitOK, "serve\tRun the gateway", "")

	data := t.TempDir()
	created := command(t, nil, "keys", "create", "--data", data, "--name", "laptop")
	if !regexp.MustCompile(`^sd-\w+\n$`).MatchString(created.out) {
		t.Errorf("printed %q, want the key alone", created.out)
	}
	id := regexp.MustCompile(`key_\w+`).FindString(created.errOut)
	command(t, nil, "__complete", "keys", "revoke", "--data", data, "").check(t, exitOK, id+"\tlaptop", "")
}

// example is the environment the example file names.
var example = map[string]string{"SD_KEY": "k", "OPENAI_API_KEY": "a", "ANTHROPIC_API_KEY": "b", "GEMINI_API_KEY": "c"}

func TestExampleIsFineAndShowsEverySetting(t *testing.T) {
	text := command(t, nil, "config", "example").out
	file := write(t, filepath.Join(t.TempDir(), "example.yaml"), text)
	command(t, example, "config", "check", file).check(t, exitOK, "is fine: 5 providers, 10 models, 1 key\n", "")

	var walk func(typ reflect.Type)
	walk = func(typ reflect.Type) {
		switch typ.Kind() {
		case reflect.Pointer, reflect.Slice:
			walk(typ.Elem())
		case reflect.Struct:
			for i := range typ.NumField() {
				f := typ.Field(i)
				if name := f.Tag.Get("yaml"); name != "" && !regexp.MustCompile(`\b`+name+`:`).MatchString(text) {
					t.Errorf("the example does not show %s of %s", name, typ.Name())
				}
				walk(f.Type)
			}
		}
	}
	walk(reflect.TypeFor[config.Config]())
}

func TestReadmesConfigurationIsFine(t *testing.T) {
	readme, err := os.ReadFile(filepath.Join("..", "..", "README.md"))
	if err != nil {
		t.Fatal(err)
	}
	block := regexp.MustCompile(`(?m)^    data: \./data\n(?:    .*\n)+`).FindString(string(readme))
	secret := write(t, filepath.Join(t.TempDir(), "secret"), "k")
	block = strings.ReplaceAll(block, "/run/secrets/anthropic", secret)
	file := write(t, filepath.Join(t.TempDir(), "readme.yaml"),
		regexp.MustCompile(`(?m)^    `).ReplaceAllString(block, ""))
	command(t, example, "config", "check", file).check(t, exitOK, "is fine: 2 providers, 2 models, 0 keys\n", "")
}

func TestCheckTellsEveryMistakeAndEndsWithCode78(t *testing.T) {
	file := write(t, filepath.Join(t.TempDir(), "bad.yaml"), "listen: nowhere\nlog: {level: loud}\n")
	r := command(t, nil, "config", "check", file)
	r.check(t, exitConfig, "", file+":1:9: listen[0]: expected host:port")
	r.check(t, exitConfig, "", "\n"+file+":2:14: log.level: \"loud\" is not known")
	r.check(t, exitConfig, "", "\nstagedoor: the configuration has 2 mistakes\n")
	command(t, nil, "serve", "--config", file).check(t, exitConfig, "", "2 mistakes")
	command(t, nil, "serve", "--config", file+".none").check(t, exitConfig, "", "no such file")
}

func TestModelsShowWhereTheyAreServed(t *testing.T) {
	file := write(t, filepath.Join(t.TempDir(), "f.yaml"), exampleConfig)
	r := command(t, example, "models", "--config", file)
	r.check(t, exitOK, "fast ", "")
	r.check(t, exitOK, "openai/gpt-5-mini (responses) x3, anthropic/claude-haiku-4-5 (messages)  local/qwen3 (chat)",
		"")

	var list []modelLine
	if err := json.Unmarshal([]byte(command(t, example, "models", "--json", "-c", file).out), &list); err != nil {
		t.Fatal(err)
	}
	if got := list[1]; got.Name != "fast" || got.Targets[0] != (targetLine{"openai", "gpt-5-mini", "responses", 3}) ||
		got.Fallback[0].Shape != "chat" {
		t.Errorf("model fast is %+v", got)
	}
}

// greeted is called when the greeting is written.
type greeted func()

func (f greeted) Write(p []byte) (int, error) {
	if bytes.Contains(p, []byte("address")) {
		f()
	}
	return len(p), nil
}

func TestFlagsComeBeforeTheEnvironmentAndThatBeforeTheFile(t *testing.T) {
	for name, c := range map[string]struct{ file, env, flag, want string }{
		"file alone":    {"file", "", "", "file"},
		"environment":   {"file", "env", "", "env"},
		"flag":          {"file", "env", "flag", "flag"},
		"flag and file": {"file", "", "flag", "flag"},
	} {
		t.Run(name, func(t *testing.T) {
			dir := directory(t)
			file := write(t, filepath.Join(dir, "f.yaml"),
				"listen: \"127.0.0.1:0\"\ndata: "+filepath.Join(dir, c.file)+"\nlog: {level: error}\n")
			env := map[string]string{"STAGEDOOR_CONFIG": file}
			if c.env != "" {
				env["STAGEDOOR_DATA"] = filepath.Join(dir, c.env)
			}
			args := []string{"serve"}
			if c.flag != "" {
				args = append(args, "--data", filepath.Join(dir, c.flag))
			}
			// The greeting means that the store is open; then it may stop.
			ctx, cancel := context.WithTimeout(t.Context(), patience)
			defer cancel()
			lookup := func(name string) (string, bool) { v, ok := env[name]; return v, ok }
			if err := run(ctx, args, lookup, greeted(cancel), os.Stderr); err != nil {
				t.Fatal(err)
			}
			for _, d := range []string{"file", "env", "flag"} {
				_, err := os.Stat(filepath.Join(dir, d))
				if used := err == nil; used != (d == c.want) {
					t.Errorf("directory of the %s used: %t", d, used)
				}
			}
		})
	}
}

// TestEnvironmentGivesSettingsOnly: a variable exported for one command must not
// change what another command does.
func TestEnvironmentGivesSettingsOnly(t *testing.T) {
	env := map[string]string{
		"STAGEDOOR_DATA":      t.TempDir(),
		"STAGEDOOR_ADMIN":     "true",
		"STAGEDOOR_JSON":      "true",
		"STAGEDOOR_KEY":       "sd-1",
		"STAGEDOOR_RPM":       "-1",
		"STAGEDOOR_NO_SCOPES": "true",
		"STAGEDOOR_REMOVE":    "true",
		"STAGEDOOR_DISABLED":  "true",
	}
	for _, c := range [][2]string{
		{"users create anna", ""},
		{"users list", "anna"}, // not --disabled
		{"keys create --name one", "sd-"},
		{"keys list", "one"},
		{"usage", "DAY"}, // not --key, not --json
	} {
		command(t, env, strings.Fields(c[0])...).check(t, exitOK, c[1], "")
	}
	shown := command(t, env, "users", "show", "anna", "--json")
	shown.check(t, exitOK, `"username": "anna"`, "")
	if strings.Contains(shown.out, `"admin": true`) {
		t.Errorf("the environment has made an administrator: %s", shown.out)
	}
	a := &app{cli.App{Env: os.LookupEnv}}
	var walk func(c *cobra.Command)
	walk = func(c *cobra.Command) {
		c.LocalFlags().VisitAll(func(f *pflag.Flag) {
			if v := f.Annotations[cli.EnvironmentAnnotation]; (v != nil) != strings.Contains(f.Usage, "[$STAGEDOOR_") {
				t.Errorf("%s --%s: the help says %q of %v", c.CommandPath(), f.Name, f.Usage, v)
			}
		})
		for _, sub := range c.Commands() {
			walk(sub)
		}
	}
	walk(a.root())
}

func TestGraceOfNothingIsAGrace(t *testing.T) {
	file := write(t, filepath.Join(t.TempDir(), "f.yaml"), "shutdown: {grace: 7s}\n")
	for text, want := range map[string]time.Duration{"": 7 * time.Second, "0s": 0, "3s": 3 * time.Second} {
		var o overrides
		c := &cobra.Command{}
		o.flags(c)
		if text != "" {
			if err := c.Flags().Set("grace", text); err != nil {
				t.Fatal(err)
			}
		}
		o.file = file
		got, err := o.load(os.LookupEnv)
		if err != nil || time.Duration(got.Shutdown.Grace) != want {
			t.Errorf("--grace %q over 7s: %v, %v", text, got, err)
		}
	}
}

func TestMistakesInTheEnvironmentAreNamed(t *testing.T) {
	command(t, map[string]string{"STAGEDOOR_GRACE": "soon"}, "serve").check(t, exitUsage, "", "STAGEDOOR_GRACE: ")
}
