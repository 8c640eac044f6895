package mutants

import (
	"encoding/json"
	"flag"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"runtime"
	"strings"
	"testing"

	"stagedoor/test/harness"
)

var pattern = flag.String("mutants", "", "run the faults whose name matches this regular expression; empty: none")

// apply returns the text of a file with the fault in it.
func apply(t *testing.T, root string, m Mutant) string {
	t.Helper()
	source, err := os.ReadFile(filepath.Join(root, m.File))
	if err != nil {
		t.Fatal(err)
	}
	if n := strings.Count(string(source), m.Old); n != 1 {
		t.Fatalf("%s contains the text to be replaced %d times, want once:\n%s", m.File, n, m.Old)
	}
	return strings.Replace(string(source), m.Old, m.New, 1)
}

func TestEveryMutantApplies(t *testing.T) {
	root, err := harness.Root()
	if err != nil {
		t.Fatal(err)
	}
	if len(Table) < 40 {
		t.Errorf("there are %d faults, want 40 or more", len(Table))
	}
	names := make(map[string]bool)
	for _, m := range Table {
		if names[m.Name] {
			t.Errorf("two faults are named %q", m.Name)
		}
		names[m.Name] = true
		t.Run(m.Name, func(t *testing.T) { apply(t, root, m) })
	}
}

func TestEveryMutantIsCaught(t *testing.T) {
	if *pattern == "" {
		t.Skip("run by make mutants")
	}
	wanted, err := regexp.Compile(*pattern)
	if err != nil {
		t.Fatal(err)
	}
	root, err := harness.Root()
	if err != nil {
		t.Fatal(err)
	}
	slots := make(chan struct{}, runtime.NumCPU())
	for _, m := range Table {
		if !wanted.MatchString(m.Name) {
			continue
		}
		t.Run(m.Name, func(t *testing.T) {
			t.Parallel()
			slots <- struct{}{}
			defer func() { <-slots }()
			caughtBy(t, root, m)
		})
	}
}

// caughtBy runs the fault's suite on a copy of the file that has the fault, and fails
// the test if the suite passes. A fault that does not compile shows nothing, so it
// fails the test as well.
func caughtBy(t *testing.T, root string, m Mutant) {
	dir := t.TempDir()
	copied := filepath.Join(dir, filepath.Base(m.File))
	if err := os.WriteFile(copied, []byte(apply(t, root, m)), 0o600); err != nil {
		t.Fatal(err)
	}
	overlay, err := json.Marshal(map[string]any{"Replace": map[string]string{filepath.Join(root, m.File): copied}})
	if err != nil {
		t.Fatal(err)
	}
	overlayFile := filepath.Join(dir, "overlay.json")
	if err := os.WriteFile(overlayFile, overlay, 0o600); err != nil {
		t.Fatal(err)
	}
	command := exec.Command("go", "test", "-overlay", overlayFile, "-vet=off", "-count=1", "-failfast", "-timeout=4m",
		"-run", m.Run, m.Suite)
	command.Dir = root
	command.Env = append(os.Environ(), "STAGEDOOR_BINARY=") // the suites must build the program with the fault
	out, err := command.CombinedOutput()
	text := string(out)
	switch {
	case strings.Contains(text, "[build failed]") || strings.Contains(text, "[setup failed]"):
		t.Errorf("the fault does not compile:\n%s", text)
	case strings.Contains(text, "no tests to run"):
		t.Errorf("no test of %s matches %s", m.Suite, m.Run)
	case err == nil:
		t.Errorf("%s passes with this fault in %s", m.Suite, m.File)
	default:
		t.Logf("caught: %s", firstFailure(text))
	}
}

var failure = regexp.MustCompile(`(?m)^\s*--- FAIL: \S+|^panic: .*|^fatal error: .*|^WARNING: DATA RACE`)

// firstFailure returns the line of a suite's output that names what failed first.
func firstFailure(out string) string {
	if line := failure.FindString(out); line != "" {
		return strings.TrimSpace(line)
	}
	return "the suite ended with an error"
}
