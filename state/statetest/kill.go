package statetest

import (
	"bufio"
	"fmt"
	"os"
	"os/exec"
	"strings"
	"sync"
	"testing"
)

const (
	// childDir tells a test binary that it is the process to be killed, and where
	// it writes.
	childDir = "STAGEDOOR_TEST_CHILD_DIR"
	// killAfter is the number of acknowledgements before the kill: enough for all writers
	// to be in the middle of a commit.
	killAfter = 300
	// failed begins the line of a child that cannot go on.
	failed = "error"
)

// PrintLine prints words as one line, which Kill reads. Writers may call it at the same time.
type PrintLine func(words ...any)

// Child runs write if this process was started by Kill, and reports whether it was.
// Call it from TestMain, before any test is run. write works on a directory until
// it is killed, and prints what was acknowledged; it returns only if it fails.
func Child(write func(dir string, print PrintLine) error) bool {
	dir := os.Getenv(childDir)
	if dir == "" {
		return false
	}
	var out sync.Mutex // one line is one write
	print := func(words ...any) {
		out.Lock()
		defer out.Unlock()
		fmt.Println(words...)
	}
	print(failed, write(dir, print))
	return true
}

// Kill runs the test binary as a child that writes to dir, kills it after it has printed some hundreds of lines, and
// returns how many there were. acknowledged is called with each line, also with those that were still in the pipe at
// the kill, because the child had printed them.
func Kill(t testing.TB, dir string, acknowledged func(line string)) (lines int) {
	t.Helper()
	cmd := exec.Command(os.Args[0])
	cmd.Env = append(os.Environ(), childDir+"="+dir)
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	for printed := bufio.NewScanner(out); printed.Scan(); lines++ {
		if line := printed.Text(); strings.HasPrefix(line, failed) {
			t.Error("child:", line)
		} else {
			acknowledged(line)
		}
		if lines == killAfter {
			if err := cmd.Process.Kill(); err != nil {
				t.Fatal(err)
			}
		}
	}
	if err := cmd.Wait(); err == nil {
		t.Error("the child ended by itself")
	}
	return lines
}
