package main

import (
	"bytes"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"stagedoor/cmd/stagedoor/cli"
	"stagedoor/cmd/stagedoor/config"
)

// answered runs init with answers on standard input.
func answered(t *testing.T, env map[string]string, input string, flags ...string) result {
	t.Helper()
	var out, errOut bytes.Buffer
	a := &app{cli.App{Out: &out, ErrOut: &errOut, Env: func(name string) (string, bool) {
		v, ok := env[name]
		return v, ok
	}}}
	root := a.root()
	root.SetArgs(append([]string{"init"}, flags...))
	root.SetIn(strings.NewReader(input))
	err := root.ExecuteContext(t.Context())
	complain(&errOut, err)
	return result{exitCode(err), out.String(), errOut.String()}
}

func TestInitWritesACheckedFileOfItsAnswers(t *testing.T) {
	dir := t.TempDir()
	file := filepath.Join(dir, "stagedoor.yaml")
	env := map[string]string{"XDG_DATA_HOME": dir, "GEMINI_API_KEY": "from-the-environment"}
	r := answered(t, env, "openai, Google\nsk-\"quoted\"#1:\n\n"+file+"\n")
	r.check(t, exitOK, "stagedoor serve --config "+file, "Which key of google? [${GEMINI_API_KEY}]")
	info, err := os.Stat(file)
	if err != nil || info.Mode() != 0o600 {
		t.Errorf("%v, %v", info, err)
	}
	c, err := config.Load(file, func(name string) (string, bool) { v, ok := env[name]; return v, ok })
	if err != nil {
		t.Fatal(err)
	}
	if c.Data != filepath.Join(dir, "stagedoor") || len(c.Providers) != 2 ||
		c.Providers[0].Value.APIKeys[0].Reveal() != `sk-"quoted"#1:` ||
		c.Providers[1].Value.APIKeys[0].Reveal() != "from-the-environment" {
		t.Errorf("the file is read as %+v", c)
	}
	if text, err := os.ReadFile(file); err != nil || strings.Contains(string(text), "from-the-environment") {
		t.Errorf("%v\n%s", err, text)
	}
	before, _ := os.ReadFile(file)
	answered(t, env, "", "--vendor", "sandbox", "--to", file).check(t, exitFailure, "", "exists already")
	if after, err := os.ReadFile(file); err != nil || !bytes.Equal(before, after) {
		t.Errorf("the file was replaced: %v", err)
	}
}

func TestInitWorksWithFlagsAloneAndNamesThem(t *testing.T) {
	dir := t.TempDir()
	file := filepath.Join(dir, "f.yaml")
	env := map[string]string{"XDG_DATA_HOME": dir}
	for _, c := range []struct {
		want  string
		flags []string
	}{
		{"give --vendor", []string{"--to", file}},
		{"give --key openai=KEY", []string{"--to", file, "--vendor", "openai"}},
		{"give --to", []string{"--vendor", "sandbox"}},
		{"did you mean anthropic?", []string{"--vendor", "antropic"}},
		{"--key needs VENDOR=KEY", []string{"--vendor", "openai", "--key", "sk-1"}},
		{"--key needs VENDOR=KEY", []string{"--vendor", "openai", "--key", "google=1"}},
	} {
		answered(t, env, "", c.flags...).check(t, exitUsage, "", c.want)
	}
	answered(t, env, "", "--to", file, "--vendor", "openai", "--key", "openai=${UNSET}").
		check(t, exitConfig, "", "the environment variable UNSET is not set")
	if _, err := os.Stat(file); !os.IsNotExist(err) {
		t.Errorf("a file was written: %v", err)
	}
	flags := []string{"--to", file, "--vendor", "anthropic,sandbox,anthropic", "--key", "anthropic=a-key"}
	answered(t, env, "", flags...).check(t, exitOK, "wrote "+file, "")
	command(t, env, "config", "check", file).check(t, exitOK, "2 providers", "")
}
