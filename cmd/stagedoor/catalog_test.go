package main

import (
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"stagedoor/cmd/stagedoor/cli"
)

// listFile is a list with one model at an input price.
func listFile(price string) string {
	return fmt.Sprintf(`{"version": 1, "date": "2026-12-01", "currency": "USD", "models": [
		{"provider": "openai", "id": "gpt-5", "price": {"input": %s, "output": 10}, "as_of": "2026-12-01"}]}`, price)
}

func TestCatalogUpdateShowsWhatItChangesAndRefusesSteepPrices(t *testing.T) {
	dir := t.TempDir()
	target := filepath.Join(dir, "catalog.json")
	update := func(text string, more ...string) (string, error) {
		t.Helper()
		file := write(t, filepath.Join(t.TempDir(), "new.json"), text)
		var out strings.Builder
		args := append([]string{"catalog", "update", file, "--data", dir}, more...)
		err := run(context.Background(), args, func(string) (string, bool) { return "", false }, &out, &out)
		return out.String(), err
	}
	has := func(want string) {
		t.Helper()
		if got, err := os.ReadFile(target); string(got) != want || want != "" && err != nil {
			t.Errorf("the catalogue on disk is %.200q, %v", got, err)
		}
		if rest, _ := filepath.Glob(filepath.Join(dir, "*-*")); len(rest) > 0 {
			t.Errorf("left %q", rest)
		}
	}

	out, err := update(listFile("20")) // 1.25 in the built-in list
	if !errors.Is(err, errSteep) || !strings.Contains(out, "! changed openai/gpt-5: ") ||
		!strings.Contains(out, "price input 20, was 1.25 (+1500.0 %)") {
		t.Errorf("%s%v", out, err)
	}
	has("")
	out, err = update(listFile("20"), "--force")
	if err != nil || !strings.Contains(out, fmt.Sprintf("SHA-256 %x", sha256.Sum256([]byte(listFile("20"))))) {
		t.Errorf("%s%v", out, err)
	}
	has(listFile("20"))
	out, err = update(strings.Replace(listFile("2"), "gpt-5", "gpt-77", 1))
	if err == nil || !strings.Contains(out, "  added   openai/gpt-77") {
		t.Errorf("%s%v", out, err) // gpt-5 falls back to the built-in price, which is less than a tenth
	}
	has(listFile("20"))
	if _, err = update(listFile("-1")); err == nil || !strings.Contains(err.Error(), "the catalogue is unchanged") {
		t.Error(err)
	}
	has(listFile("20"))
	if _, err = update(listFile("1"), "--data", "memory"); !errors.Is(err, cli.ErrUsage) {
		t.Error(err)
	}
}

// The command that replaces the list of models mends a configuration whose list is missing or broken.
func TestCatalogUpdateReplacesAMissingOrBrokenList(t *testing.T) {
	dir := t.TempDir()
	target := filepath.Join(dir, "models.json")
	configuration := write(t, filepath.Join(dir, "f.yaml"), "data: memory\ncatalog: {file: "+target+"}\n"+
		"providers: {p: {shape: sandbox}}\nmodels: {m: {targets: [{provider: p, model: x}]}}\n")
	list := strings.Replace(listFile("2"), "gpt-5", "gpt-77", 1)
	file := write(t, filepath.Join(dir, "new.json"), list)
	for name, before := range map[string]func(){
		"missing": func() {},
		"broken":  func() { write(t, target, "{") },
	} {
		t.Run(name, func(t *testing.T) {
			before()
			var out strings.Builder
			environment := func(string) (string, bool) { return "", false }
			check := []string{"config", "check", configuration}
			if err := run(context.Background(), check, environment, &out, &out); err == nil {
				t.Errorf("the check does not see the list: %s", &out)
			}
			err := run(context.Background(), []string{"catalog", "update", file, "--config", configuration},
				environment,
				&out, &out)
			if got, _ := os.ReadFile(target); err != nil || string(got) != list {
				t.Errorf("%s%v", &out, err)
			}
			if err := os.Remove(target); err != nil {
				t.Error(err)
			}
		})
	}
}

// A gateway reads a new catalogue on SIGHUP, and keeps its configuration if the catalogue is broken.
func TestAReloadPicksUpTheCatalogue(t *testing.T) {
	dir := directory(t)
	write(t, filepath.Join(dir, "secret"), "one\n")
	text := strings.Replace(serving("a", "p"), "data: memory", "data: state\ncatalog: {unknown: refuse}", 1) +
		"  gpt-5: {targets: [{provider: up, model: gpt-77}]}\n"
	text = strings.Replace(text, "providers: {", `providers: {up: {shape: chat, base_url: "http://127.0.0.1:9", `+
		`vendor: openai, retries: 0}, `, 1)
	text = strings.Replace(text, "models: {a: {targets: [{provider: p, model: x}]}}", "models:\n"+
		"  a: {targets: [{provider: p, model: x}]}", 1)
	write(t, filepath.Join(dir, "f.yaml"), text)
	p := launch(t, dir, "serve", "--config", "f.yaml")
	if got := p.ask("one", "gpt-5"); got != 404 {
		t.Errorf("a model without a known price is answered %d", got)
	}
	file := filepath.Join(dir, "state", "catalog.json")
	write(t, file, strings.Replace(listFile("2"), "gpt-5", "gpt-77", 1))
	p.signal(syscall.SIGHUP)
	p.logged("2026-12-01-")
	if got := p.ask("one", "gpt-5"); got == 404 {
		t.Error("its price is known now, and it is answered 404")
	}
	write(t, file, "{")
	p.signal(syscall.SIGHUP)
	p.logged("catalog.file")
	if got := p.ask("one", "gpt-5"); got == 404 {
		t.Error("a broken catalogue is in force")
	}
	p.stop()
}
