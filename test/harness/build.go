package harness

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"
)

// BinaryEnv names a ready binary to test instead of building one.
const BinaryEnv = "STAGEDOOR_BINARY"

// Root is the folder of the module that the working directory is in.
func Root() (string, error) {
	out, err := exec.Command("go", "env", "GOMOD").Output()
	if err != nil {
		return "", fmt.Errorf("find the module: %w", err)
	}
	mod := strings.TrimSpace(string(out))
	if mod == "" || mod == os.DevNull {
		return "", errors.New("find the module: not inside one")
	}
	return filepath.Dir(mod), nil
}

// Build compiles a command of the module into dir and answers the binary's path. The error has what the compiler
// printed.
func Build(ctx context.Context, dir, pkg string) (string, error) {
	root, err := Root()
	if err != nil {
		return "", err
	}
	binary := filepath.Join(dir, filepath.Base(pkg))
	cmd := exec.CommandContext(ctx, "go", "build", "-o", binary, pkg)
	cmd.Dir = root
	if out, err := cmd.CombinedOutput(); err != nil {
		return "", fmt.Errorf("build %s: %w\n%s", pkg, err, out)
	}
	return binary, nil
}

// Script writes an executable script into a folder of the test and returns its path. No program starts while the file
// is open for writing, because a child would inherit the descriptor until it executes its own program, and the system
// refuses to execute a file that is open for writing (ETXTBSY).
func Script(t testing.TB, name, text string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), name)
	syscall.ForkLock.RLock()
	err := os.WriteFile(path, []byte(text), 0o700)
	syscall.ForkLock.RUnlock()
	if err != nil {
		t.Fatal(err)
	}
	return path
}

var built struct {
	once   sync.Once
	dir    string
	binary string
	err    error
}

// isolate gives the tests and the programs that they start a home directory of their own, so that no test reads or
// writes the state of the person who runs it.
func isolate() (home string, err error) {
	if home, err = os.MkdirTemp("", "stagedoor-home-"); err != nil {
		return "", err
	}
	return home, errors.Join(os.Setenv("XDG_DATA_HOME", home), os.Setenv("XDG_RUNTIME_DIR", home))
}

// Main runs a package's tests in a home directory of their own and removes the binary they built. Call it from
// TestMain with its testing.M, or with what runs the tests of that.
func Main(m interface{ Run() int }) {
	home, err := isolate()
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	code := m.Run()
	_ = os.RemoveAll(home)
	if built.dir != "" {
		_ = os.RemoveAll(built.dir) // in the temporary folder anyway
	}
	os.Exit(code)
}

// Binary is the gateway's binary, built on first use in this test run.
func Binary(t testing.TB) string {
	t.Helper()
	built.once.Do(func() {
		if built.binary = os.Getenv(BinaryEnv); built.binary != "" {
			_, built.err = os.Stat(built.binary) // tells the test cache that results depend on this file
			return
		}
		if built.dir, built.err = os.MkdirTemp("", "stagedoor-test-"); built.err != nil {
			return
		}
		built.binary, built.err = Build(context.Background(), built.dir, "./cmd/stagedoor")
	})
	if built.err != nil {
		t.Fatal(built.err)
	}
	return built.binary
}
