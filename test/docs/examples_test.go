package docs

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"stagedoor/test/harness"
)

// runWithin bounds the examples of one page.
const runWithin = 3 * time.Minute

func TestMain(m *testing.M) { harness.Main(m) }

// pages are the files of docs/, by their path in it.
func pages(t *testing.T) map[string]string {
	t.Helper()
	root := folder(t)
	out := make(map[string]string)
	for _, pattern := range []string{"*.md", "*/*.md"} {
		names, err := filepath.Glob(filepath.Join(root, pattern))
		if err != nil {
			t.Fatal(err)
		}
		for _, name := range names {
			text, err := os.ReadFile(name)
			if err != nil {
				t.Fatal(err)
			}
			rel, err := filepath.Rel(root, name)
			if err != nil {
				t.Fatal(err)
			}
			out[filepath.ToSlash(rel)] = string(text)
		}
	}
	if len(out) == 0 {
		t.Fatal("no pages found")
	}
	return out
}

func folder(t *testing.T) string {
	t.Helper()
	root, err := harness.Root()
	if err != nil {
		t.Fatal(err)
	}
	return filepath.Join(root, "docs")
}

func TestExamplesPrintWhatThePagesSay(t *testing.T) {
	tools := t.TempDir()
	if err := os.Symlink(harness.Binary(t), filepath.Join(tools, "stagedoor")); err != nil {
		t.Fatal(err)
	}
	for name, text := range pages(t) {
		examples, err := examplesOf(text)
		if err != nil {
			t.Errorf("docs/%s: %v", name, err)
		}
		if strings.HasPrefix(name, "shapes/") && len(examples) == 0 {
			t.Errorf("docs/%s: has no example", name)
		}
		if len(examples) == 0 {
			continue
		}
		t.Run(name, func(t *testing.T) {
			t.Parallel() // most of their time is the simulator's pace
			for i, output := range runAll(t, tools, examples) {
				if e := examples[i]; e.expected != "" && !printed(output, e.expected) {
					t.Errorf("docs/%s:%d: expected\n%s\nprinted\n%s", name, e.line, e.expected, shortened(output))
				}
			}
		})
	}
}

// separator stands between the outputs of two examples.
const separator = "\x1e"

// runAll runs the examples of a page and returns what each of them printed.
func runAll(t *testing.T, tools string, examples []example) []string {
	t.Helper()
	address, directory := start(t)
	var script strings.Builder
	for _, e := range examples {
		fmt.Fprintf(&script, "printf '\\036'\n%s", e.script)
	}
	ctx, cancel := context.WithTimeout(t.Context(), runWithin)
	defer cancel()
	var out, failures bytes.Buffer
	shell := exec.CommandContext(ctx, "bash", "-eu", "-o", "pipefail", "-c", script.String())
	shell.Stdout, shell.Stderr, shell.WaitDelay = &out, &failures, time.Second
	shell.Dir = directory
	// The names that docs/quickstart.md sets.
	shell.Env = append(os.Environ(), "PATH="+tools+string(os.PathListSeparator)+os.Getenv("PATH"),
		"GATEWAY="+address, "STAGEDOOR_DATA="+filepath.Join(directory, "data"), "KEY=sd-example-key-of-the-documents",
		"ADMIN_TOKEN=an-example-token-of-the-documents")
	err := shell.Run()
	outputs := strings.Split(out.String(), separator)[1:]
	if err != nil {
		t.Fatalf("the example at line %d: %v\n%s\n%s", examples[max(0, len(outputs)-1)].line, err, failures.String(),
			shortened(out.String()))
	}
	if len(outputs) != len(examples) {
		t.Fatalf("%d outputs of %d examples", len(outputs), len(examples))
	}
	return outputs
}

// start runs the gateway of docs/sandbox.yaml, and returns its address and the
// directory it was started in.
func start(t *testing.T) (address, directory string) {
	t.Helper()
	listen, err := harness.FreeAddr()
	if err != nil {
		t.Fatal(err)
	}
	file := filepath.Join(folder(t), "sandbox.yaml")
	gateway, err := harness.Launch(harness.Binary(t), harness.Config{Listen: []string{listen}}, func(c *exec.Cmd) {
		c.Args = []string{c.Args[0], "serve", "--config", file, "--listen", listen}
		directory = c.Dir
	})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := gateway.Stop(); err != nil {
			t.Errorf("stop the gateway: %v", err)
		}
	})
	return gateway.URL, directory
}

func shortened(s string) string {
	const most = 4 << 10
	if len(s) > most {
		return s[:most] + "\n(cut)"
	}
	return s
}
